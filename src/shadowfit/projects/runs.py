"""Runs of a project: commands of the ordinary command line in processes of their own, which need nobody to watch them.

    runs/3/run.json       what was run, and its process
    runs/3/terminal.txt   what it said
    runs/3/lock           locked for as long as the process lives, whoever started it
    runs/3/result/        what a fit wrote, or while it goes on its ``unfinished.json``
    runs/3/check.html     what a check wrote

A run goes on when whoever started it ends. Whether it does is asked of the lock: process numbers are used again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from shadowfit.evaluation.checkpoint import UNFINISHED
from shadowfit.models.atomic import write_text
from shadowfit.projects.project import ProjectError
from shadowfit.records import record

FOLDER = "runs"
# Bytes of the end of what a run said that are shown.
TAIL = 20_000


@record(frozen=True)
class Run:
    """One command of a project, under way or ended."""

    folder: Path
    """Of the run."""
    number: int
    kind: str
    """``fit``, ``check`` or ``validate``."""
    arguments: tuple[str, ...]
    pid: int
    started: float
    """Time of the day [s since 1970]."""

    @property
    def place(self) -> str:
        """Its folder below the project's."""
        return f"{FOLDER}/{self.number}"

    @property
    def result(self) -> Path:
        """Folder of a fit's result."""
        return self.folder / "result"

    @property
    def running(self) -> bool:
        """Whether its process lives."""
        return _locked(self.folder / "lock")

    def terminal(self) -> str:
        """The end of what it said."""
        with contextlib.suppress(OSError), (self.folder / "terminal.txt").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
            return file.read().decode("utf-8", "replace")
        return ""

    def summary(self) -> Mapping[str, Any] | None:
        """The contents of ``result.json``; None before there is one."""
        return _json(self.result / "result.json")

    def unfinished(self) -> Mapping[str, Any] | None:
        """Course and last parameters of a fit that goes on, or was killed."""
        return _json(self.result / UNFINISHED)

    def stop(self) -> None:
        """Ask it to stop: a fit ends after its iteration and writes its result."""
        if self.running:
            # As good as Ctrl-C, and not ignored by what a shell put into the background.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)


def start(project: Path, kind: str, arguments: Callable[[str], list[str]]) -> Run:
    """Start a command in the project's folder.

    Args:
        project: folder of the project.
        kind: of the run.
        arguments: the command line for a run with this folder, below the project's.
    """
    folder = _new_folder(project / FOLDER)
    line = arguments(f"{FOLDER}/{folder.name}")
    lock = _lock(folder / "lock")
    try:
        with (folder / "terminal.txt").open("wb") as terminal:
            process = subprocess.Popen(
                # -P: what lies in the project's folder is data, never a module.
                [sys.executable, "-P", "-m", "shadowfit", *line],
                cwd=project,
                stdin=subprocess.DEVNULL,
                stdout=terminal,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                pass_fds=() if lock is None else (lock,),
                start_new_session=True,  # Ctrl-C for the server is none for the run
            )
    finally:
        if lock is not None:
            os.close(lock)
    # A process that nobody waits for stays in the system's table.
    threading.Thread(target=process.wait, daemon=True).start()
    run = Run(folder, int(folder.name), kind, tuple(line), process.pid, time.time())
    record = {key: value for key, value in dataclasses.asdict(run).items() if key != "folder"}
    write_text(folder / "run.json", json.dumps(record, indent=1) + "\n")
    return run


def runs(project: Path, kind: str | None = None) -> list[Run]:
    """The runs of a project, of a kind if one is named, the newest first."""
    listed = []
    for path in (project / FOLDER).glob("*/run.json"):
        record = _json(path)
        with contextlib.suppress(TypeError, ValueError, KeyError):
            if record is not None and str(int(record["number"])) == path.parent.name:
                listed.append(Run(path.parent, **{**record, "arguments": tuple(record["arguments"])}))
    return sorted((run for run in listed if kind in (None, run.kind)), key=lambda run: -run.number)


def _new_folder(parent: Path) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    for number in range(
        1
        + max(
            (int(folder_there.name) for folder_there in parent.iterdir() if folder_there.name.isdecimal()), default=0
        ),
        10**6,
    ):
        with contextlib.suppress(FileExistsError):
            (parent / str(number)).mkdir()
            return parent / str(number)
    raise ProjectError(f"{parent} is full of runs; remove some")


def _lock(path: Path) -> int | None:
    """A locked file for a process to inherit; None where the system has no such locks."""
    try:
        import fcntl  # noqa: PLC0415  (not on every system)
    except ImportError:
        return None
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def _locked(path: Path) -> bool:
    try:
        import fcntl  # noqa: PLC0415

        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
    except (ImportError, OSError):
        return False
    return False


def _json(path: Path) -> Mapping[str, Any] | None:
    with contextlib.suppress(OSError, ValueError):
        content = json.loads(path.read_text("utf-8"))
        return content if isinstance(content, dict) else None
    return None
