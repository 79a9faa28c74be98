"""Running cases in worker processes: resumable, and each worker compiles as little as possible.

A free worker is handed a case of the group that it worked on last, whose programs it has compiled; where none is left,
one of the largest group that no other worker is busy with. Workers are new processes (not copies of this one, which
JAX's threads would not survive). They ignore Ctrl-C, which is this process's to handle, and end when it does.
"""

from __future__ import annotations

import collections
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from shadowfit.errors import ShadowfitError
from shadowfit.experiments import cases as records
from shadowfit.experiments.cases import Case, Outcome

Progress = Callable[[Outcome, bool], None]
"""Called with each outcome, and whether it was found from an earlier run."""


def run_cases(
    cases: Sequence[Case],
    folder: Path,
    *,
    workers: int = 1,
    start: Callable[[], None] | None = None,
    progress: Progress | None = None,
) -> dict[str, Outcome]:
    """Outcome of each case, by name; those that a former run finished are taken from their files.

    Args:
        cases: what to do; names must differ.
        folder: of the study; files of cases go to its subfolder ``cases``.
        workers: number of processes; 0 runs the cases in this process.
        start: called once in every worker, to set it up.
        progress: called after each case.
    """
    _check_names(cases)
    report = progress or (lambda outcome, found: None)
    outcomes: dict[str, Outcome] = {}
    for case in cases:
        found = records.load(case, folder)
        if found is not None:
            outcomes[case.name] = found
            report(found, True)
    pending = [case for case in cases if case.name not in outcomes]
    finished = (
        (records.perform(case, folder) for case in _by_group(pending))
        if workers == 0
        else _in_workers(pending, folder, min(workers, len(pending)), start)
    )
    for outcome in finished:
        outcomes[outcome.case.name] = outcome
        report(outcome, False)
    return {case.name: outcomes[case.name] for case in cases}


def _check_names(cases: Iterable[Case]) -> None:
    twice = [name for name, count in collections.Counter(case.name.lower() for case in cases).items() if count > 1]
    if twice:
        raise ShadowfitError(f"two cases have the name {twice[0]!r}, and one file cannot hold both; rename one")


def _by_group(cases: Sequence[Case]) -> list[Case]:
    first = {group: i for i, group in reversed(list(enumerate(case.group for case in cases)))}
    return sorted(cases, key=lambda case: first[case.group])


class _Worker:
    """A process, the connection to it, and what it is doing."""

    def __init__(self, folder: Path, start: Callable[[], None] | None):
        # Spawned: a fork of a process with JAX's threads may hang.
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=_work, args=(theirs, folder, start))
        self.process.start()
        theirs.close()
        self.case: Case | None = None
        self.group: str | None = None

    def hand(self, case: Case) -> None:
        self.case, self.group = case, case.group
        self.connection.send(case)

    def stop(self) -> None:
        self.process.terminate()
        self.process.join()
        self.connection.close()


def _in_workers(pending: list[Case], folder: Path, count: int, start: Callable[[], None] | None) -> Iterable[Outcome]:
    workers = [_Worker(folder, start) for _ in range(count)]
    try:
        while pending or any(worker.case for worker in workers):
            for worker in workers:
                if worker.case is None and pending:
                    case = _choose(pending, worker, workers)
                    pending.remove(case)
                    worker.hand(case)
            busy = {worker.connection: i for i, worker in enumerate(workers) if worker.case is not None}
            for ready in wait(list(busy)):
                place = busy[ready]  # type: ignore[index]
                outcome = _received(workers[place])
                if outcome is None:
                    outcome = _lost(workers[place], folder)
                    workers[place].stop()
                    workers[place] = _Worker(folder, start)
                workers[place].case = None
                yield outcome
    finally:
        # Also after Ctrl-C: a case that is being worked on is lost, its file is not half-written.
        for worker in workers:
            worker.stop()


def _choose(pending: Sequence[Case], worker: _Worker, workers: Iterable[_Worker]) -> Case:
    own = [case for case in pending if case.group == worker.group]
    if own:
        return own[0]
    taken = {other.group for other in workers if other.case is not None}
    untouched = [case for case in pending if case.group not in taken] or list(pending)
    sizes = collections.Counter(case.group for case in untouched)
    return max(untouched, key=lambda case: sizes[case.group])


def _received(worker: _Worker) -> Outcome | None:
    """The outcome that a worker announces; None if the worker is gone."""
    try:
        outcome: Any = worker.connection.recv()
    except (EOFError, OSError):
        return None
    return outcome


def _lost(worker: _Worker, folder: Path) -> Outcome:
    worker.process.join()
    assert worker.case is not None, "only busy workers are listened to"
    text = f"the worker process ended (exit status {worker.process.exitcode}); is there enough memory?"
    outcome = Outcome(worker.case, None, text, 0.0)
    records.store(outcome, folder)
    return outcome


def _work(connection: Connection, folder: Path, start: Callable[[], None] | None) -> None:
    """A worker's life."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if start is not None:
        start()
    while True:
        try:
            case = connection.recv()
        except EOFError:
            return
        connection.send(records.perform(case, folder))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
