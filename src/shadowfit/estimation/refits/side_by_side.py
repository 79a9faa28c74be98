"""The same work on many items in several threads: what a fit spends its time in leaves Python's lock alone."""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")


def side_by_side(
    work: Callable[[Item], Found],
    items: Iterable[Item],
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[list[Found], bool]:
    """Results in the order of the items, and whether Ctrl-C ended it early, which keeps what is done.

    ``workers`` is the number of threads (None: one for each processor); ``progress(done, all)`` follows each item. The
    first item is done alone, so that whatever has to be compiled is compiled once.
    """
    waiting = list(items)
    done: dict[int, Found] = {}
    interrupted = False
    pool = concurrent.futures.ThreadPoolExecutor(workers or os.cpu_count() or 1)
    try:
        for group in (range(min(1, len(waiting))), range(1, len(waiting))):
            started = {pool.submit(work, waiting[place]): place for place in group}
            for future in concurrent.futures.as_completed(started):
                done[started[future]] = future.result()
                if progress is not None:
                    progress(len(done), len(waiting))
    except KeyboardInterrupt:
        interrupted = True
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return [done[place] for place in sorted(done)], interrupted
