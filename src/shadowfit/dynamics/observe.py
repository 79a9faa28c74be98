"""What a simulation reports along its states: readings of the sensors, energies, gaps. By compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import energy
from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.kinematics import gap_values, read_sensors
from shadowfit.dynamics.state import Instant, State
from shadowfit.geometry import Pose
from shadowfit.kernels.along import along
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism.mechanism import Mechanism


def readings(mechanism: Mechanism, states: State, instants: Instant) -> dict[str, Float[np.ndarray, "t *d"]]:
    """Noise-free readings of all sensors, as they would record them."""
    if not len(mechanism.sensors):
        return {}
    sensors = mechanism.sensors.values
    given = _arrays(states)
    # What nothing asks for is left out of the code.
    asked = (any(sensor.needs_acceleration for sensor in sensors), any(sensor.needs_command for sensor in sensors))
    given += [
        np.asarray(x) for x, wanted in zip((instants.acceleration, instants.command), asked, strict=True) if wanted
    ]
    named = {}
    for (name, sensor), value in zip(mechanism.sensors.items(), along(_read, mechanism, given, asked), strict=True):
        followed = sensor.follow(value)
        named[name] = followed[:, 0] if len(sensor.components) == 1 else followed
    return named


def energies_and_gaps(mechanism: Mechanism, states: State) -> list[np.ndarray]:
    """Kinetic and potential energy [J], and the largest gap [m or rad]."""
    return along(_report, mechanism, _arrays(states))


def _arrays(states: State) -> list[np.ndarray]:
    return [np.asarray(x) for x in (states.pose.position, states.pose.orientation, states.velocity)]


def _read(mechanism: Mechanism, position: Array, orientation: Array, velocity: Array, *more: Any) -> Any:
    *rest, asked = more
    given = iter(rest)
    instant = Instant(*(next(given) if wanted else None for wanted in asked))
    return read_sensors(mechanism, assemble(mechanism), State(Pose(position, orientation), velocity), instant)


def _report(mechanism: Mechanism, position: Array, orientation: Array, velocity: Array) -> list[Array]:
    elements, state = assemble(mechanism), State(Pose(position, orientation), velocity)
    gap = jnp.max(jnp.abs(jnp.append(gap_values(elements, state.pose), 0.0)))
    return [energy.kinetic(elements, state), energy.potential(elements, state), gap]
