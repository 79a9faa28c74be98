"""Bags of ROS 1 and ROS 2, and MCAP files, by the library `rosbags`: no ROS is needed.

Messages `JointState` become columns `JOINT.position`, `JOINT.velocity` and `JOINT.effort`, those of other types one
column for each number in them, `topic.field.component`. Times are those of the messages' headers where these make
sense, else those of their arrival. Bags without message definitions are read by those of a present ROS.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shadowfit.arrays import Float
from shadowfit.errors import RecordingError, nearest
from shadowfit.recordings.extras import need
from shadowfit.recordings.merge import Series, merge
from shadowfit.records import record

ENDINGS = (".bag", ".db3", ".mcap")
JOINT_STATE = "sensor_msgs/msg/JointState"
QUANTITIES = ("position", "velocity", "effort")
NANOSECONDS = 1e-9
# Longest array of a message that is taken for numbers of a machine rather than for an image or a cloud of points.
LONGEST = 64

Progress = Callable[[int, int], None]
"""Called with the number of messages that were read, and of all."""


def is_bag(path: Path) -> bool:
    """Whether a path is a bag: a file of one, or the folder of ROS 2's."""
    return (path.suffix.lower() in ENDINGS and path.is_file()) or (path / "metadata.yaml").is_file()


@record(frozen=True)
class Bag:
    """What was read of a bag."""

    series: Series
    notes: tuple[str, ...]


def read_bag(path: Path, topics: Sequence[str] = (), progress: Progress | None = None) -> Bag:
    """Signals of some topics, or of all with joint states; times from the first message on [s].

    Raises:
        RecordingError: the bag cannot be read, has no such topic, or no joint states.
    """
    highlevel = need("rosbags.highlevel", "bags", str(path))
    typesys = need("rosbags.typesys", "bags", str(path))
    store = typesys.Stores.ROS1_NOETIC if path.suffix.lower() == ".bag" else typesys.Stores.LATEST
    try:
        with highlevel.AnyReader([path], default_typestore=typesys.get_typestore(store)) as reader:
            return _read(reader, str(path), topics, progress)
    except RecordingError:
        raise
    except Exception as error:  # what a damaged bag raises depends on the damaged byte
        raise RecordingError(f"{path}: cannot be read as a bag ({type(error).__name__}: {error})") from error


def _read(reader: Any, where: str, topics: Sequence[str], progress: Progress | None) -> Bag:
    types = {name: topic.msgtype for name, topic in reader.topics.items()}
    chosen = _choose(types, topics, where)
    collected = {name: _Collected([], [], {}) for name in chosen}
    connections = [connection for connection in reader.connections if connection.topic in collected]
    total = sum(connection.msgcount for connection in connections)
    for count, (connection, arrival, raw) in enumerate(reader.messages(connections), 1):
        message = reader.deserialize(raw, connection.msgtype)
        numbers = _joint_numbers(message) if connection.msgtype == JOINT_STATE else _numbers(message)
        collected[connection.topic].add(arrival, _stamp(message), numbers)
        if progress is not None:
            progress(count, total)
    empty = [name for name, one in collected.items() if not one.arrivals]
    if len(empty) == len(collected):
        raise RecordingError(f"{where}: there are no messages on {', '.join(empty)}")
    full = {name: one for name, one in collected.items() if one.arrivals}
    return _joined(full, types, where)


def _choose(types: dict[str, str | None], topics: Sequence[str], where: str) -> list[str]:
    listed = ", ".join(f"{name} ({kind})" for name, kind in types.items()) or "none"
    for name in topics:
        if name not in types:
            raise RecordingError(f"{where}: there is no topic {name!r}{nearest(name, types)} (topics: {listed})")
    chosen = list(topics) or [name for name, kind in types.items() if kind == JOINT_STATE]
    if not chosen:
        raise RecordingError(
            f"{where}: no topic has messages of type JointState; name the topics to read (--topic). There are: {listed}"
        )
    return chosen


class _Collected:
    """Messages of a topic, column by column."""

    def __init__(self, arrivals: list[int], stamps: list[int], columns: dict[str, dict[int, float]]):
        self.arrivals, self.stamps, self.columns = arrivals, stamps, columns

    def add(self, arrival: int, stamp: int | None, numbers: Iterator[tuple[str, float]]) -> None:
        row = len(self.arrivals)
        self.arrivals.append(arrival)
        self.stamps.append(arrival if stamp is None else stamp)
        for name, value in numbers:
            self.columns.setdefault(name, {})[row] = value

    def times(self) -> np.ndarray:
        """Nanoseconds: of the headers, if they go on, else of the arrivals."""
        stamps = np.array(self.stamps, dtype=np.int64)
        usable = len(stamps) < 2 or (np.all(np.diff(stamps) >= 0) and stamps[-1] > stamps[0])
        return stamps if usable else np.array(self.arrivals, dtype=np.int64)

    def table(self) -> dict[str, Float[np.ndarray, " n"]]:
        columns = {}
        for name, values in self.columns.items():
            columns[name] = np.full(len(self.arrivals), np.nan)
            columns[name][list(values)] = list(values.values())
        return columns


def _joined(collected: dict[str, _Collected], types: dict[str, str | None], where: str) -> Bag:
    parts, notes = [], []
    owners: dict[str, str] = {}
    start = min(int(one.times()[0]) for one in collected.values())
    for topic, one in collected.items():
        nanoseconds = one.times()
        order = np.argsort(nanoseconds, kind="stable")
        fresh = np.concatenate([[True], np.diff(nanoseconds[order]) > 0])
        if not fresh.all():
            notes.append(f"{np.sum(~fresh)} messages on {topic} have the time of the one before and were left out")
        kept = order[fresh]
        prefix = "" if types[topic] == JOINT_STATE else topic.strip("/").replace("/", ".") + "."
        columns = {prefix + name: values[kept] for name, values in one.table().items()}
        for name in columns:
            if name in owners:
                raise RecordingError(
                    f"{where}: {name!r} is on {owners[name]} and on {topic}; name the topic to read (--topic)"
                )
            owners[name] = topic
        parts.append(Series((nanoseconds[kept] - start) * NANOSECONDS, columns))
    return Bag(merge(parts), tuple(notes))


def _stamp(message: Any) -> int | None:
    """Nanoseconds of a message's header, None where there is none or it was left at zero."""
    stamp = getattr(getattr(message, "header", None), "stamp", None)
    if stamp is None:
        return None
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def _joint_numbers(message: Any) -> Iterator[tuple[str, float]]:
    for quantity in QUANTITIES:
        values = getattr(message, quantity)
        # Quantities that a driver does not know are left empty.
        if len(values) == len(message.name):
            for joint, value in zip(message.name, values, strict=True):
                yield f"{joint}.{quantity}", float(value)


def _numbers(part: Any, prefix: str = "") -> Iterator[tuple[str, float]]:
    """All numbers of a message by their path; headers and long arrays left out."""
    for field in dataclasses.fields(part):
        if field.name in ("header", "__msgtype__"):
            continue
        value, name = getattr(part, field.name), f"{prefix}{field.name}"
        if isinstance(value, bool | int | float | np.number):
            yield name, float(value)
        elif dataclasses.is_dataclass(value):
            yield from _numbers(value, f"{name}.")
        elif isinstance(value, list | np.ndarray) and len(value) <= LONGEST:
            for index, element in enumerate(value):
                if isinstance(element, int | float | np.number):
                    yield f"{name}[{index}]", float(element)
                elif dataclasses.is_dataclass(element):
                    yield from _numbers(element, f"{name}[{index}].")
