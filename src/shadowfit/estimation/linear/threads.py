"""Threads of a fit: work on chunks of time side by side, each with linear algebra in one thread.

Several threads on a product of 24 rows wait for each other longer than they compute, and on a busy machine for a
hundred times as long. Chunks of time are large enough to be shared out; kernels and linear algebra leave Python's lock
alone.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import contextvars
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from shadowfit.kernels import processors

Item = TypeVar("Item")
Result = TypeVar("Result")


@functools.cache
def _libraries() -> ThreadpoolController:
    """Libraries of linear algebra in this process: to look for them takes some ten milliseconds."""
    return ThreadpoolController()


def one_thread() -> contextlib.AbstractContextManager[Any]:
    """A context in which BLAS and LAPACK use one thread."""
    context: contextlib.AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return context


_alone: contextvars.ContextVar[bool] = contextvars.ContextVar("alone", default=False)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """A context in which a fit keeps to its own thread: where many fits share out the processors among them."""
    before = _alone.set(True)
    try:
        with one_thread():
            yield
    finally:
        _alone.reset(before)


def in_threads(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Results in the order of the items; no more of them than there are processors are held at a time.

    Work begins at once, before the first result is asked for, unless it is done :func:`alone`. A single item is not
    worth handing over, and where there is one thread none is.
    """
    if _alone.get():
        return map(work, items)
    count, left = processors.threads(), iter(items)
    if count == 1:
        return map(work, left)
    first = list(itertools.islice(left, 2))
    if len(first) < 2:
        return iter([work(item) for item in first])
    # In the caller's context: what it ignores (overflow at a wild start) is ignored here, too.
    pool, context = processors.pool("chunks", count), contextvars.copy_context()

    def submit(item: Item) -> concurrent.futures.Future[Result]:
        return pool.submit(context.copy().run, work, item)

    waiting = collections.deque(map(submit, itertools.chain(first, itertools.islice(left, count - 2))))

    def results() -> Iterator[Result]:
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(map(submit, itertools.islice(left, 1)))

    return results()
