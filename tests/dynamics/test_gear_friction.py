"""Dry friction that differs by direction, or that a gear takes of what it transmits: accelerations of a block."""

import dataclasses

import jax
import numpy as np
import pytest

from dynamics.scenes import STEPPERS
from shadowfit.dynamics import place, simulate
from shadowfit.errors import SimulationError
from shadowfit.mechanism import (
    Body,
    ConstantForce,
    Coulomb,
    Gravity,
    Input,
    JointPosition,
    Mechanism,
    Stribeck,
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


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("speed", [3.0, -3.0])
def test_a_gear_rubs_with_what_its_load_asks_for(speed: float, turned: bool) -> None:
    """``m a = P ∓ |g P + l m a|``, whichever side of the joint is the block's."""
    gear, load, held = 0.2, 0.3, Coulomb(gear_loss=0.2, load_loss=0.3)
    ends = ("block", "world") if turned else ("world", "block")
    rail = slider(*ends, axis=(1, 0, 0), friction=held, laws={"motor": TorqueMotor(1.0)})
    mechanism = Mechanism(
        {"block": Body(MASS, (1.0, 1.0, 1.0))}, {"rail": rail}, inputs={"u": Input()}, gravity=Gravity(0.0)
    )
    side = np.sign(speed)
    expected = PUSH * (1.0 - side * gear) / (MASS * (1.0 + side * load))
    found = acceleration(mechanism, speed, PUSH, {"joints": "rigid"})
    assert (-found if turned else found) == pytest.approx(expected, rel=1e-6)


def test_only_rigid_joints_tell_what_a_gear_passes_on() -> None:
    with pytest.raises(SimulationError, match="load_loss"):
        acceleration(block(load_loss=0.1), 1.0, PUSH, {"joints": "compliant"})


@pytest.mark.parametrize("speed", [0.0, 0.05, 1.0])
@pytest.mark.parametrize(("motor", "external"), [(0.4, -0.1), (0.1, -0.4), (0.3, 0.2), (-0.3, 0.1)])
def test_the_law_holds_those_of_bam(speed: float, motor: float, external: float) -> None:
    """Friction budget of m6, github.com/Rhoban/bam `bam/model.py`; what holds the load there is its minus here."""
    base, level, km, ke, kms, kes, qm, qe, slow, alpha = 0.01, 0.02, 0.3, 0.1, 0.05, 0.04, 0.5, 0.7, 0.2, 1.35
    near_rest = np.exp(-((abs(speed) / slow) ** alpha))
    budget = base + abs(ke * external - km * motor)
    squares = qe * external**2 if abs(external) < abs(motor) else qm * motor**2
    driven = squares if np.sign(external) != np.sign(motor) else 0.0
    budget += near_rest * (level + abs(kes * external - kms * motor) + driven)
    law = Stribeck(
        coulomb=base,
        stribeck_coulomb=level,
        stribeck_rate=slow**-2,
        stribeck_exponent=alpha,
        gear_loss=km,
        load_loss=ke,
        stribeck_gear_loss=kms,
        stribeck_load_loss=kes,
        motor_squared=qm,
        load_squared=qe,
    )
    assert float(law.limit(speed)[1] + law.gear(speed, motor, -external)) == pytest.approx(budget, rel=1e-12)
    slope = jax.grad(lambda s: law.limit(s)[1] + law.gear(s, motor, -external))(speed)
    assert np.isfinite(slope)
