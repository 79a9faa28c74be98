"""The benchmark's equations of motion agree with the independent references of the other tests."""

import math

import numpy as np
import pytest

from benchmarks.peers import systems
from benchmarks.peers.truth import motion, rollout
from reference import reduced_ode

RANDOM = np.random.default_rng(0)
POINTS = [(RANDOM.uniform(-3, 3, 2), RANDOM.uniform(-5, 5, 2), RANDOM.uniform(-2, 2, 2)) for _ in range(5)]


def level(system):
    """The numbers without dry friction, which the references do not have."""
    return {**dict(system.truth), **{name: 0.0 for name in system.truth if name.endswith("coulomb")}}


@pytest.mark.parametrize(("q", "v", "u"), POINTS)
def test_furuta_equals_the_reference(q, v, u):
    p = systems.FURUTA.parameters(level(systems.FURUTA))
    model = reduced_ode.Furuta(
        arm_inertia=(1e-3, 1e-3, p["arm.inertia.zz"]),
        pendulum_inertia=(p["pendulum.inertia.xx"], p["pendulum.inertia.yy"], p["pendulum.inertia.zz"]),
        shaft_inertia=p["hinge1.motor.shaft_inertia"],
        viscous=(p["hinge1.viscous"], p["hinge2.viscous"]),
        motor_gain=p["hinge1.motor.gain"],
    )
    found = systems.FURUTA.accelerations(list(q), list(v), list(u), p, math)
    np.testing.assert_allclose(found, reduced_ode.acceleration(model, q, v, u[0]), rtol=1e-12)


@pytest.mark.parametrize(("q", "v", "u"), POINTS)
def test_cartpole_equals_the_reference(q, v, u):
    p = systems.CARTPOLE.parameters({})
    model = reduced_ode.CartPole(cart_viscous=p["rail.viscous"], pole_viscous=p["pivot.viscous"])
    found = systems.CARTPOLE.accelerations(list(q), list(v), list(u), p, math)
    np.testing.assert_allclose(found, reduced_ode.acceleration(model, q, v, u[0]), rtol=1e-12)


@pytest.mark.parametrize(("q", "v", "u"), POINTS)
def test_arm_equals_the_reference_chain(q, v, u):
    p = systems.ARM.parameters({})
    model = reduced_ode.Chain(
        masses=(p["upper.mass"], p["lower.mass"]),
        lengths=(p["upper.length"], 1.0),
        centres=(p["upper.centre"], p["lower.centre"]),
        inertias=(p["upper.inertia.yy"], p["lower.inertia.yy"]),
        viscous=(p["shoulder.viscous"], p["elbow.viscous"]),
    )
    elbow = np.array([0.0, p["elbow.motor.gain"] * u[1]])
    force = model.force(q, v, p["shoulder.motor.gain"] * u[0]) + elbow
    found = systems.ARM.accelerations(list(q), list(v), list(u), p, math)
    np.testing.assert_allclose(found, np.linalg.solve(model.mass_matrix(q), force), rtol=1e-12)


def test_pendulum_equals_the_reference_with_dry_friction():
    p = systems.PENDULUM.parameters({})
    model = reduced_ode.Pendulum(
        viscous=p["hinge.viscous"], coulomb=p["hinge.coulomb"], coulomb_speed=systems.STICK_SPEED
    )
    for q, v, _ in POINTS:
        found = systems.PENDULUM.accelerations([q[0]], [v[0]], [], p, math)
        np.testing.assert_allclose(found, reduced_ode.acceleration(model, q[:1], v[:1]), rtol=1e-12)


def test_truth_equals_the_reference_integrator_where_the_input_is_held():
    interval, samples = 2e-3, 101
    p = systems.CARTPOLE.parameters({})
    inputs = np.where(np.arange(samples) // 10 % 2 == 0, 2.0, -1.0)[:, None]
    start = np.array([0.1, 0.8, 0.0, -1.0])
    found = motion(systems.CARTPOLE, {}, start, inputs, interval)
    model = reduced_ode.CartPole(cart_viscous=p["rail.viscous"], pole_viscous=p["pivot.viscous"])
    times = interval * np.arange(samples)
    expected = reduced_ode.solve(
        model,
        start[:2],
        start[2:],
        times,
        u=lambda time: float(inputs[min(int(time / interval + 1e-9), samples - 1), 0]),
        breaks=times[::10].tolist(),
    )
    np.testing.assert_allclose(found, np.concatenate([expected.q, expected.qd], axis=1), atol=1e-9)
    np.testing.assert_allclose(found, rollout(systems.CARTPOLE, {}, start, inputs, interval), atol=1e-7)
