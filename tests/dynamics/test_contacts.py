"""Contacts in motion: stops of hinges and sliders, spheres and boxes on planes, rolling and resting."""

import numpy as np
import pytest

from dynamics.scenes import STEPPERS, energy, run
from shadowfit.dynamics import State, Trajectory, place
from shadowfit.mechanism import (
    Body,
    Gravity,
    Input,
    JointLimit,
    JointPosition,
    Mechanism,
    Sphere,
    Spring,
    Wrench,
    hinge,
    slider,
    touch,
)
from shadowfit.models import builtin

G = 9.82
RADIUS, MASS = 0.1, 0.4
SLOPE = 0.3
NORMAL = (np.sin(SLOPE), 0.0, np.cos(SLOPE))
COMPLIANCE = 1e-5
WEIGHT, LENGTH = 0.5 * G, 0.3
STOP, END = 0.4, 0.15
steppers = pytest.mark.parametrize("stepper", STEPPERS)


def playground() -> Mechanism:
    """A pendulum and a cart with stops, a ball over a level floor, and one that may roll down a slope."""
    solid = 0.4 * MASS * RADIUS**2
    ball = Body(MASS, (solid, solid, solid))
    return Mechanism(
        {
            "rod": Body(0.5, (0.004, 0.004, 0.004)),
            "cart": Body(1.0, (0.01, 0.01, 0.01)),
            "drop": ball,
            "roll": ball,
        },
        {
            "pin": hinge("world", "rod", axis=(0, 1, 0), child_point=(0, 0, LENGTH), compliance=1e-9),
            "rail": slider("world", "cart", axis=(1, 0, 0), compliance=1e-9),
        },
        contacts={
            "pin_stop": JointLimit("pin", -STOP, STOP, compliance=COMPLIANCE),
            "rail_stop": JointLimit("rail", upper=END, compliance=COMPLIANCE),
            "floor": touch(Sphere(RADIUS), "drop", compliance=COMPLIANCE, friction=0.3),
            "slope": touch(Sphere(RADIUS), "roll", normal=NORMAL, compliance=COMPLIANCE, friction=0.6),
        },
        forces={"push": Wrench("cart", force=(1.0, 0.0, 0.0), input="u")},
        sensors={"angle": JointPosition("pin"), "x": JointPosition("rail", rotary=False)},
        inputs={"u": Input()},
    )


def play(stepper: str, duration: float, push: float, height: float = RADIUS, angle: float = 0.0) -> Trajectory:
    mechanism = playground()
    straight = (1.0, 0.0, 0.0, 0.0)
    state = place(
        mechanism,
        {"pin": angle},
        poses={"drop": ((2.0, 0.0, height), straight), "roll": (RADIUS * np.array(NORMAL), straight)},
    )
    return run(mechanism, state, duration, 2e-3, stepper, {"u": push})


@steppers
def test_a_cart_rests_at_its_stop_by_the_stops_compliance(stepper: str) -> None:
    pushed = np.asarray(play(stepper, 2.0, 4.0).readings["x"])
    assert pushed[-1] == pytest.approx(END + COMPLIANCE * 4.0, rel=1e-6)
    assert pushed.max() < END + 1e-3
    pulled = np.asarray(play(stepper, 0.5, -4.0).readings["x"])
    assert pulled[-1] == pytest.approx(-0.5 * 4.0 * 0.5**2, rel=0.01)  # no stop at this end


@steppers
def test_a_pendulum_cannot_pass_its_stops(stepper: str) -> None:
    """Released just inside one stop, it swings to the other side and never beyond; nothing gains energy."""
    swing = play(stepper, 2.0, 0.0, angle=0.99 * STOP)
    angle = np.asarray(swing.readings["angle"])
    assert angle.min() < -0.8 * STOP
    assert np.abs(angle).max() < STOP + 1e-3
    lifted = play(stepper, 0.02, 0.0, angle=STOP + 0.02)  # starts inside the stop and is pushed out of it
    assert float(lifted.readings["angle"][-1]) < STOP + 0.02


@steppers
def test_a_dropped_ball_comes_to_rest_on_the_floor(stepper: str) -> None:
    """At the depth of the compliance times the weight, without ever having more energy than it started with."""
    drop = play(stepper, 2.0, 0.0, height=RADIUS + 0.2)
    height = np.asarray(drop.states.pose.position[:, 2, 2])
    fall = np.flatnonzero(height < RADIUS)[0] * 2e-3
    assert fall == pytest.approx(np.sqrt(2 * 0.2 / G), abs=4e-3)
    assert height[-1] == pytest.approx(RADIUS - COMPLIANCE * MASS * G, abs=1e-9)
    assert height.min() > RADIUS - 5e-3
    assert height[height.argmin() :].max() < RADIUS + 0.05


@steppers
def test_a_ball_rolls_down_a_slope_without_slipping(stepper: str) -> None:
    """A solid ball: a = (5/7) g sin(slope), and ω = v/r."""
    rolling = play(stepper, 1.0, 0.0)
    velocity = np.asarray(rolling.states.velocity[:, 3])
    down = np.array([np.cos(SLOPE), 0.0, -np.sin(SLOPE)])
    speed = velocity[:, :3] @ down
    half = len(speed) // 2
    acceleration = (speed[-1] - speed[half]) / (2e-3 * (len(speed) - 1 - half))
    assert acceleration == pytest.approx(5 / 7 * G * np.sin(SLOPE), rel=1e-4)
    assert velocity[-1, 4] == pytest.approx(speed[-1] / RADIUS, rel=1e-4)


@steppers
def test_a_ball_slips_where_friction_is_too_small_to_roll(stepper: str) -> None:
    """Below μ = (2/7) tan(slope): a = g (sin − μ cos), and friction turns the ball at (5/2) μ g cos / r."""
    mu = 0.1 * np.tan(SLOPE)
    mechanism = playground().set({"slope.friction": mu})
    pose = {"roll": (RADIUS * np.array(NORMAL), (1, 0, 0, 0)), "drop": ((2.0, 0.0, RADIUS), (1, 0, 0, 0))}
    slip = run(mechanism, place(mechanism, poses=pose), 1.0, 2e-3, stepper, {"u": 0.0})
    velocity = np.asarray(slip.states.velocity[:, 3])
    speed = velocity[:, :3] @ np.array([np.cos(SLOPE), 0.0, -np.sin(SLOPE)])
    assert (speed[-1] - speed[250]) / 0.5 == pytest.approx(G * (np.sin(SLOPE) - mu * np.cos(SLOPE)), rel=1e-4)
    assert (velocity[-1, 4] - velocity[250, 4]) / 0.5 == pytest.approx(2.5 * mu * G * np.cos(SLOPE) / RADIUS, rel=1e-4)


def box_state(mechanism: Mechanism, height: float, tilt: float) -> State:
    return place(mechanism, poses={"box": ((0, 0, height), (np.cos(tilt / 2), 0, np.sin(tilt / 2), 0))})


@steppers
def test_a_tilted_box_falls_onto_its_face(stepper: str) -> None:
    """And rests at the depth of the weight shared by four corners."""
    mechanism = builtin.incline(0.0, 0.5)
    fall = run(mechanism, box_state(mechanism, 0.12, 0.5), 2.0, 4e-3, stepper)
    end = fall.states[-1].pose
    depth = mechanism.get("floor.compliance") * mechanism.get("box.mass") * G / 4
    assert float(end.position[0, 2]) == pytest.approx(0.05 - depth, abs=1e-6)
    assert abs(float(end.orientation[0, 0])) == pytest.approx(1.0, abs=1e-6)
    total = energy(fall)
    assert total.max() < total[0] + 1e-3 * np.ptp(fall.diagnostics.potential)
    assert np.abs(fall.states.velocity[-1]).max() < 1e-4


def test_a_plane_may_move_with_a_body() -> None:
    """A ball on a lift: it follows the lift's floor, pressed by weight and acceleration."""
    lift = Body(5.0, (1, 1, 1))
    mechanism = Mechanism(
        {"lift": lift, "ball": Body(MASS, (1e-3, 1e-3, 1e-3))},
        {"shaft": slider("world", "lift", axis=(0, 0, 1), compliance=1e-9, laws={"rope": Spring(1e3, 200.0, 0.0)})},
        contacts={"floor": touch(Sphere(RADIUS), "ball", plane="lift", plane_point=(0, 0, 0.5), compliance=COMPLIANCE)},
        gravity=Gravity(),
    )
    state = place(mechanism, {"shaft": 0.1}, poses={"ball": ((0.0, 0.0, 0.6 + RADIUS), (1, 0, 0, 0))})
    ride = run(mechanism, state, 3.0, 2e-3, "spook")
    lift_z, ball_z = np.asarray(ride.states.pose.position[:, :, 2]).T
    assert ball_z[-1] - lift_z[-1] == pytest.approx(0.5 + RADIUS - COMPLIANCE * MASS * G, abs=1e-7)
    assert lift_z[-1] == pytest.approx(-(5.0 + MASS) * G / 1e3, abs=1e-6)  # the spring carries both
