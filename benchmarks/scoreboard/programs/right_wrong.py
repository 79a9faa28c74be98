"""Twins that are what their model says, and the same with one mistake of a user: what do the three commands say?

A mistake is one of the model (friction left out, a mass or a lever that is wrong) or of the recording. The recording
goes through a file, as a user's does; the one that ``validate`` sees is another motion with the same mistake. What no
data can tell is left out: mass and clock of a pendulum whose inertia and friction are free scale all of them.
"""

from __future__ import annotations

import dataclasses
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import shadowfit_fit, sticking, tasks, truth
from benchmarks.peers.tasks import TASKS
from benchmarks.scoreboard.case import Case, Form
from benchmarks.scoreboard.outcome import fitted, outcome
from benchmarks.scoreboard.outcomes import FOLDER
from shadowfit.dynamics import place, simulate
from shadowfit.errors import ShadowfitError
from shadowfit.estimation import Free
from shadowfit.evaluation import load_result, validate
from shadowfit.evaluation.notices import Notice, colour
from shadowfit.evaluation.precheck import check
from shadowfit.evaluation.validation import judged
from shadowfit.mechanism import Mechanism
from shadowfit.models import load_model
from shadowfit.recordings import Recording, read_recording
from shadowfit.runtime import start_jax

RIGHT = "right"


@dataclasses.dataclass(frozen=True)
class Problem:
    """What a user has."""

    mechanism: Mechanism
    free: Mapping[str, float]
    """Start values."""
    truth: Mapping[str, float]
    recordings: tuple[Recording, Recording]
    """What is fitted, and another motion."""


@dataclasses.dataclass(frozen=True)
class Machine:
    """A machine that its model describes, and where mistakes can be made."""

    says: str
    problem: Callable[[int], Problem]
    """Of a seed."""
    mistakes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Mistake → name of the number or channel that it is made at; empty where it needs none."""
    seeds: int = 1
    """Of the right one."""
    quick: bool = False


def _twin(name: str, integrate: truth.Integrator, known: Sequence[str] = ()) -> Callable[[int], Problem]:
    def problem(seed: int) -> Problem:
        task = TASKS[name]
        another = dataclasses.replace(task, experiment=task.held_out)
        first, second = (
            shadowfit_fit.recording(own, tasks.measure(own, seed + place, FOLDER / "truth", integrate))
            for place, own in ((0, task), (100, another))
        )
        mechanism = shadowfit_fit.mechanism(task).set({name: task.truth[name] for name in known})
        free = {name: start for name, start in task.starts.items() if name not in known}
        return Problem(mechanism, free, task.truth, (first, second))

    return problem


NEWCOMER = ("arm.inertia.zz", "pendulum.inertia.yy", "hinge2.viscous")


def _newcomer(seed: int) -> Problem:
    """The built-in machine, simulated with rigid joints at 500 Hz, with white noise as stated."""
    mechanism = load_model("furuta").mechanism
    start, h, recordings = place(mechanism, {}), 2e-3, []
    for duration, shift in ((10.0, 0.0), (5.0, 2.0)):
        count = round(duration / h)
        time, rng = h * np.arange(count), np.random.default_rng([seed, round(shift)])
        command = np.sin(2.0 * time + shift) + 0.5 * np.sin(0.7 * time + 1.0)
        run = simulate(mechanism, start, {"u": command[:-1]}, timestep=h, steps=count - 1, joints="rigid")
        channels = {
            name: np.asarray(run.readings[name])[:count] + sensor.std * rng.standard_normal(count)
            for name, sensor in mechanism.sensors.items()
        }
        recordings.append(Recording(time, {**channels, "u": command}))
    true = {name: mechanism.get(name) for name in NEWCOMER}
    return Problem(mechanism, true, true, (recordings[0], recordings[1]))


ANYWHERE = dict.fromkeys(("friction left out", "each sample twice", "smoothed", "shuffled", "reversed"), "")
SCENARIOS: dict[str, Machine] = {
    "pendulum": Machine(
        "pendulum, released, stick and slip",
        _twin("pendulum", sticking.advance),
        {**ANYWHERE, "degrees": "theta"},
        quick=True,
    ),
    "furuta": Machine(
        "rotary pendulum, pulses, stick and slip, gain known",
        _twin("furuta-pulse-dry-near", sticking.advance, ("hinge1.motor.gain",)),
        {
            **ANYWHERE,
            "5 % slow": "",
            "wrong mass": "pendulum.mass",
            "wrong lever": "hinge2.child_point.x",
            "wrong sign": "theta2",
            "degrees": "theta2",
            "late input": "u",
        },
        quick=True,
    ),
    "cartpole": Machine(
        "cart and pole, a chirp of the force, no dry friction",
        _twin("cartpole", truth.advance),
        {
            **ANYWHERE,
            "5 % slow": "",
            "wrong mass": "pole.mass",
            "wrong lever": "pivot.child_point.z",
            "wrong sign": "theta",
            "degrees": "theta",
            "late input": "u",
        },
    ),
    "arm": Machine(
        "arm of two links, a chirp of both motors, no dry friction",
        _twin("arm", truth.advance),
        {
            **ANYWHERE,
            "5 % slow": "",
            "wrong mass": "lower.mass",
            "wrong lever": "elbow.child_point.x",
            "wrong sign": "q2",
            "degrees": "q2",
            "late input": "u1",
        },
    ),
    "newcomer": Machine(
        "the built-in rotary pendulum as a newcomer simulates it, free numbers start at the truth",
        _newcomer,
        seeds=4,
        quick=True,
    ),
}


# --- mistakes of the model ---


def _without_friction(problem: Problem) -> Problem:
    """Dry friction is left out; where there is none, viscous friction."""
    kind = "coulomb" if any(name.endswith("coulomb") for name in problem.free) else "viscous"
    gone = [name for name in problem.free if name.endswith(kind)]
    free = {name: start for name, start in problem.free.items() if name not in gone}
    return dataclasses.replace(problem, mechanism=problem.mechanism.set(dict.fromkeys(gone, 0.0)), free=free)


def _scaled(factor: float) -> Callable[[Problem, str], Problem]:
    def scaled(problem: Problem, name: str) -> Problem:
        return dataclasses.replace(
            problem, mechanism=problem.mechanism.set({name: factor * problem.mechanism.get(name)})
        )

    return scaled


# --- mistakes of the recording ---


def _channel(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Problem, str], Problem]:
    """One channel is changed in both recordings."""

    def changed(problem: Problem, name: str) -> Problem:
        first, second = (
            dataclasses.replace(one, channels={**one.channels, name: change(one.channels[name])})
            for one in problem.recordings
        )
        return dataclasses.replace(problem, recordings=(first, second))

    return changed


def _rows(change: Callable[[Recording, Mechanism], Recording]) -> Callable[[Problem, str], Problem]:
    """Both recordings are changed as a whole."""

    def changed(problem: Problem, _: str) -> Problem:
        first, second = (change(one, problem.mechanism) for one in problem.recordings)
        return dataclasses.replace(problem, recordings=(first, second))

    return changed


def _each(recording: Recording, change: Callable[[np.ndarray], np.ndarray]) -> dict[str, np.ndarray]:
    return {name: change(values) for name, values in recording.channels.items()}


def _slow(recording: Recording, _: Mechanism) -> Recording:
    return dataclasses.replace(recording, time=1.05 * recording.time)


def _twice(recording: Recording, _: Mechanism) -> Recording:
    """A logger that asks twice as often as its source sends."""
    time = recording.time[0] + 0.5 * recording.sample_interval * np.arange(2 * len(recording.time))
    return dataclasses.replace(recording, time=time, channels=_each(recording, lambda values: np.repeat(values, 2)))


def _smoothed(recording: Recording, mechanism: Mechanism) -> Recording:
    """What the sensors read is a moving average over 0.2 s."""
    count = round(0.2 / recording.sample_interval) // 2 * 2 + 1
    average = {
        name: np.convolve(np.pad(recording.channels[name], count // 2, "edge"), np.full(count, 1.0 / count), "valid")
        for name in mechanism.sensors
    }
    return dataclasses.replace(recording, channels={**recording.channels, **average})


def _shuffled(recording: Recording, _: Mechanism) -> Recording:
    order = np.random.default_rng(0).permutation(len(recording.time))
    return dataclasses.replace(recording, channels=_each(recording, lambda values: values[order]))


def _reversed(recording: Recording, _: Mechanism) -> Recording:
    return dataclasses.replace(recording, channels=_each(recording, lambda values: values[::-1]))


def _late(values: np.ndarray) -> np.ndarray:
    """30 ms behind the angles."""
    count = round(0.03 / tasks.INTERVAL)
    return np.concatenate([np.full(count, values[0]), values[:-count]])


@dataclasses.dataclass(frozen=True)
class Mistake:
    """What is wrong, and how a sentence names it."""

    made: Callable[[Problem, str], Problem]
    words: str
    """A regular expression."""


MISTAKES: dict[str, Mistake] = {
    "friction left out": Mistake(lambda problem, _: _without_friction(problem), r"friction"),
    "wrong mass": Mistake(_scaled(1.5), r"\bmass"),
    "wrong lever": Mistake(_scaled(1.3), r"\blever|\blength|\bplace|child_point|geometry"),
    "wrong sign": Mistake(_channel(np.negative), r"\bsign\b|mirror|other (side|way)|half a turn"),
    "degrees": Mistake(_channel(np.rad2deg), r"\bdegrees?\b|\bunits?\b"),
    "5 % slow": Mistake(_rows(_slow), r"\bclock|\btimes?\b.*\b(slow|fast|wrong|scale)|\bslow\b"),
    "each sample twice": Mistake(_rows(_twice), r"\btwice\b|\brepeat|\bstaircase|\bstairs?\b"),
    "smoothed": Mistake(_rows(_smoothed), r"\bsmooth|\bfilter|\baverage"),
    "shuffled": Mistake(_rows(_shuffled), r"\border\b"),
    "reversed": Mistake(_rows(_reversed), r"\bbackwards?\b|\breverse"),
    "late input": Mistake(_channel(_late), r"\bdelay|\blate\b|\blags?\b"),
}


def cases(form: Form) -> list[Case]:
    """The right one, with each of its seeds, and each mistake."""
    return [
        Case("right_wrong", name, variant)
        for name, machine in SCENARIOS.items()
        if form == "full" or machine.quick
        for variant in (*(f"{RIGHT}, seed {seed}" for seed in range(machine.seeds)), *machine.mistakes)
    ]


def run(case: Case) -> dict[str, Any]:
    """What the commands say, one after the other."""
    machine, wrong = SCENARIOS[case.scenario], case.variant in MISTAKES
    problem = machine.problem(0 if wrong else int(case.variant.split()[-1]))
    if wrong:
        problem = MISTAKES[case.variant].made(problem, machine.mistakes[case.variant])
    start_jax()
    truths = {name: problem.truth[name] for name in problem.free}
    found: dict[str, Any] = {"wrong": wrong, "parameters": {}, "says": {}}
    try:
        recording, another = (_through_a_file(one) for one in problem.recordings)
        seen = check(problem.mechanism, [recording], {name: Free(start=start) for name, start in problem.free.items()})
        found["says"]["check"] = _said(seen.notices)
        with tempfile.TemporaryDirectory() as folder:
            estimate = fitted(problem.mechanism, recording, problem.free)
            found |= outcome(estimate, truths, Path(folder))
            saved = load_result(folder)
            found["says"]["fit"] = _said([Notice(**one) for one in saved.summary["notices"]])
            found["says"]["validate"] = _said(judged(validate(saved, another))[0])
    except ShadowfitError as error:
        # A refusal is an answer, too.
        found["says"]["refused"] = {"colour": "red", "notices": [["red", str(error)]]}
    named = MISTAKES[case.variant].words if wrong else "(?!)"
    return {**found, "named": [one for one in _texts(found) if re.search(named, one, re.IGNORECASE)]}


def _through_a_file(recording: Recording) -> Recording:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "recording.csv"
        columns = {"time [s]": recording.time, **recording.channels}
        table = np.column_stack(list(columns.values()))
        np.savetxt(file, table, delimiter=",", header=",".join(columns), comments="", fmt="%.9g")
        return read_recording(file)


def _said(notices: Sequence[Notice]) -> dict[str, Any]:
    return {"colour": colour(notices), "notices": [[one.severity, one.sentences()] for one in notices]}


def _texts(found: Mapping[str, Any]) -> list[str]:
    return [text for said in found["says"].values() for severity, text in said["notices"] if severity != "info"]
