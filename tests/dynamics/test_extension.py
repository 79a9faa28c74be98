"""Parts added from outside of the package, each a short pure function: joint types, laws, a contact shape."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dynamics.scenes import STEPPERS, orders, reading, run
from shadowfit.dynamics import Trajectory, place
from shadowfit.mechanism import (
    AxisLaw,
    Body,
    ContactShape,
    Frame,
    FrameRows,
    FrictionLaw,
    FunctionSensor,
    Gravity,
    Input,
    JointPosition,
    JointSpeed,
    JointType,
    Mechanism,
    VelocityMotor,
    View,
    connect,
    hinge,
    touch,
)
from shadowfit.mechanism.leaves import number
from shadowfit.pytrees import field

G = 9.82
STEPS = (4e-3, 2e-3, 1e-3)


class Screw(JointType):
    """A nut on a thread along x: it moves by ``pitch`` [m/rad] as it turns. Rows and axis follow by differentiation."""

    axis_kind = "rotation"
    linear_rows = 3

    pitch: Any = number("m/rad")

    def coordinate(self, a: Frame, b: Frame) -> jax.Array:
        relative = a.axes.T @ b.axes
        return jnp.arctan2(relative[2, 1] - relative[1, 2], relative[1, 1] + relative[2, 2])

    def gap(self, a: Frame, b: Frame) -> jax.Array:
        apart = a.axes.T @ (b.point - a.point)
        advance = apart[0] - self.pitch * self.coordinate(a, b)
        return jnp.stack([advance, apart[1], apart[2], a.axes[:, 0] @ b.axes[:, 1], a.axes[:, 0] @ b.axes[:, 2]])

    def place(self, position: jax.Array) -> tuple[jax.Array, jax.Array]:
        along = position * jnp.array([1.0, 0.0, 0.0])
        return self.pitch * along, along


class Skate(JointType):
    """A blade along x of the child's frame: no gap, only a row that measures the speed across it."""

    axis_kind = "translation"
    linear_rows = 0

    def gap(self, a: Frame, b: Frame) -> jax.Array:
        del a, b
        return jnp.zeros(0)

    def coordinate(self, a: Frame, b: Frame) -> jax.Array:
        del a, b
        return jnp.zeros(())

    def axis(self, a: Frame, b: Frame) -> FrameRows:
        del a
        across = jnp.concatenate([b.axes[:, 1], jnp.zeros(3)])[None]
        return FrameRows(-across, across)


class CubicSpring(AxisLaw):
    """``τ = −k x³``."""

    stiffness: Any = number("N m/rad³", lower=0.0)
    input: str | None = field(static=True, default=None)

    def torque(self, position: jax.Array, speed: jax.Array, command: jax.Array) -> jax.Array:
        del speed, command
        return -self.stiffness * position**3


class SpeedyFriction(FrictionLaw):
    """A level that grows with the speed: ``c (1 + s²)``."""

    level: Any = number("N m", lower=0.0)
    dry_radius: Any = number("m", default=1.0)
    stick_time: Any = number("s", default=1e-6)

    def limit(self, speed: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.zeros_like(speed), self.level * (1.0 + speed**2)


class Ends(ContactShape):
    """A stick along x that touches with its two ends."""

    length: Any = number("m", lower=0.0)

    def points(self, plane: Frame, body: Frame) -> tuple[jax.Array, jax.Array]:
        half = 0.5 * self.length * body.axes[:, 0]
        ends = jnp.stack([body.point - half, body.point + half])
        return (ends - plane.point) @ plane.axes[:, 0], ends


MASS, J, PITCH = 0.6, 2e-3, 0.01
STIFFNESS, LEVEL, SPEED = 0.3, 4e-3, 2.0


def nut_height(view: View) -> jax.Array:
    """A sensor of one's own; named here, since a new lambda would be a new mechanism to compile."""
    return view.point("nut", jnp.zeros(3))[2]


def workshop() -> Mechanism:
    """A nut on a vertical thread, two wheels, and a stick over the floor."""
    wheel = Body(MASS, (J, J, J))
    return Mechanism(
        {"nut": wheel, "sprung": wheel, "braked": wheel, "stick": wheel},
        {
            "thread": connect(Screw(PITCH), "world", "nut", axis=(0, 0, -1), compliance=1e-9),
            "cubic": hinge("world", "sprung", axis=(0, 0, 1), compliance=1e-9, laws={"spring": CubicSpring(STIFFNESS)}),
            "brake": hinge("world", "braked", axis=(0, 0, 1), compliance=1e-9, friction=SpeedyFriction(LEVEL)),
        },
        contacts={"floor": touch(Ends(0.4), "stick", compliance=1e-6)},
        sensors={
            "turn": JointPosition("thread"),
            "swing": JointPosition("cubic"),
            "spin": JointSpeed("brake"),
            "height": FunctionSensor(nut_height, label="m"),
        },
    )


def work(stepper: str, timestep: float) -> Trajectory:
    mechanism = workshop()
    tilted = (np.cos(0.05), 0.0, np.sin(0.05), 0.0)
    state = place(mechanism, {"cubic": 1.0}, {"brake": SPEED}, poses={"stick": ((0, 0, 0.1), tilted)})
    return run(mechanism, state, 0.4, timestep, stepper)


@pytest.fixture(scope="module", params=STEPPERS)
def days(request: pytest.FixtureRequest) -> tuple[int, list[Trajectory]]:
    """The stepper's order, and a simulation for each time-step."""
    return {"spook": 1, "exact": 2}[request.param], [work(request.param, timestep) for timestep in STEPS]


def test_new_parts_have_names_and_units() -> None:
    mechanism = workshop()
    assert mechanism.get("thread.pitch") == PITCH
    assert mechanism.unit("cubic.spring.stiffness") == "N m/rad³"
    assert mechanism.get("brake.level") == LEVEL
    assert mechanism.get("floor.length") == 0.4


def test_a_nut_turns_down_its_thread(days: tuple[int, list[Trajectory]]) -> None:
    """(J + m p²) θ'' = m g p; and it sinks by the pitch times the angle."""
    order, runs = days
    errors = []
    for day in runs:
        turn, height = reading(day, "turn", "height").T
        expected = 0.5 * MASS * G * PITCH / (J + MASS * PITCH**2) * np.asarray(day.time) ** 2
        errors.append(np.abs(turn - expected).max())
        np.testing.assert_allclose(height, -PITCH * turn, rtol=0, atol=1e-6)
    assert turn[-1] > 2.0
    if order == 1:
        np.testing.assert_allclose(orders(errors), order, rtol=0, atol=0.05)
    else:  # a parabola is what it is made of
        assert max(errors) < 1e-5


def test_a_new_spring_moves_as_its_equation(days: tuple[int, list[Trajectory]]) -> None:
    order, runs = days
    errors = []
    for day in runs:
        t = np.asarray(day.time)
        truth = solve_ivp(
            lambda _, y: [y[1], -STIFFNESS * y[0] ** 3 / J], (0, t[-1]), [1.0, 0.0], t_eval=t, rtol=1e-11, atol=1e-12
        )
        errors.append(np.abs(reading(day, "swing")[:, 0] - truth.y[0]).max())
    np.testing.assert_allclose(orders(errors), order, rtol=0, atol=0.1)


def test_a_new_friction_law_brakes_as_its_equation(days: tuple[int, list[Trajectory]]) -> None:
    """J s' = −c (1 + s²), until it stops."""
    _, runs = days
    errors = []
    for day in runs:
        t = np.asarray(day.time)
        expected = np.tan(np.maximum(np.arctan(SPEED) - LEVEL / J * t, 0.0))
        errors.append(np.abs(reading(day, "spin")[:, 0] - expected)[t < 0.3].max())
    # The limit is taken at the start of the step, so that the law is of first order in either stepper.
    np.testing.assert_allclose(orders(errors), 1, rtol=0, atol=0.2)
    assert errors[-1] < 0.02


def test_a_new_shape_comes_to_rest(days: tuple[int, list[Trajectory]]) -> None:
    _, runs = days
    pose = runs[-1].states[-1].pose
    depth = 1e-6 * MASS * G / 2
    assert float(pose.position[3, 2]) == pytest.approx(-depth, abs=1e-4)
    assert abs(float(pose.orientation[3, 2])) < 1e-3


def skate() -> Mechanism:
    """A blade on a slope that falls along x; the weight across the slope plays no part."""
    slope = 0.3
    tilt = (np.cos(slope / 2), 0.0, -np.sin(slope / 2), 0.0)
    blade = connect(Skate(), "world", "skate", axis=(1, 0, 0), laws={"edge": VelocityMotor(1e7, input="u")})
    body = Body(MASS, (J, J, J))
    return Mechanism({"skate": body}, {"blade": blade}, inputs={"u": Input()}, gravity=Gravity(G, tilt=tilt))


def slide(timestep: float, slip: float = 0.0) -> Trajectory:
    mechanism = skate()
    spin, edge_along_y = 3.0, (np.cos(np.pi / 4), 0.0, 0.0, np.sin(np.pi / 4))
    state = place(mechanism, poses={"skate": ((0, 0, 0), edge_along_y)}, velocities={"skate": (0, 0, 0, 0, 0, -spin)})
    return run(mechanism, state, 2.0, timestep, "spook", {"u": slip})


def test_a_knife_edge_goes_back_and_forth_on_a_slope() -> None:
    """Ḡ v = 0: down the slope by (a/ω²)(1 − cos ωt − ½ sin² ωt), not by ½ a t²; a = g sin(slope)."""
    acceleration, spin = G * np.sin(0.3), 3.0
    errors = []
    for timestep in STEPS:
        motion = slide(timestep)
        t = spin * np.asarray(motion.time)
        expected = acceleration / spin**2 * (1 - np.cos(t) - 0.5 * np.sin(t) ** 2)
        errors.append(np.abs(np.asarray(motion.states.pose.position[:, 0, 0]) - expected).max())
    assert errors[-1] < 1e-2
    np.testing.assert_allclose(orders(errors), 1, rtol=0, atol=0.1)


def test_a_nonholonomic_row_follows_its_signal() -> None:
    """Ḡ v = γ(t): the speed across the blade is the input."""
    motion = slide(2e-3, slip=0.3)
    turn = -3.0 * np.asarray(motion.time) + np.pi / 2
    across = np.stack([-np.sin(turn), np.cos(turn)], axis=1)[:-1]  # of the step's start
    velocity = np.asarray(motion.states.velocity[1:, 0, :2])
    np.testing.assert_allclose(np.sum(across * velocity, axis=1), 0.3, rtol=1e-4)
