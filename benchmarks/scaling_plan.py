"""A fit over a million recordings on paper: iterations simulated from measured times of tasks.

    python -m benchmarks.scaling_plan [--recordings 1000000] [--task 0.02] [--spread 0.2] [--driver 1e-3] [--bytes 6000]

Recordings are in shards of 32. An iteration is two rounds (the share of the system, then the step and the new
linearisation); in a round every worker does its shards one after the other, and what is slowest is waited for. The
driver (Dask's scheduler included) spends a fixed time on each task, one after the other, while workers compute. With a
tree of sums, shares of a worker are added up by the worker, and the driver sees one for each worker; tasks are still
handed out one by one unless a worker's shards are one task.
"""

from __future__ import annotations

import argparse

import numpy as np

SHARD = 32
# Tasks of a shard in an iteration: share, step, its size, linearisation, its report.
TASKS = 5


def iteration(
    recordings: int, workers: int, task: float, spread: float, driver: float, tree: bool, random: np.random.Generator
) -> tuple[float, float, float]:
    """Seconds of an iteration: workers alone, driver alone, and both, which overlap."""
    shards = -(-recordings // SHARD)
    own = np.bincount(np.arange(shards) % workers, minlength=workers)
    # A worker's sum over many recordings is normal, whatever one of them takes.
    slowest = 0.0
    for count in np.unique(own):
        same = int(np.sum(own == count))
        sums = task * SHARD * count * (1.0 + spread / np.sqrt(max(SHARD * count, 1)) * random.standard_normal(same))
        slowest = max(slowest, float(sums.max(initial=0.0)))
    tasks = TASKS * (min(workers, shards) if tree else shards)
    serial = driver * tasks
    return slowest, serial, max(slowest, serial)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=int, default=1_000_000)
    parser.add_argument("--task", type=float, default=0.02, help="of a recording in an iteration [s]")
    parser.add_argument("--spread", type=float, default=0.2, help="relative standard deviation of that")
    parser.add_argument("--driver", type=float, default=1e-3, help="of the scheduler and driver for a task [s]")
    parser.add_argument("--bytes", type=int, default=6000, help="that a shard sends in an iteration")
    given = parser.parse_args()
    random = np.random.default_rng(0)
    shards = -(-given.recordings // SHARD)
    print(f"{given.recordings} recordings, {shards} shards, {given.bytes} bytes a shard and iteration")
    print("| workers | bytes a worker | workers [s] | driver [s] | iteration [s] | with a tree [s] | efficiency |")
    print("|---|---|---|---|---|---|---|")
    for workers in (10, 30, 100, 300, 1000, 3000, 10000):
        setting = (given.recordings, workers, given.task, given.spread, given.driver)
        alone, serial, whole = iteration(*setting, False, random)
        _, _, tree = iteration(*setting, True, random)
        ideal = given.recordings * given.task / workers
        sent = given.bytes * -(-shards // workers)
        print(
            f"| {workers} | {sent} | {alone:.3g} | {serial:.3g} | {whole:.3g} | {tree:.3g} | "
            f"{ideal / whole:.2f}, {ideal / tree:.2f} |"
        )


if __name__ == "__main__":
    main()
