"""One method on one task, in a process of its own: fits seed after seed and keeps each result when it is there.

A fit that takes longer than the limit ends the process by an alarm, which also ends solvers that never return to
Python; ``run.py`` records it.
"""

from __future__ import annotations

import argparse
import logging
import resource
import signal
import sys
import time
from pathlib import Path

from benchmarks.peers.methods import METHODS
from benchmarks.peers.results import Result, save
from benchmarks.peers.tasks import TASKS, measure, rollout_error


def main() -> None:
    """Run the seeds that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("seeds", type=int, nargs="+")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--limit", type=float, required=True, help="longest fit [s]")
    parser.add_argument("--started", type=float, required=True, help="when the process was started [s since 1970]")
    parser.add_argument("--fresh", action="store_true", help="there are no compiled programs of an earlier process")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    task = TASKS[given.task]
    recordings = [measure(task, seed, given.folder) for seed in given.seeds]
    estimate = METHODS[given.method].load()
    for place, (seed, data) in enumerate(zip(given.seeds, recordings, strict=True)):
        signal.setitimer(signal.ITIMER_REAL, given.limit)
        began, cpu = time.perf_counter(), time.process_time()
        try:
            answer = estimate(task, data)
        except Exception as error:  # a peer may fail in any way; the benchmark goes on and says so
            save(given.folder, Result(given.method, given.task, seed, error=f"{type(error).__name__}: {error}"[:300]))
            continue
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
        since_start = time.time() - given.started if place == 0 else float("nan")
        scale = 2**20 if sys.platform == "darwin" else 2**10
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale
        result = Result(
            given.method,
            given.task,
            seed,
            dict(answer.values),
            None if answer.std is None else dict(answer.std),
            answer.converged,
            answer.note,
            seconds,
            cpu_seconds,
            place,
            since_start,
            given.fresh and place == 0,
            memory,
            rollout_error(task, answer.values, given.folder),
        )
        save(given.folder, result)
        print(f"  seed {seed}: {seconds:.1f} s, rollout {1e3 * result.rollout:.2f} mrad; {answer.note}", flush=True)


if __name__ == "__main__":
    main()
