"""Convergence in the time-step, by measured slope, against reduced equations, elliptic functions and MuJoCo."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

from dynamics.scenes import orders, reading, released, run, with_joints
from reference.elliptic import period
from reference.mujoco_models import simulate_four_bar, simulate_furuta
from reference.reduced_ode import CartPole, FourBar, Furuta, Model, Pendulum, solve
from shadowfit.dynamics import place
from shadowfit.mechanism import Mechanism
from shadowfit.models import builtin

# So stiff that the difference to rigid joints is far below the errors of the time-steps used here.
RIGID = 1e-10
OUTPUTS = 26
STEPS = (125, 250, 500)


class Case(NamedTuple):
    """A mechanism, its reduced equations, where it starts, which sensors show its coordinates, and its input."""

    mechanism: Mechanism
    model: Model
    positions: dict[str, float]
    speeds: dict[str, float]
    sensors: tuple[str, ...]
    signal: Callable[[float], float] | None


def wave(t: float) -> float:
    return 0.5 + np.sin(5.0 * t)


def pendulum() -> Case:
    mechanism = with_joints(builtin.pendulum(friction=False), compliance=RIGID, viscous=3e-3)
    model = Pendulum(viscous=3e-3)
    return Case(mechanism, model, {"hinge": 2.0}, {"hinge": 1.0}, ("theta",), None)


def furuta() -> Case:
    model = Furuta(viscous=(2e-3, 1e-3), tilt=(0.1, -0.2, 0.0), shaft_inertia=4e-4)
    tilt = np.array([0.1, -0.2, 0.0])
    angle = np.linalg.norm(tilt)
    values = {
        "hinge1.viscous": 2e-3,
        "hinge2.viscous": 1e-3,
        "gravity.tilt": np.array([np.cos(angle / 2), *(np.sin(angle / 2) * tilt / angle)]),
    }
    for body, moments in (("arm", model.arm_inertia), ("pendulum", model.pendulum_inertia)):
        values |= {f"{body}.inertia.{axis}": moment for axis, moment in zip(("xx", "yy", "zz"), moments, strict=True)}
    mechanism = with_joints(builtin.furuta(friction=False), compliance=RIGID).set(values)
    return Case(mechanism, model, {"hinge2": 3.0}, {"hinge1": 0.5}, ("theta1", "theta2"), wave)


def cartpole() -> Case:
    mechanism = with_joints(builtin.cartpole(), compliance=RIGID)
    model = CartPole(cart_viscous=0.5, pole_viscous=1e-3)
    return Case(mechanism, model, {"rail": 0.1, "pivot": 2.0}, {"rail": 0.2, "pivot": 0.3}, ("x", "theta"), wave)


CASES = {"pendulum": pendulum, "furuta": furuta, "cartpole": cartpole}
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def coordinates(case: Case, stepper: str, duration: float, steps: int) -> np.ndarray:
    timestep = duration / steps
    inputs = None
    if case.signal is not None:
        # What a step is given is held over the step: the value in the middle stands for the signal to second order.
        inputs = {"u": np.array([case.signal((k + 0.5) * timestep) for k in range(steps)])}
    state = place(case.mechanism, case.positions, case.speeds)
    return reading(run(case.mechanism, state, duration, timestep, stepper, inputs), *case.sensors)


@cases
@pytest.mark.parametrize(("stepper", "order"), [("spook", 1), ("exact", 2)])
def test_order_of_convergence(case: Callable[[], Case], stepper: str, order: int) -> None:
    here, duration = case(), 1.0
    q0 = [here.positions.get(joint, 0.0) for joint in here.mechanism.joints]
    qd0 = [here.speeds.get(joint, 0.0) for joint in here.mechanism.joints]
    truth = solve(here.model, q0, qd0, np.linspace(0.0, duration, OUTPUTS), here.signal).q
    assert np.ptp(truth, axis=0).min() > 0.3  # all coordinates move
    errors = [
        np.abs(coordinates(here, stepper, duration, steps)[:: steps // (OUTPUTS - 1)] - truth).max() for steps in STEPS
    ]
    np.testing.assert_allclose(orders(errors), order, rtol=0, atol=0.05)


@pytest.mark.parametrize("amplitude", [0.5, 2.5])
def test_period_at_large_amplitude(amplitude: float) -> None:
    """The swing comes back after 4 K(sin² A/2)/ω; the error shrinks with the square of the step."""
    mechanism = with_joints(pendulum().mechanism, viscous=0.0)
    expected = period(Pendulum(), amplitude)
    errors = []
    for timestep in (4e-3, 2e-3):
        swing = released(mechanism, {"hinge": amplitude}, 2.2 * expected, timestep, "exact")
        theta, time = np.asarray(swing.readings["theta"]), np.asarray(swing.time)
        down = [k for k, (a, b) in enumerate(pairwise(theta)) if a > 0 >= b]
        crossings = [time[k] + timestep * _root(theta[k - 1 : k + 3]) for k in down]
        errors.append(abs(crossings[1] - crossings[0] - expected))
    assert errors[1] < 1e-4 * expected
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)


def _root(values: np.ndarray) -> float:
    """Where the cubic through values at −1, 0, 1, 2 vanishes between 0 and 1."""
    roots = np.roots(np.polyfit([-1, 0, 1, 2], values, 3))
    return float(next(root.real for root in roots if abs(root.imag) < 1e-9 and 0 <= root.real <= 1))


def test_furuta_moves_as_in_another_engine() -> None:
    """MuJoCo's articulated-body recursions with a fourth-order integrator, on the model with tilt and motor."""
    here, duration = furuta(), 1.0
    theirs = simulate_furuta(
        here.model, [0.0, 3.0], [0.5, 0.0], np.linspace(0.0, duration, OUTPUTS), wave, timestep=1e-3
    ).q
    errors = [
        np.abs(coordinates(here, "exact", duration, steps)[:: steps // (OUTPUTS - 1)] - theirs).max() for steps in STEPS
    ]
    assert errors[-1] < 1e-3
    np.testing.assert_allclose(orders(errors), 2, rtol=0, atol=0.1)


def fourbar() -> tuple[Mechanism, FourBar, float]:
    """Our four-bar's angles go about +y, the reference's about −y."""
    reference = FourBar(ground=0.4, crank=0.15, coupler=0.35, rocker=0.3, masses=(0.15, 0.35, 0.3))
    mechanism = with_joints(builtin.fourbar(0.4, 0.15, 0.35, 0.3), compliance=1e-9)
    return mechanism, reference, 1.2


@pytest.mark.parametrize(("stepper", "order", "largest"), [("spook", 1, 5e-3), ("exact", 2, 2e-4)])
def test_fourbar_moves_as_in_another_engine(stepper: str, order: int, largest: float) -> None:
    mechanism, reference, theta = fourbar()
    duration = 0.4
    t = np.linspace(0.0, duration, OUTPUTS)
    theirs = simulate_four_bar(reference, theta, 0.0, t, timestep=1e-4).q
    np.testing.assert_allclose(theirs[:, 0], solve(reference, theta, 0.0, t).q[:, 0], rtol=0, atol=1e-5)
    assert np.ptp(theirs, axis=0).min() > 0.2
    positions = {"ground_crank": -theta, "ground_rocker": -reference.link_angles(theta)[2]}
    errors = []
    for steps in STEPS:
        swing = released(mechanism, positions, duration, duration / steps, stepper)
        angles = -reading(swing, "theta_crank", "theta_rocker")[:: steps // (OUTPUTS - 1)]
        errors.append(np.abs(angles - theirs[:, [0, 2]]).max())
    assert errors[-1] < largest
    np.testing.assert_allclose(orders(errors), order, rtol=0, atol=0.1)
