"""Machines that are led along a path: friction far above what light axes could take up, torques that are not exact.

The gradient is that of the cost although friction fades over speeds that depend on inertias; the width of friction
stays below the speeds of the motion; a first fit does not believe its equations more than the data do.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from estimation.arms import arm, driven
from shadowfit.dynamics import sliding
from shadowfit.estimation import Options, fit
from shadowfit.estimation.fit import start_point
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.problem import build_problem
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.first_weights import first_weights
from shadowfit.estimation.uncertainty.start_levels import likely_at_start, of_each_joint

JOINTS, STEPS = 4, 300
FREE = ("*.viscous", "*.coulomb", "*.shaft_inertia", "*.mass", "*.inertia.zz")


def led(error):
    """An arm on a path, and a recording whose torques are wrong by slow errors of a standard deviation [N m]."""
    mechanism = arm(JOINTS)
    recording = driven(mechanism, STEPS, noise=1e-5)
    rng = np.random.default_rng(3)
    channels = dict(recording.channels)
    for name in mechanism.inputs:
        slow = np.convolve(rng.standard_normal(STEPS + 20), np.ones(20) / np.sqrt(20.0), "same")[10:-10]
        channels[name] = channels[name] + error * slow
    return mechanism, dataclasses.replace(recording, channels=channels)


@pytest.fixture(scope="module")
def problem():
    mechanism, recording = led(0.3)
    start = {name: 1.5 * mechanism.get(name) for pattern in FREE for name in mechanism.expand(pattern)}
    built = build_problem(mechanism, [recording], parameter_set(mechanism, start), Options())
    assert built.kernels.recursion is not None
    return built


def test_gradient_is_that_of_the_cost(problem):
    start = start_point(problem)
    weights = first_weights(problem, start)
    point = objective.held(problem, start, weights)
    here = objective.linearise(problem, point, weights)
    still = (np.zeros((len(point.nodes[0].pose.position), problem.plan.node_size)),)
    values = problem.parameters.flat(point.values)
    for place, size in enumerate(values):
        change = np.zeros(problem.parameters.size)
        costs = []
        for sign in (1.0, -1.0):
            change[place] = sign * 1e-4 * size
            moved = objective.plus(problem, point, still, change)
            costs.append(objective.linearise(problem, moved, weights).cost.total)
        slope = (costs[0] - costs[1]) / (2e-4 * size)
        expected = 2.0 * here.normals[0].parameter_gradient()[place]
        assert slope == pytest.approx(expected, rel=1e-4, abs=1e-6 * here.cost.total / size)


def test_friction_fades_below_the_speeds_of_the_motion():
    light, limit, step = jnp.array([1e4]), jnp.array([3e-2]), jnp.asarray(0.01)
    free = sliding.stick_width(jnp.array([5e-3]), light, limit, step)
    capped = sliding.stick_width(jnp.array([5e-3]), light, limit, step, jnp.array([2.0]))
    assert float(free[0]) == pytest.approx(150.0)
    assert float(capped[0]) == pytest.approx(0.2)
    heavy = jnp.array([1e-2])
    assert sliding.stick_width(jnp.array([5e-3]), heavy, limit, step, jnp.array([2.0])) == pytest.approx(
        float(sliding.stick_width(jnp.array([5e-3]), heavy, limit, step)[0])
    )


def test_first_weights_are_as_large_as_the_errors_of_the_torques(problem):
    start = start_point(problem)
    first = first_weights(problem, start)
    chosen = likely_at_start(problem, start, first)
    errors = chosen.reference / np.diagonal(chosen.dynamics) / problem.timestep
    assert np.log10(first.state_weight / chosen.state_weight) > 2.0 - 1e-9  # whole decades, rounding aside
    assert np.all(errors > 0.05)
    exact, recording = led(0.0)
    plain = build_problem(exact, [recording], parameter_set(exact, FREE), Options())
    start = start_point(plain)
    first = first_weights(plain, start)
    assert likely_at_start(plain, start, first) is first


def test_levels_of_joints_before_a_fit_are_those_of_the_torques():
    """White errors of other sizes at each joint, which inertial impulses know nothing of."""
    mechanism, recording = led(0.0)
    rng, errors, channels = np.random.default_rng(5), [0.3, 0.1, 0.03, 0.1], dict(recording.channels)
    for name, error in zip(mechanism.inputs, errors, strict=True):
        channels[name] = channels[name] + error * rng.standard_normal(STEPS)
    noisy = dataclasses.replace(recording, channels=channels)
    problem = build_problem(mechanism, [noisy], parameter_set(mechanism, FREE), Options())
    start = start_point(problem)
    chosen = of_each_joint(problem, start, likely_at_start(problem, start, first_weights(problem, start)))
    np.testing.assert_allclose(chosen.unexplained / problem.timestep, errors, rtol=0.3)


def test_friction_of_a_led_arm_is_found(problem):
    """Coulomb friction within its error bars, in a few iterations, where torques have errors of a tenth."""
    mechanism, recording = led(0.1)
    start = {name: 2.0 * mechanism.get(name) for pattern in FREE for name in mechanism.expand(pattern)}
    estimate = fit(mechanism, recording, start)
    assert estimate.converged
    assert estimate.log[-1].number <= 60
    assert not estimate.noise_choice.at_end, "the data, and no limit of the search, say how far the equations hold"
    rows = {row.name: row for row in estimate.parameters}
    for i in range(1, JOINTS + 1):
        row = rows[f"joint{i}.coulomb"]
        assert abs(row.value - 0.3) < 4.0 * row.std
        assert row.std < 0.15
