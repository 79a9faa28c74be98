"""The momentum balance of a step: none is missing where the stepper goes, joints act in pairs, friction is bounded."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quick import quick
from shadowfit.dynamics import State, balance, place
from shadowfit.dynamics.elements import assembled
from shadowfit.dynamics.exact import step as exact_step
from shadowfit.dynamics.spook import step as spook_step
from shadowfit.dynamics.state import Moving
from shadowfit.dynamics.velocity_problem import complementary_count
from shadowfit.geometry import Pose
from shadowfit.mechanism import Body, Coulomb, Gravity, Mechanism, Spring, hinge
from shadowfit.models import builtin

STEPPERS = {"spook": spook_step, "exact": exact_step}
TIMESTEP = jnp.asarray(0.01)

NO_INPUT = jnp.zeros(0)


def at(speed, new_speed):
    """Position, speed and new speed of one axis."""
    return jnp.zeros(1), jnp.array([speed]), jnp.array([new_speed])


missing_impulse = jax.jit(balance.missing_impulse, static_argnames="discretization")
bodies_balance = jax.jit(balance.bodies_balance, static_argnames="discretization")
friction_impulse = jax.jit(balance.friction_impulse)
plus = jax.jit(Pose.plus)


def shaken(state, size, seed=0):
    rng = np.random.default_rng(seed)
    shape = state.velocity.shape
    pose = plus(state.pose, 1e-3 * size * rng.standard_normal(shape))
    return State(pose, state.velocity + size * rng.standard_normal(shape))


@pytest.mark.parametrize("discretization", quick(STEPPERS, "exact"))
@pytest.mark.parametrize(
    ("mechanism", "positions", "speeds"),
    [
        (builtin.furuta(), {"hinge1": 0.3, "hinge2": 2.0}, {"hinge1": 2.0, "hinge2": -3.0}),
        (builtin.furuta(), {"hinge1": 0.3, "hinge2": 0.0}, {}),  # at rest: friction sticks
    ],
    ids=["sliding", "stuck"],
)
def test_nothing_is_missing_where_the_stepper_goes(discretization, mechanism, positions, speeds):
    elements = assembled(mechanism)
    state = shaken(place(mechanism, positions, speeds), 1e-3 if speeds else 0.0)
    command = jnp.array([0.2 if speeds else 1e-6])
    guess = jnp.zeros(complementary_count(elements), bool)
    new, _ = jax.jit(STEPPERS[discretization])(elements, state, command, TIMESTEP, guess)
    step = Moving(state.pose, state.velocity, new.velocity, command, TIMESTEP)
    missing = missing_impulse(elements, step, discretization=discretization)
    # A stuck joint's impulse is its creep, near rounding, divided by a tiny regularisation.
    np.testing.assert_allclose(missing, 0.0, atol=1e-10 if speeds else 1e-8)


def free_pair():
    """Two bodies joined by a hinge with spring, friction and viscosity, floating in space."""
    joint = hinge(
        "left",
        "right",
        axis=(0.3, 1.0, -0.2),
        parent_point=(0.2, 0.1, 0.0),
        child_point=(-0.3, 0.0, 0.1),
        viscous=0.02,
        friction=Coulomb(dry=0.1, coulomb=0.3),
        laws={"spring": Spring(2.0, 0.1, 0.4)},
    )
    bodies = {"left": Body(0.5, (0.01, 0.02, 0.015)), "right": Body(0.8, (0.03, 0.02, 0.025))}
    return Mechanism(bodies, {"joint": joint}, gravity=Gravity(0.0))


@pytest.mark.parametrize("discretization", STEPPERS)
def test_joints_act_in_pairs(discretization):
    """Forces between two bodies cancel, and so do their moments: only the bodies' own change of momentum is left."""
    mechanism = free_pair()
    elements = assembled(mechanism)
    closed = place(mechanism, {"joint": 0.7}, poses={"left": ((0.1, -0.2, 0.3), (0.9, 0.1, -0.3, 0.2))})
    rng = np.random.default_rng(1)
    old, new = rng.standard_normal((2, 2, 6))
    step = Moving(closed.pose, old, new, jnp.zeros(0), TIMESTEP)
    missing = np.asarray(missing_impulse(elements, step, discretization=discretization))
    bodies = np.asarray(bodies_balance(elements, step, discretization=discretization))
    joint = bodies - missing
    assert np.max(np.abs(joint)) > 1e-2
    position = np.asarray(closed.pose.position)
    np.testing.assert_allclose(joint[:, :3].sum(axis=0), 0.0, atol=1e-9 * np.max(np.abs(joint)))
    moments = joint[:, 3:] + np.cross(position, joint[:, :3])
    np.testing.assert_allclose(moments.sum(axis=0), 0.0, atol=1e-9 * np.max(np.abs(joint)))


def test_friction_opposes_sliding_and_keeps_its_limit():
    group = assembled(free_pair()).groups[0]
    loads = jnp.array([[0.1, -0.2, 0.3, 0.0, -0.1]])
    limit = 0.1 * np.abs(loads[0]).sum() + 0.01 * 0.3
    sigma = jnp.array([2.0])
    for speed in (-5.0, -0.01, 0.0, 0.02, 7.0):
        rubbing = balance.Sticking(sigma)
        impulse = friction_impulse(group, at(0.0, speed), loads, rubbing, NO_INPUT, TIMESTEP)[0]
        assert impulse == pytest.approx(np.clip(-speed / 2.0, -limit, limit), abs=1e-15)
    for slip in (-1.0, 1.0):
        rubbing = balance.Sticking(sigma, jnp.array([slip]))
        fixed = friction_impulse(group, at(0.0, 1.0), loads, rubbing, NO_INPUT, TIMESTEP)
        assert float(fixed[0]) == pytest.approx(-slip * limit)


def test_friction_over_a_step_turns_where_the_axis_does():
    """Reversed after a fifth of the step: a fifth of the impulse one way, four fifths the other."""
    group = assembled(free_pair()).groups[0]
    loads = jnp.array([[0.1, -0.2, 0.3, 0.0, -0.1]])
    limit = 0.1 * np.abs(loads[0]).sum() + 0.01 * 0.3
    rubbing = balance.Turning(jnp.array([1e-6]))
    found = friction_impulse(group, at(1.0, -4.0), loads, rubbing, NO_INPUT, TIMESTEP)
    assert float(found[0]) == pytest.approx(-limit * (0.2 - 0.8), rel=1e-5)
