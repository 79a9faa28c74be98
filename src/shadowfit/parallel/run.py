"""One way to do many independent pieces of work: through joblib, hence wherever its user wants it done.

``n_jobs`` is that of joblib and scikit-learn: a number of workers, −1 for all processors, 1 for this process and no
other. Inside ``joblib.parallel_config("dask")``, or :func:`shadowfit.parallel.crew`, the same work goes to a cluster.

A worker process that dies costs what it was doing. The pieces that were under way are tried once more, each by itself,
so that the one that ends its process is known; it is given up, the others go on. A cluster tries a piece on several
workers before it gives it up.

Where joblib is configured for Dask, its client is used as it is: joblib's own way to it waits forever for a piece whose
worker died (joblib 1.6).
"""

from __future__ import annotations

import concurrent.futures
import importlib
import itertools
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Literal

import joblib

from shadowfit.records import record

Prefer = Literal["threads", "processes"]


@record(frozen=True)
class Lost:
    """In place of a result: the worker process ended, twice."""

    reason: str


def run(
    work: Callable[..., Any],
    items: Iterable[Any],
    *,
    shared: tuple[Any, ...] = (),
    n_jobs: int | None = -1,
    prefer: Prefer = "processes",
) -> Generator[tuple[int, Any], None, None]:
    """Place and result of ``work(item, *shared)`` for each item, as they are done; errors of the work are raised.

    Args:
        work: a function; other processes must be able to import it.
        items: what differs from piece to piece.
        shared: what does not. On a cluster it travels once.
        n_jobs: workers; None: what ``joblib.parallel_config`` says, or one.
        prefer: where no configuration says otherwise. Threads suit work that spends its time in machine code.
    """
    backend, _ = joblib.parallel.get_active_backend(prefer=prefer)
    if type(backend).__name__ == "DaskDistributedBackend":
        yield from _on_cluster(backend.client, work, list(items), shared)
        return
    waiting = dict(enumerate(items))
    while waiting:
        try:
            yield from _done(work, waiting, shared, n_jobs, prefer)
        except concurrent.futures.BrokenExecutor:
            # Work begins in order, so that the first ones that are left are those that were under way.
            suspects = itertools.islice(list(waiting), max(joblib.effective_n_jobs(n_jobs), 1))
            yield from _by_themselves(work, {place: waiting[place] for place in suspects}, waiting, shared, prefer)


def _by_themselves(
    work: Callable[..., Any],
    suspects: Mapping[int, Any],
    waiting: dict[int, Any],
    shared: tuple[Any, ...],
    prefer: Prefer,
) -> Generator[tuple[int, Any], None, None]:
    for place, item in suspects.items():
        alone = {place: item}
        try:
            # Two, because one would be this process.
            yield from _done(work, alone, shared, 2, prefer)
        except concurrent.futures.BrokenExecutor as error:
            yield place, Lost(f"the worker process ended ({_exit_codes(error)}); is there enough memory?")
        waiting.pop(place)


def _done(
    work: Callable[..., Any], waiting: dict[int, Any], shared: tuple[Any, ...], n_jobs: int | None, prefer: Prefer
) -> Generator[tuple[int, Any], None, None]:
    """Results, taken off the list of what waits as they come."""
    parallel = joblib.Parallel(n_jobs=n_jobs, prefer=prefer, return_as="generator_unordered", batch_size=1)
    driver = os.getpid()
    piece = joblib.delayed(_piece)
    results = parallel(piece(driver, work, place, item, *shared) for place, item in list(waiting.items()))
    try:
        for place, result in results:
            del waiting[place]
            yield place, result
    finally:
        with warnings.catch_warnings():
            # Whoever stops early means it.
            warnings.filterwarnings("ignore", message=r".*still being processed by the workers", category=UserWarning)
            results.close()


def _on_cluster(
    client: Any, work: Callable[..., Any], items: Sequence[Any], shared: tuple[Any, ...]
) -> Generator[tuple[int, Any], None, None]:
    distributed = importlib.import_module("distributed")
    if not items:
        return
    # A task of its own, so that a worker that dies takes along only its copy.
    given = client.submit(_held, shared, pure=False)
    places = {client.submit(_away, work, item, given, pure=False): place for place, item in enumerate(items)}
    suspects = []
    try:
        for future in distributed.as_completed(list(places), loop=client.loop):
            place = places.pop(future)
            if isinstance(_error(future), distributed.KilledWorker):
                suspects.append(place)  # or only in line behind the one that ends its process
            else:
                yield place, future.result()
    finally:
        client.cancel(list(places))
    for place in sorted(suspects):
        future = client.submit(_away, work, items[place], given, pure=False)
        if isinstance(_error(future), distributed.KilledWorker):
            yield place, Lost("every worker process that tried it ended; is there enough memory?")
        else:
            yield place, future.result()


def _error(future: Any) -> BaseException | None:
    """What a piece of work ended with, when it has ended."""
    error: BaseException | None = future.exception()
    return error


def _held(shared: tuple[Any, ...]) -> tuple[Any, ...]:
    return shared


def _away(work: Callable[..., Any], item: Any, shared: tuple[Any, ...]) -> Any:
    return work(item, *shared)


def _piece(driver: int, work: Callable[..., Any], place: int, item: Any, *shared: Any) -> tuple[int, Any]:
    if os.getpid() != driver and threading.current_thread() is threading.main_thread():
        _serve(driver)
    return place, work(item, *shared)


_serving: set[int] = set()
"""The process that this one serves, once it does."""


def _serve(driver: int) -> None:
    """Make this a good worker: Ctrl-C is the driver's to handle, and the worker does not outlive it."""
    if driver in _serving:
        return
    _serving.add(driver)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _exit_codes(error: BaseException) -> str:
    """What an error of joblib says about how processes ended."""
    lines = [line.strip() for line in str(error).splitlines() if "exit code" in line.lower()]
    return lines[-1].rstrip(".") if lines else type(error).__name__
