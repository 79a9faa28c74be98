"""The search on functions with known minima, shapes of motions, and criteria against their definitions."""

import time

import numpy as np
import pytest

from shadowfit.designs import DesignError
from shadowfit.designs.criteria import check_criterion, identifiable, in_words
from shadowfit.designs.search import compete, minimise
from shadowfit.designs.waves import USUAL, Waves
from shadowfit.errors import UnknownNameError


def test_the_worst_of_several_is_lowered_to_where_they_meet():
    """max(|x − 1|, |y + 1|) over x + y ≤ −1 is a half, at x = ½, y = −1½."""

    def evaluate(x):
        objectives = np.stack([x[:, 0] - 1, 1 - x[:, 0], x[:, 1] + 1, -1 - x[:, 1]], axis=1)
        return objectives, (x[:, :1] + x[:, 1:] + 1.0)

    candidate = minimise(evaluate, np.zeros(2), 60)
    np.testing.assert_allclose(candidate.coefficients, [0.5, -1.5], atol=1e-6)
    assert candidate.objective == pytest.approx(0.5, abs=1e-6)


def test_a_curved_limit_is_met():
    """The highest point of the unit circle along (1, 2)."""

    def evaluate(x):
        return -(x @ [[1.0], [2.0]]), np.sum(x**2, axis=1, keepdims=True) - 1.0

    candidate = minimise(evaluate, np.array([0.9, 0.0]), 60)
    np.testing.assert_allclose(candidate.coefficients, np.array([1.0, 2.0]) / np.sqrt(5.0), atol=0.02)
    assert candidate.violation < 1e-3


@pytest.mark.parametrize("quiet", [0.0, 0.2])
def test_motions_begin_and_end_at_rest(quiet):
    waves = Waves(2, 10.0, 2.0, 5, quiet)
    time = np.linspace(0.0, 10.0, 4001)
    signal = waves.signals(np.random.default_rng(0).normal(size=(3, waves.size)), time)
    for order in range(3):
        assert np.max(np.abs(signal[:, [0, -1]])) < 1e-2 * np.max(np.abs(signal)), order
        signal = np.gradient(signal, time, axis=1)
    for name in USUAL:
        usual = waves.signals(waves.usual(name)[None], time)
        assert 0.5 < np.max(np.abs(usual)) < 3.0


def test_pulses_go_both_ways_and_rest_in_between():
    waves = Waves(2, 12.0, 4.0, 5)
    time = np.linspace(0.0, 12.0, 12001)
    first, second = waves.signals(waves.usual("pulses")[None], time)[0].T
    assert np.max(first) > 0.99
    assert np.min(first) < -0.99
    # Six turns of two seconds. The last pulse of the first channel lasts half a period of the band's end, 1/8 s; the
    # second channel begins with that one.
    assert np.all(first[time > 10.13] == 0.0)
    assert np.any(first[(time > 10.0) & (time < 10.125)] < 0.0)
    assert np.all(second[(time > 0.13) & (time < 2.0)] == 0.0)
    assert np.min(second) < -0.99


def test_criteria_are_what_they_are_called():
    random = np.random.default_rng(1)
    root = random.normal(size=(5, 5)) + 3.0 * np.eye(5)
    information, scale = 1e4 * root @ root.T, np.array([1.0, 2.0, 0.5, 4.0, 1.0])
    information /= np.outer(scale, scale)
    known = identifiable("abcde", scale, (information, information), np.zeros((5, 5)))
    covariance = np.linalg.inv(information)
    bars = np.sqrt(np.diagonal(covariance)) / scale
    np.testing.assert_allclose(known.relative(information), bars, rtol=1e-6)
    scaled = information * np.outer(scale, scale)
    assert known.objectives(information, "worst").max() == pytest.approx(np.log(bars.max()))
    assert known.objectives(information, "A")[0] == pytest.approx(np.log(np.sqrt(np.mean(bars**2))))
    assert known.objectives(information, "D")[0] == pytest.approx(-np.linalg.slogdet(scaled)[1] / 10)
    assert known.unknown == ()


def test_given_information_counts():
    information, none = np.diag([1e4, 1.0]), np.zeros((2, 2))
    known = identifiable("ab", np.ones(2), (information, information), np.diag([0.0, 1e4]))
    assert known.relative(none + information)[1] == pytest.approx(0.01, rel=1e-3)


def test_what_the_discretisation_alone_tells_is_not_told():
    apart, together = np.array([1.0, -1.0, 0.0]), np.array([1.0, 1.0, 0.0])
    rough = 1e6 * np.outer(together, together) + np.diag([0.0, 0.0, 1e4]) + 10.0 * np.outer(apart, apart)
    fine = rough - 10.0 * 15.0 / 16.0 * np.outer(apart, apart)
    known = identifiable("abc", np.ones(3), (rough, fine), np.zeros((3, 3)))
    assert known.counted.tolist() == [False, False, True]
    assert [set(finding.names) for finding in known.unknown] == [{"a", "b"}]
    assert "only the combination" in in_words(known.unknown[0])
    with pytest.raises(DesignError, match="no motion within the limits"):
        identifiable("ab", np.ones(2), (rough[:2, :2], fine[:2, :2]), np.zeros((2, 2)))


def test_unknown_criteria_are_named():
    with pytest.raises(UnknownNameError, match="no criterion 'E'"):
        check_criterion("E")


def test_of_several_starts_the_better_ones_go_on():
    """A double well, (x² − 1)² + x/5: the left one is deeper, and starts on the right do not leave theirs."""

    def evaluate(x):
        return (x**2 - 1.0) ** 2 + 0.2 * x, np.abs(x) - 2.0

    steps = {}

    def count(number, best):
        steps[number] = steps.get(number, 0) + 1

    starts = [np.array([value]) for value in (0.9, -0.7, 1.3, 0.5)]
    candidates = compete(evaluate, starts, 400, 60.0, count).candidates
    merits = [one.merit for one in candidates]
    assert merits == sorted(merits)
    assert candidates[0].coefficients[0] == pytest.approx(-1.0, abs=0.05)
    assert candidates[0].objective < -0.19
    assert max(steps, key=steps.get) == 1


def test_a_search_ends_by_evaluations_wherever_it_runs():
    """A slow machine finds the same as a fast one, digit by digit; only time that was allowed for tells them apart."""

    def valley(x):
        return np.sum((x - 0.3) ** 2, axis=1, keepdims=True) + np.abs(x[:, :1]), np.abs(x) - 2.0

    def slow(x):
        time.sleep(2e-3)
        return valley(x)

    starts = [np.full(3, value) for value in (1.0, -0.7, 0.2)]
    quick, late = (compete(run, starts, 300, 60.0, lambda number, best: None) for run in (valley, slow))
    assert quick.evaluations <= 300 + len(starts)
    assert quick.evaluations == late.evaluations
    assert not late.late
    assert [one.coefficients.tolist() for one in quick.candidates] == [
        one.coefficients.tolist() for one in late.candidates
    ]
    assert compete(slow, starts, 300, 1e-3, lambda number, best: None).late
