"""Twins: machines whose truth is known, simulated by independent equations; a seed changes the noise alone.

Everything is true of the model that is fitted, so that bars should be as wide as estimates scatter. Dry friction of the
truth is none, creeping (c tanh(speed/1 mrad/s)), or exact: joints stick and slip (:mod:`benchmarks.peers.sticking`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.peers import shadowfit_fit, sticking, tasks, truth
from benchmarks.peers.tasks import TASKS, Experiment, Task
from benchmarks.rigs import arm
from benchmarks.scoreboard.case import Case, Form
from benchmarks.scoreboard.outcome import fitted, held_pairs, outcome
from benchmarks.scoreboard.outcomes import FOLDER
from shadowfit.mechanism import Mechanism
from shadowfit.recordings import Recording

SEEDS: Mapping[Form, int] = {"quick": 4, "full": 20}
# An arm that rests between pulses, with the rod still swinging.
HEAVY = {"hinge1.coulomb": 0.05, "hinge2.coulomb": 1e-3}


@dataclasses.dataclass(frozen=True)
class Twin:
    """What is fitted, and the truth of what is free."""

    mechanism: Mechanism
    recording: Recording
    starts: Mapping[str, float]
    truth: Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class Scenario:
    """A machine and a motion."""

    says: str
    twin: Callable[[int], Twin]
    """Of a seed."""
    quick: bool = False


def _twin(task: Callable[[], Task], integrate: truth.Integrator = truth.advance) -> Callable[[int], Twin]:
    def twin(seed: int) -> Twin:
        own = task()
        data = tasks.measure(own, seed, FOLDER / "truth", integrate)
        true = {name: own.truth[name] for name in own.starts}
        return Twin(shadowfit_fit.mechanism(own), shadowfit_fit.recording(own, data), own.starts, true)

    return twin


def _six_axes(seed: int) -> Twin:
    starts = {name: tasks.NEAR_FACTOR * value for name, value in arm.TRUTH.items()}
    return Twin(arm.arm(), arm.true(seed), starts, arm.TRUTH)


def _named(name: str) -> Callable[[], Task]:
    return lambda: TASKS[name]


def _changed(name: str, experiment: Experiment | None = None, **values: float) -> Callable[[], Task]:
    """A task with other true numbers, from whose one and a half the fit starts, or another motion."""

    def changed() -> Task:
        task = TASKS[name]
        true = {**task.truth, **{key.replace("__", "."): value for key, value in values.items()}}
        starts = {key: tasks.NEAR_FACTOR * true[key] for key in task.starts}
        return dataclasses.replace(task, truth=true, starts=starts, experiment=experiment or task.experiment)

    return changed


def _furuta() -> dict[str, Scenario]:
    """All motions of the rotary pendulum with the three kinds of friction."""
    found = {}
    for motion, says in (
        ("pulse", "rotary pendulum, pulses of the motor"),
        ("chirp", "rotary pendulum, a chirp of the motor"),
        ("swing-up", "rotary pendulum, swung up by a controller"),
        ("release", "rotary pendulum, released near upright, no motor"),
    ):
        name, dry = f"furuta-{motion}-near", f"furuta-{motion}-dry-near"
        quick = motion == "pulse"
        found[f"furuta-{motion}"] = Scenario(f"{says}, no dry friction", _twin(_named(name)), quick)
        found[f"furuta-{motion}-creep"] = Scenario(f"{says}, dry friction that creeps", _twin(_named(dry)))
        found[f"furuta-{motion}-stick"] = Scenario(
            f"{says}, exact stick and slip", _twin(_named(dry), sticking.advance), quick
        )
    return found


PULSED_CART = Experiment("pulse", (0.0, 0.8, 0.0, 0.0), tasks.pulses(2.0, 0.25))
SCENARIOS: dict[str, Scenario] = {
    **_furuta(),
    "furuta-rest-stick": Scenario(
        "rotary pendulum, pulses, an arm that rests in the pauses by exact dry friction",
        _twin(
            _changed("furuta-pulse-dry-near", **{key.replace(".", "__"): value for key, value in HEAVY.items()}),
            sticking.advance,
        ),
        quick=True,
    ),
    "pendulum-creep": Scenario("pendulum, released near upright, dry friction that creeps", _twin(_named("pendulum"))),
    "pendulum-stick": Scenario(
        "pendulum, released near upright, exact stick and slip", _twin(_named("pendulum"), sticking.advance), quick=True
    ),
    "cartpole-chirp": Scenario("cart and pole, a chirp of the force", _twin(_named("cartpole"))),
    "cartpole-pulse": Scenario(
        "cart and pole, pulses of the force", _twin(_changed("cartpole", PULSED_CART)), quick=True
    ),
    "arm": Scenario("arm of two links, a chirp of both motors", _twin(_named("arm"))),
    "six-axes": Scenario("arm of six axes in a position loop, torques read, stick and slip", _six_axes, quick=True),
}


def cases(form: Form, seeds: int | None = None) -> list[Case]:
    """A case for each seed."""
    chosen = [name for name, scenario in SCENARIOS.items() if form == "full" or scenario.quick]
    return [
        Case("twins", name, f"seed {seed}", limit=120.0)
        for name in chosen
        for seed in range(SEEDS[form] if seeds is None else seeds)
    ]


def run(case: Case) -> dict[str, Any]:
    """The fit of one seed, and which regions of its draws hold the truth."""
    twin = SCENARIOS[case.scenario].twin(int(case.variant.removeprefix("seed ")))
    found = fitted(twin.mechanism, twin.recording, twin.starts)
    return {**outcome(found, twin.truth), "regions": held_pairs(found.estimate, twin.truth)}
