"""Where values are kept that are worked on again and again: in this process, or with the workers of a Dask cluster.

An engine applies a function to each of many values and keeps the results where they were made, as a *column*; only what
is gathered or added up comes here. On a cluster the values of a column are with the workers in groups, one for each
thread of a worker: a group is one task, whatever the number of its values, and stays where it is. Functions are pure: a
group is a function and what it was given, so that what a worker held that dies is made again by another one, with the
same digits. Dask would begin at the origin, and repeat all that has happened since. Of columns that are *kept* another
worker has what it takes to make them again, as one array of bytes, which travels several times faster than many.
"""

from __future__ import annotations

import dataclasses
import itertools
import pickle
import time
import uuid
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import joblib
import numpy as np

from shadowfit.arrays import UInt8
from shadowfit.kernels import store
from shadowfit.parallel import tree
from shadowfit.parallel.cluster import ClusterError, Crew, distributed
from shadowfit.parallel.run import run
from shadowfit.records import record

# Times that work is begun again which Dask has given up, after several workers that did it have died.
PERSEVERANCE = 3
# While something is waited for, time after which workers are counted [s].
LOOK = 1.0
# The same, after which one looks whether it is there [s].
PAUSE = 0.002

Handle = Any
"""A value, or where it is."""
Column = Any
"""Many values, or where they are."""


@record(frozen=True)
class Essence:
    """What it takes to make a value again: ``again(*values of a place, taken(value), *shared)``."""

    taken: Callable[[Any], Any]
    again: Callable[..., Any]
    columns: tuple[Column, ...] = ()
    """Other ones, whose values of the same place it also takes."""
    shared: tuple[Any, ...] = ()


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

    def release(self, column: Column) -> None:
        """What a column was made from may go. It is made again from the origin where a worker dies."""
        ...

    def keep(self, column: Column, essence: Essence) -> None:
        """See to it that a column outlives a worker, whose essence another one keeps; what hangs on it begins there."""
        ...

    def broadcast(self, value: Any) -> Handle:
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
            results = dict(run(_applied, list(zip(*columns, strict=True)), shared=(work, shared), n_jobs=self._n_jobs))
        return [results[place] for place in sorted(results)]

    def total(self, work: Callable[..., Any], *columns: Column, shared: tuple[Any, ...] = ()) -> Any:
        values = self.gather(work, *columns, shared=shared)
        return tree.ended(tree.begun(values), len(values))

    def release(self, column: Column) -> None:
        del column  # nothing knows what it was made from

    def keep(self, column: Column, essence: Essence) -> None:
        del column, essence  # it ends with this process, and everything else with it

    def broadcast(self, value: Any) -> Handle:
        return value

    def everywhere(self, work: Callable[..., Any], *given: Any) -> list[Any]:
        return [work(*given)]

    def once(self, work: Callable[..., Any], *given: Any) -> Any:
        return work(*given)


def _applied(values: tuple[Any, ...], work: Callable[..., Any], shared: tuple[Any, ...]) -> Any:
    return work(*values, *shared)


@record(frozen=True)
class Recipe:
    """How a group is made."""

    how: Callable[..., Any]
    work: Callable[..., Any]
    common: Handle
    columns: tuple[Groups, ...]
    firsts: tuple[int, ...]
    """Place of the first value of each group."""


@dataclasses.dataclass(eq=False)
class Groups:
    """A column on a cluster; where workers have died, its groups are replaced."""

    futures: list[Any]
    """Each is a list of values."""
    sizes: tuple[int, ...]
    recipe: Recipe | None = None
    """None: nothing that it was made from is kept, and Dask makes it again from the origin."""
    essences: list[Any] = dataclasses.field(default_factory=list)
    """Of a column that is kept: with other workers, what its groups are made again from."""
    restoration: Recipe | None = None
    """How."""

    @property
    def safe(self) -> bool:
        """Whether it outlives a worker."""
        return bool(self.essences) and all(one.status == "finished" for one in self.essences)


class Cluster:
    """The workers of a Dask cluster; what happens to a value happens where it is.

    Groups are bound to workers, because Dask would move values between them, which costs more than it knows. Where a
    worker is gone, another takes its place.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._homes = [address for address, threads in sorted(client.nthreads().items()) for _ in range(threads)]
        # A scheduler may have results of other runs.
        self._run, self._numbers = uuid.uuid4().hex[:12], itertools.count()
        # Columns that are in use, in the order in which they were made.
        self._columns: weakref.WeakValueDictionary[int, Groups] = weakref.WeakValueDictionary()

    def each(self, work: Callable[..., Any], *columns: Column, shared: tuple[Any, ...] = ()) -> Column:
        return self._submitted(_listed, work, columns, shared)

    def gather(self, work: Callable[..., Any], *columns: Column, shared: tuple[Any, ...] = ()) -> list[Any]:
        return [one for some in self._brought(self._submitted(_listed, work, columns, shared)) for one in some]

    def total(self, work: Callable[..., Any], *columns: Column, shared: tuple[Any, ...] = ()) -> Any:
        partial = self._submitted(_summed, work, columns, shared)
        nodes = {place: value for some in self._brought(partial) for place, value in some.items()}
        return tree.ended(nodes, sum(partial.sizes))

    def _submitted(
        self, how: Callable[..., Any], work: Callable[..., Any], columns: Sequence[Column], shared: tuple[Any, ...]
    ) -> Groups:
        for column in self._columns.values():
            if column.safe:
                column.recipe = None  # what it was made from may go
        recipe = self._recipe(how, work, columns, shared)
        sizes = recipe.columns[0].sizes
        made = Groups([self._made(recipe, place) for place in range(len(sizes))], sizes, recipe)
        self._columns[next(self._numbers)] = made
        return made

    def _recipe(
        self, how: Callable[..., Any], work: Callable[..., Any], columns: Sequence[Column], shared: tuple[Any, ...]
    ) -> Recipe:
        grouped = tuple(column if isinstance(column, Groups) else self._split(column) for column in columns)
        # The scheduler keeps what a task was given for as long as it may have to be done again: what is shared is one
        # value with the workers, and a task of some bytes refers to it.
        firsts = (0, *itertools.accumulate(grouped[0].sizes)) if grouped else ()
        return Recipe(how, work, self.broadcast(shared), grouped, firsts)

    def _made(self, recipe: Recipe, place: int, *more: Any) -> Any:
        """A group, where it belongs."""
        first = recipe.firsts[place] if recipe.firsts else 0
        given = (first, recipe.common, *(column.futures[place] for column in recipe.columns), *more)
        return self._at(place, recipe.work.__name__, recipe.how, recipe.work, *given)

    def _at(self, place: int, name: str, *task: Any, beside: bool = False) -> Any:
        """A task at the home of a group, or beside it."""
        home = self._beside(place) if beside else self._homes[place]
        return self._client.submit(
            *task,
            key=f"{name.strip('_')}-{self._run}-{next(self._numbers)}-{place}",
            workers=[home],
            allow_other_workers=True,
            pure=False,
        )

    def _beside(self, place: int) -> str | None:
        """The home of the next group that lives elsewhere."""
        home_now = self._homes[place]
        return next((home for home in self._homes[place:] + self._homes[:place] if home != home_now), None)

    def release(self, column: Groups) -> None:
        column.recipe = None

    def keep(self, column: Groups, essence: Essence) -> None:
        if column.essences or self._beside(0) is None:
            return
        column.restoration = self._recipe(_restored, essence.again, essence.columns, essence.shared)
        for place, future in enumerate(column.futures):
            packed = self._at(place, "essence", _packed, essence.taken, future)
            column.essences.append(self._at(place, "copy", _same, packed, beside=True))

    def _split(self, values: Sequence[Any]) -> Groups:
        """Values that are here, in groups of nearly equal size, in order."""
        count = min(len(self._homes), len(values))
        ends = [len(values) * (place + 1) // count for place in range(count)]
        groups = [list(values[first:last]) for first, last in zip([0, *ends], ends, strict=False)]
        return Groups(groups, tuple(map(len, groups)))

    def _brought(self, groups: Groups) -> list[Any]:
        retries = 0
        while True:
            self._wait(groups)
            try:
                return list(self._client.gather(groups.futures))
            except distributed().KilledWorker as error:
                if retries == PERSEVERANCE:
                    raise ClusterError(
                        f"{error.task!r} was given up: every process that tried it ended; is there enough memory?"
                    ) from error
                self._retry(groups.futures)
                retries += 1

    def _retry(self, futures: Sequence[Any]) -> None:
        """Begin again what Dask has given up, and what that hangs on.

        ``Client.retry`` (distributed 2026.8) raises a ``KeyError`` where some of it is known to the scheduler alone,
        because nothing here refers to it any more, and it marks as begun again what may be done by then: that would be
        waited for without end. Both are looked at here, between two messages of the scheduler.
        """
        client = self._client

        async def begin_again() -> None:
            for key in await client.scheduler.retry(keys=[future.key for future in futures], client=client.id):
                if key in client.futures and client.futures[key].status == "error":
                    client.futures[key].retry()

        client.sync(begin_again)

    def _wait(self, groups: Groups) -> None:
        """Until a column is there; groups of workers that die meanwhile are made again by others.

        Dask's ``wait`` ends with an exception when its time is over, whose traceback keeps the columns of its callers
        alive until Python looks for garbage: gigabytes with the workers.
        """
        looked = time.monotonic()
        while not all(future.done() for future in groups.futures):
            time.sleep(PAUSE)
            if time.monotonic() > looked + LOOK:
                self._replace_lost()
                looked = time.monotonic()

    def _replace_lost(self) -> None:
        """Give the groups of workers that are gone to others, from second copies on where there are any."""
        here = sorted(self._client.nthreads())
        lost = [place for place, home in enumerate(self._homes) if home not in here]
        if not here or not lost:
            return
        for place in lost:
            self._homes[place] = min(here, key=self._homes.count)
        replaced: set[int] = set()
        for column in [kept for _, kept in sorted(self._columns.items())]:
            if self._again(column, [place for place in lost if place < len(column.sizes)], replaced):
                replaced.add(id(column))

    def _again(self, column: Groups, lost: Sequence[int], replaced: set[int]) -> bool:
        """Whether groups of a column had to be replaced; without a copy of it, or of what it hangs on, Dask does it."""
        if column.restoration is not None:
            # Where a worker died before its essence was elsewhere, what it was made from is still known.
            ready = [place for place in lost if column.essences[place].status == "finished"]
            for place in ready:
                kept = column.essences[place]
                column.futures[place] = self._made(column.restoration, place, kept)
                if self._beside(place) is not None:
                    column.essences[place] = self._at(place, "copy", _same, kept, beside=True)
            if len(ready) == len(lost):
                return bool(lost)
            lost = [place for place in lost if place not in ready]
        if column.recipe is None or not any(id(needed) in replaced for needed in column.recipe.columns):
            return False
        for place in lost:
            column.futures[place] = self._made(column.recipe, place)
        return True

    def broadcast(self, value: Any) -> Handle:
        # The result of a task, which is made again where its worker dies.
        return self._client.submit(_same, value, pure=False)

    def everywhere(self, work: Callable[..., Any], *given: Any) -> list[Any]:
        return list(self._client.run(work, *given).values())

    def once(self, work: Callable[..., Any], *given: Any) -> Any:
        future = self._client.submit(_with_kernels, work, *given, pure=False)
        ((result, kernels),) = self._brought(Groups([future], (1,)))
        # Workers that share a cache have them already; those with another kind of processor make their own.
        self._client.run(store.take, kernels, on_error="ignore")
        return result


def _listed(work: Callable[..., Any], first: int, shared: tuple[Any, ...], *parts: Sequence[Any]) -> list[Any]:
    return [work(*values, *shared) for values in zip(*parts, strict=True)]


def _summed(
    work: Callable[..., Any], first: int, shared: tuple[Any, ...], *parts: Sequence[Any]
) -> dict[tree.Node, Any]:
    return tree.begun(_listed(work, first, shared, *parts), first)


def _same(value: Any) -> Any:
    return value


@record(frozen=True)
class Packed:
    """Values as bytes."""

    head: bytes
    """Everything but the contents of arrays."""
    sizes: tuple[int, ...]
    """Of each array's contents [bytes]."""
    contents: UInt8[np.ndarray, " bytes"]


def _packed(taken: Callable[[Any], Any], values: Sequence[Any]) -> Packed:
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps([taken(value) for value in values], protocol=5, buffer_callback=buffers.append)
    arrays = [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]
    return Packed(head, tuple(array.size for array in arrays), np.concatenate([np.zeros(0, np.uint8), *arrays]))


def _unpacked(packed: Packed) -> list[Any]:
    ends = list(itertools.accumulate(packed.sizes))
    # Of their own, so that none keeps all others.
    arrays = [packed.contents[end - size : end].copy() for size, end in zip(packed.sizes, ends, strict=True)]
    return list(pickle.loads(packed.head, buffers=arrays))


def _restored(work: Callable[..., Any], first: int, shared: tuple[Any, ...], *given: Any) -> list[Any]:
    *parts, packed = given
    return _listed(work, first, shared, *parts, _unpacked(packed))


def _with_kernels(work: Callable[..., Any], *given: Any) -> tuple[Any, dict[str, bytes]]:
    return work(*given), store.given_away()


def engine(crew: Crew) -> Engine:
    """The engine of a crew."""
    return Threads(crew.n_jobs) if crew.client is None else Cluster(crew.client)
