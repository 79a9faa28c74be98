"""Attacks on whole commands: damaged caches, several processes on one cache, threads, workers, full disks."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from torture.children import Child, Ended, run
from torture.reading import recordings
from torture.tally import Tally

FIT = ("fit", "pendulum", "run.csv", "--free", "hinge.viscous", "--free", "pendulum.inertia.yy", "--quiet")
FILES = ("result.json", "log.csv", "state.npz", "report.html")


class Place:
    """A folder with a recording, a cache of its own and an undisturbed result."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self.environment = {"SHADOWFIT_KERNELS": str(self.cache)}
        (folder / "run.csv").write_bytes(recordings()[".csv"])
        ended = self.run(*FIT, "--out", "sound")
        assert (folder / "sound" / "result.json").exists(), ended.errors
        self.numbers = self.answer("sound")

    def run(self, *arguments: str) -> Ended:
        return run(arguments, self.folder, self.environment)

    def answer(self, name: str) -> dict[str, Any] | None:
        """The numbers of a result; None if there is no whole one."""
        try:
            summary = json.loads((self.folder / name / "result.json").read_text("utf-8"))
            written = [self.folder / name / file for file in FILES]
            trajectories = list((self.folder / name).glob("trajectory_*.csv"))
            if not trajectories or not all(path.stat().st_size > 0 for path in (*written, *trajectories)):
                return None
        except (OSError, ValueError):
            return None
        return {"status": summary["status"], "cost": summary["cost"], "parameters": summary["parameters"]}

    def judge(self, tally: Tally, ended: Ended, what: str, name: str = "new") -> None:
        """Count a fit that must end with the numbers of the undisturbed one."""
        if ended.hung:
            tally.note("hangs", what)
        elif ended.crashed:
            tally.note("tracebacks", f"{what}: {ended.code} {ended.errors[-1500:]}")
        elif ended.code == 2:
            tally.note("clean")
        elif self.answer(name) is None:
            tally.note("lost", f"{what}: {ended.code} {ended.errors[-500:]}")
        elif self.answer(name) != self.numbers:
            tally.note("wrong", f"{what}: {self.answer(name)}")
        else:
            tally.note("answers")


def bit_flips(place: Place, count: int, number: int = 0) -> Tally:
    """One bit of a cached file turned over: the same digits, or an error that is told."""
    random, tally = np.random.default_rng(number), Tally("bit flips in the cache")
    sound = {path: path.read_bytes() for path in sorted(place.cache.rglob("*")) if path.is_file()}
    for turn in range(count):
        path = list(sound)[turn % len(sound)]
        content = bytearray(sound[path])
        at = int(random.integers(len(content)))
        content[at] ^= 1 << int(random.integers(8))
        path.write_bytes(content)
        tally.tried += 1
        shutil.rmtree(place.folder / "new", ignore_errors=True)
        place.judge(tally, place.run(*FIT, "--out", "new"), f"{path.name}, byte {at} of {len(content)}")
        path.write_bytes(sound[path])
    return tally


def together(place: Place, rounds: int) -> Tally:
    """Three processes that fill one empty cache and replace one result at the same time."""
    tally = Tally("processes on one cache and one result")
    for _ in range(rounds):
        shutil.rmtree(place.cache, ignore_errors=True)
        children = [Child((*FIT, "--out", "shared"), place.folder, place.environment) for _ in range(3)]
        for child in children:
            tally.tried += 1
            place.judge(tally, child.wait(), "at the same time", "shared")
    return tally


# Steps of a fit are worked on in pieces of 504: these are eight of them.
LONG = ("simulate", "pendulum", "--start", "hinge=2", "--duration", "40", "--timestep", "0.01", "--out", "long.csv")


def threads(place: Place, counts: tuple[int, ...] = (1, 2, 3, 8)) -> Tally:
    """The same digits for any number of threads, of the fit, of linear algebra and of XLA, on one processor or all.

    Libraries read such numbers when they are loaded: these processes begin anew, and are not forked.
    """
    tally = Tally("numbers of threads")
    place.run(*LONG)
    sound: dict[str, Any] | None = None
    for count in counts:
        variables = ("SHADOWFIT_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {**place.environment, **dict.fromkeys(variables, str(count))}
        environment["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={str(count > 1).lower()}"
        line = (FIT[0], FIT[1], "long.csv", *FIT[3:], "--out", "threads")
        tally.tried += 1
        shutil.rmtree(place.folder / "threads", ignore_errors=True)
        processors = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(processors)} if count == 1 else processors)
        ended = run(line, place.folder, environment, afresh=True)
        os.sched_setaffinity(0, processors)
        found = place.answer("threads")
        sound = sound or found
        _compare(tally, ended, found, sound, f"{count} threads: {ended.code} {ended.errors[-800:]}")
    return tally


def _compare(tally: Tally, ended: Ended, found: object, sound: object, what: str) -> None:
    """Count an answer that must be the same as another one."""
    if ended.hung or ended.crashed:
        tally.note("hangs" if ended.hung else "tracebacks", what)
    elif found is None:
        tally.note("lost", what)
    else:
        tally.note("answers" if found == sound else "wrong", what)


SWINGS = 3
SWEEP = """model = "pendulum"
recordings = ["run.csv"]

[free]
"hinge.viscous" = {}
"pendulum.inertia.yy" = {}

[[axis]]
change = "options.state_weight"
values = [10.0, 100.0, 1000.0]
"""


def workers(place: Place, counts: tuple[int | None, ...] = (None, 1, 2, 3)) -> Tally:
    """The same digits for any number of workers: a fleet in threads and on Dask workers, a sweep in processes."""
    tally = Tally("numbers of workers")
    for i in range(SWINGS):
        place.run("simulate", "pendulum", "--start", f"hinge={1 + i}", "--duration", "2", "--out", f"swing{i}.csv")
    (place.folder / "crew.toml").write_text(SWEEP, "utf-8")
    runs = tuple(f"swing{i}.csv" for i in range(SWINGS))
    for command, file in (("fleet", "recordings.csv"), ("sweep", "summary.csv")):
        line = ("fleet", "pendulum", *runs, *FIT[3:]) if command == "fleet" else ("sweep", "crew.toml", "--quiet")
        sound: bytes | None = None
        for count in counts:
            out = f"{command}-by-{count or 'default'}"
            hired = () if count is None else ("--workers", str(count))
            ended = run((*line, "--out", out, *hired), place.folder, place.environment, afresh=True)
            tally.tried += 1
            path = place.folder / out / file
            found = path.read_bytes() if path.exists() else None
            sound = sound or found
            _compare(tally, ended, found, sound, f"{command}, {count} workers: {ended.code} {ended.errors[-800:]}")
    return tally


def disks(place: Place, sizes: tuple[int, ...]) -> Tally:
    """Results on small disks, which fill up at some file or other, and on one that cannot be written to."""
    tally = Tally("full and read-only disks")
    disk = place.folder / "disk"
    disk.mkdir(exist_ok=True)
    for size in sizes:
        with _mounted(disk, f"size={size}k") as mounted:
            if not mounted:
                return tally
            before = _earlier(place, disk / "old")
            tally.tried += 1
            _judge_disk(tally, place, place.run(*FIT, "--out", "disk/old"), before, f"disk of {size} kB")
    with _mounted(disk, "size=4m") as mounted:
        if mounted:
            before = _earlier(place, disk / "old")
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
            tally.tried += 1
            _judge_disk(tally, place, place.run(*FIT, "--out", "disk/old"), before, "read-only disk")
    return tally


def _earlier(place: Place, target: Path) -> dict[str, Any] | None:
    with contextlib.suppress(OSError):
        shutil.copytree(place.folder / "sound", target)
    return place.answer("disk/old")


def _judge_disk(tally: Tally, place: Place, ended: Ended, before: Mapping[str, Any] | None, what: str) -> None:
    told = f"{what}: {ended.code} {ended.errors[-800:]}"
    if ended.hung or ended.crashed:
        tally.note("hangs" if ended.hung else "tracebacks", told)
    elif (before is not None and place.answer("disk/old") is None) or (
        ended.code == 3 and not (Path(ended.errors.rsplit("kept in ", 1)[-1].strip()) / "result.json").exists()
    ):
        tally.note("lost", told)
    else:
        tally.note("answers" if ended.code in (0, 1) else "clean")


@contextlib.contextmanager
def _mounted(folder: Path, options: str) -> Iterator[bool]:
    """A small file system in memory; False where we may not mount one."""
    done = (
        os.geteuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, check=False
        ).returncode
    )
    try:
        yield done
    finally:
        if done:
            subprocess.run(["umount", str(folder)], check=False)
