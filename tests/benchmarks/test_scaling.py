"""The plan for many machines is arithmetic that can be checked, and its recordings are the same every time."""

import numpy as np
import pytest

from benchmarks.scaling import recordings
from benchmarks.scaling_plan import SHARD, TASKS, iteration


def test_an_iteration_takes_what_its_slowest_part_takes():
    random = np.random.default_rng(0)
    workers, driver, whole = iteration(64_000, 10, 0.01, 0.0, 0.0, False, random)
    assert (workers, driver, whole) == (pytest.approx(64.0), 0.0, pytest.approx(64.0))
    workers, driver, whole = iteration(64_000, 1000, 0.01, 0.0, 1e-3, False, random)
    assert driver == pytest.approx(1e-3 * TASKS * 64_000 / SHARD)
    assert whole == driver > workers


def test_a_tree_of_sums_leaves_the_driver_one_share_a_worker():
    _, plain, _ = iteration(64_000, 100, 0.01, 0.2, 1e-3, False, np.random.default_rng(0))
    _, tree, _ = iteration(64_000, 100, 0.01, 0.2, 1e-3, True, np.random.default_rng(0))
    assert tree == pytest.approx(plain * 100 / (64_000 / SHARD))


def test_recordings_are_made_once_and_differ(tmp_path):
    files = recordings(tmp_path, 22, 0.2)
    first = [one.read().channels["theta2"] for one in files]
    assert recordings(tmp_path, 22, 0.2) == files
    assert not np.array_equal(first[1], first[21]), "the same motion with other noise"
    assert np.max(np.abs(first[1] - first[21])) < 5e-3
