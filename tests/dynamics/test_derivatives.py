"""Derivatives of steps and rollouts, in both modes and both steppers, against finite differences away from switching.

And at the values where hidden divisions by zero would show: no friction, no shaft, no gravity, at rest, sticking.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynamics.scenes import STEPPERS, central_difference, with_joints
from shadowfit.dynamics import State, exact, place, rollout, spook
from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.velocity_problem import complementary_count
from shadowfit.mechanism import Mechanism
from shadowfit.models import builtin

STEP = {"spook": spook.step, "exact": exact.step}
H = 5e-3
ROLLOUT = 12
# A number of each kind: mass, inertia, geometry, joint, friction, motor, compliance.
PARAMETERS = (
    "arm.inertia.zz",
    "pendulum.mass",
    "pendulum.inertia.xy",
    "hinge2.parent_point.x",
    "hinge1.viscous",
    "hinge2.viscous",
    "hinge1.dry",
    "hinge2.coulomb",
    "hinge1.motor.gain",
    "hinge1.motor.shaft_inertia",
    "hinge1.compliance.linear",
    "hinge2.damping",
    "u.offset",
)
steppers = pytest.mark.parametrize("stepper", STEPPERS)


class Case(NamedTuple):
    """A state, parameter values, and the command of the motor."""

    positions: dict[str, float]
    speeds: dict[str, float]
    values: dict[str, float]
    command: float
    step: float = 1e-4
    """Of the finite differences, relative to each parameter's size."""


SWINGING = Case({"hinge2": 2.0}, {"hinge1": 2.0, "hinge2": -3.0}, {}, 0.5)
# Where numbers sit on their bounds: one-sided, so differences are taken to the inside.
BARE = dict.fromkeys(("hinge1.viscous", "hinge2.viscous", "hinge1.dry", "hinge2.dry", "hinge1.coulomb", "hinge2.coulomb", "hinge1.motor.shaft_inertia"), 0.0)
CASES = {
    "sliding": SWINGING,
    "bare": SWINGING._replace(values=BARE),
    "no gravity": SWINGING._replace(values={"gravity.acceleration": 0.0}),
    "at rest": Case({"hinge2": 0.01}, {}, {"hinge1.coulomb": 0.05, "hinge2.coulomb": 0.05}, 0.1),
    "zero": Case({}, {}, BARE | {"gravity.acceleration": 0.0}, 0.0),
}
SIZES = dict.fromkeys(PARAMETERS, 0.001) | {
    "pendulum.mass": 0.1,
    "hinge2.parent_point.x": 0.1,
    "u.offset": 1.0,
    "hinge1.motor.gain": 0.1,
    "hinge1.compliance.linear": 1e-4,
    "hinge2.damping": 0.01,
}


def mechanism(case: Case) -> Mechanism:
    # Limits that do not depend on |λ|, which has kinks of its own near zero loads, plus a little of those that do.
    return with_joints(builtin.furuta(), dry=1e-4, coulomb=1e-3).set(case.values)


def one_step(stepper: str) -> Callable[[np.ndarray, Mechanism, State, float], jax.Array]:
    """The new state as a function of the old one's increment, parameters, command and time-step."""

    def function(x: jax.Array, base: Mechanism, state: State, command: float) -> jax.Array:
        moved, faster, values, (command_change, longer) = jnp.split(x, np.cumsum([12, 12, len(PARAMETERS)]))
        parameters = {
            name: base.bodies["arm"].mass * 0.0 + value for name, value in zip(PARAMETERS, values, strict=True)
        }
        elements = assemble(base.write(parameters))
        start = State(state.pose.plus(moved.reshape(2, 6)), state.velocity + faster.reshape(2, 6))
        u = base.inputs["u"]
        given = jnp.atleast_1d(u.gain * (command + command_change) + parameters["u.offset"])
        guess = jnp.zeros(complementary_count(elements), bool)
        new, solution = STEP[stepper](elements, start, given, H + longer, guess)
        impulses = jnp.concatenate([x.ravel() for x in solution.equality])
        return jnp.concatenate([new.pose.minus(state.pose).ravel(), new.velocity.ravel(), impulses])

    return function


def arguments(case: Case) -> tuple[np.ndarray, Mechanism, State, float]:
    base = mechanism(case)
    values = np.array([base.get(name) for name in PARAMETERS])
    return (
        np.concatenate([np.zeros(24), values, np.zeros(2)]),
        base,
        place(base, case.positions, case.speeds),
        case.command,
    )


SCALES = np.concatenate([np.full(12, 1e-3), np.full(12, 1e-1), [SIZES[name] for name in PARAMETERS], [0.1, 1e-3]])


@pytest.fixture(scope="module", params=STEPPERS)
def compiled(request: pytest.FixtureRequest) -> tuple[str, Callable, Callable, Callable]:
    """A step and its derivatives in both modes, compiled once for all cases."""
    function = one_step(request.param)
    batch = jax.jit(jax.vmap(function, in_axes=(0, None, None, None)))
    return request.param, batch, jax.jit(jax.jacfwd(function)), jax.jit(jax.jacrev(function))


@pytest.mark.parametrize("name", CASES)
def test_derivatives_of_a_step(compiled: tuple[str, Callable, Callable, Callable], name: str) -> None:
    """By pose, velocity, parameters, command and time-step; of pose, velocity and impulses."""
    _, batch, forward, reverse = compiled
    case = CASES[name]
    x, base, state, command = arguments(case)
    found = np.asarray(forward(x, base, state, command)) * SCALES
    assert np.all(np.isfinite(found))
    np.testing.assert_allclose(np.asarray(reverse(x, base, state, command)) * SCALES, found, rtol=1e-8, atol=1e-9)
    # Where a number is on its bound, look from the inside: the point moves by more than the differences reach.
    inside = x.copy()
    bounded = np.array([base.leaf(parameter).lower == 0.0 and base.get(parameter) == 0.0 for parameter in PARAMETERS])
    inside[24 : 24 + len(PARAMETERS)] += 4e-4 * SCALES[24 : 24 + len(PARAMETERS)] * bounded
    there = np.asarray(forward(inside, base, state, command)) * SCALES
    differences = central_difference(lambda s: batch(inside + SCALES * s, base, state, command), np.zeros_like(x), 1e-4)
    size = np.abs(differences).max(axis=0)
    error = np.abs(there - differences)
    assert np.all(error < 1e-6 * size + 1e-9)
    # And on the bound itself the derivative is the one-sided limit.
    assert np.all(np.abs(found - there) < 1e-2 * size + 1e-9)


def rollout_readings(stepper: str) -> Callable[[np.ndarray, Mechanism, State], jax.Array]:
    def function(x: jax.Array, base: Mechanism, state: State) -> jax.Array:
        values, speeds = x[: len(PARAMETERS)], x[len(PARAMETERS) :]
        changed = base.write(dict(zip(PARAMETERS, values, strict=True)))
        start = State(state.pose, state.velocity + speeds.reshape(2, 6))
        run = rollout(changed, start, 0.5 * jnp.ones((1, ROLLOUT)), H, stepper)
        return jnp.concatenate([run.readings["theta1"], run.readings["theta2"]])

    return function


@steppers
def test_derivatives_of_a_rollout(stepper: str) -> None:
    """Of all readings by parameters and initial velocities, through dry friction that slides; forward and reverse."""
    base = mechanism(SWINGING)
    state = place(base, SWINGING.positions, SWINGING.speeds)
    x = np.concatenate([[base.get(name) for name in PARAMETERS], np.zeros(12)])
    scales = np.concatenate([[SIZES[name] for name in PARAMETERS], np.full(12, 1e-1)])
    function = rollout_readings(stepper)
    forward = np.asarray(jax.jit(jax.jacfwd(function))(x, base, state)) * scales
    reverse = np.asarray(jax.jit(jax.jacrev(function))(x, base, state)) * scales
    np.testing.assert_allclose(reverse, forward, rtol=1e-8, atol=1e-10)
    batch = jax.jit(jax.vmap(function, in_axes=(0, None, None)))
    differences = central_difference(lambda s: batch(x + scales * s, base, state), np.zeros_like(x), 1e-3)
    np.testing.assert_allclose(forward, differences, rtol=1e-5, atol=1e-9)
    assert np.all(np.abs(forward).max(axis=0) > 0.0)  # everything matters
