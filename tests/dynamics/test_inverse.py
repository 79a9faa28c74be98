"""Inverse dynamics: the external impulse of a transition, with joints, friction and contacts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quick import quick
from shadowfit.dynamics import State, place, simulate
from shadowfit.dynamics.elements import assembled
from shadowfit.dynamics.inverse import inverse_dynamics
from shadowfit.dynamics.spook import step as spook_step
from shadowfit.dynamics.velocity_problem import complementary_count
from shadowfit.geometry import Pose
from shadowfit.mechanism import Mechanism, Wrench
from shadowfit.models import builtin

TIMESTEP = 0.01

needed = jax.jit(inverse_dynamics, static_argnames="discretization")


def pushed(mechanism, wrench):
    """The mechanism with a force from outside."""
    return Mechanism(
        dict(mechanism.bodies.items()),
        dict(mechanism.joints.items()),
        forces={"push": wrench},
        inputs=dict(mechanism.inputs.items()),
        sensors=dict(mechanism.sensors.items()),
        gravity=mechanism.gravity,
        name=mechanism.name,
    )


@pytest.mark.parametrize("discretization", quick(["spook", "exact"], "exact"))
def test_an_outside_force_is_found(discretization):
    """A step with a force from outside needs, without it, exactly the impulse ``h f``."""
    plain = builtin.furuta()
    force, torque = np.array([0.5, -0.3, 0.2]), np.array([0.01, 0.02, -0.03])
    mechanism = pushed(plain, Wrench("pendulum", force=force, torque=torque))
    start = place(mechanism, {"hinge2": 1.0}, {"hinge1": 3.0, "hinge2": -2.0})
    motion = simulate(
        mechanism,
        start,
        {"u": 0.3},
        timestep=TIMESTEP,
        steps=5,
        discretization=discretization,
        joints="compliant",
        substeps=1,
    )
    expected = np.zeros((2, 6))
    expected[1] = TIMESTEP * np.concatenate([force, torque])
    for k in range(5):
        state, new = motion.states[k], motion.states[k + 1].velocity
        found = needed(plain, state, new, jnp.array([0.3]), TIMESTEP, discretization=discretization)
        np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("angle", [0.2, 0.7], ids=["rests", "slides"])
def test_contacts_need_nothing_where_the_stepper_goes(angle):
    mechanism = builtin.incline(angle, 0.5)
    elements = assembled(mechanism)
    pose = Pose(jnp.array([[0.0, 0.0, 0.05]]), jnp.array([[1.0, 0.0, 0.0, 0.0]]))
    state = State(pose, jnp.zeros((1, 6)))
    guess = jnp.zeros(complementary_count(elements), bool)
    step = jax.jit(spook_step)
    for _ in range(20):
        new, solution = step(elements, state, jnp.zeros(0), jnp.asarray(TIMESTEP), guess)
        guess = solution.active
        before, state = state, new
    found = needed(mechanism, before, state.velocity, jnp.zeros(0), TIMESTEP)
    np.testing.assert_allclose(found, 0.0, atol=1e-7)
    # Without the floor the box would fall: the contact's impulse is its weight's.
    assert np.linalg.norm(state.velocity[0, :3]) < 9.82 * 20 * TIMESTEP


def test_a_held_body_needs_its_weight():
    mechanism = builtin.incline(0.0, 0.5)
    pose = Pose(jnp.array([[0.0, 0.0, 1.0]]), jnp.array([[1.0, 0.0, 0.0, 0.0]]))
    found = needed(mechanism, State(pose, jnp.zeros((1, 6))), jnp.zeros((1, 6)), jnp.zeros(0), TIMESTEP)
    np.testing.assert_allclose(found[0], [0.0, 0.0, 9.82 * TIMESTEP, 0.0, 0.0, 0.0], atol=1e-12)
