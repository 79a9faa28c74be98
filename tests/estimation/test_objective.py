"""The objective of every built-in mechanism: elimination equals full matrices, and costs add up."""

import dataclasses

import numpy as np
import pytest

from estimation.dense import dense_factorise
from estimation.scenes import all_rows, blank, dc_cartpole, problem_of, pulses, shaken, twin
from quick import quick
from shadowfit.estimation import Free
from shadowfit.estimation.linear import front
from shadowfit.estimation.problem.options import ProblemError
from shadowfit.estimation.problem.weights import default_weights
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.chunks import RecordingRows
from shadowfit.models import builtin

STEPS = 8
TOLERANCE = 1e-10

SCENES = {
    "pendulum": (builtin.pendulum, {"hinge": 1.0}, ["pendulum.inertia.yy", "hinge.viscous", "hinge.dry"], {}),
    "pendulum-full": (builtin.pendulum, {"hinge": 1.0}, ["pendulum.inertia.yy"], {"unknowns": "full"}),
    "furuta": (builtin.furuta, {"hinge2": 2.0}, ["arm.inertia.zz", "hinge?.viscous", "gravity.tilt"], {}),
    "furuta-full": (
        builtin.furuta,
        {"hinge2": 2.0},
        ["arm.inertia.zz", "u.gain"],
        {"unknowns": "full", "residual": "inverse", "discretization": "spook"},
    ),
    "furuta-joint": (
        builtin.furuta,
        {"hinge2": 2.0},
        ["arm.inertia.zz", "hinge?.viscous", "gravity.tilt", "hinge2.child_point.z"],
        {"unknowns": "joint"},
    ),
    "chain-joint": (
        lambda: builtin.chain(4),
        {"hinge1": 0.5, "hinge3": -0.4},
        ["link?.inertia.yy", "hinge?.viscous"],
        {"unknowns": "joint", "correction": "deferred"},
    ),
    "cartpole": (dc_cartpole, {"pivot": 1.0}, ["cart.mass", "rail.motor.torque_constant"], {}),
    "fourbar": (builtin.fourbar, {"ground_crank": -1.0}, ["coupler.mass", "crank_coupler.parent_point.x"], {}),
    "chain": (lambda: builtin.chain(4), {"hinge1": 0.5, "hinge3": -0.4}, ["link?.inertia.yy", "hinge?.viscous"], {}),
}


# Every kind of unknowns is among the others.


@pytest.fixture(scope="module", params=quick(SCENES, "pendulum", "furuta-joint"))
def scene(request):
    build, positions, free, options = SCENES[request.param]
    mechanism = build()
    inputs = {name: pulses(STEPS, size=0.1) for name in mechanism.inputs}
    recording = twin(mechanism, positions, STEPS, noise=1e-3, inputs=inputs)
    problem = problem_of(mechanism, recording, free, **options)
    point = shaken(problem, 1e-4)
    weights = default_weights(problem, 100.0)
    return problem, point, weights, objective.linearise(problem, point, weights), all_rows(problem, point, weights)


def assert_close(actual, expected, tolerance=TOLERANCE):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance * np.max(np.abs(expected)))


def test_normal_equations_are_those_of_the_full_jacobian(scene):
    _, _, _, here, rows = scene
    normal = here.normals[0]
    assert_close(normal.parameter_gradient(), rows.parameters.T @ rows.residual)
    assert_close(normal.gradient().ravel(), rows.states.T @ rows.residual)
    assert_close(normal.diagonal().ravel(), np.sum(rows.states**2, axis=0))
    assert here.cost.total == pytest.approx(np.sum(rows.residual**2), rel=1e-12)


def test_elimination_equals_full_matrices(scene):
    problem, _, _, here, rows = scene
    normal = here.normals[0]
    # Full matrices are inverted in units in which every diagonal entry is one; else rounding would hide the comparison.
    unit = 1.0 / np.sqrt(normal.diagonal())
    damping = 1e-3 * normal.diagonal()
    found = front.factorise(normal, damping)
    dense = dense_factorise(dataclasses.replace(rows, states=rows.states * unit.ravel()), np.full(unit.shape, 1e-3))
    assert_close(found.reduced().matrix, dense.reduced().matrix)
    assert_close(found.reduced().gradient, dense.reduced().gradient)
    step = 1e-2 * problem.parameters.scales
    assert_close(found.states(step) / unit, dense.states(step))
    # Both sides have rows of their own compiler, whose rounding the stiffness of the joints multiplies.
    assert_close(found.sensitivities() / unit[..., None], dense.sensitivities(), 10.0 * TOLERANCE)


def test_undamped_covariance_factor_equals_the_full_inverse(scene):
    """Information of the parameters with the states eliminated, by a QR of the full Jacobian."""
    _, _, _, here, rows = scene
    reduced = front.factorise(here.normals[0]).reduced()
    basis, _ = np.linalg.qr(rows.states)
    left = rows.parameters - basis @ (basis.T @ rows.parameters)
    assert reduced.ok
    expected = left.T @ left
    scale = np.sqrt(np.diagonal(expected))
    # Of a parameter that the states can make up for, rounding is all that is left.
    known = scale > 1e-4 * np.linalg.norm(rows.parameters, axis=0)
    assert known.sum() >= len(known) - 1
    # Without damping, joints of 1e4 N/m stand beside what the data say: rounding is that much larger.
    error = np.abs(reduced.matrix - expected)[np.ix_(known, known)]
    assert np.all(error <= 1e-6 * np.outer(scale, scale)[np.ix_(known, known)])


def test_costs_are_sums_of_their_parts(scene):
    problem, _, _, here, rows = scene
    bodies, count = len(problem.mechanism.bodies), problem.tracks[0].steps
    start = 0 if problem.options.unknowns == "joint" else 12 * bodies
    per_step = (len(rows.residual) - start) // count
    steps = rows.residual[: len(rows.residual) - start].reshape(count, per_step)
    motion = per_step - len(problem.sensors)
    cost = here.cost
    assert sum(cost.dynamics) == pytest.approx(np.sum(steps[:, :motion] ** 2), rel=1e-12)
    np.testing.assert_allclose(cost.sensors[0], np.sum(steps[:, motion:] ** 2, axis=0), rtol=1e-12)
    assert sum(cost.start) == pytest.approx(np.sum(rows.residual[len(rows.residual) - start :] ** 2), rel=1e-12)
    assert cost.total == pytest.approx(sum(cost.dynamics) + cost.observation + sum(cost.start) + cost.prior, rel=1e-14)


def test_plain_weights_mean_the_papers_scaling():
    """σ₀ is the geometric mean: a sensor with it counts with weight one, κ multiplies squared impulses."""
    mechanism = builtin.furuta().set({"theta1.std": 1e-3, "theta2.std": 4e-3})
    recording = twin(mechanism, {"hinge2": 1.0}, STEPS)
    weights = default_weights(problem_of(mechanism, recording), 25.0)
    assert weights.reference == pytest.approx(2e-3)
    np.testing.assert_allclose(weights.std, [0.5, 2.0])
    np.testing.assert_allclose(weights.dynamics, 5.0 * np.eye(12))


def test_priors_pull_to_the_start():
    mechanism = builtin.pendulum()
    recording = twin(mechanism, {"hinge": 1.0}, STEPS)
    free = ["pendulum.inertia.yy", "hinge.viscous", "hinge.dry"]
    plain = problem_of(mechanism, recording, free)
    believed = problem_of(mechanism, recording, {**dict.fromkeys(free), "hinge.viscous": Free(prior=1e-7)})
    point = shaken(plain, 0.1)
    weights = default_weights(plain, 100.0)
    without, given = (objective.linearise(problem, point, weights) for problem in (plain, believed))
    away = plain.parameters.flat(point.values)[1] - mechanism.get("hinge.viscous")
    weight = (weights.reference / 1e-7) ** 2
    assert away != 0.0
    assert given.cost.prior == pytest.approx(weight * away**2)
    assert given.cost.total - without.cost.total == pytest.approx(weight * away**2, rel=1e-6)
    np.testing.assert_allclose(given.prior_matrix, np.diag([0.0, weight, 0.0]))
    np.testing.assert_allclose(given.prior_gradient, [0.0, weight * away, 0.0])


def test_chunks_are_invisible():
    """A recording longer than one chunk has the rows of its steps, whatever chunk they fall into."""
    mechanism = builtin.pendulum()
    recording = twin(mechanism, {"hinge": 1.0}, 300, noise=1e-3)
    problem = problem_of(mechanism, recording, ["pendulum.inertia.yy", "hinge.viscous", "hinge.dry"])
    point, weights = shaken(problem, 1e-4), default_weights(problem, 100.0)
    here, rows = objective.linearise(problem, point, weights), all_rows(problem, point, weights)
    assert here.cost.total == pytest.approx(np.sum(rows.residual**2), rel=1e-12)
    assert_close(here.normals[0].parameter_gradient(), rows.parameters.T @ rows.residual)
    part = dataclasses.replace(
        recording, time=recording.time[:290], channels={"theta": recording.channels["theta"][:290]}
    )
    shorter = problem_of(mechanism, part, ["pendulum.inertia.yy", "hinge.viscous", "hinge.dry"])
    assert shorter.tracks[0].steps == 290


@pytest.mark.slow
def test_a_full_covariance_of_the_impulses_weighs_by_its_inverse():
    mechanism = builtin.pendulum()
    random = np.random.default_rng(0).standard_normal((6, 6))
    covariance = random @ random.T + 6.0 * np.eye(6)
    plain = problem_of(mechanism, blank(mechanism), ["hinge.viscous"])
    shaped = problem_of(mechanism, blank(mechanism), ["hinge.viscous"], impulse_covariance=covariance.tolist())
    point = shaken(plain, 1e-3)
    weights = default_weights(shaped, 50.0)
    assert weights.state_weight == pytest.approx(50.0)
    inverse = np.linalg.inv(covariance)
    expected = 50.0 * inverse * 6.0 / np.trace(inverse)
    np.testing.assert_allclose(weights.dynamics.T @ weights.dynamics, expected, rtol=1e-12)
    impulses = [
        np.asarray(rows.residual)[: plain.tracks[0].steps, :6]
        for rows in objective.chunk_rows(plain, point, default_weights(plain, 1.0), 0)
    ]
    cost = objective.linearise(shaped, point, weights).cost.dynamics[0]
    assert cost == pytest.approx(sum(np.einsum("ki,ij,kj->", r, expected, r) for r in impulses), rel=1e-9)


@pytest.mark.parametrize(("covariance", "message"), [([1.0, 2.0], "must be 6 variances"), ([-1.0] * 6, "positive")])
def test_impossible_covariances_are_refused(covariance, message):
    mechanism = builtin.pendulum()
    with pytest.raises(ProblemError, match=message):
        problem_of(mechanism, blank(mechanism), impulse_covariance=covariance)


def test_rows_do_not_depend_on_where_chunks_end(scene):
    problem, point, weights, *_ = scene
    recording, steps = RecordingRows(problem, point, weights, 0), problem.tracks[0].steps
    whole = recording.tables(0)
    parts = [recording.tables(begin, begin + 3) for begin in range(0, steps, 3)]
    for table, pieces in zip(whole, zip(*parts, strict=True), strict=True):
        assert len(table.wide) == steps
        assert_close(front.joined(pieces).wide, table.wide)
