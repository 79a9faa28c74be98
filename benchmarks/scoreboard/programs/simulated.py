"""Simulated robots, fitted with a file that is off: do intervals hold the truth, are torques of the rest predicted?

By MuJoCo (:mod:`benchmarks.rigs.mujoco_arms`), by Pinocchio with drives that the model does not have in all
(:mod:`benchmarks.rigs.geared_arms`), and a servo that is integrated exactly (:mod:`benchmarks.rigs.held_targets`).
"""

from __future__ import annotations

import dataclasses
import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rigs import held_targets, mujoco_arms
from benchmarks.rigs.robot import Robot
from benchmarks.scoreboard.case import Case, Form
from benchmarks.scoreboard.outcome import fitted, outcome
from shadowfit.cli.options import free_parameters, known_beforehand
from shadowfit.evaluation import load_result, validate
from shadowfit.evaluation.torques import whole_share
from shadowfit.models import load_model
from shadowfit.recordings import Recording

# Friction, rotor and motor that nothing of the wrist drives.
LOOSE = (0.03, 0.01, 0.002)
SERVO_DAMPING, SEEDS = 1.5, {"quick": 4, "full": 30}


@dataclasses.dataclass(frozen=True)
class Scenario:
    """A robot, or a servo whose targets are held for some samples."""

    says: str
    robot: Callable[[], Robot] | None = None
    held: int = 0
    quick: bool = False


def _mujoco(arm: Callable[[], mujoco_arms.Arm]) -> Callable[[], Robot]:
    return lambda: mujoco_arms.robot(arm())


def _geared(name: str, **how: bool) -> Callable[[], Robot]:
    def robot() -> Robot:
        from benchmarks.rigs import geared_arms  # noqa: PLC0415  (only here Pinocchio is needed)

        return getattr(geared_arms, name)(**how)

    return robot


SCENARIOS: dict[str, Scenario] = {
    "shoulder": Scenario("arm of four axes, torques read (MuJoCo)", _mujoco(mujoco_arms.shoulder), quick=True),
    "legs": Scenario("two legs of three joints, targets read (MuJoCo)", _mujoco(mujoco_arms.legs), quick=True),
    "servos": Scenario(
        "arm of four servos, targets in stairs of 20 ms (MuJoCo)", _mujoco(mujoco_arms.servos), quick=True
    ),
    "wrist": Scenario(
        "arm of seven axes, torques read, a wrist that nothing drives (MuJoCo)",
        _mujoco(functools.partial(mujoco_arms.wrist, LOOSE)),
    ),
    "palletiser": Scenario("palletiser with a parallelogram, torques read (MuJoCo)", _mujoco(mujoco_arms.palletiser)),
    "seven": Scenario(
        "arm of seven axes with harmonic drives, Stribeck friction and ripple that the model lacks", _geared("seven")
    ),
    "pauses": Scenario(
        "arm of seven axes from point to point with pauses, friction that stays at rest", _geared("seven", pausing=True)
    ),
    "parallelogram": Scenario("four axes, one of which mimics another, Stribeck friction", _geared("parallelogram")),
    "currents": Scenario(
        "arm of six axes, currents read, gains known to 5 %, Stribeck friction and ripple", _geared("currents")
    ),
    **{
        f"servo-held-{held}": Scenario(
            f"servo with a delay, targets held for {held} samples", held=held, quick=held == 3
        )
        for held in (1, 3, 6)
    },
}


def cases(form: Form) -> list[Case]:
    """One for each robot, and seeds of the servo."""
    return [
        Case("simulated", name, variant, limit=900.0)
        for name, scenario in SCENARIOS.items()
        if form == "full" or scenario.quick
        for variant in ([f"seed {seed}" for seed in range(SEEDS[form])] if scenario.held else ["fit"])
    ]


def run(case: Case) -> dict[str, Any]:
    """A fit with plain defaults, and torques of what it has not seen."""
    scenario = SCENARIOS[case.scenario]
    if scenario.robot is None:
        recording, delay = held_targets.recorded(SERVO_DAMPING, scenario.held, int(case.variant.split()[-1]))
        truths = (held_targets.VISCOUS, held_targets.ROTOR, delay)
        found = fitted(held_targets.servo(SERVO_DAMPING), recording, held_targets.FREE)
        return outcome(found, dict(zip(held_targets.FREE, truths, strict=True)))
    robot = scenario.robot()
    recording = Recording(robot.time, dict(robot.channels))
    with tempfile.TemporaryDirectory() as folder:
        ending = "urdf" if "<robot" in robot.file else "xml"
        (Path(folder) / f"robot.{ending}").write_text(robot.file, encoding="utf-8")
        model = Path(folder) / "robot.toml"
        model.write_text(f'robot = "robot.{ending}"\n{robot.overlay}', encoding="utf-8")
        mechanism = load_model(str(model)).mechanism
        free = free_parameters(robot.free, mechanism, known_beforehand(robot.priors, mechanism))
        found = fitted(mechanism, recording.between(-np.inf, robot.split), free)
        result = Path(folder) / "result"
        kept = outcome(found, robot.truth, result)
        if np.isinf(robot.split):
            return kept
        torques = validate(load_result(result), recording.between(robot.split, np.inf))[0].torques
    return {**kept, "torque error": 100.0 * whole_share(torques)}
