"""DesignSettings of a design, and whether they make sense."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from shadowfit.designs.criteria import Criterion, check_criterion
from shadowfit.designs.errors import DesignError
from shadowfit.dynamics.tree import coordinate_names, tree_of
from shadowfit.errors import UnknownNameError, nearest
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.records import record

# Fewest samples of a recording.
LEAST_SAMPLES = 50


@record(frozen=True)
class DesignSettings:
    """What is recorded, what counts, and how long is searched."""

    duration: float = 10.0
    """[s]."""
    interval: float = 0.01
    """Time between samples [s]."""
    criterion: Criterion = "worst"
    noise: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Sensor → standard deviation in its unit, or joint → error of its force [N m, N], white at the sampling rate."""
    band: float | None = None
    """Highest frequency [Hz]; None: four swings of a pendulum as long as the machine in the time of one."""
    frequencies: int | None = None
    """Frequencies of the series of each channel; None: 12 for a single channel, 5 for many."""
    starts: int = 4
    """Motions from which the search starts, the best of many."""
    evaluations: int = 4000
    """Motions that the search looks at, at most; the same on any machine."""
    seconds: float = 600.0
    """Time after which the search is broken off [s], if it has not ended before; what it finds then depends on the
    machine, and the design says so."""
    seed: int = 0
    """Of random motions to start from."""

    def check(self) -> None:
        """Raise where a number makes no sense."""
        check_criterion(self.criterion)
        for name in ("duration", "interval", "frequencies", "starts", "evaluations", "band", "seconds"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value > 0):
                raise DesignError(f"the {name} of a design is {value}; it must be a positive number")
        if self.duration < LEAST_SAMPLES * self.interval:
            raise DesignError(
                f"{self.duration:g} s with a sample every {self.interval:g} s are fewer than {LEAST_SAMPLES} samples; "
                "record longer, or faster"
            )

    def split_noise(self, mechanism: Mechanism) -> tuple[dict[str, float], dict[str, float]]:
        """Noise of sensors, and errors of joints' forces."""
        joints = coordinate_names(tree_of(mechanism), mechanism)
        known = (*mechanism.sensors, *joints)
        for name, level in self.noise.items():
            if name not in known:
                raise UnknownNameError(f"noise: there is neither a sensor nor a joint {name!r}{nearest(name, known)}")
            if not (np.isfinite(level) and level > 0.0):
                raise DesignError(f"the noise of {name!r} is {level}; it must be a positive number")
        sensors = {name: level for name, level in self.noise.items() if name in mechanism.sensors}
        return sensors, {name: level for name, level in self.noise.items() if name not in sensors}
