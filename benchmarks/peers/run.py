"""shadowfit and its peers side by side: same recordings, same unknowns, same start values.

Each method runs on each task in processes of its own, one after another: seed 0 in a process that starts without
any compiled program (cold), the other seeds in a second one. What is already in the folder is not run again, so the
run can be stopped and continued. Run ``python -m benchmarks.peers.run [--short] [--seeds 10] [--methods ...]
[--tasks ...]``, then ``python -m benchmarks.peers.report``.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.peers import results
from benchmarks.peers.methods import METHODS
from benchmarks.peers.results import Result
from benchmarks.peers.tasks import TASKS, true_motion
from shadowfit import parallel
from shadowfit.kernels.store import FOLDER_VARIABLE as KERNELS

# After so many failures of a method on a task its other seeds are not tried.
FAILURES = 2
SHORT_METHODS = ("shadowfit", "shadowfit-default", "casadi", "scipy", "mujoco", "pinocchio")
SHORT_TASKS = ("furuta-pulse-far",)
SHORT_LIMIT = 40.0  # s for a fit; a method that fails once is not tried again: below 5 minutes on a quiet machine


def run_seeds(method: str, task: str, seeds: list[int], folder: Path, limit: float, fresh: bool) -> None:
    """One process; a fit that was ended by the alarm is recorded as such."""
    # What the first process of a method and task compiles serves the next one.
    programs = folder.resolve() / "compiled" / method / task
    if fresh:
        shutil.rmtree(programs, ignore_errors=True)
    settings = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(programs), KERNELS: str(programs)}
    settings["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"
    command = [sys.executable, "-m", "benchmarks.peers.worker", method, task, *map(str, seeds)]
    command += ["--folder", str(folder), "--limit", str(limit), "--started", str(time.time())]
    ended = subprocess.run(
        [*command, *(["--fresh"] if fresh else [])], check=False, env=settings, stderr=subprocess.PIPE, text=True
    )
    if ended.returncode == 0:
        return
    missing = next(seed for seed in seeds if not results.path(folder, method, task, seed).exists())
    late = ended.returncode == -signal.SIGALRM
    last_line = ended.stderr.strip().splitlines()[-1:] or [""]
    reason = f"longer than {limit:g} s" if late else f"ended with {ended.returncode}: {last_line[0]}"
    print(f"  seed {missing}: {reason}", flush=True)
    results.save(folder, Result(method, task, missing, error=reason))


def run_method(method: str, task: str, seeds: list[int], folder: Path, limit: float, failures: int) -> None:
    """All seeds of a method on a task that are not there yet."""
    while True:
        known = {r.seed: r for r in results.load(folder) if (r.method, r.task) == (method, task)}
        todo = [seed for seed in seeds if seed not in known]
        if not todo or sum(bool(r.error) for r in known.values()) >= failures:
            return
        print(f"{method} on {task}: seeds {', '.join(map(str, todo))}", flush=True)
        cold = todo[0] == seeds[0]
        run_seeds(method, task, todo[:1] if cold else todo, folder, limit, fresh=cold)


def _run_pair(pair: tuple[str, str], seeds: list[int], folder: Path, limit: float, failures: int) -> None:
    task, method = pair
    run_method(method, task, seeds, folder, limit, failures)


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="two seeds of one task, below 5 minutes")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--methods", nargs="*", default=list(METHODS), help="shell-style patterns")
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), help="shell-style patterns")
    parser.add_argument("--folder", type=Path, default=results.FOLDER)
    parser.add_argument("--limit", type=float, default=300.0, help="longest fit [s]")
    parser.add_argument("--n-jobs", type=int, default=1, help="methods at a time; more than one disturbs the times")
    given = parser.parse_args()
    methods = [name for name in METHODS if any(fnmatch.fnmatch(name, pattern) for pattern in given.methods)]
    tasks = [name for name in TASKS if any(fnmatch.fnmatch(name, pattern) for pattern in given.tasks)]
    seeds, limit, failures = list(range(given.seeds)), given.limit, FAILURES
    if given.short:
        methods, tasks, seeds, limit, failures = list(SHORT_METHODS), list(SHORT_TASKS), [0, 1], SHORT_LIMIT, 1
    if not methods or not tasks:
        parser.error(f"nothing matches; methods: {', '.join(METHODS)}; tasks: {', '.join(TASKS)}")
    for task in tasks:
        for experiment in (TASKS[task].experiment, TASKS[task].held_out):
            true_motion(TASKS[task], experiment, given.folder)  # once, outside of the processes that are timed
    pairs = [(task, method) for task in tasks for method in methods]
    shared = (seeds, given.folder, limit, failures)
    for _ in parallel.run(_run_pair, pairs, shared=shared, n_jobs=given.n_jobs, prefer="threads"):
        pass


if __name__ == "__main__":
    main()
