"""Kills at random moments of every command: what a command replaces stays whole, what it has done is not lost."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import shutil
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from torture.children import LONGEST, Child, Ended
from torture.processes import FIT, SWEEP, Place
from torture.tally import Tally

FREE = FIT[3:]
TOLD = "95 % interval"  # in the head of a fit's table
# Seconds after which an interpreter runs our program, and after which it has loaded what that needs.
LOADING = (0.2, 1.5)
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


@dataclasses.dataclass(frozen=True)
class Command:
    """A command to be killed, and what must be whole afterwards."""

    arguments: tuple[str, ...]
    files: tuple[str, ...] = ()
    """That it replaces: as they were, or as they are to be, which is the same."""
    result: str = "killed"
    """Folder of a fit, which must be there with all its files."""
    server: bool = False
    """Runs until it is told to end."""


COMMANDS: Mapping[str, Command] = {
    "fit": Command((*FIT, "--out", "killed")),
    "simulate": Command(
        ("simulate", "pendulum", "--start", "hinge=1", "--duration", "1", "--out", "killed.csv"), ("killed.csv",)
    ),
    "report": Command(("report", "killed")),
    "validate": Command(("validate", "killed", "run.csv", "--quiet")),
    "show": Command(("show", "pendulum")),
    "check": Command(("check", "pendulum", "run.csv", *FREE, "--out", "killed.html"), ("killed.html",)),
    "convert": Command(("convert", "pendulum", "killed.toml"), ("killed.toml",)),
    "export": Command(("export", "sound", "killed.toml", "--out", "exported.toml", "--all"), ("exported.toml",)),
    "advise": Command(("advise", "sound", "--refits", "0", "--quiet")),
    "models": Command(("models",)),
    "fleet": Command(
        ("fleet", "pendulum", "run.csv", *FREE, "--out", "fleet"),
        ("fleet/fleet.json", "fleet/recordings.csv", "fleet/model.toml"),
    ),
    "design": Command(
        ("design", "pendulum", "--free", "hinge.viscous", "--duration", "1", "--seconds", "600", "--out", "drive.csv"),
        ("drive.csv", "drive.yaml"),
    ),
    "demo": Command(("demo", "--quiet", "--out", "demonstration"), result="demonstration"),
    "run": Command(("run", "project"), ("project/project.toml",), "project/result"),
    "web": Command(("web", "project", "--no-browser"), ("project/project.toml",), "project/result", server=True),
}
PROJECT = """model = "pendulum"

[fit]
recordings = ["../run.csv"]

[free]
"hinge.viscous" = {}
"pendulum.inertia.yy" = {}
"""
# Commands that go on where they were stopped, by their folder, and what they end with.
RESUMED: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "swept": (("sweep", "sweep.toml", "--out", "swept", "--workers", "2", "--quiet"), ("summary.csv",)),
}


def kills(place: Place, count: int, number: int = 0) -> Tally:
    """Every other one a fit; the others in turn, each with all signals as the turns go round."""
    random, tally = np.random.default_rng(number), Tally("kills")
    shutil.copytree(place.folder / "sound", place.folder / "killed")
    (place.folder / "project").mkdir()
    (place.folder / "project" / "project.toml").write_text(PROJECT, "utf-8")
    lasts, whole = {}, {}
    for name, command in COMMANDS.items():
        lasts[name] = _undisturbed(place, name, command)
        whole[name] = _contents(place.folder, command.files)
    _, *others = COMMANDS
    for turn in range(count):
        round_, place_in_round = divmod(turn // 2, len(others))
        name = others[place_in_round] if turn % 2 else "fit"
        sent = SIGNALS[(round_ + place_in_round) % len(SIGNALS)]
        command = COMMANDS[name]
        ended = _killed(place, command.arguments, lasts[name] * float(random.uniform(0.0, 1.1)), sent)
        found = place.answer(command.result) is not None and _contents(place.folder, command.files) == whole[name]
        # A fit that has said its numbers is over; only what cannot be caught may keep it from being written.
        found = found and (sent == signal.SIGKILL or TOLD not in ended.output or ended.code in (0, 1))
        _judge(tally, ended, found, f"{name}, signal {sent}")
    return tally


def begun(place: Place, count: int, number: int = 0) -> Tally:
    """Programs that are asked to end while they load: an end like any other, or none that Python knows of yet."""
    random, tally = np.random.default_rng(number), Tally("signals while a program loads")
    for turn in range(count):
        sent = (signal.SIGINT, signal.SIGTERM)[turn % 2]
        ended = _killed(place, (*FIT, "--out", "begun"), float(random.uniform(*LOADING)), sent, afresh=True)
        _judge(tally, ended, ended.code in (0, 1, 130, -sent), f"signal {sent} while loading")
    return tally


def resumed(place: Place, rounds: int, number: int = 0) -> Tally:
    """Commands of many fits, killed again and again: the same command goes on, and ends with the same digits."""
    random, tally = np.random.default_rng(number), Tally("kills of what goes on")
    (place.folder / "sweep.toml").write_text(SWEEP, "utf-8")
    for folder, (arguments, files) in RESUMED.items():
        child = Child(arguments, place.folder, place.environment, afresh=True)
        ended = child.wait(10.0 * LONGEST)
        assert ended.code == 0, ended.errors
        lasts, whole = time.monotonic() - child.began, _contents(place.folder / folder, files)
        for _ in range(rounds):
            shutil.rmtree(place.folder / folder, ignore_errors=True)
            for sent in SIGNALS:
                ended = _killed(place, arguments, lasts * float(random.uniform(0.0, 0.5)), sent, afresh=True)
                _judge(tally, ended, True, f"{arguments[0]}, signal {sent}")
            ended = Child(arguments, place.folder, place.environment, afresh=True).wait(10.0 * LONGEST)
            found = not ended.code and _contents(place.folder / folder, files) == whole
            _judge(tally, ended, found, f"{arguments[0]}, going on")
    return tally


def _judge(tally: Tally, ended: Ended, whole: bool, what: str) -> None:
    tally.tried += 1
    told = f"{what}, {ended.code}: {ended.errors[-800:]}"
    if ended.hung or ended.crashed:
        tally.note("hangs" if ended.hung else "tracebacks", told)
    elif not whole:
        tally.note("lost", told)
    else:
        tally.note("answers" if ended.code >= 0 else "clean")


def _undisturbed(place: Place, name: str, command: Command) -> float:
    """Seconds that a command takes; a server until it has said its address, and was asked to end."""
    child = Child(command.arguments, place.folder, place.environment)
    if command.server:
        child.await_output("token=")
        child.kill(signal.SIGTERM)
    ended = child.wait()
    assert not ended.crashed, f"{name}: {ended.errors}"
    assert not ended.hung, name
    return time.monotonic() - child.began


def _killed(place: Place, arguments: tuple[str, ...], seconds: float, sent: int, *, afresh: bool = False) -> Ended:
    """A command that is sent a signal some seconds after its beginning."""
    child = Child(arguments, place.folder, place.environment, afresh=afresh)
    with contextlib.suppress(ProcessLookupError):
        time.sleep(max(child.began + seconds - time.monotonic(), 0.0))
        child.kill(sent)
    return child.wait()


def _contents(folder: Path, files: tuple[str, ...]) -> list[bytes]:
    return [_without_times((folder / file).read_bytes()) for file in files]


def _without_times(content: bytes) -> bytes:
    """Times that a run took, or when it was, may differ."""
    return re.sub(rb'("seconds"|"date"|"created"): *[^,}\n]*', b"", content)
