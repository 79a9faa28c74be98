"""Motors, springs, drag and external forces in motion, each against its closed form, with the stepper's order."""

import numpy as np
import pytest

from dynamics.scenes import STEPPERS, orders, run
from shadowfit.dynamics import Trajectory, place
from shadowfit.mechanism import (
    Body,
    DcMotor,
    Drag,
    Gravity,
    Input,
    JointPosition,
    JointSpeed,
    Mechanism,
    Spring,
    TorqueMotor,
    VelocityMotor,
    Wrench,
    hinge,
    slider,
)

J, MASS = 0.02, 0.5
U = 1.5
STEPS = (8e-3, 4e-3, 2e-3)
DURATION = 0.8

# Name of the joint, its initial speed, and its speed over time.
FRICTION, SPEED = 0.05, 3.0
SHAFT, GAIN = 0.03, 0.2
RESISTANCE, TORQUE_CONSTANT, BACK_EMF, RATIO, ROTOR = 2.0, 0.1, 0.08, 5.0, 1e-4
DRIVE, TARGET = 0.1, 2.0
STIFFNESS, REST, DAMPING = 0.8, 0.4, 0.02
AIR = 0.03
RAIL_STIFFNESS, RAIL_REST = 6.0, -0.1


def dc_speed(t: np.ndarray) -> np.ndarray:
    inertia = J + RATIO**2 * ROTOR
    rate = RATIO**2 * TORQUE_CONSTANT * BACK_EMF / RESISTANCE / inertia
    return U / (BACK_EMF * RATIO) * (1 - np.exp(-rate * t))


def sprung(t: np.ndarray) -> np.ndarray:
    """x from rest at zero, with a damper."""
    decay = DAMPING / (2 * J)
    swing = np.sqrt(STIFFNESS / J - decay**2)
    return REST - REST * np.exp(-decay * t) * (np.cos(swing * t) + decay / swing * np.sin(swing * t))


CLOSED_FORMS = {
    "viscous_speed": lambda t: SPEED * np.exp(-FRICTION / J * t),
    "dc_speed": dc_speed,
    "velocity_speed": lambda t: TARGET * (1 - np.exp(-DRIVE / J * t)),
    "spring_angle": sprung,
    "drag_speed": lambda t: SPEED / (1 + AIR * SPEED / J * t),
    "rail_position": lambda t: RAIL_REST - RAIL_REST * np.cos(np.sqrt(RAIL_STIFFNESS / MASS) * t),
}


def bench() -> Mechanism:
    """Wheels on fixed axles, a cart on a spring and two free bodies, without gravity: every law on its own."""
    laws = {
        "viscous": {},
        "motor": {"motor": TorqueMotor(GAIN, SHAFT, input="u")},
        "dc": {"motor": DcMotor(RESISTANCE, TORQUE_CONSTANT, BACK_EMF, RATIO, ROTOR, input="u")},
        "velocity": {"drive": VelocityMotor(DRIVE, TARGET)},
        "spring": {"spring": Spring(STIFFNESS, DAMPING, REST)},
        "drag": {"air": Drag(AIR)},
    }
    viscous = {"viscous": FRICTION}
    joints = {
        name: hinge("world", f"{name}_wheel", axis=(0, 0, 1), laws=law, viscous=viscous.get(name, 0.0))
        for name, law in laws.items()
    }
    joints["rail"] = slider("world", "cart", axis=(0, 1, 0), laws={"spring": Spring(RAIL_STIFFNESS, 0.0, RAIL_REST)})
    bodies = {f"{name}_wheel": Body(MASS, (J, J, J)) for name in laws}
    bodies |= {name: Body(MASS, (J, J, J)) for name in ("cart", "rocket", "kite")}
    sensors = {f"{name}_speed": JointSpeed(name) for name in laws}
    sensors |= {"spring_angle": JointPosition("spring"), "rail_position": JointPosition("rail", rotary=False)}
    forces = {
        "thrust": Wrench("rocket", force=(0.3, 0.0, 0.0), frame="body"),
        "pull": Wrench("kite", force=(0.1, 0.2, 0.0), torque=(0.0, 0.0, 0.01), input="u"),
    }
    return Mechanism(bodies, joints, forces=forces, sensors=sensors, inputs={"u": Input()}, gravity=Gravity(0.0))


SPIN = 4.0


def drive(stepper: str, timestep: float) -> Trajectory:
    mechanism = bench()
    pose = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0))
    state = place(
        mechanism,
        speeds={"viscous": SPEED, "drag": SPEED},
        poses={"rocket": pose, "kite": pose},
        velocities={"rocket": (0, 0, 0, 0, 0, SPIN)},
    )
    return run(mechanism, state, DURATION, timestep, stepper, {"u": U})


@pytest.fixture(scope="module", params=STEPPERS)
def drives(request: pytest.FixtureRequest) -> tuple[int, list[Trajectory]]:
    """The stepper's order, and a simulation for each time-step."""
    return {"spook": 1, "exact": 2}[request.param], [drive(request.param, timestep) for timestep in STEPS]


@pytest.mark.parametrize("sensor", CLOSED_FORMS)
def test_laws_follow_their_closed_form(drives: tuple[int, list[Trajectory]], sensor: str) -> None:
    order, runs = drives
    errors = [np.abs(run.readings[sensor] - CLOSED_FORMS[sensor](np.asarray(run.time))).max() for run in runs]
    size = np.ptp(CLOSED_FORMS[sensor](np.asarray(runs[0].time)))
    assert errors[-1] < (0.02 if order == 1 else 2e-4) * size
    np.testing.assert_allclose(orders(errors), order, rtol=0, atol=0.15)


def test_a_motor_accelerates_its_shaft_too(drives: tuple[int, list[Trajectory]]) -> None:
    _, runs = drives
    speed, time = np.asarray(runs[-1].readings["motor_speed"]), np.asarray(runs[-1].time)
    np.testing.assert_allclose(speed, GAIN * U / (J + SHAFT) * time, rtol=1e-9, atol=1e-12)


def test_a_force_in_body_axes_turns_with_the_body(drives: tuple[int, list[Trajectory]]) -> None:
    """v = (F/m ω)(sin ωt, 1 − cos ωt)."""
    order, runs = drives
    errors = []
    for flight in runs:
        t = np.asarray(flight.time)
        expected = 0.3 / (MASS * SPIN) * np.stack([np.sin(SPIN * t), 1 - np.cos(SPIN * t)], axis=1)
        velocity = np.asarray(flight.states.velocity[:, list(bench().bodies).index("rocket"), :2])
        if order == 2:  # leapfrog velocities belong half a step before
            velocity, expected = 0.5 * (velocity[1:] + velocity[:-1]), expected[:-1]
        errors.append(np.abs(velocity - expected).max())
    np.testing.assert_allclose(orders(errors), order, rtol=0, atol=0.15)


def test_a_force_in_world_axes_follows_its_input(drives: tuple[int, list[Trajectory]]) -> None:
    order, runs = drives
    flight = runs[-1]
    kite = list(bench().bodies).index("kite")
    t = np.asarray(flight.time) - (0.5 * STEPS[-1] if order == 2 else 0.0)
    velocity = np.asarray(flight.states.velocity[:, kite])
    expected = t[:, None] * U * np.array([0.1 / MASS, 0.2 / MASS, 0, 0, 0, 0.01 / J])
    np.testing.assert_allclose(velocity, expected, rtol=0, atol=1e-12)


def test_springs_and_shafts_count_in_the_energy() -> None:
    """Kinetic energy of shaft and rotor, potential energy of both springs; the motor's work is all there is else."""
    flight = drive("exact", STEPS[-1])
    kinetic = np.asarray(flight.diagnostics.kinetic)
    names = ("viscous", "motor", "dc", "velocity", "spring", "drag")
    inertias = dict.fromkeys(names, J) | {"motor": J + SHAFT, "dc": J + RATIO**2 * ROTOR}
    speeds = {name: np.asarray(flight.readings[f"{name}_speed"]) for name in names}
    wheels = sum(0.5 * inertias[name] * speeds[name] ** 2 for name in names)
    v = np.asarray(flight.states.velocity)
    bodies = list(bench().bodies)
    middle = 0.5 * (v[1:] + v[:-1])
    others = sum(
        0.5 * MASS * np.sum(middle[:, bodies.index(n), :3] ** 2, axis=1)
        + 0.5 * J * np.sum(middle[:, bodies.index(n), 3:] ** 2, axis=1)
        for n in ("cart", "rocket", "kite")
    )
    np.testing.assert_allclose(kinetic[:-1], wheels[:-1] + others, rtol=1e-8)
    angle, position = (np.asarray(flight.readings[name]) for name in ("spring_angle", "rail_position"))
    stored = 0.5 * STIFFNESS * (angle - REST) ** 2 + 0.5 * RAIL_STIFFNESS * (position - RAIL_REST) ** 2
    np.testing.assert_allclose(flight.diagnostics.potential, stored, rtol=1e-10)


def test_inputs_have_gain_offset_and_delay() -> None:
    """The motor's speed is the integral of gain·u(t − delay) + offset."""
    mechanism = bench().set({"u.gain": 2.0, "u.offset": -0.5, "u.delay": 0.1})
    timestep = 4e-3
    signal = lambda t: np.where(t < 0.3, 1.0, 3.0)  # noqa: E731
    flight = run(mechanism, place(mechanism), 0.6, timestep, "spook", {"u": signal})
    t = np.asarray(flight.time)
    # The signal is sampled at 0.3 s for the first time with its new value, and held before with the first one.
    integral = 2.0 * (np.minimum(t, 0.4) + 3.0 * np.maximum(t - 0.4, 0.0)) - 0.5 * t
    np.testing.assert_allclose(flight.readings["motor_speed"], GAIN / (J + SHAFT) * integral, rtol=0, atol=1e-9)
