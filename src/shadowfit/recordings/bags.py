"""Bags of ROS 1 and ROS 2, and MCAP files, by the library `rosbags`: no ROS is needed.

Messages `JointState` become columns `JOINT.position`, `JOINT.velocity` and `JOINT.effort`. A `JointTrajectory` is a
whole recording in one message: its points become the rows of `topic.JOINT.position` and so on, until a later message
begins. Those of other types have one column for each number in them, `topic.field.component`. Times are those of the
messages' headers where these make sense, else those of their arrival. Messages of one time are one row: several drivers
may share a topic. Bags without message definitions are read by those of a present ROS.
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
JOINT_TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"
QUANTITIES = ("position", "velocity", "effort")
# Field of a trajectory's points → the word for it in a column's name.
OF_POINTS = {"positions": "position", "velocities": "velocity", "accelerations": "acceleration", "effort": "effort"}
NANOSECONDS = 1e-9
# Longest array of a message that is taken for numbers of a machine rather than for an image or a cloud of points.
LONGEST = 64
# As many messages of a topic may be overtaken by a later one; clocks that are set back leave more behind.
OVERTAKEN = 3

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
        if connection.msgtype == JOINT_TRAJECTORY:
            collected[connection.topic].add_trajectory(arrival, _stamp(message), message)
        else:
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

    def __init__(self, arrivals: list[int], stamps: list[int | None], columns: dict[str, dict[int, float]]):
        self.arrivals, self.stamps, self.columns = arrivals, stamps, columns

    def add(self, arrival: int, stamp: int | None, numbers: Iterator[tuple[str, float]]) -> None:
        row = len(self.arrivals)
        self.arrivals.append(arrival)
        self.stamps.append(stamp)
        for name, value in numbers:
            self.columns.setdefault(name, {})[row] = value

    def add_trajectory(self, arrival: int, stamp: int | None, message: Any) -> None:
        """A row for each point; those of trajectories before, from where this one begins, were never gone to."""
        begins = [_nanoseconds(point.time_from_start) for point in message.points[:1]]
        while begins and self.arrivals and self.arrivals[-1] >= arrival + begins[0]:
            self.arrivals.pop()
            self.stamps.pop()
            for values in self.columns.values():
                values.pop(len(self.arrivals), None)
        for point in message.points:
            later = _nanoseconds(point.time_from_start)
            numbers = (
                (f"{joint}.{word}", float(value))
                for field, word in OF_POINTS.items()
                for joint, value in zip(message.joint_names, getattr(point, field), strict=False)
            )
            self.add(arrival + later, None if stamp is None else stamp + later, numbers)

    def times(self) -> tuple[np.ndarray, str]:
        """Nanoseconds of the headers if they go on, else of the arrivals; and what is to be told of them."""
        arrivals = np.array(self.arrivals, dtype=np.int64)
        stamped = np.array([stamp is not None for stamp in self.stamps])
        if not stamped.any():
            return arrivals, ""
        stamps = np.array([stamp or 0 for stamp in self.stamps], dtype=np.int64)
        # A message without a stamp is given the usual delay.
        stamps[~stamped] = arrivals[~stamped] - int(np.median((arrivals - stamps)[stamped]))
        if len(stamps) < 2 or (
            np.ptp(stamps) > 0 and _longest_run(stamps < np.maximum.accumulate(stamps)) <= OVERTAKEN
        ):
            return stamps, ""
        return arrivals, "stand still or go back in time; the times of their arrival are used instead"

    def rows(self) -> tuple[np.ndarray, dict[str, Float[np.ndarray, " n"]], list[str]]:
        """Increasing times [ns], columns at these, and what was remarkable; of one time, what came first counts."""
        nanoseconds, about_stamps = self.times()
        order = np.argsort(nanoseconds, kind="stable")
        fresh = np.concatenate([[True], np.diff(nanoseconds[order]) > 0])
        row_of = np.empty(len(order), dtype=int)
        row_of[order] = np.cumsum(fresh) - 1
        rank = np.argsort(order)
        counts = np.zeros(len(order), dtype=bool)
        counts[order[fresh]] = True
        columns = {}
        for name, values in self.columns.items():
            messages = np.array(sorted(values, key=rank.__getitem__))
            rows, first = np.unique(row_of[messages], return_index=True)
            columns[name] = np.full(int(fresh.sum()), np.nan)
            columns[name][rows] = [values[message] for message in messages[first]]
            counts[messages[first]] = True
        notes = [f"stamps of messages {about_stamps}"] if about_stamps else []
        if not counts.all():
            notes.append(f"messages with the time of the one before, left out: {np.sum(~counts)}")
        return nanoseconds[order[fresh]], columns, notes


def _joined(collected: dict[str, _Collected], types: dict[str, str | None], where: str) -> Bag:
    parts, notes = [], []
    owners: dict[str, str] = {}
    tables = {topic: one.rows() for topic, one in collected.items()}
    start = min(int(nanoseconds[0]) for nanoseconds, _, _ in tables.values())
    for topic, (nanoseconds, plain, remarkable) in tables.items():
        notes += [f"{topic}: {note}" for note in remarkable]
        prefix = "" if types[topic] == JOINT_STATE else topic.strip("/").replace("/", ".") + "."
        columns = {prefix + name: values for name, values in plain.items()}
        for name in columns:
            if name in owners:
                raise RecordingError(
                    f"{where}: {name!r} is on {owners[name]} and on {topic}; name the topic to read (--topic)"
                )
            owners[name] = topic
        parts.append(Series((nanoseconds - start) * NANOSECONDS, columns))
    return Bag(merge(parts), tuple(notes))


def _longest_run(flags: np.ndarray) -> int:
    """How many neighbours are true at most."""
    ends = np.flatnonzero(~np.concatenate([[False], flags, [False]]))
    return int(np.max(np.diff(ends))) - 1


def _stamp(message: Any) -> int | None:
    """Nanoseconds of a message's header, None where there is none or it was left at zero."""
    stamp = getattr(getattr(message, "header", None), "stamp", None)
    return (0 if stamp is None else _nanoseconds(stamp)) or None


def _nanoseconds(time: Any) -> int:
    return int(time.sec) * 1_000_000_000 + int(time.nanosec)


def _joint_numbers(message: Any) -> Iterator[tuple[str, float]]:
    if not message.name:  # Drivers that know their joints by number leave the names out.
        yield from _numbers(message)
        return
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
