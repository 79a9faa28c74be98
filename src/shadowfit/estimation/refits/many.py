"""Many refits through joblib: in threads, since what a fit spends its time in leaves Python's lock alone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from shadowfit.estimation.linear.threads import alone, one_thread
from shadowfit.parallel import Lost, run


def many(
    work: Callable[..., Any],
    items: Sequence[Any],
    shared: tuple[Any, ...],
    n_jobs: int | None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[list[Any], bool]:
    """Results of ``work(item, *shared)`` in the order of the items, and whether Ctrl-C ended it early.

    What is done is kept then. ``progress(done, all)`` follows each item. The first item is done alone, so that whatever
    has to be compiled is compiled once. What a cluster lost, worker and all, is left out.
    """
    done: dict[int, Any] = {}
    interrupted = False
    try:
        for first, group in ((0, items[:1]), (1, items[1:])):
            pieces = run(_alone, group, shared=(work, *shared), n_jobs=n_jobs, prefer="threads")
            with one_thread(), contextlib.closing(pieces) as finished:
                for place, result in finished:
                    done[first + place] = result
                    if progress is not None:
                        progress(len(done), len(items))
    except KeyboardInterrupt:
        interrupted = True
    return [done[place] for place in sorted(done) if not isinstance(done[place], Lost)], interrupted


def _alone(item: Any, work: Callable[..., Any], *shared: Any) -> Any:
    with alone():
        return work(item, *shared)
