"""Derivatives of steps and rollouts, in both modes and both steppers, against finite differences away from switching.

And at the values where hidden divisions by zero would show: no friction, no shaft, no gravity, at rest, sticking.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynamics.scenes import STEPPERS, central_difference, one_sided_difference, with_joints
from shadowfit.dynamics import State, exact, place, rollout, spook
from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.velocity_problem import complementary_count
from shadowfit.mechanism import Mechanism
from shadowfit.models import builtin

pytestmark = pytest.mark.slow

STEP = {"spook": spook.step, "exact": exact.step}
H = 5e-3
ROLLOUT = 12
# A number of each kind (mass, inertia, geometry, friction, motor, joint, input), and the change that counts as small.
PARAMETERS = {
    "arm.inertia.zz": 1e-5,
    "pendulum.mass": 1e-4,
    "pendulum.inertia.xy": 1e-6,
    # A change that opens the joint: the forces |λ| behind dry friction must not change sign by it.
    "hinge2.parent_point.x": 1e-8,
    "hinge1.viscous": 1e-6,
    "hinge2.viscous": 1e-6,
    "hinge1.dry": 1e-6,
    "hinge2.coulomb": 1e-6,
    "hinge1.motor.gain": 1e-4,
    "hinge1.motor.shaft_inertia": 1e-5,
    "hinge1.compliance.linear": 1e-7,
    "hinge2.damping": 1e-5,
    "u.offset": 1e-3,
}
STATE_STEPS = np.concatenate([np.full(12, 1e-8), np.full(12, 1e-6)])
BOUNDED = ("hinge1.viscous", "hinge2.viscous", "hinge1.dry", "hinge2.coulomb", "hinge1.motor.shaft_inertia")
BARE = dict.fromkeys((*BOUNDED, "hinge2.dry", "hinge1.coulomb"), 0.0)
steppers = pytest.mark.parametrize("stepper", STEPPERS)


class Case(NamedTuple):
    """A state, parameter values, the motor's command, and how to look at the numbers that may not be negative."""

    positions: dict[str, float]
    speeds: dict[str, float]
    values: dict[str, float]
    command: float
    bounded: str = "inside"


SLIDING = Case({"hinge2": 2.0}, {"hinge1": 2.0, "hinge2": -3.0}, {}, 0.5)
CASES = {
    "sliding": SLIDING,
    "bare": SLIDING._replace(values=BARE, bounded="on the bound"),
    "no gravity": SLIDING._replace(values={"gravity.acceleration": 0.0}),
    "sticking": Case({"hinge2": 0.01}, {}, {"hinge1.coulomb": 0.05, "hinge2.coulomb": 0.05}, 0.1),
    # At rest any dry friction at all would decide between sticking and sliding: no derivative by it.
    "zero": Case({}, {}, BARE | {"gravity.acceleration": 0.0}, 0.0, bounded="switching"),
}


def mechanism(case: Case) -> Mechanism:
    return with_joints(builtin.furuta(), dry=1e-4, coulomb=1e-3).set(case.values)


def parameters(base: Mechanism) -> np.ndarray:
    return np.array([base.get(name) for name in PARAMETERS])


def with_value(function: Callable[..., jax.Array]) -> Callable[..., tuple[jax.Array, jax.Array]]:
    """Jacobian (forward mode) and value in one compiled program, which then also serves the finite differences."""

    def both(*given: object) -> tuple[jax.Array, jax.Array]:
        value = function(*given)
        return value, value

    return jax.jit(jax.jacfwd(both, has_aux=True))


def one_step(stepper: str) -> Callable[[np.ndarray, Mechanism, State, float], jax.Array]:
    """New state and impulses as a function of the old pose's increment, velocity, parameters, and time-step."""

    def function(x: jax.Array, base: Mechanism, state: State, command: float) -> jax.Array:
        moved, faster, values, longer = jnp.split(x, np.cumsum([12, 12, len(PARAMETERS)]))
        changed = base.write(dict(zip(PARAMETERS, values, strict=True)))
        elements = assemble(changed)
        start = State(state.pose.plus(moved.reshape(2, 6)), state.velocity + faster.reshape(2, 6))
        given = jnp.atleast_1d(command + changed.inputs["u"].offset)
        guess = jnp.zeros(complementary_count(elements), bool)
        new, solution = STEP[stepper](elements, start, given, H + longer[0], guess)
        impulses = jnp.concatenate([x.ravel() for x in solution.equality])
        return jnp.concatenate([new.pose.minus(state.pose).ravel(), new.velocity.ravel(), impulses])

    return function


@pytest.fixture(scope="module", params=STEPPERS)
def step_derivative(request: pytest.FixtureRequest) -> Callable[..., tuple[jax.Array, jax.Array]]:
    return with_value(one_step(request.param))


@pytest.mark.parametrize("name", CASES)
def test_derivatives_of_a_step(step_derivative: Callable[..., tuple[jax.Array, jax.Array]], name: str) -> None:
    """By pose, velocity, parameters and time-step; of pose, velocity and impulses."""
    case = CASES[name]
    base = mechanism(case)
    state = place(base, case.positions, case.speeds)
    x = np.concatenate([np.zeros(24), parameters(base), [0.0]])
    steps = np.concatenate([STATE_STEPS, list(PARAMETERS.values()), [1e-7]])
    value = lambda x: step_derivative(x, base, state, case.command)[1]  # noqa: E731
    found = np.asarray(step_derivative(x, base, state, case.command)[0])
    assert np.all(np.isfinite(found))

    bounded = np.array([False] * 24 + [p in BOUNDED for p in PARAMETERS] + [False])
    differences = np.full_like(found, np.nan)
    if case.bounded == "inside":
        bounded[:] = False
    differences[:, ~bounded] = central_difference(value, x, steps)[:, ~bounded]
    if case.bounded == "on the bound":
        differences[:, bounded] = one_sided_difference(value, x, steps)[:, bounded]
    known = ~np.isnan(differences[0])
    sizes = np.abs(differences[:, known]).max(axis=0) + 1e-3
    assert np.abs((found - differences)[:, known] / sizes).max() < 2e-5


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
    base = mechanism(SLIDING)
    state = place(base, SLIDING.positions, SLIDING.speeds)
    x = np.concatenate([parameters(base), np.zeros(12)])
    steps = np.concatenate([list(PARAMETERS.values()), np.full(12, 1e-6)])
    function = rollout_readings(stepper)
    forward_and_value = with_value(function)
    forward = np.asarray(forward_and_value(x, base, state)[0])
    differences = central_difference(lambda x: forward_and_value(x, base, state)[1], x, steps)
    sizes = np.abs(forward).max(axis=0)
    assert np.all(sizes > 0.0)  # everything matters
    assert np.abs((forward - differences) / sizes).max() < 2e-5
    weights = np.random.default_rng(1).normal(size=len(forward))
    reverse = jax.jit(jax.grad(lambda x, base, state: weights @ function(x, base, state)))(x, base, state)
    np.testing.assert_allclose(reverse / sizes, weights @ forward / sizes, rtol=0, atol=1e-10)
