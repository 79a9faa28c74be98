"""The model of a driven pendulum: one body, viscous and Coulomb friction, a known torque, an encoder with counts."""

from __future__ import annotations

import numpy as np

from shadowfit.mechanism import Body, Coulomb, Input, JointPosition, Mechanism, TorqueMotor, hinge


def driven_pendulum(
    mass: float, length: float, moment: float, viscous: float, coulomb: float, counts: float
) -> Mechanism:
    """Start values [kg, m, kg m², N m s/rad, N m] and the step of the encoder [rad]."""
    swing = hinge(
        "world",
        "arm",
        axis=(0.0, 1.0, 0.0),
        child_point=(0.0, 0.0, length),
        viscous=viscous,
        friction=Coulomb(coulomb=coulomb),
        laws={"motor": TorqueMotor(1.0, input="u")},
    )
    sensors = {"theta": JointPosition(joint="hinge", std=counts / np.sqrt(12.0))}
    bodies = {"arm": Body(mass, (moment, moment, moment))}
    return Mechanism(bodies, {"hinge": swing}, sensors=sensors, inputs={"u": Input(unit="N m")})
