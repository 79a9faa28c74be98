"""A fit over a million recordings on paper: iterations simulated from measured times of tasks.

    python -m benchmarks.scaling_plan [--recordings 1000000] [--evaluation 0.014] [--task 0.002] [--add 2e-5]

An iteration has three rounds: shares of the system; the step and its size; the new linearisation and its report. In a
round the driver (Dask's scheduler included) hands out tasks one after the other, workers compute, and what they send is
added as it comes; the last one is waited for. Three ways are compared:

    shards   a task for each shard of 32 recordings, all shares added by the driver
    groups   a task for each worker, which sends the nodes of the tree of sums that lie within its shards: what is built
    tree     the same, and nodes of 32 workers at a time are added by one of them before the driver sees them
"""

from __future__ import annotations

import argparse
import dataclasses

import numpy as np

SHARD = 32
# Nodes of a tree over groups of workers; how many workers one of them adds for.
FAN = 32
# Tasks of each round, and the part of an evaluation's time that it takes (shares, and what another worker keeps of the
# states; step; linearisation).
ROUNDS = ((3, 0.2), (2, 0.3), (2, 0.5))


@dataclasses.dataclass(frozen=True)
class Times:
    """What was measured [s]."""

    evaluation: float
    """Of a recording in an evaluation."""
    spread: float
    """Relative standard deviation of that."""
    task: float
    """Of scheduler and driver for a task."""
    add: float
    """Of the driver for a share: to receive it and to add it up."""


def round_time(works: np.ndarray, tasks: int, shares: int, times: Times) -> float:
    """Seconds of a round: tasks are handed out one by one, answers are added one by one as they come."""
    done = np.sort(times.task * tasks * (1.0 + np.arange(len(works))) + works)
    own = shares * times.add
    # handled_k = max(done_k, handled_{k−1}) + own
    steps = own * np.arange(len(done))
    return float((np.maximum.accumulate(done - steps) + steps)[-1] + own)


def iteration(recordings: int, workers: int, way: str, times: Times, random: np.random.Generator) -> float:
    """Seconds of an iteration."""
    shards = -(-recordings // SHARD)
    own = np.bincount(np.arange(shards) % workers, minlength=workers)
    nodes = max(1, int(2 * np.log2(max(shards / workers, 1.0))))
    total = 0.0
    for tasks, part in ROUNDS:
        # The sum over many recordings is normal, whatever one of them takes.
        mean = times.evaluation * part * SHARD * own
        works = mean * (1.0 + times.spread / np.sqrt(np.maximum(SHARD * own, 1)) * random.standard_normal(workers))
        if way == "shards":
            # Workers begin with the first shards while others are handed out.
            total += max(round_time(np.zeros(shards), tasks, 1, times), float(np.max(works)))
        elif way == "groups":
            total += round_time(works, tasks, nodes, times)
        else:
            handed = times.task * tasks * (1.0 + np.arange(workers)) + works
            heads = [handed[i : i + FAN].max() + nodes * times.add * FAN for i in range(0, workers, FAN)]
            total += round_time(np.array(heads), 1, nodes, times)
    return total


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=int, default=1_000_000)
    parser.add_argument("--evaluation", type=float, default=0.014, help="of a recording in an evaluation [s]")
    parser.add_argument("--spread", type=float, default=0.2, help="relative standard deviation of that")
    parser.add_argument("--task", type=float, default=2e-3, help="of scheduler and driver for a task [s]")
    parser.add_argument("--add", type=float, default=2e-5, help="of the driver to receive and add a share [s]")
    parser.add_argument("--bytes", type=int, default=2401, help="of a share and what goes with it")
    given = parser.parse_args()
    times = Times(given.evaluation, given.spread, given.task, given.add)
    shards = -(-given.recordings // SHARD)
    print(f"{given.recordings} recordings, {shards} shards, {given.bytes} bytes a share")
    print("| workers | bytes a worker | ideal [s] | shards [s] | groups [s] | tree [s] | efficiency |")
    print("|---|---|---|---|---|---|---|")
    for workers in (10, 30, 100, 300, 1000, 3000, 10000):
        found = [
            iteration(given.recordings, workers, way, times, np.random.default_rng(0))
            for way in ("shards", "groups", "tree")
        ]
        ideal = given.recordings * given.evaluation / workers
        sent = given.bytes * max(1, int(2 * np.log2(max(shards / workers, 1.0))))
        cells = " | ".join(f"{value:.3g}" for value in found)
        shares = ", ".join(f"{ideal / value:.2f}" for value in found)
        print(f"| {workers} | {sent} | {ideal:.3g} | {cells} | {shares} |")


if __name__ == "__main__":
    main()
