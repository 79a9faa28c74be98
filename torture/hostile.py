"""Robot files, archives and results that somebody made to do harm, or that were damaged where it matters."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from rosbags import rosbag1, rosbag2
from rosbags.rosbag2 import StoragePlugin
from rosbags.typesys import Stores, get_typestore

from shadowfit.estimation import fit
from shadowfit.evaluation import load_result, save_estimate, write_report
from shadowfit.evaluation.store import blamed
from shadowfit.models import load_model
from shadowfit.projects.project import read_project
from shadowfit.recordings import read_channel_table, read_recording
from torture.fits import FREE
from torture.mutation import mutated
from torture.reading import SAMPLES, recordings
from torture.tally import Tally

URDF = """<robot name="arm"><link name="base"/><link name="upper"><inertial><origin xyz="0.1 0 0" rpy="0 0 0"/>
<mass value="1.5"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.3" rpy="0 0 0"/>
<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="10" velocity="2"/><dynamics damping="0.1" friction="0.2"/>
</joint></robot>"""
MJCF = """<mujoco model="arm"><compiler angle="degree"/><option gravity="0 0 -9.81" timestep="0.002"/>
<default><joint damping="0.1" armature="0.01"/></default><worldbody><body name="upper" pos="0 0 0.3">
<joint name="shoulder" axis="0 1 0" range="-60 60" frictionloss="0.2"/>
<inertial pos="0.1 0 0" mass="1.5" diaginertia="0.01 0.02 0.02"/>
<body name="lower" pos="0.3 0 0" euler="0 0 10"><joint name="elbow" axis="0 1 0"/><geom type="capsule" size="0.05 0.2"/>
</body></body></worldbody><actuator><motor name="drive" joint="shoulder" gear="50"/></actuator></mujoco>"""
# What stands in place of a value of an attribute.
VALUES = (
    "nan",
    "inf",
    "-inf",
    "1e308",
    "-1e308",
    "1e-320",
    "0",
    "0 0 0",
    "-1",
    "",
    "1 2",
    "x",
    "1e49",
    "world",
    "9999",
)
NAMES = (["hip", "knee"], ["hip", "hip"], ["", 9999 * "x"], ["nan"], [])
# The same of a TOML file.
TOML = ("nan", "-inf", "1e308", "1" + 400 * "0", "-1", '""', '"/dev/zero"', "[]", "{}", "[[1]]", "true", "1979-05-27")


def robots(folder: Path, count: int, number: int = 0) -> Tally:
    """URDF and MJCF with other values of attributes, elements repeated or taken away, or damaged bytes."""
    random, tally = np.random.default_rng(number), Tally("hostile robots")
    for turn in range(count):
        name, text = (("robot.urdf", URDF), ("robot.xml", MJCF))[turn % 2]
        content = mutated(text.encode(), random) if turn % 5 == 4 else _edited(text, random).encode()
        _attack(tally, load_model, folder / name, content)
    return tally


def _edited(text: str, random: np.random.Generator) -> str:
    """Other values in some attributes, or a piece between two elements twice or not at all."""
    for _ in range(int(random.integers(1, 4))):
        quotes = [i for i, letter in enumerate(text) if letter == '"']
        at = 2 * int(random.integers(len(quotes) // 2))
        start, stop = quotes[at] + 1, quotes[at + 1]
        text = text[:start] + VALUES[int(random.integers(len(VALUES)))] + text[stop:]
    if random.random() < 0.3:
        ends = [i + 1 for i, letter in enumerate(text) if letter == ">"]
        first, last = sorted(int(x) for x in random.integers(len(ends), size=2))
        piece = text[ends[first] : ends[last]]
        text = text[: ends[first]] + piece * int(random.integers(0, 3)) + text[ends[last] :]
    return text


def archives(folder: Path, count: int, number: int = 0) -> Tally:
    """HDF5 files and NPZ archives of any types, shapes and promises; damaged ones."""
    random, tally = np.random.default_rng(number), Tally("hostile archives")
    for turn in range(count):
        path = folder / ("run.h5" if turn % 2 else "run.npz")
        path.unlink(missing_ok=True)
        make = _hdf5 if turn % 2 else _npz
        make(path, random)
        content = path.read_bytes()
        _attack(tally, read_recording, path, mutated(content, random) if random.random() < 0.5 else content)
    return tally


def bags(folder: Path, count: int, number: int = 0) -> Tally:
    """Bags of ROS 1 and 2 and MCAP whose messages have other names, numbers and stamps; damaged ones."""
    random, tally = np.random.default_rng(number), Tally("hostile bags")
    for turn in range(count):
        kind = ("bag", "mcap", "db3")[turn % 3]
        place = folder / f"log{turn}"
        path = _bag(place, kind, random)
        content = path.read_bytes()
        _attack(tally, read_recording, path, mutated(content, random) if random.random() < 0.5 else content)
        shutil.rmtree(place)
    return tally


def _bag(folder: Path, kind: str, random: np.random.Generator) -> Path:
    """Joint states: some with more names than numbers, with none, with NaN and huge ones, at any time."""
    types = get_typestore(Stores.ROS1_NOETIC if kind == "bag" else Stores.LATEST)
    known = types.types
    pack = types.serialize_ros1 if kind == "bag" else types.serialize_cdr
    sequence = {"seq": 0} if kind == "bag" else {}
    plugin = StoragePlugin.MCAP if kind == "mcap" else StoragePlugin.SQLITE3
    folder.mkdir()
    path = folder / "run.bag"
    writer: Any = rosbag1.Writer(path)
    if kind != "bag":
        writer = rosbag2.Writer(folder / "run", version=9, storage_plugin=plugin)
    with writer:
        topic = writer.add_connection("/joint_states", "sensor_msgs/msg/JointState", typestore=types)
        for k in range(SAMPLES // 4):
            odd = random.random() < 0.03
            time = int(random.choice([0, 1, 2**31 - 1])) if odd else 1_700_000_000 + k
            stamp = known["builtin_interfaces/msg/Time"](sec=time, nanosec=10_000_000 * k)
            header = known["std_msgs/msg/Header"](**sequence, stamp=stamp, frame_id="")
            names = NAMES[int(random.integers(len(NAMES))) if odd else 0]
            values = (
                random.choice([0.1, np.nan, np.inf, 1e308], int(random.integers(5))) if odd else np.sin([k, 2.0 * k])
            )
            fields = (np.asarray(part) for part in (values, values[: 1 if odd else 2], np.zeros(0)))
            message = known["sensor_msgs/msg/JointState"](header, names, *fields)
            writer.write(topic, 10**9 * (1 + k), pack(message, "sensor_msgs/msg/JointState"))
    return path if kind == "bag" else next((folder / "run").glob(f"*.{kind}*"))


PROJECT = """model = "pendulum"
channels = "channels.toml"
out = "result"
fit = { recordings = ["swing.csv"], from = 0.1, to = 0.5 }
validation = { recordings = ["swing.csv"] }
free = { "hinge.viscous" = { start = 0.001, lower = 0.0, upper = 1.0, prior = 0.5, each = false } }
set = { "hinge.dry" = 0.001 }
options = { timestep = 0.01 }
"""
TABLE = """time = "time [s]"
repeats = "keep"
[channels]
theta = { column = "theta [deg]", sign = -1, offset = 0.1, delay = 0.01 }
u = { column = "u [V]", scale = 2.0 }
"""


def settings(folder: Path, count: int, number: int = 0) -> Tally:
    """Files of projects and of channels with other values, of other types, repeated or missing."""
    random, tally = np.random.default_rng(number), Tally("hostile settings")
    (folder / "swing.csv").write_bytes(recordings()[".csv"])
    (folder / "channels.toml").write_text(TABLE, "utf-8")

    def read_table(path: Path) -> object:
        return read_recording(folder / "swing.csv", channels=read_channel_table(path))

    for turn in range(count):
        name, text, read = (("project.toml", PROJECT, read_project), ("table.toml", TABLE, read_table))[turn % 2]
        content = mutated(text.encode(), random) if turn % 5 == 4 else _other_values(text, random).encode()
        _attack(tally, read, folder / name, content)
    return tally


def _other_values(text: str, random: np.random.Generator) -> str:
    """Another value behind one of the equal signs, or two."""
    parts = re.split(r"(?<== )([^,}\n]+)", text)
    for _ in range(int(random.integers(1, 3))):
        at = 2 * int(random.integers(len(parts) // 2)) + 1
        parts[at] = TOML[int(random.integers(len(TOML)))]
    return "".join(parts)


def _columns(random: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """A time, mostly, and columns of all types and shapes."""
    time = 0.01 * np.arange(SAMPLES)
    yield from [("time", time)] if random.random() < 0.8 else []
    for name in ("theta", "u", "q"):
        kind = int(random.integers(8))
        yield (
            name,
            [
                np.sin(time),
                np.sin(time)[:, None],
                np.zeros(0),
                np.zeros((3, SAMPLES)),
                np.full(SAMPLES, np.nan),
                np.array(["a", "b"] * (SAMPLES // 2), dtype="S3"),
                np.full(SAMPLES, 1e308),
                np.arange(SAMPLES, dtype=np.complex128),
            ][kind],
        )


def _npz(path: Path, random: np.random.Generator) -> None:
    np.savez_compressed(path, **dict(_columns(random)))


def _hdf5(path: Path, random: np.random.Generator) -> None:
    with h5py.File(path, "w") as file:
        for name, values in _columns(random):
            file[name] = values
        kind = int(random.integers(6))
        if kind == 0:
            file.create_dataset("far", (SAMPLES,), "f8", external=[("/etc/passwd", 0, 8 * SAMPLES)])
        elif kind == 1:
            file["far"] = h5py.ExternalLink("/etc/passwd", "x")
        elif kind == 2:
            file.create_dataset("vast", (10**12,), "f8", chunks=(1000,))
        elif kind == 3:
            file["loop"] = h5py.SoftLink("/loop")
        elif kind == 4:
            file["self"] = file["/"]


def results(folder: Path, count: int, number: int = 0) -> Tally:
    """Results with changed files: each change is seen; used all the same, they lead to a page or an error."""
    random, tally, result = np.random.default_rng(number), Tally("tampered results"), folder / "sound"
    (folder / "swing.csv").write_bytes(recordings()[".csv"])
    save_estimate(fit(load_model("pendulum").mechanism, read_recording(folder / "swing.csv"), FREE), result)
    names = sorted(path.name for path in result.iterdir() if path.suffix in (".json", ".csv", ".npz", ".toml"))
    for turn in range(count):
        copy = folder / "tampered"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(result, copy)
        path = copy / names[turn % len(names)]
        before = path.read_bytes()
        path.write_bytes(_junk(before, random) if path.suffix == ".json" else mutated(before, random))
        if path.read_bytes() == before:
            continue
        if tally.attempt(lambda copy=copy: load_result(copy), lambda path=path: path.name) is not None:
            tally.note("wrong", f"a changed {path.name} was not seen")
        tally.attempt(lambda copy=copy: _used(copy), lambda path=path: f"{path.name} {path.read_bytes()[:3000]!r}")
    return tally


def _used(copy: Path) -> bool:
    saved = load_result(copy, force=True)
    with blamed(saved):
        write_report(saved)
    return True


def _junk(content: bytes, random: np.random.Generator) -> bytes:
    """Another value of any type somewhere in a JSON file."""
    whole = place = json.loads(content)
    junk: Sequence[Any] = (None, -1, 1e308, 10**400, "x", [], {}, [[1]], True)
    while True:
        keys = list(place) if isinstance(place, Mapping) else list(range(len(place)))
        key = keys[int(random.integers(len(keys)))]
        if isinstance(place[key], dict | list) and place[key] and random.random() < 0.7:
            place = place[key]
            continue
        place[key] = junk[int(random.integers(len(junk)))]
        return json.dumps(whole).encode()


def _attack(tally: Tally, read: Callable[[Path], object], path: Path, content: bytes) -> None:
    path.write_bytes(content)
    tally.attempt(lambda: read(path), lambda: f"{path.name} {content[:3000]!r}")
