"""Running cases in processes of their own, some side by side, and keeping what they find.

What was found is kept in a file for each case, together with a digest of the library and of the programs. A case whose
file has the same digest is not run again: a run that is stopped goes on where it was, and after a change of the library
everything is measured anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.scoreboard.case import Case, Outcome

Told = Callable[[Case, Outcome], None]
"""Called with each case that was run, and what it found."""
ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".bench" / "scoreboard"
# What an outcome depends on; measures of outcomes, tables and pages are not among it.
SOURCES = (
    *("src/shadowfit/**/*", "benchmarks/*", "benchmarks/peers/*", "benchmarks/peers/models/*", "benchmarks/rigs/*"),
    *("benchmarks/scoreboard/programs/*", "benchmarks/scoreboard/outcome.py", "studies/*"),
)


def digest(root: Path = ROOT) -> str:
    """Of everything that an outcome depends on."""
    found = hashlib.sha256()
    for pattern in SOURCES:
        for path in sorted(root.glob(pattern)):
            if path.suffix in (".py", ".toml", ".xml"):
                found.update(path.relative_to(root).as_posix().encode())
                found.update(path.read_bytes())
    return found.hexdigest()[:16]


def path(folder: Path, case: Case) -> Path:
    """Where the outcome of a case is kept."""
    return folder / "outcomes" / case.group / case.scenario / f"{case.variant}.json"


def write(file: Path, found: Outcome) -> None:
    """An outcome as JSON; numbers that are not finite become null."""
    file.parent.mkdir(parents=True, exist_ok=True)
    own = file.with_suffix(f".{os.getpid()}")
    own.write_text(json.dumps(_finite(found), indent=1), encoding="utf-8")
    own.replace(file)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    if isinstance(value, bool | str | int) or value is None:
        return value
    return float(value) if math.isfinite(value) else None


def kept(folder: Path, case: Case, of: str) -> Outcome | None:
    """What an earlier run found with the same library and the same case."""
    try:
        found = json.loads(path(folder, case).read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):
        return None
    return found["outcome"] if (found["digest"], found["case"]) == (of, case.to_json()) else None


class Processes:
    """Those of the cases that are running, to be ended with the run."""

    def __init__(self) -> None:
        self.running: set[subprocess.Popen[str]] = set()
        self.stopped = False

    def stop(self) -> None:
        """End them all."""
        self.stopped = True
        for process in list(self.running):
            end(process)


def end(process: subprocess.Popen[str]) -> None:
    """End a case with whatever it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def run_case(folder: Path, case: Case, of: str, processes: Processes) -> Outcome:
    """One case in a process of its own; nothing is kept of one that is ended with the run."""
    file = path(folder, case)
    raw = file.with_suffix(".raw")
    raw.unlink(missing_ok=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    # A case has one core, so that two can run side by side and their processor times mean something.
    settings = {"OMP_NUM_THREADS": "1", **os.environ, **case.environment}
    settings["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "src"), *sys.path[1:]])
    command = [sys.executable, "-m", "benchmarks.scoreboard.worker", case.to_json(), str(raw)]
    process = subprocess.Popen(
        command, env=settings, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    processes.running.add(process)
    if processes.stopped:
        end(process)
    try:
        _, words = process.communicate(timeout=case.limit)
    except subprocess.TimeoutExpired:
        end(process)
        process.communicate()
        words = f"longer than {case.limit:g} s"
    finally:
        processes.running.discard(process)
    if processes.stopped:
        return {"error": "stopped"}
    if raw.exists():
        found = json.loads(raw.read_text(encoding="utf-8"))
        raw.unlink()
    else:
        last = words.strip().splitlines()[-1:] or [f"ended with {process.returncode}"]
        found = {"error": last[0]}
    write(file, {"digest": of, "case": case.to_json(), "outcome": found})
    return found


def run(
    cases: Iterable[Case],
    folder: Path = FOLDER,
    jobs: int = 2,
    told: Told = lambda case, found: None,
) -> dict[str, Outcome]:
    """Name of a case → what it found; the cases that are not there yet are run, so many at a time."""
    of, listed = digest(), list(cases)
    found = {case.name: kept(folder, case, of) for case in listed}
    missing = [case for case in listed if found[case.name] is None]

    processes = Processes()

    def one(case: Case) -> Outcome:
        own = run_case(folder, case, of, processes)
        told(case, own)
        return own

    with ThreadPoolExecutor(jobs) as pool:
        try:
            fresh = list(pool.map(one, missing))
        except BaseException:
            processes.stop()
            raise
    return {**found, **{case.name: own for case, own in zip(missing, fresh, strict=True)}}  # type: ignore[dict-item]
