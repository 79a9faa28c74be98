"""One transition: derivatives by states and by parameters of every kind equal finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimation.scenes import blank, problem_of
from shadowfit.dynamics import assemble, place
from shadowfit.dynamics.inverse import inverse_dynamics
from shadowfit.estimation import transition
from shadowfit.estimation.linearise import prepare, write
from shadowfit.models import builtin

TIMESTEP = 0.01
FREE = [
    "arm.inertia.zz",
    "pendulum.mass",
    "pendulum.com.x",
    "hinge1.viscous",
    "hinge1.dry",
    "hinge2.dry",
    "hinge1.motor.gain",
    "hinge1.motor.shaft_inertia",
    "hinge1.compliance.linear",
    "gravity.tilt",
]


@pytest.mark.parametrize("residual", ["implicit", "inverse"])
@pytest.mark.parametrize("discretization", ["spook", "exact"])
def test_derivatives_equal_finite_differences(residual, discretization):
    mechanism = builtin.furuta().set({"hinge1.dry": 6e-4, "hinge2.dry": 2e-4})
    problem = problem_of(mechanism, blank(mechanism), FREE, residual=residual, discretization=discretization)
    plan = problem.plan
    numbers, turns = problem.current(problem.parameters.start(), 0)
    prepared = prepare(plan, problem.mechanism, numbers, turns)
    rng = np.random.default_rng(0)
    start = place(mechanism, {"hinge1": 0.3, "hinge2": 2.0}, {"hinge1": 1.5, "hinge2": -2.0})
    pose = start.pose.plus(1e-4 * rng.standard_normal((2, 6)))
    velocity = start.velocity + 0.01 * rng.standard_normal((2, 6))
    new = start.velocity + 0.02 * rng.standard_normal((2, 6))
    slopes = jnp.zeros((1, plan.parameters))
    scale = problem.parameters.spread(lambda p: p.scale)

    @jax.jit
    def evaluate(x):
        states, own = x[:36].reshape(3, 2, 6), x[36:] * scale
        elements = assemble(write(plan, problem.mechanism, numbers, turns, own))
        driven = transition.Driven(elements, prepared.element_tangents, prepared.reference, jnp.array([0.3]), slopes)
        moved = (pose.plus(states[0]), velocity + states[1], new + states[2])
        return transition.linearise(driven, plan.columns, *moved, jnp.asarray(TIMESTEP), residual, discretization)

    here = evaluate(jnp.zeros(36 + plan.parameters))
    blocks = (here.by_pose, here.by_velocity, here.by_new_velocity)
    analytic = np.concatenate([*(np.asarray(b).reshape(12, 12) for b in blocks), here.by_parameters * scale], axis=1)
    step = np.concatenate([np.full(36, 1e-6), np.full(plan.parameters, 1e-4)])
    for column in range(analytic.shape[1]):
        move = jnp.zeros(analytic.shape[1]).at[column].set(step[column])
        numeric = (evaluate(move).residual - evaluate(-move).residual) / (2.0 * step[column])
        size = np.abs(analytic[:, :36]).max() if column < 36 else np.abs(analytic[:, column]).max() + 1e-9
        np.testing.assert_allclose(analytic[:, column], numeric, atol=1e-5 * size, err_msg=f"column {column}")


@pytest.mark.parametrize("discretization", ["spook", "exact"])
def test_the_stepper_s_own_prediction_has_no_residual(discretization):
    mechanism = builtin.furuta().set({"hinge1.dry": 6e-4, "hinge2.dry": 2e-4})
    problem = problem_of(mechanism, blank(mechanism), ["hinge1.dry"], discretization=discretization)
    numbers, turns = problem.current(problem.parameters.start(), 0)
    prepared = prepare(problem.plan, problem.mechanism, numbers, turns)
    state = place(mechanism, {"hinge1": 0.3, "hinge2": 2.0}, {"hinge1": 1.5, "hinge2": -2.0})
    driven = transition.Driven(
        prepared.elements, prepared.element_tangents, prepared.reference, jnp.array([0.3]), jnp.zeros((1, 1))
    )

    @jax.jit
    def residual(new):
        return transition.linearise(
            driven,
            problem.plan.columns,
            state.pose,
            state.velocity,
            new,
            jnp.asarray(TIMESTEP),
            "implicit",
            discretization,
        ).residual

    # r = M₀ (v' − φ) is affine in v' with a regular matrix: two evaluations tell φ.
    mass = np.asarray(jax.jacfwd(lambda x: residual(state.velocity + x.reshape(2, 6)))(jnp.zeros(12)))
    reached = state.velocity.ravel() - np.linalg.solve(mass, residual(state.velocity))
    missing = inverse_dynamics(mechanism, state, reached.reshape(2, 6), jnp.array([0.3]), TIMESTEP, discretization)
    np.testing.assert_allclose(missing, 0.0, atol=1e-9)
