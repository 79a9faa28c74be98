"""Errors of forces that were read, in the units of their reading.

Where a controller holds a machine on its path, errors of the equations of motion are mostly those of the drives' forces
as they were read: of a current, say, which the gain G of the drive makes a force. Their density is one of the reading,

    −2 log p = Σ_k r_k²/σ² − 2 log G,        ρ = r G₀/G,        dρ = G₀/G (dr − r d log G),

with the missing impulse ``r = … − G u``: in units of the reading, ρ, the level of the errors does not depend on G. (A
fit that forgets it makes r small by making all forces small: gains, masses and friction of an arm together, by a factor
of up to a thousand, and a prior of each gain does not outweigh thousands of samples.) Along a common factor of all
gains, masses and friction rows then hold nothing: it is told by priors, or by what is known of a body.

An error that acts on the machine has no such term but the determinant of the inertia
(:mod:`uncertainty.determinant`). A joint of whose errors the part 1 − c acts has ``(G₀/G)^c``, and the part 1 − c of
the determinant, so that in either case the common factor changes nothing.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from shadowfit.arrays import Bool, Float
from shadowfit.estimation.problem.drives import inputs_of
from shadowfit.estimation.problem.parameters import ParameterSet
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.mechanism.laws import TorqueMotor
from shadowfit.records import record


@record(frozen=True)
class ReadForces:
    """Which impulse residuals are counted in units of a reading, and what its gain is."""

    powers: Float[np.ndarray, "r p"]
    """c of each residual in the column of each gain that is free, by the increments of a recording; else zero."""
    size: Float[np.ndarray, " r"]
    """``c log G₀``: levels are impulses there."""

    @property
    def counted(self) -> Bool[np.ndarray, " r"]:
        """Which residuals are."""
        return np.any(self.powers != 0.0, axis=1)

    def at(
        self, parameters: ParameterSet, values: Values, recording: int
    ) -> tuple[Float[np.ndarray, " r"], Float[np.ndarray, "r p"]]:
        """``(G₀/G)^c`` of each residual and ``c d log G`` by the increments of a recording."""
        gains = parameters.flat(values)[parameters.places(recording)]
        used = np.any(self.powers != 0.0, axis=0)
        slope = np.divide(self.powers, gains, out=np.zeros_like(self.powers), where=used)
        return np.exp(self.size - self.powers @ _logarithms(gains, used)), slope

    def centred(self, parameters: ParameterSet, values: Values) -> ReadForces:
        """The same with G₀ at these values; with gains of single recordings, at their mean."""
        flat, used = parameters.flat(values), np.any(self.powers != 0.0, axis=0)
        sizes = [self.powers @ _logarithms(flat[parameters.places(i)], used) for i in range(parameters.recordings)]
        return dataclasses.replace(self, size=np.mean(sizes, axis=0))

    def acting(self, share: Float[np.ndarray, " r"]) -> ReadForces:
        """The same where a part of the errors of each residual acts; from residuals all of whose errors are read."""
        return ReadForces((1.0 - share)[:, None] * self.powers, (1.0 - share) * self.size)


def read_forces(problem: Problem, values: Values) -> ReadForces | None:
    """The drives with a free gain whose inputs are forces; None without any."""
    layout, levels, gains = problem.plan.layout, problem.level_names or (), gains_of(problem)
    powers = np.zeros((len(levels), problem.plan.parameters))
    for row, joint in enumerate(levels):
        read = [names for source, names in gains.get(joint, {}).items() if _varies(problem, source)]
        for name in itertools.chain(*read):
            # A gain that starts at zero is no unit to count in.
            if name in layout.numbers and problem.mechanism.get(name) != 0.0:
                powers[row, layout.order[layout.numbers.index(name)]] += 1.0 / len(read)
    if not powers.any():
        return None
    return ReadForces(powers, np.zeros(len(levels))).centred(problem.parameters, values)


def _varies(problem: Problem, source: str) -> bool:
    """Whether anything was read of a force: what stays the same would be explained by a gain without end."""
    return any(
        np.nanmax(values, initial=-np.inf) > np.nanmin(values, initial=np.inf)
        for values in (track.recording.channel(source) for track in problem.tracks)
    )


def gains_of(problem: Problem) -> dict[str, dict[str, tuple[str, str]]]:
    """Joints that known forces drive, their inputs, and the two numbers whose product makes a force of an input."""
    return {
        joint: {source: (f"{joint}.{law}.gain", f"{source}.gain") for law, source in motors.items()}
        for joint, motors in inputs_of(problem, TorqueMotor).items()
    }


def _logarithms(gains: Float[np.ndarray, " p"], used: np.ndarray) -> Float[np.ndarray, " p"]:
    return np.log(np.maximum(np.abs(gains), np.finfo(float).tiny), out=np.zeros_like(gains), where=used)
