"""Recordings set right one by one: only those astray move, costs stay true, and a fleet takes the steps of a fit."""

import dataclasses

import numpy as np
import pytest

from estimation.oscillators import NOISE, oscillation
from estimation.scenes import spring_slider
from shadowfit.estimation import LevenbergMarquardt, Options, fit
from shadowfit.estimation.fit import start_point
from shadowfit.estimation.problem.weights import default_weights
from shadowfit.estimation.solve import objective, settling
from shadowfit.estimation.solve.levenberg_marquardt import descend
from shadowfit.estimation.solve.settling import NOT_HELD, Expectation, settled, slack
from shadowfit.estimation.solve.system import LocalSystem
from shadowfit.estimation.spread import shard
from shadowfit.estimation.spread.roles import request
from shadowfit.estimation.spread.shard import Task
from shadowfit.estimation.spread.sources import InMemory
from shadowfit.estimation.spread.system import SpreadPoint, SpreadSystem
from shadowfit.parallel.engine import Threads

MODEL = spring_slider(std=NOISE)
OPTIONS = Options(state_weight=1e4)
START = {"rail.spring.stiffness": 8.0, "rail.spring.damping": 0.5}
ASTRAY = 1


@pytest.fixture(scope="module")
def estimate():
    return fit(MODEL, [oscillation(number) for number in range(3)], START, options=OPTIONS)


@pytest.fixture(scope="module")
def astray(estimate):
    """The minimum, but for the states of one recording."""
    here = estimate.outcome.linearisation
    steps = [np.zeros((normal.nodes, normal.node_size)) for normal in here.normals]
    steps[ASTRAY] += 1e-2 * np.sin(np.arange(len(steps[ASTRAY])))[:, None]
    moved = objective.plus(estimate.problem, here.point, tuple(steps), np.zeros(estimate.problem.parameters.size))
    return objective.linearise(estimate.problem, moved, estimate.weights)


def expectation(estimate):
    here = estimate.outcome.linearisation
    return Expectation(tuple(normal.cost for normal in here.normals), here.point.nodes)


def least(estimate):
    return slack(0.0, 3, estimate.outcome.linearisation.cost.total / estimate.problem.sample_count())


def test_a_recording_astray_is_led_back_and_the_others_stay(estimate, astray):
    expected = expectation(estimate)
    assert astray.normals[ASTRAY].cost > 100.0 * expected.costs[ASTRAY]
    found = settled(estimate.problem, astray, estimate.weights, expected, least(estimate))
    assert found.normals[ASTRAY].cost <= expected.costs[ASTRAY] + least(estimate)
    for index in (0, 2):
        assert found.normals[index] is astray.normals[index]
        assert found.point.nodes[index] is astray.point.nodes[index]


def test_costs_and_normal_equations_are_those_of_the_point(estimate, astray):
    found = settled(estimate.problem, astray, estimate.weights, expectation(estimate), least(estimate))
    again = objective.linearise(estimate.problem, found.point, estimate.weights)
    assert dataclasses.astuple(found.cost) == dataclasses.astuple(again.cost)
    for one, other in zip(found.normals, again.normals, strict=True):
        np.testing.assert_array_equal(one.corner, other.corner)


def test_without_a_promise_nothing_moves(estimate, astray):
    assert settled(estimate.problem, astray, estimate.weights, NOT_HELD, 0.0) is astray


def test_a_recording_that_cannot_be_led_back_stays_where_it_was(estimate, astray, monkeypatch):
    """Without a single trial nothing is led back: its states are those from before the step."""
    monkeypatch.setattr(settling, "TRIALS", 0)
    expected = expectation(estimate)
    found = settled(estimate.problem, astray, estimate.weights, expected, least(estimate))
    assert found.normals[ASTRAY].cost == expected.costs[ASTRAY]
    np.testing.assert_array_equal(found.point.nodes[ASTRAY].pose.position, expected.before[ASTRAY].pose.position)
    assert found.normals[0] is astray.normals[0]


def test_the_slack_keeps_three_quarters_of_what_a_step_promises():
    assert 200 * slack(40.0, 200, 1e-9) == pytest.approx(0.25 * 40.0)
    assert slack(0.0, 200, 1.0) > 0.0


def test_a_fleet_takes_the_steps_of_a_plain_fit(estimate):
    """Shares that are eliminated one by one and added up give the same course as one system with all states."""
    problem = estimate.problem
    weights = default_weights(problem, 1e4)
    plain = descend(LocalSystem(problem, weights), start_point(problem), LevenbergMarquardt())
    engine, asked = Threads(1), request(MODEL, START, ())
    task = Task(MODEL, asked, problem.options, asked.roles(MODEL), weights.reference)
    parts = [[InMemory(track.recording).read()] for track in problem.tracks]
    problems = engine.each(shard.build, parts, shared=(task,))
    common = asked.common(MODEL)
    system = SpreadSystem(
        engine, task, task, problems, common, problem.sample_count(), len(parts), weights, np.zeros(0), False
    )
    motions = engine.each(shard.begin, problems, shared=(common.named(common.start()),))
    spread = descend(system, SpreadPoint(common.start(), motions), LevenbergMarquardt())
    assert spread.status.converged
    assert plain.status.converged
    # Which of the last steps is the last one may hang on rounding.
    costs = [(one.cost, other.cost) for one, other in zip(spread.log, plain.log, strict=False)]
    np.testing.assert_allclose(*np.transpose([*costs, (spread.log[-1].cost, plain.log[-1].cost)]), rtol=1e-9)
