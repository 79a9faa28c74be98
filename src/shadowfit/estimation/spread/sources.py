"""Where recordings come from: they are read where they are fitted, a few at a time.

Which recordings form a shard depends on their number alone, never on that of the workers.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from shadowfit.errors import RecordingError, ShadowfitError
from shadowfit.estimation.problem.pacing import pace_of
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.models.matching import matched
from shadowfit.parallel.engine import Engine
from shadowfit.recordings import Recording
from shadowfit.records import record
from shadowfit.runtime import double_precision

# Largest number of recordings in a shard, and how many shards there are at least where recordings suffice.
LARGEST, SHARDS = 32, 64


class Source(Protocol):
    """Where a recording comes from: a path, and how to read it."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def read(self) -> Recording:
        """The recording; raises where it cannot be read."""
        ...


@record(frozen=True)
class InMemory:
    """A recording that is there already."""

    recording: Recording

    @property
    def name(self) -> str:
        """Its name."""
        return self.recording.name

    def read(self) -> Recording:
        """Itself."""
        return self.recording


def shards(sources: Sequence[Source]) -> list[tuple[Source, ...]]:
    """The recordings in groups of a size that depends on their number alone."""
    size = int(np.clip(len(sources) // SHARDS, 1, LARGEST))
    return [tuple(sources[begin : begin + size]) for begin in range(0, len(sources), size)]


@record(frozen=True)
class Facts:
    """What is known of a recording before it is fitted."""

    name: str
    interval: float
    """Sampling interval [s]; NaN if it could not be read."""
    pace: float = np.inf
    """Of its quickest motion [s]."""
    error: str = ""
    host: str = ""
    """Where it could not be read."""


def read(sources: Sequence[Source], mechanism: Mechanism) -> tuple[Recording | Facts, ...]:
    """The recordings of a shard; in place of one that cannot be read, why."""
    double_precision()
    return tuple(_read(source, mechanism) for source in sources)


def _read(source: Source, mechanism: Mechanism) -> Recording | Facts:
    try:
        return matched(mechanism, source.read())
    except (ShadowfitError, OSError) as error:
        return Facts(source.name, np.nan, error=str(error), host=socket.gethostname())


def survey(recordings: Iterable[Recording | Facts], mechanism: Mechanism) -> list[Facts]:
    """Facts about the recordings of a shard."""
    return [
        one if isinstance(one, Facts) else Facts(one.name, one.sample_interval, pace_of(mechanism, one))
        for one in recordings
    ]


def check(facts: Sequence[Facts], sources: Sequence[Source], engine: Engine) -> None:
    """Raise where a recording could not be read, and say whether others can."""
    unread = [(fact, source) for fact, source in zip(facts, sources, strict=True) if fact.error]
    if not unread:
        return
    first, source = unread[0]
    able = engine.everywhere(_readable, source)
    who = f"by {sum(not one for one in able)} of {len(able)} workers" if any(able) else "by any worker"
    raise RecordingError(
        f"{len(unread)} of {len(facts)} recordings cannot be read where they are to be fitted, the first one being "
        f"{first.name!r} on {first.host}, which cannot be read {who}: {first.error}"
    )


def _readable(source: Source) -> bool:
    try:
        source.read()
    except (ValueError, OSError):
        return False
    return True
