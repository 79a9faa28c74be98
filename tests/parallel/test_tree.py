"""Sums over a fixed tree: the digits do not depend on how the places are divided."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowfit.parallel.tree import begun, ended


@given(count=st.integers(1, 70), cuts=st.sets(st.integers(1, 69)), seed=st.integers(0, 100))
def test_any_division_has_the_same_digits(count, cuts, seed):
    values = np.random.default_rng(seed).normal(size=count) * 10.0 ** np.arange(count)
    ends = [0, *sorted(cut for cut in cuts if cut < count), count]
    nodes = {}
    for first, last in itertools.pairwise(ends):
        nodes |= begun(values[first:last], first)
    assert ended(nodes, count) == ended(begun(values), count)
    assert ended(nodes, count) == pytest.approx(np.sum(values), rel=1e-12, abs=1e-12 * np.abs(values).max())


def test_what_is_sent_grows_with_the_logarithm():
    """Places 5 to 1004 are two nodes of most levels."""
    assert len(begun(np.ones(1000), 5)) <= 2 * 10
    assert list(begun(np.ones(64), 64)) == [(6, 1)]


def test_neighbours_are_added_first():
    assert ended(begun(["a", "b", "c", "d", "e"]), 5) == "abcde"
    assert begun(["b", "c", "d"], 1) == {(0, 1): "b", (1, 1): "cd"}
