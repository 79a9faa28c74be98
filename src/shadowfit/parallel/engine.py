"""Where values are kept that are worked on again and again: in this process, or with the workers of a Dask cluster.

An engine applies a function to each of many values and keeps the results where they were made, as *handles*; only what
is gathered comes here. Functions are pure: a handle is a function and what it was given, so that a worker that dies
costs what it held, which is made again from its origin on another one, with the same digits.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import joblib

from shadowfit.kernels import store
from shadowfit.parallel.cluster import Crew, distributed
from shadowfit.parallel.run import run

# Times that work is begun again which Dask has given up, after several workers that did it have died.
PERSEVERANCE = 3

Handle = Any
"""A value, or where it is."""


class Engine(Protocol):
    """Applies functions to values that stay where they are."""

    def each(self, work: Callable[..., Any], *columns: Sequence[Handle], shared: tuple[Any, ...] = ()) -> list[Handle]:
        """``work(*values of a place, *shared)`` for each place of the columns; results stay."""
        ...

    def gather(self, work: Callable[..., Any], *columns: Sequence[Handle], shared: tuple[Any, ...] = ()) -> list[Any]:
        """The same, with the results brought here, in order; they should be small."""
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

    def each(self, work: Callable[..., Any], *columns: Sequence[Handle], shared: tuple[Any, ...] = ()) -> list[Handle]:
        return self.gather(work, *columns, shared=shared)

    def gather(self, work: Callable[..., Any], *columns: Sequence[Handle], shared: tuple[Any, ...] = ()) -> list[Any]:
        with joblib.parallel_config(backend="threading"):
            found = dict(run(_applied, list(zip(*columns, strict=True)), shared=(work, shared), n_jobs=self._n_jobs))
        return [found[place] for place in sorted(found)]

    def place(self, value: Any) -> Handle:
        return value

    def everywhere(self, work: Callable[..., Any], *given: Any) -> list[Any]:
        return [work(*given)]

    def once(self, work: Callable[..., Any], *given: Any) -> Any:
        return work(*given)


def _applied(values: tuple[Any, ...], work: Callable[..., Any], shared: tuple[Any, ...]) -> Any:
    return work(*values, *shared)


class Cluster:
    """The workers of a Dask cluster; what happens to a value happens where it is."""

    def __init__(self, client: Any) -> None:
        self._client = client
        # A scheduler may have results of other runs.
        self._run, self._numbers = uuid.uuid4().hex[:12], itertools.count()

    def each(self, work: Callable[..., Any], *columns: Sequence[Handle], shared: tuple[Any, ...] = ()) -> list[Handle]:
        name = f"{work.__name__.strip('_')}-{self._run}-{next(self._numbers)}"
        return [
            self._client.submit(work, *given, *shared, key=f"{name}-{place}", pure=False)
            for place, given in enumerate(zip(*columns, strict=True))
        ]

    def gather(self, work: Callable[..., Any], *columns: Sequence[Handle], shared: tuple[Any, ...] = ()) -> list[Any]:
        found = self.each(work, *columns, shared=shared)
        for _ in range(PERSEVERANCE):
            try:
                return list(self._client.gather(found))
            except distributed().KilledWorker:
                self._client.retry(found)
        return list(self._client.gather(found))

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


def _same(value: Any) -> Any:
    return value


def _with_kernels(work: Callable[..., Any], *given: Any) -> tuple[Any, dict[str, bytes]]:
    return work(*given), store.given_away()


def engine(crew: Crew) -> Engine:
    """The engine of a crew."""
    return Threads(crew.n_jobs) if crew.client is None else Cluster(crew.client)
