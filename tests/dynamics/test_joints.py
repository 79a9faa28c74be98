"""Joints hold what they forbid, give under load by their compliance, and may be redundant."""

import numpy as np
import pytest

from dynamics.scenes import STEPPERS, energy, orders, reading, released, run, with_joints
from shadowfit.dynamics import place, simulate
from shadowfit.errors import SimulationError
from shadowfit.mechanism import (
    Body,
    Compliance,
    Gravity,
    JointPosition,
    Mechanism,
    Wrench,
    ball,
    distance,
    hinge,
    lock,
    slider,
)
from shadowfit.models import builtin

LINEAR, ROTATIONAL = 1e-4, 3e-5
KINDS = ("hinge", "slider", "ball", "lock", "distance")
FORCE, TORQUE = np.array([3.0, -2.0, 1.5]), np.array([0.4, 0.6, -0.5])
steppers = pytest.mark.parametrize("stepper", STEPPERS)


def one_of_each() -> Mechanism:
    """Five bodies, each held by a joint of another type whose axis is x, each with a force and a torque."""
    options = {"axis": (1, 0, 0), "compliance": Compliance(LINEAR, ROTATIONAL), "child_point": (0.0, 0.0, 0.0)}
    makers = {
        "hinge": hinge,
        "slider": slider,
        "ball": ball,
        "lock": lock,
        "distance": lambda parent, child, **options: distance(parent, child, 0.4, **options),
    }
    bodies = {f"on_{kind}": Body(1.0, (0.01, 0.01, 0.01)) for kind in KINDS}
    joints = {kind: makers[kind]("world", f"on_{kind}", **options) for kind in KINDS}
    forces = {f"load_{kind}": Wrench(f"on_{kind}") for kind in KINDS}
    return Mechanism(bodies, joints, forces=forces, gravity=Gravity(0.0))


def loaded(mechanism: Mechanism, kind: str, force: np.ndarray, torque: np.ndarray) -> Mechanism:
    letters = "xyz"
    values = {f"load_{kind}.force.{letters[i]}": force[i] for i in range(3)}
    return mechanism.set(values | {f"load_{kind}.torque.{letters[i]}": torque[i] for i in range(3)})


@steppers
def test_a_static_load_deflects_a_joint_by_its_compliance(stepper: str) -> None:
    """Lengths by the linear compliance times the force, angles by the rotational one times the torque."""
    across = np.array([0.0, 1.0, 1.0])
    mechanism = one_of_each()
    mechanism = loaded(mechanism, "hinge", FORCE, across * TORQUE)
    mechanism = loaded(mechanism, "slider", across * FORCE, TORQUE)
    mechanism = loaded(mechanism, "ball", FORCE, np.zeros(3))
    mechanism = loaded(mechanism, "lock", FORCE, TORQUE)
    mechanism = loaded(mechanism, "distance", np.array([FORCE[0], 0, 0]), np.zeros(3))
    start = place(mechanism)
    end = run(mechanism, start, 1.0, 4e-3, stepper).states[-1]
    moved = dict(zip(KINDS, np.asarray(end.pose.minus(start.pose)), strict=True))
    expected = {
        "hinge": np.concatenate([LINEAR * FORCE, ROTATIONAL * across * TORQUE]),
        "slider": np.concatenate([LINEAR * across * FORCE, ROTATIONAL * TORQUE]),
        "ball": np.concatenate([LINEAR * FORCE, np.zeros(3)]),
        "lock": np.concatenate([LINEAR * FORCE, ROTATIONAL * TORQUE]),
        "distance": np.array([LINEAR * FORCE[0], 0, 0, 0, 0, 0]),
    }
    for kind in KINDS:
        # Sines for angles: the gaps' own nonlinearity is of second order in some 1e-5 rad.
        np.testing.assert_allclose(moved[kind], expected[kind], rtol=0, atol=1e-8, err_msg=kind)


@steppers
def test_what_a_joint_leaves_free_is_free(stepper: str) -> None:
    """Uniform acceleration along and about the slider's and hinge's axes, and about the ball."""
    mechanism = one_of_each()
    x = np.array([1.0, 0.0, 0.0])
    mechanism = loaded(mechanism, "hinge", np.zeros(3), 1e-3 * x)
    mechanism = loaded(mechanism, "slider", 0.1 * x, np.zeros(3))
    mechanism = loaded(mechanism, "ball", np.zeros(3), 1e-3 * x)
    free = run(mechanism, place(mechanism), 1.0, 4e-3, stepper)
    velocity = np.diff(np.asarray(free.states.velocity), axis=0)[10:] / 4e-3  # accelerations
    for body, column, expected in ((0, 3, 0.1), (1, 0, 0.1), (2, 3, 0.1)):
        np.testing.assert_allclose(velocity[:, body, column], expected, rtol=1e-9)


def swinging(mechanism: Mechanism, stepper: str, timestep: float) -> float:
    """The largest gap [m or rad] while bodies hang off centre from their joints and swing."""
    values = {f"{kind}.child_point.z": 0.3 for kind in KINDS if kind != "distance"} | {"gravity.acceleration": 9.82}
    mechanism = with_joints(mechanism, compliance=1e-9).set(values)
    state = place(mechanism, {"hinge": 1.2})
    return float(np.max(run(mechanism, state, 1.0, timestep, stepper).diagnostics.gap))


@pytest.mark.parametrize(("stepper", "largest"), [("spook", 5e-3), ("exact", 1e-6)])
def test_moving_joints_stay_closed(stepper: str, largest: float) -> None:
    """The exact stepper to compliance times load; SPOOK to the drift of its linearisation, which goes with h."""
    gaps = [swinging(one_of_each(), stepper, timestep) for timestep in (4e-3, 2e-3)]
    assert gaps[-1] < largest
    if stepper == "spook":
        assert orders(gaps)[0] == pytest.approx(1.0, abs=0.2)


def door(hinges: int) -> Mechanism:
    """A door on a leaning post (its axis is the world's z, gravity leans), on one hinge or on two in line."""
    heights = {1: (0.0,), 2: (-0.8, 0.8)}[hinges]
    joints = {
        f"hinge{i}": hinge(
            "world", "door", axis=(0, 0, 1), parent_point=(0, 0, z), child_point=(-0.4, 0, z), compliance=1e-9
        )
        for i, z in enumerate(heights, start=1)
    }
    tilt = (np.cos(0.1), np.sin(0.1), 0.0, 0.0)
    body = Body(10.0, (2.0, 2.5, 0.6))
    return Mechanism({"door": body}, joints, sensors={"angle": JointPosition("hinge1")}, gravity=Gravity(tilt=tilt))


@steppers
def test_a_door_swings_on_two_hinges_as_on_one(stepper: str) -> None:
    """Ten constraints for five: the forces are shared somehow, the motion is the same."""
    one, two = (
        reading(run(door(n), place(door(n), {f"hinge{i + 1}": 1.0 for i in range(n)}), 2.0, 4e-3, stepper), "angle")
        for n in (1, 2)
    )
    assert np.ptp(one) > 1.0
    np.testing.assert_allclose(two, one, rtol=0, atol=3e-4 if stepper == "spook" else 1e-6)


def test_both_hinges_of_the_door_carry_its_weight() -> None:
    """Equal compliances share the vertical load equally."""
    mechanism = door(2).set({"gravity.tilt": (1.0, 0.0, 0.0, 0.0)})
    rest = run(mechanism, place(mechanism), 1.0, 4e-3, "spook")
    vertical = np.asarray(rest.diagnostics.multipliers[0])[-1, :, 2] / 4e-3
    np.testing.assert_allclose(np.abs(vertical), 0.5 * 10.0 * 9.82, rtol=1e-6)


@steppers
def test_a_fourbar_keeps_its_loop_closed_and_its_energy(stepper: str) -> None:
    mechanism = with_joints(builtin.fourbar(), compliance=1e-9)
    swing = released(mechanism, {"ground_crank": -1.0}, 2.0, 2e-3, stepper)
    assert np.ptp(swing.readings["theta_rocker"]) > 0.5
    total, exchanged = energy(swing), np.ptp(swing.diagnostics.potential)
    largest_gap, largest_error = (2e-3, 0.2) if stepper == "spook" else (1e-6, 2e-3)
    assert np.max(swing.diagnostics.gap) < largest_gap
    assert np.abs(total - total[0]).max() < largest_error * exchanged


@steppers
def test_rigid_joints_are_ordinary_where_constraints_are_independent(stepper: str) -> None:
    """Compliance zero: the same motion as with a compliance too small to matter."""
    rigid, nearly = (with_joints(builtin.furuta(friction=False), compliance=c) for c in (0.0, 1e-12))
    swings = [reading(released(m, {"hinge2": 2.0}, 1.0, 4e-3, stepper), "theta1", "theta2") for m in (rigid, nearly)]
    np.testing.assert_allclose(swings[0], swings[1], rtol=0, atol=1e-6)


def test_rigid_redundant_joints_stop_with_a_reason() -> None:
    mechanism = with_joints(door(2), compliance=0.0)
    state = place(mechanism, {"hinge1": 1.0, "hinge2": 1.0})
    with pytest.raises(SimulationError, match=r"stopped at step 1 of 20 .*compliances"):
        simulate(mechanism, state, timestep=4e-3, steps=20, diagnostics=True, discretization="spook")
