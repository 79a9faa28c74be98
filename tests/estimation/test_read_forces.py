"""Forces that were read: errors count in units of the reading, so that how large all forces are is no way out."""

import dataclasses

import numpy as np
import pytest

from estimation.arms import arm, driven
from shadowfit.estimation import Free, Options, fit
from shadowfit.estimation.fit import start_point
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.problem import build_problem
from shadowfit.estimation.problem.read_forces import read_forces
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.first_weights import first_weights
from shadowfit.estimation.solve.truncation import renewed
from shadowfit.mechanism import Input, Mechanism, TorqueMotor
from shadowfit.mechanism.leaves import Parts

JOINTS, STEPS = 4, 300
SCALED = ("*.mass", "link?.inertia.*", "*.viscous", "*.coulomb", "*.shaft_inertia", "*.motor.gain")
FREE = (*SCALED, "*.com.*")


@pytest.fixture(scope="module")
def recording():
    """An arm along a path, with torques that were read with errors."""
    exact, rng = driven(arm(JOINTS), STEPS, noise=1e-5), np.random.default_rng(2)
    channels = dict(exact.channels)
    for i in range(1, JOINTS + 1):
        channels[f"u{i}"] = channels[f"u{i}"] + 0.1 * rng.standard_normal(STEPS)
    return dataclasses.replace(exact, channels=channels)


@pytest.fixture(scope="module")
def problem(recording):
    built = build_problem(arm(JOINTS), [recording], parameter_set(arm(JOINTS), FREE), Options())
    assert built.kernels.recursion is not None
    return built


@pytest.fixture(scope="module")
def point(problem):
    """With all that a fit holds: widths of friction, errors of the discretisation."""
    start = start_point(problem)
    return renewed(problem, objective.held(problem, start))


@pytest.fixture(scope="module")
def weights(problem, point):
    return dataclasses.replace(first_weights(problem, point), read=read_forces(problem, point.values))


def scaled(problem, point, factor):
    """All forces times a factor."""
    names = {name for pattern in SCALED for name in problem.mechanism.expand(pattern)}
    numbers = np.array(point.values.numbers)
    numbers[[name in names for name in problem.plan.layout.numbers]] *= factor
    return problem.revalued(point, Values(numbers, point.values.turns))


def test_a_machine_with_twice_all_forces_lacks_as_much_of_its_readings(problem, point, weights):
    """Plain impulses would be half as large for half of everything."""
    impulses = dataclasses.replace(weights, read=None)
    small = scaled(problem, point, 0.5)
    here, there = (objective.residuals(problem, at, weights, 0)[:, :JOINTS] for at in (point, small))
    np.testing.assert_allclose(there, here, rtol=1e-6, atol=1e-9 * np.max(np.abs(here)))
    plain = objective.residuals(problem, dataclasses.replace(small, truncation=None), impulses, 0)[:, :JOINTS]
    whole = objective.residuals(problem, dataclasses.replace(point, truncation=None), impulses, 0)[:, :JOINTS]
    np.testing.assert_allclose(plain, 0.5 * whole, rtol=1e-6, atol=1e-9 * np.max(np.abs(whole)))


def test_the_unit_of_a_joint_with_two_motors_is_that_of_both():
    """Whatever number of drives push a joint: with twice all their gains a reading is worth twice the force."""
    plain, rng = arm(2), np.random.default_rng(0)
    first = plain.joints["joint1"]
    twin = TorqueMotor(0.5, input="assist")
    laws = Parts({**dict(first.laws.items()), "assist": twin})
    mechanism = Mechanism(
        dict(plain.bodies.items()),
        dict(plain.joints.items()) | {"joint1": dataclasses.replace(first, laws=laws)},
        sensors=dict(plain.sensors.items()),
        inputs=dict(plain.inputs.items()) | {"assist": Input(unit="N m")},
    )
    recording = driven(plain, 50)
    channels = recording.channels | {"assist": rng.standard_normal(50)}
    gains = [name for name in mechanism.leaves() if name.endswith((".motor.gain", ".assist.gain"))]
    free = parameter_set(mechanism, gains)
    built = build_problem(mechanism, [dataclasses.replace(recording, channels=channels)], free, Options())
    values = free.start()
    read, twice = read_forces(built, values), dataclasses.replace(values, numbers=2.0 * np.array(values.numbers))
    assert len(gains) == 3
    assert np.count_nonzero(read.powers) == 3
    np.testing.assert_allclose(read.at(free, twice, 0)[0], 0.5)


def test_a_common_factor_is_not_seen(problem, point, weights):
    """The rows say nothing along it: error bars are those of what is known beforehand."""
    rows = next(iter(objective.chunk_rows(problem, point, weights, 0)))
    direction = (
        problem.parameters.minus(scaled(problem, point, 1.0 + 1e-6).values, point.values) * 1e6
    )  # d/d log factor
    along = np.asarray(rows.parameters)[:, :JOINTS] @ direction
    each = np.abs(np.asarray(rows.parameters)[:, :JOINTS]) @ np.abs(direction)
    assert np.max(np.abs(along)) < 1e-5 * np.max(each)


def test_derivatives_by_gains_are_those_of_the_rows(problem, point, weights):
    rows = next(iter(objective.chunk_rows(problem, point, weights, 0)))
    for joint in range(JOINTS):
        column = problem.parameters.labels().index(f"joint{joint + 1}.motor.gain")
        step = 1e-5 * (np.arange(problem.parameters.size) == column)
        ahead, behind = (
            objective.residuals(
                problem, problem.revalued(point, problem.parameters.plus(point.values, sign * step)), weights, 0
            )
            for sign in (1.0, -1.0)
        )
        slope = ((ahead - behind) / 2e-5)[:, joint]
        expected = np.asarray(rows.parameters)[:, joint, column]
        np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-6 * np.max(np.abs(expected)))


def test_errors_that_act_are_impulses(problem, point, weights):
    acting = dataclasses.replace(weights, read=weights.read.acting(np.ones(JOINTS)))
    small, plain = scaled(problem, point, 0.5), dataclasses.replace(weights, read=None)
    np.testing.assert_array_equal(
        objective.residuals(problem, small, acting, 0), objective.residuals(problem, small, plain, 0)
    )


def test_weights_stay_what_they_are_when_gains_move(problem, point, weights):
    moved = scaled(problem, point, 1.3)
    settled = weights.settled_at(problem.parameters, moved.values)
    np.testing.assert_allclose(np.diagonal(settled.dynamics), np.diagonal(weights.dynamics) / 1.3, rtol=1e-12)
    own, other = (objective.residuals(problem, moved, each, 0) for each in (weights, settled))
    np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-12)


def test_gains_that_are_held_make_no_difference(recording):
    mechanism = arm(JOINTS)
    problem = build_problem(mechanism, [recording], parameter_set(mechanism, ("*.mass", "*.viscous")), Options())
    assert read_forces(problem, problem.parameters.start()) is None


def test_a_drive_of_which_nothing_was_read_counts_in_impulses(recording):
    """Its gain would explain by becoming infinite that what moved does not show."""
    mechanism = arm(JOINTS)
    idle = dataclasses.replace(recording, channels={**recording.channels, "u2": np.zeros(STEPS)})
    problem = build_problem(mechanism, [idle], parameter_set(mechanism, ("*.motor.gain",)), Options())
    assert read_forces(problem, problem.parameters.start()).counted.tolist() == [True, False, True, True]


@pytest.mark.slow
def test_priors_of_gains_say_how_large_forces_are(recording):
    """All gains, bodies and friction are free; gains are known to 5 %, and start so far off."""
    mechanism = arm(JOINTS)
    off = 1.0 + 0.05 * np.array([0.8, -1.1, 0.3, 1.4])
    free = {name: Free() for pattern in FREE for name in mechanism.expand(pattern) if not name.endswith("gain")}
    gains = [f"joint{i}.motor.gain" for i in range(1, JOINTS + 1)]
    free |= {name: Free(start=float(start), prior=0.05) for name, start in zip(gains, off, strict=True)}
    estimate = fit(mechanism, recording, free)
    assert estimate.converged
    rows = {row.name: row for row in estimate.parameters}
    for name in (*gains, *mechanism.expand("*.viscous"), *mechanism.expand("*.coulomb")):
        row = rows[name]
        assert abs(row.value - mechanism.get(name)) < 4.0 * row.std, row
    # What several priors tell together.
    assert all(rows[name].std < 0.05 for name in gains)
