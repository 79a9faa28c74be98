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
from shadowfit.mechanism import Body, Coulomb, Input, JointPosition, Mechanism, Shaft, TorqueMotor, Turns, hinge
from shadowfit.mechanism.leaves import Parts
from shadowfit.recordings import Recording

JOINTS, STEPS = 4, 300
FREE = ("*.viscous", "*.coulomb", "*.shaft_inertia", "*.mass", "*.inertia.zz")


def led(error, joints=JOINTS):
    """An arm on a path, and a recording whose torques are wrong by slow errors of a standard deviation [N m]."""
    mechanism = arm(joints)
    recording = driven(mechanism, STEPS, noise=1e-5)
    rng = np.random.default_rng(3)
    channels = dict(recording.channels)
    for name in mechanism.inputs:
        slow = np.convolve(rng.standard_normal(STEPS + 20), np.ones(20) / np.sqrt(20.0), "same")[10:-10]
        channels[name] = channels[name] + error * slow
    return mechanism, dataclasses.replace(recording, channels=channels)


def posed(joints):
    mechanism, recording = led(0.3, joints)
    start = {name: 1.5 * mechanism.get(name) for pattern in FREE for name in mechanism.expand(pattern)}
    return build_problem(mechanism, [recording], parameter_set(mechanism, start), Options())


@pytest.fixture(scope="module")
def problem():
    built = posed(JOINTS)
    assert built.kernels.recursion is not None
    return built


@pytest.mark.parametrize("joints", [2, JOINTS], ids=["written out", "by recursion"])
def test_gradient_is_that_of_the_cost(joints):
    problem = posed(joints)
    start = start_point(problem)
    weights = first_weights(problem, start)
    point = objective.held(problem, start)
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
    light, step = jnp.array([300.0]), jnp.asarray(0.01)
    most = sliding.widest(np.array([2.0]), corrected=True)
    assert float(sliding.stick_width(jnp.array([5e-3]), light, step)[0]) == pytest.approx(150.0)
    # A tenth of the largest speed where the axis creeps, a fiftieth where half a step is all that asks for it.
    assert float(sliding.stick_width(jnp.array([5e-3]), light, step, most)[0]) == pytest.approx(0.2)
    assert float(sliding.stick_width(jnp.array([0.0]), light, step, most)[0]) == pytest.approx(0.04)
    as_stepped = sliding.widest(np.array([2.0]), corrected=False)
    assert float(sliding.stick_width(jnp.array([0.0]), light, step, as_stepped)[0]) == pytest.approx(0.2)
    heavy = jnp.array([3e-4])
    assert sliding.stick_width(jnp.array([5e-3]), heavy, step, most) == pytest.approx(
        float(sliding.stick_width(jnp.array([5e-3]), heavy, step)[0])
    )


def wrist():
    """Two light axes behind gears, and a shaft that turns with both."""
    joints = {
        name: hinge(
            "world",
            f"{name}_link",
            axis=(0.0, 0.0, 1.0),
            friction=Coulomb(coulomb=1.0),
            viscous=0.1,
            laws={"motor": TorqueMotor(1.0, 0.005, input=f"{name}_torque")},
        )
        for name in "ab"
    }
    shaft = Shaft(Parts({name: Turns(1.0) for name in "ab"}), viscous=0.3, coulomb=1.0, shaft_inertia=0.005)
    return Mechanism(
        {f"{name}_link": Body(0.1, (1e-3, 1e-3, 1e-3)) for name in "ab"},
        joints,
        sensors={f"{name}_angle": JointPosition(name, std=1e-4) for name in "ab"},
        inputs={f"{name}_torque": Input(unit="N m", hold="linear") for name in "ab"},
        shafts={"shaft": shaft},
    )


def turned(time, stretch, size):
    """Angle, speed and acceleration of a sum of three sines."""
    rates, sizes = stretch * np.array([2.1, 4.3, 8.0]), size * np.array([1.5, 0.7, 0.3])
    phases = np.multiply.outer(time, rates) + 2.0 * stretch * np.array([0.3, 1.1, 2.0])
    return np.sin(phases) @ sizes, np.cos(phases) @ (rates * sizes), -np.sin(phases) @ (rates**2 * sizes)


@pytest.mark.slow
def test_light_wrists_behind_gears_are_told_in_steps_that_their_friction_would_stop_them_in():
    """Friction would stop them within a step of 10 ms from a sixth of their largest speed: its width is no error."""
    time, rng = 1e-3 * np.arange(6000), np.random.default_rng(0)
    own = {"a": (0.039, 1.3, 3.0), "b": (0.002, 0.05, 0.2)}
    motions = {"a": turned(time, 1.0, 0.7), "b": turned(time, 1.13, 1.2)}
    shaft = (0.0092, 0.6, 2.0)

    def torque(numbers, speed, acceleration):
        inertia, viscous, coulomb = numbers
        return inertia * acceleration + viscous * speed + coulomb * np.sign(speed)

    together = torque(shaft, *(motions["a"][i] + motions["b"][i] for i in (1, 2)))
    channels = {}
    for name, (angle, speed, acceleration) in motions.items():
        channels[f"{name}_angle"] = angle + 1e-5 * rng.standard_normal(len(time))
        felt = torque(own[name], speed, acceleration) + 1e-3 * acceleration + together
        channels[f"{name}_torque"] = felt + 0.02 * rng.standard_normal(len(time))
    truth = dict(zip(("shaft.shaft_inertia", "shaft.viscous", "shaft.coulomb"), shaft, strict=True))
    for name, numbers in own.items():
        names = (f"{name}.{kind}" for kind in ("motor.shaft_inertia", "viscous", "coulomb"))
        truth |= dict(zip(names, numbers, strict=True))
    estimate = fit(wrist(), Recording(time, channels), tuple(truth))
    assert estimate.converged
    assert estimate.problem.timestep == 0.01
    for row in estimate.parameters:
        assert row.value == pytest.approx(truth[row.name], rel=0.02, abs=1e-4), row


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


@pytest.mark.parametrize("joints", [2, 4, 6])
def test_friction_is_the_same_whatever_is_free(joints):
    """Widths and missing impulses of a validation are those of a fit of all that an arm has."""
    mechanism = arm(joints)
    recording = driven(mechanism, 40)
    found = []
    for free in ((), ("*.inertial", "*.friction", "*.shaft_inertia")):
        built = build_problem(mechanism, [recording], parameter_set(mechanism, free), Options())
        point = objective.held(built, start_point(built))
        here, commands = built.at(point.values, 0), built.commands_at(point.values, 0)
        left = here.dynamics_residuals(point.nodes[0].pose, commands, built.timestep, point.stopping[0])
        found.append((left, point.stopping[0].speeds, point.stopping[0].most))
    for own, other in zip(*found, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-12 * np.max(np.abs(other)))


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
