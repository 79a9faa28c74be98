"""Dry friction that differs by direction, and that a gear takes of its motor's torque: accelerations of a block."""

import dataclasses

import numpy as np
import pytest

from dynamics.scenes import STEPPERS
from shadowfit.dynamics import place, simulate
from shadowfit.mechanism import (
    Body,
    ConstantForce,
    Coulomb,
    Gravity,
    Input,
    JointPosition,
    Mechanism,
    TorqueMotor,
    slider,
)

MASS, LEVEL, ASYMMETRY, LOSS, PUSH = 2.0, 3.0, 1.0, 0.2, 10.0
STEP, STEPS = 1e-3, 50
ways = pytest.mark.parametrize(
    "how", [*({"discretization": name, "joints": "compliant"} for name in STEPPERS), {"joints": "rigid"}]
)


def block(**friction: float) -> Mechanism:
    rail = slider(
        "world",
        "block",
        axis=(1, 0, 0),
        friction=Coulomb(**friction),
        laws={"motor": TorqueMotor(1.0)},
        compliance=1e-9,
    )
    return Mechanism(
        {"block": Body(MASS, (1.0, 1.0, 1.0))},
        {"rail": rail},
        sensors={"x": JointPosition("rail", rotary=False)},
        inputs={"u": Input()},
        gravity=Gravity(0.0),
    )


def acceleration(mechanism: Mechanism, speed: float, force: float, how: dict[str, str]) -> float:
    """Of a block that slides from the start to the end."""
    state = place(mechanism, speeds={"rail": speed})
    run = simulate(mechanism, state, {"u": np.full(STEPS, force)}, timestep=STEP, steps=STEPS, **how, substeps=1)
    moved = np.asarray(run.states.velocity)[:, 0, 0]
    assert np.all(np.abs(moved) > 0.1) or speed == 0.0
    return float(moved[-1] - moved[-11]) / (10 * STEP)


@ways
def test_friction_differs_by_direction(how: dict[str, str]) -> None:
    mechanism = block(coulomb=LEVEL, asymmetry=ASYMMETRY)
    assert acceleration(mechanism, 2.0, 0.0, how) == pytest.approx(-(LEVEL + ASYMMETRY) / MASS, rel=1e-6)
    assert acceleration(mechanism, -2.0, 0.0, how) == pytest.approx((LEVEL - ASYMMETRY) / MASS, rel=1e-6)


@ways
@pytest.mark.parametrize(("force", "sticks"), [(3.8, True), (8.0, False), (-1.8, True), (-6.0, False), (0.0, True)])
def test_a_block_at_rest_is_held_by_the_friction_of_its_direction(
    how: dict[str, str], force: float, sticks: bool
) -> None:
    found = acceleration(block(coulomb=LEVEL, asymmetry=ASYMMETRY), 0.0, force, how)
    held = ASYMMETRY + np.sign(force) * LEVEL
    assert found == pytest.approx(0.0 if sticks else (force - held) / MASS, abs=1e-3)


@ways
@pytest.mark.parametrize("speed", [3.0, -3.0])
def test_a_gear_passes_part_of_the_torque(how: dict[str, str], speed: float) -> None:
    """1 − loss of it where the motor drives the load, 1 + loss where it brakes it."""
    passed = 1.0 - LOSS * np.sign(speed)
    assert acceleration(block(gear_loss=LOSS), speed, PUSH, how) == pytest.approx(PUSH * passed / MASS, rel=1e-6)


def test_only_motors_go_through_the_gear() -> None:
    """A constant force on the axis loses nothing."""
    mechanism = block(gear_loss=LOSS)
    joint = dataclasses.replace(mechanism.joints["rail"], laws={"pull": ConstantForce(PUSH)})
    pulled = Mechanism(dict(mechanism.bodies.items()), {"rail": joint}, inputs={"u": Input()}, gravity=Gravity(0.0))
    assert acceleration(pulled, 1.0, 0.0, {"joints": "rigid"}) == pytest.approx(PUSH / MASS, rel=1e-6)
