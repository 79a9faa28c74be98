"""Results on disk, the statistics made of them, and the page that shows them."""

import math

import numpy as np
import pytest

from benchmarks.peers import results, user_code
from benchmarks.peers.measures import covered, grouped, median, ratios, successes, warm
from benchmarks.peers.methods import METHODS
from benchmarks.peers.report import page
from benchmarks.peers.results import Result
from benchmarks.peers.tasks import NOISE, TASKS, measure, rollout_error

TASK = "pendulum"


def result(method, seed, factor, std=None, **further):
    truth = TASKS[TASK].truth
    values = {name: factor * truth[name] for name in TASKS[TASK].starts}
    spread = None if std is None else {name: std * truth[name] for name in values}
    return Result(method, TASK, seed, values, spread, True, **further)


def test_results_read_back_as_written(tmp_path):
    first, late = result("casadi", 0, 1.01, seconds=2.0), Result("casadi", TASK, 1, error="longer than 3 s")
    for one in (first, late):
        results.save(tmp_path, one)
    loaded = {r.seed: r for r in results.load(tmp_path)}
    assert loaded[0].values == first.values
    assert loaded[0].seconds == 2.0
    assert loaded[1].error == late.error
    assert math.isnan(loaded[1].seconds)


def test_success_needs_every_unknown_near_the_truth():
    group = [result("casadi", 0, 1.09), result("casadi", 1, 1.11), Result("casadi", TASK, 2, error="late")]
    assert successes(group) == 1


def test_coverage_counts_intervals_that_hold_the_truth():
    group = [result("scipy", 0, 1.05, std=0.03), result("scipy", 1, 1.07, std=0.03)]
    unknowns = len(TASKS[TASK].starts)
    assert covered(group) == (unknowns, 2 * unknowns)


def test_only_later_fits_of_a_compiling_method_are_warm():
    ours = [result("shadowfit", seed, 1.0, place=place) for seed, place in enumerate((0, 0, 1, 2))]
    assert [r.seed for r in warm(ours)] == [2, 3]
    theirs = [result("casadi", seed, 1.0) for seed in range(3)]
    assert len(warm(theirs)) == 3


def test_ratio_compares_medians_on_common_seeds():
    own = [result("shadowfit", seed, 1.0 + e) for seed, e in enumerate((0.02, 0.04, 0.9))]
    bound = [result("casadi", seed, 1.0 - e) for seed, e in enumerate((0.01, 0.03))]
    for _, _, ours, theirs, seeds in ratios(grouped(own + bound)):
        assert seeds == 2
        assert ours == pytest.approx(0.03)
        assert theirs == pytest.approx(0.02)


def test_page_names_what_failed_and_what_was_not_run():
    groups = grouped([result("casadi", 0, 1.0, seconds=1.0), Result("mujoco", TASK, 0, error="longer than 3 s")])
    text = page(groups, "Some findings.", [])
    assert "longer than 3 s" in text
    assert "Not run: furuta-release-far" in text
    assert "not measured" in text


def test_median_ignores_what_is_missing():
    assert median([1.0, math.nan, 3.0]) == 2.0
    assert math.isnan(median([]))


def test_lines_of_code_leave_out_words():
    source = '"""Docs\nmore."""\n\n# why\ndef f():\n    """Say."""\n    return 1  # one\n'
    assert user_code.program_lines(source) == 2
    for method in METHODS.values():
        program, model = user_code.lines(method, TASKS[TASK].system)
        assert program > 5
        assert model > 5


def test_recordings_differ_by_their_noise_alone(tmp_path):
    first, second, again = (measure(TASKS[TASK], seed, tmp_path) for seed in (0, 1, 0))
    np.testing.assert_array_equal(first.positions, again.positions)
    spread = np.std(first.positions - second.positions) / math.sqrt(2.0)
    assert spread == pytest.approx(NOISE, rel=0.05)


def test_rollout_error_is_zero_at_the_truth_alone(tmp_path):
    # RK4 steps over the kink of dry friction, the truth does not: some 4e-5 rad.
    assert rollout_error(TASKS[TASK], {}, tmp_path) < 1e-4
    assert rollout_error(TASKS[TASK], {"pendulum.inertia.yy": 0.004}, tmp_path) > 1e-2
