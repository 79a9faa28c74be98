"""The same fit under changes that should not matter, or hardly: rounding, a little noise, a little left out."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rigs.real import rigs
from benchmarks.scoreboard.case import Case, Form
from benchmarks.scoreboard.outcome import fitted, outcome
from benchmarks.scoreboard.programs import twins
from shadowfit.mechanism import Mechanism
from shadowfit.models import builtin
from shadowfit.models.twins import furuta_swing_up
from shadowfit.recordings import Recording, read_recording

AS_IT_IS = "as it is"
Problem = tuple[Mechanism, Recording, Sequence[str] | Mapping[str, Any]]
"""Model, recording, what is free."""


@dataclasses.dataclass(frozen=True)
class Machine:
    """What is fitted again and again."""

    says: str
    problem: Callable[[], Problem]
    quick: bool = False
    needs_data: bool = False


def _twin(name: str) -> Callable[[], Problem]:
    def problem() -> Problem:
        twin = twins.SCENARIOS[name].twin(0)
        return twin.mechanism, twin.recording, twin.starts

    return problem


def _swing_up() -> Problem:
    twin = furuta_swing_up()
    return builtin.furuta().set(twin.settings), twin.recording, twin.free


def _real(name: str) -> Callable[[], Problem]:
    def problem() -> Problem:
        rig = rigs()[name]
        return rig.mechanism(), rig.read(rig.fitted[0]), rig.free

    return problem


SCENARIOS: dict[str, Machine] = {
    "swing-up": Machine("rotary pendulum swung up, thirteen numbers, counts of encoders (twin)", _swing_up, quick=True),
    "furuta-stick": Machine("rotary pendulum, pulses, stick and slip (twin)", _twin("furuta-pulse-stick"), quick=True),
    "cartpole-pulse": Machine("cart and pole, pulses (twin)", _twin("cartpole-pulse")),
    "qube": Machine("Quanser QUBE, one chirp (real)", _real("qube"), quick=True, needs_data=True),
    "cartpole": Machine("Quanser cart and pole, one chirp (real)", _real("cartpole"), needs_data=True),
    "single": Machine("pendulum that decays (real)", _real("single"), needs_data=True),
    "dfki": Machine("two motors in a position loop (real)", _real("dfki"), needs_data=True),
}


def _rounded(problem: Problem) -> Problem:
    mechanism, recording, free = problem
    channels = {name: values * (1.0 + 1e-10) for name, values in recording.channels.items()}
    return mechanism, dataclasses.replace(recording, channels=channels), free


def _in_degrees(problem: Problem) -> Problem:
    """Angles written as degrees and read again."""
    mechanism, recording, free = problem
    degrees = {name: 180.0 / np.pi for name, sensor in mechanism.sensors.items() if sensor.unit() == "rad"}
    columns = {"time [s]": recording.time} | {
        f"{name} [deg]" if name in degrees else name: values * degrees.get(name, 1.0)
        for name, values in recording.channels.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "recording.csv"
        table = np.column_stack(list(columns.values()))
        np.savetxt(file, table, delimiter=",", header=",".join(columns), comments="", fmt="%.17g")
        return mechanism, read_recording(file), free


def _later(problem: Problem) -> Problem:
    mechanism, recording, free = problem
    return mechanism, dataclasses.replace(recording, time=recording.time + 17.0), free


def _turned_round(problem: Problem) -> Problem:
    mechanism, recording, free = problem
    return mechanism, dataclasses.replace(recording, channels=dict(reversed(recording.channels.items()))), free


def _with_noise(problem: Problem) -> Problem:
    """A hundredth of the stated noise on top."""
    mechanism, recording, free = problem
    rng = np.random.default_rng(1)
    added = {
        name: 0.01 * sensor.std * rng.standard_normal(len(recording.time)) for name, sensor in mechanism.sensors.items()
    }
    channels = {name: values + added.get(name, 0.0) for name, values in recording.channels.items()}
    return mechanism, dataclasses.replace(recording, channels=channels), free


def _without(first: float, last: float) -> Callable[[Problem], Problem]:
    def left(problem: Problem) -> Problem:
        mechanism, recording, free = problem
        begin, duration = recording.time[0], recording.duration
        return mechanism, recording.between(begin + first * duration, begin + (1.0 - last) * duration), free

    return left


@dataclasses.dataclass(frozen=True)
class Change:
    """What is done to a problem, or to the processor."""

    family: str
    made: Callable[[Problem], Problem] = lambda problem: problem
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)


CHANGES: dict[str, Change] = {
    AS_IT_IS: Change("reference"),
    "readings times 1 + 1e-10": Change("rounding", _rounded),
    "angles in degrees": Change("rounding", _in_degrees),
    "clock 17 s later": Change("rounding", _later),
    "columns in another order": Change("rounding", _turned_round),
    "BLAS Haswell": Change("rounding", environment={"OPENBLAS_CORETYPE": "Haswell"}),
    "BLAS Prescott": Change("rounding", environment={"OPENBLAS_CORETYPE": "Prescott"}),
    "four threads": Change("rounding", environment={"OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "4"}),
    "1 % of the noise added": Change("noise", _with_noise),
    "first 1 % left out": Change("left out", _without(0.01, 0.0)),
    "first 2 % left out": Change("left out", _without(0.02, 0.0)),
    "last 1 % left out": Change("left out", _without(0.0, 0.01)),
    "last 2 % left out": Change("left out", _without(0.0, 0.02)),
}


def cases(form: Form) -> list[Case]:
    """A case for each machine and change."""
    return [
        Case("stability", name, what, environment=change.environment, needs_data=machine.needs_data)
        for name, machine in SCENARIOS.items()
        if form == "full" or machine.quick
        for what, change in CHANGES.items()
    ]


def run(case: Case) -> dict[str, Any]:
    """The fit under one change."""
    mechanism, recording, free = CHANGES[case.variant].made(SCENARIOS[case.scenario].problem())
    return {"family": CHANGES[case.variant].family, **outcome(fitted(mechanism, recording, free))}
