"""The optimiser: descent, stopping rules, the log, interruption, and the damped step."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from estimation.scenes import problem_of, shaken, twin
from shadowfit.estimation import Free, LevenbergMarquardt, Status, fit
from shadowfit.estimation.fit import solve, start_point
from shadowfit.estimation.problem.weights import default_weights
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.levenberg_marquardt import descend, minimise
from shadowfit.estimation.solve.proposal import propose
from shadowfit.models import builtin

PENDULUM = builtin.pendulum()
AWAY = {"pendulum.inertia.yy": 0.01, "hinge.viscous": 1e-3, "hinge.dry": 5e-4}


# Beyond what is worth while statistically, so that the minimum can be recognised as such.
SETTLED = LevenbergMarquardt(max_iterations=100, decrease_tolerance=1e-12)


@pytest.fixture(scope="module")
def problem():
    return problem_of(PENDULUM, twin(PENDULUM, {"hinge": 2.5}, 200, noise=1e-3), AWAY)


@pytest.fixture(scope="module")
def estimate(problem):
    return solve(problem, SETTLED)


def test_the_log_tells_the_descent(estimate):
    log = estimate.log
    assert [line.number for line in log] == list(range(len(log)))
    costs = [line.cost for line in log]
    assert all(later <= earlier for earlier, later in itertools.pairwise(costs))
    assert log[0].parameters == pytest.approx(AWAY)
    assert log[-1].cost / estimate.steps == pytest.approx(estimate.cost)
    assert log[-1].cost == pytest.approx(log[-1].dynamics + log[-1].observation, rel=0.05)
    assert all(np.diff([line.seconds for line in log]) >= 0.0)


def test_the_minimum_has_no_slope(problem, estimate):
    """Neither a step nor a small change of any parameter (states following) lowers the cost."""
    here = estimate.outcome.linearisation
    proposal = propose(problem, here, 1e-12, "scaled")
    start = estimate.log[0].cost
    # Kinks of dry friction leave a little that smooth steps cannot reach.
    assert -proposal.change < 1e-4 * here.cost.total < 1e-6 * start


@pytest.mark.parametrize("damping", ["scaled", "identity"])
def test_dampings_reach_the_same_minimum(problem, estimate, damping):
    other = solve(problem, LevenbergMarquardt(damping=damping, max_iterations=200))
    assert other.converged
    assert other.cost == pytest.approx(estimate.cost, rel=1e-4)


def test_damping_shortens_the_step(problem):
    here = objective.linearise(problem, start_point(problem), default_weights(problem, 100.0))
    for damping, alphas in (("scaled", (1e-6, 1e-2, 1e2)), ("identity", (1e-6, 1e2, 1e8))):
        sizes = [propose(problem, here, alpha, damping).size for alpha in alphas]
        assert sizes[0] > sizes[1] > sizes[2], damping


def test_the_quadratic_model_predicts_small_steps(problem):
    """Change of the cost over predicted change tends to one."""
    weights = default_weights(problem, 100.0)
    here = objective.linearise(problem, shaken(problem, 1e-4), weights)
    proposal = propose(problem, here, 1e4, "scaled")
    there = objective.linearise(
        problem, objective.plus(problem, here.point, proposal.states, proposal.parameters), weights
    )
    gain = (there.cost.total - here.cost.total) / proposal.change
    assert gain == pytest.approx(1.0, abs=0.05)


def test_iteration_limit(problem):
    stopped = solve(problem, LevenbergMarquardt(max_iterations=2))
    assert stopped.status is Status.ITERATIONS
    assert stopped.iterations == 2
    assert "iteration limit" in stopped.summary()


@pytest.mark.parametrize("most", [1, 3, 9])
def test_the_limit_is_that_of_all_iterations(most):
    """Of the search for weights, of descents with renewed corrections, and of the last one together."""
    recording, seen = twin(PENDULUM, {"hinge": 2.5}, 100, noise=1e-3), []
    stopped = fit(PENDULUM, recording, AWAY, optimiser=LevenbergMarquardt(max_iterations=most), progress=seen.append)
    assert max(line.number for line in (*seen, *stopped.log)) == most
    assert stopped.status is Status.ITERATIONS


def test_gradient_tolerance(problem):
    stopped = solve(problem, LevenbergMarquardt(gradient_tolerance=1e12))
    assert stopped.status is Status.GRADIENT
    assert stopped.iterations == 0


def test_step_tolerance(problem):
    stopped = solve(problem, LevenbergMarquardt(step_tolerance=1.0, decrease_tolerance=0.0))
    assert stopped.status is Status.STEP


@pytest.mark.parametrize("at", [1, 2])
def test_interruption_returns_the_best_iterate(problem, at):
    seen = []

    def progress(line):
        seen.append(line)
        if line.number == at:
            raise KeyboardInterrupt

    stopped = solve(problem, LevenbergMarquardt(), progress)
    assert stopped.status is Status.INTERRUPTED
    assert stopped.log == tuple(seen)
    assert stopped.log[-1].cost / stopped.steps == pytest.approx(stopped.cost)
    assert {row.name: row.value for row in stopped.parameters} == pytest.approx(seen[-1].parameters)


def test_a_warm_start_continues(problem, estimate):
    weights = default_weights(problem, 100.0)
    again = minimise(problem, estimate.outcome.linearisation.point, weights, LevenbergMarquardt(), first_number=7)
    assert again.log[0].number == 7
    before = estimate.outcome.linearisation.cost.total
    assert again.log[0].cost == pytest.approx(before, rel=1e-12)
    assert 0.999 * before < again.linearisation.cost.total <= before


def test_steps_stay_in_the_box_all_the_way(problem):
    free = {**AWAY, "pendulum.inertia.yy": Free(0.01, 0.008, 0.02), "hinge.dry": Free(5e-4, 0.0, 1e-3)}
    bounded = fit(PENDULUM, problem.tracks[0].recording, free, options=problem.options)
    for line in bounded.log:
        assert 0.008 <= line.parameters["pendulum.inertia.yy"] <= 0.02
        assert 0.0 <= line.parameters["hinge.dry"] <= 1e-3


class Bend:
    """A system whose steps lead uphill below a damping, and do what they promise from it on."""

    parameters = SimpleNamespace(labels=lambda: (), vector=lambda values: np.zeros(0))
    samples, recordings, holds = 1, 1, False
    enough = 1e-10

    def __init__(self):
        self.tried = []

    def linearise(self, point):
        return self.at(point)

    def at(self, cost):
        named = SimpleNamespace(total=cost, dynamics=(0.0,), observation=cost)
        return SimpleNamespace(point=SimpleNamespace(values=None), cost=named)

    def propose(self, here, alpha, damping, guess, near):
        self.tried.append(alpha)
        change = -0.1 * here.cost.total if alpha >= self.enough else -0.2 * here.cost.total
        return SimpleNamespace(change=change, size=1.0, box=None, worth=0.0, curvature=None, alpha=alpha)

    def follow(self, here, proposal):
        good = proposal.alpha >= self.enough
        return self.at(here.cost.total + proposal.change if good else 2.0 * here.cost.total)

    def seen(self, here):
        return None


def test_a_damping_that_was_refused_is_remembered():
    """Relaxed to the last digit after each accepted step, the damping would be refused before every next one."""
    system = Bend()
    outcome = descend(system, 1.0, LevenbergMarquardt(max_iterations=40, start_damping=1e-9))
    assert len(outcome.log) == 41
    # A refused step is looked at twice (the watchdog): without a memory there would be two for each iteration.
    assert sum(alpha < Bend.enough for alpha in system.tried) <= 40


class Rounded(Bend):
    """A system that rounding leaves no step below a damping."""

    enough = 0.0

    def propose(self, here, alpha, damping, guess, near):
        proposal = super().propose(here, alpha, damping, guess, near)
        return None if alpha < 1e-12 else proposal


def test_a_step_that_rounding_forbids_asks_for_little_more_damping():
    system = Rounded()
    descend(system, 1.0, LevenbergMarquardt(max_iterations=1, start_damping=1e-14))
    np.testing.assert_allclose(system.tried, [1e-14, 1e-13, 1e-12], rtol=1e-9)


def test_a_descent_that_is_followed_by_another_ends_before_a_step_that_promises_little():
    """Steps of `Bend` promise a tenth of the cost, which is χ² of one sample."""
    system = Bend()
    settings = LevenbergMarquardt(max_iterations=5, start_damping=1e-9)
    assert len(descend(system, 1.0, settings).log) == 6
    for enough, lines in ((0.09, 6), (0.11, 1)):
        outcome = descend(Bend(), 1.0, LevenbergMarquardt(max_iterations=5, start_damping=1e-9, enough=enough))
        assert len(outcome.log) == lines
    assert outcome.status is Status.DECREASE
    assert outcome.linearisation.cost.total == 1.0
