"""The start of a simulation as a model file gives it: joint positions and speeds, poses of free bodies."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from shadowfit.dynamics.placement import place
from shadowfit.dynamics.state import State
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.records import record


@record(frozen=True)
class Start:
    """Where a mechanism starts; what is not named is at zero and at rest. Fields as in ``dynamics.place``."""

    positions: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Joint → position of its free axis [rad or m]."""
    speeds: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Joint → speed of its free axis [rad/s or m/s]."""
    poses: Mapping[str, tuple[np.ndarray, np.ndarray]] = dataclasses.field(default_factory=dict)
    """Body that no joint ties to the world → centre of mass, shape (3,) [m], and quaternion ``wxyz``, shape (4,)."""
    velocities: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    """Such a body → velocity [m/s] and angular velocity [rad/s] in the world frame, shape (6,)."""

    def with_joints(self, positions: Mapping[str, float], speeds: Mapping[str, float]) -> Start:
        """The start with other positions or speeds of some joints."""
        return dataclasses.replace(self, positions={**self.positions, **positions}, speeds={**self.speeds, **speeds})

    def state(self, mechanism: Mechanism) -> State:
        """The state with no constraint violation at this start."""
        options: dict[str, Any] = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return place(mechanism, **options)
