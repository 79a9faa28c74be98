"""The plan for many machines is arithmetic that can be checked, and its recordings are the same every time."""

import numpy as np
import pytest

from benchmarks.scaling import recordings
from benchmarks.scaling_plan import ROUNDS, SHARD, Times, iteration


def test_an_iteration_takes_what_its_slowest_part_takes():
    random = np.random.default_rng(0)
    work_alone = Times(evaluation=0.01, spread=0.0, task=0.0, add=0.0)
    for way in ("shards", "groups", "tree"):
        assert iteration(64_000, 10, way, work_alone, random) == pytest.approx(64.0)
    driver_alone = Times(evaluation=0.0, spread=0.0, task=1e-3, add=0.0)
    tasks = sum(count for count, _ in ROUNDS)
    assert iteration(64_000, 1000, "shards", driver_alone, random) == pytest.approx(1e-3 * tasks * 64_000 / SHARD)


def test_groups_leave_the_driver_a_task_for_each_worker():
    times = Times(evaluation=0.0, spread=0.0, task=1e-3, add=0.0)
    shards, groups = (iteration(64_000, 100, way, times, np.random.default_rng(0)) for way in ("shards", "groups"))
    assert groups == pytest.approx(shards * 100 / (64_000 / SHARD))


def test_recordings_are_made_once_and_differ(tmp_path):
    files = recordings(tmp_path, 22, 0.2)
    first = [one.read().channels["theta2"] for one in files]
    assert recordings(tmp_path, 22, 0.2) == files
    assert not np.array_equal(first[1], first[21]), "the same motion with other noise"
    assert np.max(np.abs(first[1] - first[21])) < 5e-3
