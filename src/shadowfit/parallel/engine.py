"""Where values are kept that are worked on again and again: in this process, or with the workers of a Dask cluster.

An engine applies a function to each of many values and keeps the results where they were made, as a *column*; only what
is gathered or added up comes here. On a cluster the values of a column are with the workers in groups, one for each
thread of a worker: a group is one task, whatever the number of its values, and stays where it is. Functions are pure: a
group is a function and what it was given, so that a worker that dies costs what it held, which is made again from its
origin on another one, with the same digits.
"""

from __future__ import annotations

import dataclasses
import itertools
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import joblib

from shadowfit.kernels import store
from shadowfit.parallel import tree
from shadowfit.parallel.cluster import Crew, distributed
from shadowfit.parallel.run import run

# Times that work is begun again which Dask has given up, after several workers that did it have died.
PERSEVERANCE = 3

Handle = Any
"""A value, or where it is."""
Column = Any
"""Many values, or where they are."""


class Engine(Protocol):
    """Applies functions to values that stay where they are."""

    def each(self, work: Callable[..., Any], *columns: Column, shared: tuple[Any, ...] = ()) -> Column:
        """``work(*values of a place, *shared)`` for each place of the columns; results stay."""
        ...

    def gather(self, work: Callable[..., Any], *columns: Column, shared: tuple[Any, ...] = ()) -> list[Any]:
        """The same, with the results brought here, in order; they should be small."""
        ...

    def total(self, work: Callable[..., Any], *columns: Column, shared: tuple[Any, ...] = ()) -> Any:
        """The same added up over a fixed tree (:mod:`tree`), whose lower nodes are added where the values are."""
        ...

    def place(self, value: Any) -> Handle:
        """A value that many calls share: it travels once."""
        ...

    def everywhere(self, work: Callable[..., Any], *given: Any) -> list[Any]:
        """``work(*given)`` at every worker."""
        ...

    def once(self, work: Callable[..., Any], *given: Any) -> Any:
        """``work(*given)`` at one of the workers; what has been compiled for it is handed to the others."""
        ...


class Threads:
    """Everything in this process, several values at a time."""

    def __init__(self, n_jobs: int | None = -1) -> None:
        self._n_jobs = n_jobs

    def each(self, work: Callable[..., Any], *columns: Column, shared: tuple[Any, ...] = ()) -> Column:
        return self.gather(work, *columns, shared=shared)

    def gather(self, work: Callable[..., Any], *columns: Column, shared: tuple[Any, ...] = ()) -> list[Any]:
        with joblib.parallel_config(backend="threading"):
            found = dict(run(_applied, list(zip(*columns, strict=True)), shared=(work, shared), n_jobs=self._n_jobs))
        return [found[place] for place in sorted(found)]

    def total(self, work: Callable[..., Any], *columns: Column, shared: tuple[Any, ...] = ()) -> Any:
        values = self.gather(work, *columns, shared=shared)
        return tree.ended(tree.begun(values), len(values))

    def place(self, value: Any) -> Handle:
        return value

    def everywhere(self, work: Callable[..., Any], *given: Any) -> list[Any]:
        return [work(*given)]

    def once(self, work: Callable[..., Any], *given: Any) -> Any:
        return work(*given)


def _applied(values: tuple[Any, ...], work: Callable[..., Any], shared: tuple[Any, ...]) -> Any:
    return work(*values, *shared)


@dataclasses.dataclass(frozen=True)
class Groups:
    """A column on a cluster."""

    futures: tuple[Any, ...]
    """Each is a list of values."""
    sizes: tuple[int, ...]


class Cluster:
    """The workers of a Dask cluster; what happens to a value happens where it is.

    Groups are bound to workers, because Dask would move values between them, which costs more than it knows. Where a
    worker is gone, Dask chooses another.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._homes = [address for address, threads in sorted(client.nthreads().items()) for _ in range(threads)]
        # A scheduler may have results of other runs.
        self._run, self._numbers = uuid.uuid4().hex[:12], itertools.count()

    def each(self, work: Callable[..., Any], *columns: Column, shared: tuple[Any, ...] = ()) -> Column:
        return self._submitted(_listed, work, columns, shared)

    def gather(self, work: Callable[..., Any], *columns: Column, shared: tuple[Any, ...] = ()) -> list[Any]:
        return [one for some in self._brought(self._submitted(_listed, work, columns, shared)) for one in some]

    def total(self, work: Callable[..., Any], *columns: Column, shared: tuple[Any, ...] = ()) -> Any:
        found = self._submitted(_summed, work, columns, shared)
        nodes = {place: value for some in self._brought(found) for place, value in some.items()}
        return tree.ended(nodes, sum(found.sizes))

    def _submitted(
        self, how: Callable[..., Any], work: Callable[..., Any], columns: Sequence[Column], shared: tuple[Any, ...]
    ) -> Groups:
        grouped = [column if isinstance(column, Groups) else self._split(column) for column in columns]
        sizes = grouped[0].sizes
        name = f"{work.__name__.strip('_')}-{self._run}-{next(self._numbers)}"
        # The scheduler keeps what a task was given for as long as it may have to be done again: what is shared is one
        # value with the workers, and a task of some bytes refers to it.
        common = self.place(shared)
        firsts = [0, *itertools.accumulate(sizes)]
        return Groups(
            tuple(
                self._client.submit(
                    how,
                    work,
                    firsts[place],
                    common,
                    *given,
                    key=f"{name}-{place}",
                    workers=[self._homes[place]],
                    allow_other_workers=True,
                    pure=False,
                )
                for place, given in enumerate(zip(*(own.futures for own in grouped), strict=True))
            ),
            sizes,
        )

    def _split(self, values: Sequence[Any]) -> Groups:
        """Values that are here, in groups of nearly equal size, in order."""
        count = min(len(self._homes), len(values))
        ends = [len(values) * (place + 1) // count for place in range(count)]
        groups = tuple(list(values[first:last]) for first, last in zip([0, *ends], ends, strict=False))
        return Groups(groups, tuple(map(len, groups)))

    def _brought(self, found: Groups) -> list[Any]:
        futures = list(found.futures)
        for _ in range(PERSEVERANCE):
            try:
                return list(self._client.gather(futures))
            except distributed().KilledWorker:
                self._client.retry(futures)
        return list(self._client.gather(futures))

    def place(self, value: Any) -> Handle:
        # The result of a task, which is made again where its worker dies.
        return self._client.submit(_same, value, pure=False)

    def everywhere(self, work: Callable[..., Any], *given: Any) -> list[Any]:
        return list(self._client.run(work, *given).values())

    def once(self, work: Callable[..., Any], *given: Any) -> Any:
        found, kernels = self._client.submit(_with_kernels, work, *given, pure=False).result()
        # Workers that share a cache have them already; those with another kind of processor make their own.
        self._client.run(store.take, kernels, on_error="ignore")
        return found


def _listed(work: Callable[..., Any], first: int, shared: tuple[Any, ...], *parts: Sequence[Any]) -> list[Any]:
    return [work(*values, *shared) for values in zip(*parts, strict=True)]


def _summed(
    work: Callable[..., Any], first: int, shared: tuple[Any, ...], *parts: Sequence[Any]
) -> dict[tree.Node, Any]:
    return tree.begun(_listed(work, first, shared, *parts), first)


def _same(value: Any) -> Any:
    return value


def _with_kernels(work: Callable[..., Any], *given: Any) -> tuple[Any, dict[str, bytes]]:
    return work(*given), store.given_away()


def engine(crew: Crew) -> Engine:
    """The engine of a crew."""
    return Threads(crew.n_jobs) if crew.client is None else Cluster(crew.client)
