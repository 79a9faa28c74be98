"""One fit over many recordings of a Furuta pendulum on a local cluster, the overhead of a sweep, and a plan for more.

    python -m benchmarks.scaling [--recordings 20 200] [--workers 1 2] [--iterations N] [--fits 24] [--folder FOLDER]

Recordings are those of the swing-up twin (100 Hz), kept as CSV files in the folder: twenty motions, each seen by as
many pairs of encoders as are needed. For each number of recordings the same fit of thirteen shared parameters runs in
threads of a process and on clusters of worker processes: time, memory of driver and workers, efficiency, digits. Each
fit has a driver process of its own, so that memory is that of one fit; the driver's includes Dask's scheduler.
``--iterations`` ends fits early, all alike: enough for times, memory and digits. Then a sweep of small fits runs on the
cluster. ``results.json`` in the folder collects what was measured, for ``benchmarks/scaling_plan.py``.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import hashlib
import itertools
import json
import multiprocessing
import os
import pickle
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from shadowfit.estimation import Options, fit
from shadowfit.estimation.linear.front import Reduced
from shadowfit.estimation.solve.levenberg_marquardt import LevenbergMarquardt
from shadowfit.estimation.spread import shard
from shadowfit.estimation.spread.fleet import fit_fleet
from shadowfit.estimation.spread.pilot import Pilot
from shadowfit.estimation.spread.result import FleetEstimate
from shadowfit.models import builtin
from shadowfit.models.atomic import write_text
from shadowfit.models.twins import COUNTS, FurutaTruth, advance, counted, furuta_swing_up
from shadowfit.parallel import Crew, crew, tree
from shadowfit.recordings import RecordingFile
from shadowfit.runtime import start_jax
from shadowfit.sweeps.cases import Case
from shadowfit.sweeps.runner import run_cases

MOTIONS = 20
# Wobble of the encoders [rad], and the error of their readings with that of whole counts.
NOISE = 3e-4
READING = float(np.hypot(NOISE, 2.0 * np.pi / COUNTS / np.sqrt(12.0)))
# Weight of the dynamics; given, so that all sizes do the same work. The truth has no noise of its own in the forces.
OPTIONS = Options(state_weight=1e4)
STARTS = {"inertia": 0.01, "viscous": 1e-4, "dry": 1e-4, "gain": 0.1}


@dataclasses.dataclass(frozen=True)
class Motion:
    """A swing-up as it was, before any encoder."""

    time: np.ndarray
    angles: np.ndarray
    voltage: np.ndarray

    @classmethod
    def of(cls, seconds: float, seed: int) -> Motion:
        """The motion of a twin: its voltages, and the angles that follow from them."""
        seen = furuta_swing_up(seconds, seed=seed).recording
        step, voltage = seen.sample_interval, seen.channels["u"]
        states = itertools.accumulate(
            voltage[:-1], lambda state, u: advance(FurutaTruth(), state, u, step), initial=(0.0, 0.0, 0.0, 0.0)
        )
        return cls(np.asarray(seen.time), np.array([state[:2] for state in states]), np.asarray(voltage))

    def read(self, random: np.random.Generator) -> np.ndarray:
        """What a pair of encoders shows of it, which wobble a little and whose counts lie anywhere."""
        wobbling = self.angles + NOISE * random.standard_normal(self.angles.shape)
        return np.column_stack([counted(own, random.uniform()) for own in wobbling.T])


def recordings(folder: Path, count: int, seconds: float) -> list[RecordingFile]:
    """Files of the recordings, made where they are missing."""
    folder = folder / f"encoders-{seconds:g}s"
    folder.mkdir(parents=True, exist_ok=True)
    motions: dict[int, Motion] = {}
    found = []
    for number in range(count):
        path = folder / f"swing-{number:05d}.csv"
        if not path.exists():
            if number % MOTIONS not in motions:
                motions[number % MOTIONS] = Motion.of(seconds, number % MOTIONS)
            own = motions[number % MOTIONS]
            table = np.column_stack([own.time, own.read(np.random.default_rng(number)), own.voltage])
            rows = "\n".join(",".join(map(repr, row)) for row in table.tolist())
            write_text(path, f"time,theta1,theta2,u\n{rows}\n")
        found.append(RecordingFile(str(path.absolute())))
    return found


def peak() -> float:
    """Largest resident memory of this process so far [MB]; the parent's, which getrusage counts, left out."""
    status = Path("/proc/self/status").read_text("utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


@dataclasses.dataclass(frozen=True)
class Spent:
    """Time since a moment [s]: of the clock, and of all processors of driver and workers."""

    clock: float
    processors: float

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.clock - other.clock, self.processors - other.processors)


class Clock:
    """What was spent at each iteration: before the first, recordings are read, and a pilot fit finds noise levels."""

    def __init__(self, hands: Crew) -> None:
        self._hands = hands
        self.began, self.iterations = self.now(), list[Spent]()

    def now(self) -> Spent:
        """What has been spent so far."""
        workers = {} if self._hands.client is None else self._hands.client.run(time.process_time)
        return Spent(time.perf_counter(), time.process_time() + sum(workers.values()))

    def recall(self) -> None:
        """Nothing is known of an earlier run."""

    def keep(self, pilot: Pilot) -> None:
        """An iteration has ended."""
        self.iterations.append(self.now())


def digest(estimate: FleetEstimate) -> str:
    """All digits of a result."""
    values = repr({name: np.asarray(value).tolist() for name, value in estimate.values.items()})
    costs = repr([entry.cost for entry in estimate.log])
    parts = (values, costs, estimate.noise_covariance.tobytes().hex(), estimate.individuals.chi.tobytes().hex())
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:16]


def by_itself(files: list[RecordingFile], workers: int, iterations: int) -> dict[str, Any]:
    """One fit in a driver process of its own; no workers: in its threads."""
    alone = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, alone) as pool:
        return pool.submit(one_fit, files, workers, iterations).result()


def one_fit(files: list[RecordingFile], workers: int, iterations: int) -> dict[str, Any]:
    """On a cluster, or in threads."""
    start_jax()
    if not workers:
        return {"on": "threads", "workers": os.cpu_count()} | measured(files, Crew(-1), iterations)
    with crew(workers, local_cluster=True) as hands:
        return {"on": "cluster", "workers": workers} | measured(files, hands, iterations)


def measured(files: list[RecordingFile], hands: Crew, iterations: int) -> dict[str, Any]:
    """One fit: time, iterations, memory, digits."""
    twin = furuta_swing_up(0.1)
    starts = {name: next((v for word, v in STARTS.items() if word in name), None) for name in twin.free}
    model = builtin.furuta().set(dict(twin.settings) | {"theta1.std": READING, "theta2.std": READING})
    clock = Clock(hands)
    optimiser = LevenbergMarquardt(max_iterations=iterations)
    found = fit_fleet(model, files, starts, options=OPTIONS, optimiser=optimiser, crew=hands, memory=clock)
    ended = clock.now()
    whole, setting_up = ended - clock.began, clock.iterations[0] - clock.began
    iterating, judging = clock.iterations[-1] - clock.iterations[0], ended - clock.iterations[-1]
    trials = sum(entry.trials for entry in found.log) + 1
    # In the first iteration everything is called for the first time: code is loaded, memory is new.
    first = min(1, len(clock.iterations) - 2)
    going, evaluated = clock.iterations[-1] - clock.iterations[first], trials - 1 - first * found.log[1].trials
    memory = {} if hands.client is None else hands.client.run(peak)
    return {
        "recordings": len(files),
        "seconds": whole.clock,
        "before_iterations": setting_up.clock,
        "status": found.status.name,
        "iterations": len(found.log) - 1,
        "evaluations": trials,
        "iterating": iterating.clock,
        "judging": judging.clock,
        "processors": {
            "seconds": whole.processors,
            "before_iterations": setting_up.processors,
            "iterating": iterating.processors,
            "judging": judging.processors,
            "milliseconds_per_recording_and_evaluation": 1e3 * going.processors / evaluated / len(files),
        },
        "milliseconds_per_recording_and_evaluation": 1e3 * going.clock / evaluated / len(files),
        "driver_mb": peak(),
        "worker_mb": list(memory.values()),
        "refused": sum(entry.trials for entry in found.log) - len(found.log) + 1,
        "parameters": against_truth(found, twin.truth),
        "digits": digest(found),
    }


def against_truth(found: FleetEstimate, truth: Mapping[str, float]) -> dict[str, tuple[float, float, float]]:
    """Value, standard deviation and error in units of it, of the parameters whose truth is known and that can be."""
    rows = [row for row in found.parameters if row.name in truth and row.identifiable and row.std]
    return {row.name: (row.value, row.std, (row.value - truth[row.name]) / row.std) for row in rows}


def small_fit(arguments: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A case of the sweep: one recording, one state weight."""
    twin = furuta_swing_up(0.1)
    model = builtin.furuta().set(dict(twin.settings))
    free = dict.fromkeys(("hinge1.motor.gain", "arm.inertia.zz", "hinge1.viscous", "hinge2.viscous"))
    recording = RecordingFile(arguments["path"]).read()
    found = fit(model, recording, free, options=Options(state_weight=arguments["weight"]))
    return {"status": found.status.name, "seconds": found.seconds.total}


def sweep(files: list[RecordingFile], fits: int, hands: Crew, workers: int) -> dict[str, Any]:
    """Wall time of many fits against their own."""
    cases = [
        Case(f"fit-{i}", "benchmarks.scaling:small_fit", {"path": files[i % len(files)].path, "weight": 1e3 + i})
        for i in range(fits)
    ]
    with tempfile.TemporaryDirectory() as folder:
        warm = [Case(f"warm-{i}", case.task, dict(case.arguments)) for i, case in enumerate(cases[: 2 * workers])]
        run_cases(warm, Path(folder), n_jobs=hands.n_jobs, start=start_jax)
        began = time.perf_counter()
        outcomes = run_cases(cases, Path(folder), n_jobs=hands.n_jobs, start=start_jax)
        wall = time.perf_counter() - began
    own = sum(outcome.seconds for outcome in outcomes.values())
    failed = sum(not outcome.done for outcome in outcomes.values())
    return {"fits": fits, "failed": failed, "wall": wall, "own": own, "overhead": wall * workers / own - 1.0}


def task_seconds(hands: Crew, tasks: int = 500) -> float:
    """Time of driver and scheduler for a task: many empty ones, handed out and gathered as those of a fit."""
    began = time.perf_counter()
    workers = itertools.cycle(hands.client.nthreads())
    futures = [
        hands.client.submit(os.getpid, key=f"empty-{i}", workers=[home], allow_other_workers=True, pure=False)
        for i, home in zip(range(tasks), workers, strict=False)
    ]
    hands.client.gather(futures)
    return (time.perf_counter() - began) / tasks


def add_seconds(size: int, shares: int = 500) -> float:
    """Time of the driver to unpack a share and add it up."""
    packed = [pickle.dumps(Reduced(np.ones((size, size)), np.ones(size), 1.0, 1.0)) for _ in range(shares)]
    began = time.perf_counter()
    tree.ended(tree.begun([pickle.loads(one) for one in packed]), shares)
    return (time.perf_counter() - began) / shares


def share_bytes(size: int) -> int:
    """What a shard sends in an iteration."""
    share = Reduced(np.ones((size, size)), np.ones(size), 1.0, 1.0)
    report = shard.Report(1.0, np.ones(2), 1.0, 1.0, np.ones(size), 1.0, 1.0, np.ones(size))
    return len(pickle.dumps(share)) + len(pickle.dumps(report)) + len(pickle.dumps(shard.Step(1.0, 1.0)))


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=int, nargs="*", default=[20])
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--iterations", type=int, default=100, help="limit of each fit")
    parser.add_argument("--fits", type=int, default=0, help="fits of the sweep; 0: none")
    parser.add_argument("--no-threads", action="store_true", help="leave out the fits in threads of a process")
    parser.add_argument("--folder", type=Path, default=Path(".bench/scaling"))
    given = parser.parse_args()
    start_jax()
    path = given.folder / "results.json"
    known = json.loads(path.read_text("utf-8")) if path.exists() else {"fits": [], "sweeps": []}
    known |= {"share_bytes": share_bytes(13), "processors": os.cpu_count()}

    def note(kind: str, entry: dict[str, Any]) -> None:
        print(json.dumps(entry), flush=True)
        known[kind].append(entry)
        write_text(path, json.dumps(known, indent=1) + "\n")

    for count in given.recordings:
        files = recordings(given.folder, count, given.seconds)
        for workers in (*given.workers, *(() if given.no_threads else (0,))):
            note("fits", by_itself(files, workers, given.iterations))
    if given.fits:
        files = recordings(given.folder, MOTIONS, given.seconds)
        for workers in given.workers[-1:]:
            with crew(workers, local_cluster=True) as hands:
                known["task_seconds"], known["add_seconds"] = task_seconds(hands), add_seconds(13)
                print(f"a task {known['task_seconds']:.2g} s, a share {known['add_seconds']:.2g} s", flush=True)
                note("sweeps", {"workers": workers} | sweep(files, given.fits, hands, workers))


if __name__ == "__main__":
    main()
