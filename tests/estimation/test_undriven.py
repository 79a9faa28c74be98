"""A wrist that nothing drives on an arm that is led: its equation has no known force, and must not be made small."""

import jax.numpy as jnp
import numpy as np
import pytest

from shadowfit import place, simulate
from shadowfit.estimation import Options, fit
from shadowfit.estimation.fit import start_point
from shadowfit.estimation.problem.drives import is_led, passes_rest
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.problem import build_problem
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.first_weights import first_weights
from shadowfit.estimation.solve.truncation import renewed
from shadowfit.estimation.solve.undriven import proportioned
from shadowfit.mechanism import Body, Coulomb, Input, JointPosition, Mechanism, Rotor, TorqueMotor, hinge
from shadowfit.recordings import Recording

FREE = (*(f"link{i}.{part}" for i in (1, 2, 3) for part in ("mass", "com.*", "inertia.*")), "*.viscous", "*.coulomb")
FREE = (*FREE, "*.shaft_inertia")
AXES = ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
TIMESTEP = 0.01
WRIST = {"joint3.viscous": 0.3, "joint3.coulomb": 0.02, "joint3.rotor.shaft_inertia": 0.004}


def hanging(driven=2):
    """Three links that hang down, the first of them driven."""
    bodies, hinges, sensors, inputs = {}, {}, {}, {}
    for i, (mass, across) in enumerate(((3.0, 0.02), (2.0, -0.015), (0.8, 0.02)), 1):
        bodies[f"link{i}"] = Body(mass, np.diag([0.012, 0.011, 0.006]) * mass, com=(across, 0.01, -0.12))
        loose = i > driven
        hinges[f"joint{i}"] = hinge(
            f"link{i - 1}" if i > 1 else "world",
            f"link{i}",
            axis=AXES[i - 1],
            parent_point=(0.0, 0.0, -0.3 if i > 1 else 0.0),
            viscous=WRIST["joint3.viscous"] if i == 3 else 1.0,
            friction=Coulomb(coulomb=WRIST["joint3.coulomb"] if i == 3 else 0.3),
            laws={"rotor": Rotor(0.004)} if loose else {"motor": TorqueMotor(1.0, 0.05, input=f"u{i}")},
            compliance=1e-9,
        )
        sensors[f"q{i}"] = JointPosition(joint=f"joint{i}", std=1e-4)
        if not loose:
            inputs[f"u{i}"] = Input(unit="N m", hold="linear")
    return Mechanism(bodies, hinges, sensors=sensors, inputs=inputs, name="hanging")


def recorded(mechanism, seconds, noise=2e-5, error=0.02):
    """A simulation with torques of several sines; readings of angles and torques have noise [rad, N m]."""
    fine, rng = 8, np.random.default_rng(4)
    steps = round(seconds / TIMESTEP)
    at = TIMESTEP * np.arange(steps + 1)
    waves = {
        name: _sines(size * rng.uniform(0.3, 1.0, 4), rng.uniform(0.2, 1.6, 4), rng.uniform(0.0, 6.0, 4))
        for name, size in zip(mechanism.inputs, (5.0, 2.5), strict=False)
    }
    run = simulate(
        mechanism, place(mechanism), waves, timestep=TIMESTEP / fine, steps=steps * fine, joints="rigid", substeps=1
    )
    channels = {name: np.asarray(values)[::fine].ravel() for name, values in run.readings.items()}
    channels = {name: values + noise * rng.standard_normal(len(values)) for name, values in channels.items()}
    for name, wave in waves.items():
        channels[name] = np.array([float(wave(t)) for t in at]) + error * rng.standard_normal(steps + 1)
    return Recording(at, channels, name="hanging")


def _sines(sizes, frequencies, phases):
    """A torque as a function of time."""
    return lambda t: jnp.sum(sizes * jnp.sin(2.0 * jnp.pi * frequencies * t + phases))


@pytest.fixture(scope="module")
def mechanism():
    return hanging()


@pytest.fixture(scope="module")
def recording(mechanism):
    return recorded(mechanism, 6.0)


@pytest.fixture(scope="module")
def problem(mechanism, recording):
    return build_problem(mechanism, [recording], parameter_set(mechanism, FREE), Options())


@pytest.fixture(scope="module")
def smooth(mechanism, recording):
    """The same without dry friction: the speed over which it turns depends on the inertias of all links."""
    plain = mechanism.set(dict.fromkeys(mechanism.expand("*.coulomb"), 0.0))
    free = tuple(name for name in FREE if name != "*.coulomb")
    return build_problem(plain, [recording], parameter_set(plain, free), Options())


def test_drives_that_outnumber_loose_joints_lead(problem):
    assert is_led(problem)
    assert passes_rest(problem)
    loose = hanging(driven=1)
    waves = {name: np.sin(0.1 * i + 0.05 * np.arange(60)) for i, name in enumerate((*loose.sensors, *loose.inputs))}
    assert not is_led(
        build_problem(loose, [Recording(TIMESTEP * np.arange(60), waves)], parameter_set(loose, ()), Options())
    )


def rows_of(problem, point, weights):
    (rows,) = list(objective.chunk_rows(problem, point, weights, 0))[:1]
    return rows


def test_equation_of_the_wrist_does_not_shrink_with_its_numbers(smooth):
    """Half of all that acts on the wrist leaves its rows as they were; those of driven joints are plain impulses."""
    problem = smooth
    start = start_point(problem)
    plain = first_weights(problem, start)
    weights = proportioned(problem, start, plain)
    assert weights.proportion.measured.tolist() == [False, False, True]
    before = rows_of(problem, start, weights)
    np.testing.assert_allclose(before.residual, rows_of(problem, start, plain).residual, rtol=1e-12)
    named = problem.parameters.named(start.values)
    half = {
        name: 0.5 * value
        for name, value in named.items()
        if name.startswith(("link3.mass", "link3.inertia", "joint3."))
    }
    point = problem.revalued(start, problem.parameters.with_numbers(start.values, half))
    after = rows_of(problem, point, weights)
    np.testing.assert_allclose(after.residual[:, 2], before.residual[:, 2], rtol=1e-9, atol=1e-12)
    shrunk = rows_of(problem, point, plain)
    np.testing.assert_allclose(shrunk.residual[:, 2], 0.5 * before.residual[:, 2], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(shrunk.residual[:, :2], after.residual[:, :2], rtol=1e-12)


def test_errors_of_the_discretisation_shrink_with_the_forces(smooth):
    """Held ones that were found with twice of everything are those that half of it has: rows stay as they were."""
    problem = smooth
    start = renewed(problem, start_point(problem))
    weights = proportioned(problem, start, first_weights(problem, start))
    before = rows_of(problem, start, weights)
    named = problem.parameters.named(start.values)
    whole = ("link3.mass", "link3.inertia", "joint3.")
    half = {name: 0.5 * value for name, value in named.items() if name.startswith(whole)}
    point = problem.revalued(start, problem.parameters.with_numbers(start.values, half))
    taken_off = np.max(np.abs(start.truncation[0].dynamics[:, 2]))
    assert taken_off * weights.dynamics[2, 2] > 1e-3 * np.max(np.abs(before.residual[:, 2]))
    held = rows_of(problem, point, weights).residual[:, 2]
    np.testing.assert_allclose(held, before.residual[:, 2], rtol=1e-9, atol=1e-12)
    anew = rows_of(problem, renewed(problem, point), weights).residual[:, 2]
    np.testing.assert_allclose(held, anew, rtol=1e-6, atol=1e-9 * np.max(np.abs(anew)))


@pytest.mark.parametrize("corrected", [False, True])
def test_slopes_are_those_of_the_rows(smooth, corrected):
    problem = smooth
    start = start_point(problem)
    start = renewed(problem, start) if corrected else start
    weights = proportioned(problem, start, first_weights(problem, start))
    values = problem.parameters.plus(start.values, 0.1 * problem.parameters.flat(start.values))
    point = problem.revalued(start, values)
    here, still = rows_of(problem, point, weights), (np.zeros((len(point.nodes[0].pose.position), 3)),)
    for entry, size in enumerate(problem.parameters.scales):
        step = np.zeros(problem.parameters.size)
        step[entry] = 1e-5 * size
        ahead, behind = (
            rows_of(problem, objective.plus(problem, point, still, sign * step), weights) for sign in (1.0, -1.0)
        )
        slope = (ahead.residual[:, 2] - behind.residual[:, 2]) / (2e-5 * size)
        expected = np.asarray(here.parameters)[:, 2, entry]
        np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-5 * np.max(np.abs(here.residual[:, 2])) / size)


def test_weights_stay_what_they_are_when_parameters_move(problem):
    start = start_point(problem)
    weights = proportioned(problem, start, first_weights(problem, start))
    point = problem.revalued(start, problem.parameters.plus(start.values, 0.2 * problem.parameters.flat(start.values)))
    moved = weights.settled_at(problem.parameters, point.values)
    assert moved.dynamics[2, 2] != pytest.approx(weights.dynamics[2, 2])
    own, other = rows_of(problem, point, weights), rows_of(problem, point, moved)
    for part in ("states", "parameters", "residual"):
        np.testing.assert_allclose(getattr(own, part), getattr(other, part), rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_an_equation_with_held_forces_is_left_alone(mechanism, recording):
    """The wrist's friction alone is free: weight and inertia say how large it is."""
    few = ("joint1.viscous", "joint2.viscous", "joint3.viscous")
    problem = build_problem(mechanism, [recording], parameter_set(mechanism, few), Options())
    start = start_point(problem)
    assert proportioned(problem, start, first_weights(problem, start)).proportion is None


@pytest.mark.slow
def test_friction_of_the_wrist_is_found(mechanism):
    """From a file without friction, and with other masses."""
    start = {name: 0.0 for pattern in ("*.viscous", "*.coulomb") for name in mechanism.expand(pattern)}
    start |= {"link1.mass": 3.6, "link2.mass": 1.7, "link3.mass": 1.0}
    file = mechanism.set(start)
    estimate = fit(file, recorded(mechanism, 12.0), FREE)
    assert estimate.converged
    rows = {row.name: row for row in estimate.parameters}
    for name in ("joint1.viscous", "joint1.coulomb", "joint2.viscous", "joint2.coulomb", *WRIST):
        row = rows[name]
        assert abs(row.value - mechanism.get(name)) < 4.0 * row.std, name
    assert rows["joint3.viscous"].std < 0.5 * WRIST["joint3.viscous"]
