"""Which unknowns all recordings have in common, which belong to each, and which of these scatter about a mean."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

import numpy as np

from shadowfit.arrays import Int
from shadowfit.estimation.problem.parameter import Free, ParameterError
from shadowfit.estimation.problem.parameters import FreeParameters, ParameterSet, parameter_set
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.records import record


@record(frozen=True)
class Roles:
    """Places of a recording's increments (*local*), and of the increments that all have in *common*."""

    shared: Int[np.ndarray, " s"]
    """Local places of parameters that all recordings share."""
    common: Int[np.ndarray, " s"]
    """Their places among the common ones."""
    individual: Int[np.ndarray, " q"]
    """Local places of what belongs to each recording."""
    mean: Int[np.ndarray, " q"]
    """Of each of these, the place of the mean among the common ones; −1: it has none."""
    mean_numbers: Int[np.ndarray, " k"]
    """Places of the means among the common numbers, rotations left out, for those that have one."""
    size: int
    """d: common increments."""

    @property
    def scattering(self) -> Int[np.ndarray, " k"]:
        """Which of the individual increments scatter about a mean."""
        return np.flatnonzero(self.mean >= 0)


@record(frozen=True)
class Request:
    """Free parameters of a fit over many recordings."""

    free: Mapping[str, Free]
    """By name; ``per_recording``: a value in each recording."""
    scatter: tuple[str, ...]
    """Those whose values scatter about a common mean."""

    def local(self, mechanism: Mechanism, recordings: int) -> ParameterSet:
        """The parameters as some recordings see them: what scatters has a value in each."""
        return parameter_set(mechanism, self._requested(True), recordings)

    def common(self, mechanism: Mechanism) -> ParameterSet:
        """What all recordings have in common: shared parameters, and means."""
        kept = {name: free for name, free in self._requested(False).items() if not free.per_recording}
        return parameter_set(mechanism, kept, 1)

    def _requested(self, scattering: bool) -> dict[str, Free]:
        return {
            name: dataclasses.replace(free, per_recording=scattering) if name in self.scatter else free
            for name, free in self.free.items()
        }

    @property
    def scattering(self) -> list[str]:
        """Names of those that scatter, in the order of the parameters."""
        return [name for name in self.free if name in self.scatter]

    def roles(self, mechanism: Mechanism) -> Roles:
        """The places of all increments."""
        shared: list[int] = []
        common: list[int] = []
        individual: list[int] = []
        mean: list[int] = []
        numbers: list[int] = []
        local = place = number = 0
        for parameter in self.local(mechanism, 1).parameters:
            if parameter.name in self.scatter:
                numbers.append(number)
            number += not parameter.is_rotation and (not parameter.per_recording or parameter.name in self.scatter)
            for _ in range(parameter.size):
                if not parameter.per_recording:
                    shared.append(local)
                    common.append(place)
                else:
                    individual.append(local)
                    mean.append(place if parameter.name in self.scatter else -1)
                local += 1
                place += not parameter.per_recording or parameter.name in self.scatter
        places = [np.array(listed, int) for listed in (shared, common, individual, mean, numbers)]
        return Roles(places[0], places[1], places[2], places[3], places[4], place)


def request(mechanism: Mechanism, free: FreeParameters, scatter: Collection[str] = ()) -> Request:
    """Free parameters by name, checked; ``scatter`` are names or patterns of some of them."""
    checked = parameter_set(mechanism, free)
    listed = [free] if isinstance(free, str) else free
    given = dict(listed) if isinstance(listed, Mapping) else dict.fromkeys(listed)
    named: dict[str, Free] = {}
    for pattern, asked in given.items():
        for name in mechanism.expand(pattern):
            named[name] = asked if isinstance(asked, Free) else Free(start=asked)
    scattering = tuple(dict.fromkeys(name for pattern in scatter for name in mechanism.expand(pattern)))
    for name in scattering:
        if name not in named:
            raise ParameterError(f"{name} is to scatter about a mean, but it is not free; name it among the free ones")
        if {p.name: p for p in checked.parameters}[name].is_rotation:
            raise ParameterError(f"{name} is a rotation, which cannot scatter about a mean; give it to each recording")
    return Request(named, scattering)
