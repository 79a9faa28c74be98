"""Steps corrected for what their linear model leaves out: as a dense solve has them, of third order, never worse."""

import dataclasses

import numpy as np
import pytest

from estimation.arms import arm, driven
from estimation.scenes import problem_of
from shadowfit.estimation import LevenbergMarquardt
from shadowfit.estimation.fit import solve, start_point
from shadowfit.estimation.linear import front
from shadowfit.estimation.problem.weights import default_weights
from shadowfit.estimation.solve import objective, second_order
from shadowfit.estimation.solve.proposal import propose
from shadowfit.estimation.solve.second_order import corrected, destination, left_out

MECHANISM = arm(6)
FREE = ("link1.mass", "link2.mass", "link3.mass", "link2.com.z", "joint1.viscous", "joint2.viscous")
# Less would leave fewer digits of the steps than two ways to the same one can agree in.
ALPHA = 1e-6


@pytest.fixture(scope="module")
def problem():
    """An arm whose steps are found link by link."""
    start = {name: 1.3 * MECHANISM.get(name) for name in FREE}
    recording = driven(MECHANISM, 60, noise=1e-4)
    made = problem_of(MECHANISM, recording, start, unknowns="joint", correction="none", state_weight=1e8)
    assert made.kernels.recursion is not None
    return made


@pytest.fixture(scope="module")
def weights(problem):
    return default_weights(problem, 1e8)


@pytest.fixture(scope="module")
def here(problem, weights):
    start = objective.held(problem, start_point(problem))
    return objective.linearise(problem, start, weights)


@pytest.fixture(scope="module")
def proposal(problem, here):
    return propose(problem, here, ALPHA, "scaled")


def dynamics_at(problem, point, weights):
    return (objective.residuals(problem, point, weights, 0)[:, : problem.plan.node_size],)


def followed(problem, weights, here, step):
    return dynamics_at(problem, objective.plus(problem, here.point, step.states, step.parameters), weights)


def test_residuals_alone_are_the_last_column_of_the_rows(problem, weights, here):
    rows = np.concatenate([np.asarray(rows.residual) for rows in objective.chunk_rows(problem, here.point, weights, 0)])
    alone = objective.residuals(problem, here.point, weights, 0)
    np.testing.assert_allclose(alone, rows, rtol=0.0, atol=1e-12 * np.abs(rows).max())


def test_what_is_left_out_is_gathered_as_by_the_whole_jacobian(problem, weights, here, proposal):
    size = problem.plan.node_size
    rows = list(objective.chunk_rows(problem, here.point, weights, 0))
    states = np.concatenate([np.asarray(each.states) for each in rows])[:, :size]
    parameters = np.concatenate([np.asarray(each.parameters) for each in rows])[:, :size]
    linear = objective.residuals_after(problem, here.point, weights, 0, proposal.states[0], proposal.parameters)
    (there,) = followed(problem, weights, here, proposal)
    lacking = there - linear[:, :size]
    by_states, by_parameters = left_out(here.dynamics[0], there, proposal.states[0], proposal.parameters)
    expected = np.zeros_like(by_states)
    for node in range(states.shape[2]):
        expected[node : node + len(states)] += np.einsum("kmb,km->kb", states[:, :, node], lacking)
    np.testing.assert_allclose(by_states, expected, atol=1e-9 * np.abs(expected).max())
    whole = np.einsum("kmp,km->p", parameters, lacking)
    np.testing.assert_allclose(by_parameters, whole, atol=1e-9 * np.abs(whole).max())


def test_the_correction_is_a_step_with_another_gradient(problem, weights, here, proposal):
    """Solving again from the beginning, with what was left out in the right-hand side, gives the same step."""
    there = followed(problem, weights, here, proposal)
    found = corrected(problem, here, proposal, there)
    by_states, by_parameters = left_out(here.dynamics[0], there[0], proposal.states[0], proposal.parameters)
    (normal,) = here.normals
    after, corner = normal.after.copy(), normal.corner.copy()
    after[:, :, -1] += front._by_blocks(by_states, *normal.pivot.shape[:2])
    corner[:-1, -1] += by_parameters
    corner[-1, :-1] += by_parameters
    other = dataclasses.replace(here, normals=(dataclasses.replace(normal, after=after, corner=corner),))
    expected = propose(problem, other, ALPHA, "scaled")
    scale = np.abs(expected.parameters).max()
    np.testing.assert_allclose(found.parameters, expected.parameters, atol=1e-7 * scale)
    np.testing.assert_allclose(found.states[0], expected.states[0], atol=1e-7 * np.abs(expected.states[0]).max())


def test_what_a_corrected_step_leaves_out_is_of_third_order(problem, weights, here, proposal):
    """Half the step: a quarter of what the linear model leaves out, an eighth of what the corrected one does."""

    def left(part):
        halved = dataclasses.replace(
            proposal, states=tuple(part * x for x in proposal.states), parameters=part * proposal.parameters
        )
        goal = objective.residuals_after(problem, here.point, weights, 0, halved.states[0], halved.parameters)
        first = followed(problem, weights, here, halved)
        # The correction is that of the states and parameters beside the given step.
        moved = corrected(problem, here, halved, first)
        beside = dataclasses.replace(
            halved,
            states=(halved.states[0] + moved.states[0] - proposal.states[0],),
            parameters=halved.parameters + moved.parameters - proposal.parameters,
        )
        second = followed(problem, weights, here, beside)
        size = problem.plan.node_size
        return (np.linalg.norm(x[0] - goal[:, :size]) for x in (first, second))

    (plain, better), (half_plain, half_better) = left(0.02), left(0.01)
    assert plain / half_plain == pytest.approx(4.0, rel=0.1)
    assert better < 0.1 * plain
    assert better / half_better > 6.0


def test_a_step_leads_to_a_lower_cost_corrected(problem, weights, here, proposal):
    plain = objective.plus(problem, here.point, proposal.states, proposal.parameters)
    better = destination(problem, weights, here, proposal)
    costs = [objective.linearise(problem, point, weights).cost.total for point in (plain, better)]
    assert costs[1] < 0.5 * costs[0]


def test_a_step_that_keeps_its_promise_is_left_alone(problem, weights):
    estimate = solve(problem, LevenbergMarquardt())
    here = estimate.outcome.linearisation
    step = propose(problem, here, 1e-12, "scaled", None, True)
    plain = objective.plus(problem, here.point, step.states, step.parameters)
    np.testing.assert_array_equal(
        destination(problem, weights, here, step).nodes[0].pose.orientation, plain.nodes[0].pose.orientation
    )


def test_uncorrected_fits_end_at_the_same_minimum(problem, monkeypatch):
    found = solve(problem, LevenbergMarquardt())
    monkeypatch.setattr(second_order, "CORRECTIONS", 0)
    plain = solve(problem, LevenbergMarquardt())
    assert found.converged
    assert plain.converged
    # One iteration more or less is rounding.
    assert len(found.log) <= len(plain.log) + 1
    for one, other in zip(found.parameters, plain.parameters, strict=True):
        assert one.value == pytest.approx(other.value, abs=1e-3 * one.std)


def test_rows_of_large_problems_are_not_kept_and_steps_are_the_same(problem, weights, here, proposal, monkeypatch):
    assert here.dynamics
    assert proposal.factors
    monkeypatch.setattr(objective, "KEPT", 10)
    again = objective.linearise(problem, here.point, weights)
    assert again.dynamics == ()
    step = propose(problem, again, ALPHA, "scaled")
    assert step.factors == ()
    np.testing.assert_allclose(step.parameters, proposal.parameters, rtol=1e-9)


def test_steps_of_motions_alone_are_corrected_too():
    settings = {"unknowns": "joint", "correction": "none", "state_weight": 1e8}
    problem = problem_of(MECHANISM, driven(MECHANISM, 60, noise=1e-4), {}, **settings)
    weights = default_weights(problem, 1e8)
    here = objective.linearise(problem, objective.held(problem, start_point(problem)), weights)
    step = propose(problem, here, ALPHA, "scaled")
    again = corrected(problem, here, step, followed(problem, weights, here, step))
    assert again is not None
    assert again.parameters.shape == (0,)
    assert again.states[0].shape == step.states[0].shape
    assert 0.0 < np.max(np.abs(again.states[0] - step.states[0])) < np.max(np.abs(step.states[0]))
