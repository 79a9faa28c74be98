"""What the page works on: a project's folder, its files, and its machine once that is read."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit

from shadowfit import runtime
from shadowfit.apart import LostError, apart
from shadowfit.errors import ShadowfitError
from shadowfit.mechanism import Mechanism
from shadowfit.models import ModelFile, load_model
from shadowfit.models.atomic import write_text
from shadowfit.models.matching import matched
from shadowfit.projects.project import FILE, Part, Project, read_project, write_project
from shadowfit.projects.uploads import inside
from shadowfit.recordings import ChannelTable, Recording, read_channel_table, read_recording
from shadowfit.recordings.table import load_table
from shadowfit.records import record

CHANNELS = "channels.toml"
# Parts of a project that have recordings.
PARTS = ("fit", "validation")


@record(frozen=True)
class Machine:
    """A model, read, with the numbers that the project sets."""

    file: ModelFile
    mechanism: Mechanism

    def channels(self) -> dict[str, str]:
        """Channels that a recording must have → their units: of the sensors, then of the inputs."""
        sensors = {
            channel: sensor.unit()
            for name, sensor in self.mechanism.sensors.items()
            for channel in sensor.channels(name)
        }
        return sensors | {name: part.unit for name, part in self.mechanism.inputs.items()}


class Desk:
    """A project's folder. Every change is on disk at once: a page that is closed or loaded anew loses nothing."""

    def __init__(self, folder: Path, limit: float) -> None:
        """``limit`` is the largest size of an upload [MB]."""
        self.folder, self.limit = folder.resolve(), limit
        self.folder.mkdir(parents=True, exist_ok=True)
        self.project = Project()
        self._machine: tuple[Any, Machine] | None = None
        # The page asks for the machine in several places at once; JAX and the reader work once.
        self._reading = threading.Lock()

    def load(self) -> None:
        """Read the project's file, where there is one: it may have been changed by hand."""
        if (self.folder / FILE).exists():
            self.project = read_project(self.folder / FILE)

    def change(self, **fields: Any) -> None:
        """Change the project, and write its file."""
        self.project = dataclasses.replace(self.project, **fields)
        write_project(self.folder / FILE, self.project)

    # ---- the machine

    def machine(self) -> Machine:
        """The project's model, read once for as long as its file and the project's numbers stay.

        Raises:
            ShadowfitError: there is none, or it cannot be read.
        """
        project = self.project
        if not project.model:
            raise ShadowfitError("choose a machine first")
        with self._reading:
            key = (project.model, project.weld, tuple(project.settings.items()), self._changed(project.model))
            if self._machine is None or self._machine[0] != key:
                runtime.start_jax()
                file = _apart(_load, self.path_of_model(), project.weld)
                self._machine = key, Machine(file, file.mechanism.set(dict(project.settings)))
            return self._machine[1]

    def path_of_model(self) -> str:
        """The model as the reader takes it: a built-in one's name, or a file's path."""
        model = self.project.model
        return str(inside(self.folder, model)) if Path(model).suffix else model

    def _changed(self, model: str) -> float:
        with contextlib.suppress(OSError):
            return (self.folder / model).stat().st_mtime
        return 0.0

    # ---- recordings

    def purpose_of(self, recording: str) -> str:
        """What a recording is for: ``fit``, ``validation``, ``both`` or nothing."""
        purposes = [name for name in PARTS if recording in getattr(self.project, name).recordings]
        return "both" if len(purposes) > 1 else "".join(purposes)

    def parts_of(self, recording: str) -> list[Part]:
        """The parts of the project that use a recording."""
        return [part for part in (self.project.fit, self.project.validation) if recording in part.recordings]

    def use(self, recording: str, purpose: str) -> None:
        """Use a recording for the fit, for validation, for both (other samples of it), or not at all."""
        parts = {}
        for name in PARTS:
            part: Part = getattr(self.project, name)
            others = tuple(one for one in part.recordings if one != recording)
            wanted = purpose in (name, "both")
            parts[name] = dataclasses.replace(part, recordings=(*others, recording) if wanted else others)
        self.change(**parts)

    def choose(self, recording: str, name: str, begin: float | None, end: float | None) -> None:
        """Use samples between two times [s] for the fit or for validation, of this recording among others."""
        purpose = self.purpose_of(recording)
        if purpose not in (name, "both"):
            self.use(recording, "both" if purpose else name)
        self.change(**{name: dataclasses.replace(getattr(self.project, name), begin=begin, end=end)})

    def headings(self, recording: str) -> list[str]:
        """Headings of a recording's columns."""
        return _apart(_headings, str(inside(self.folder, recording)))

    def recording(self, recording: str) -> Recording:
        """A recording as a fit would see it."""
        read = _apart(_read, str(inside(self.folder, recording)), self.channel_table())
        return matched(self.machine().mechanism, read) if self.project.model else read

    # ---- channels

    def channel_table(self) -> ChannelTable:
        """The project's table of channels."""
        file = self.project.channels
        return ChannelTable({}) if file is None else read_channel_table(inside(self.folder, file))

    def channel_entries(self) -> dict[str, dict[str, Any]]:
        """Channel → column, unit, sign, as the table of channels has them."""
        file = self.project.channels
        if file is None:
            return {}
        with contextlib.suppress(OSError, ValueError):
            content = tomlkit.parse((self.folder / file).read_text("utf-8")).unwrap()
            entries = content.get("channels", {})
            return {key: {"column": one} if isinstance(one, str) else dict(one) for key, one in entries.items()}
        return {}

    def set_channels(self, entries: Mapping[str, Mapping[str, Any]]) -> None:
        """Write the table of channels; without any, channels are found by their names."""
        mapped = {key: {k: v for k, v in entry.items() if v not in (None, "")} for key, entry in entries.items()}
        mapped = {key: entry for key, entry in mapped.items() if entry.get("column")}
        if mapped:
            rows = {key: entry["column"] if len(entry) == 1 else _inline(entry) for key, entry in mapped.items()}
            write_text(self.folder / CHANNELS, tomlkit.dumps({"channels": rows}))
        self.change(channels=CHANNELS if mapped else None)


def _inline(table: Mapping[str, Any]) -> Any:
    made = tomlkit.inline_table()
    made.update(table)
    return made


# ---- what came from a browser is read in a process of its own: the page goes on whatever is in it


def _apart(read: Callable[..., Any], path: str, *arguments: Any) -> Any:
    try:
        return apart(read, path, *arguments, size=os.path.getsize(path) if os.path.isfile(path) else 0.0)
    except LostError as error:
        raise ShadowfitError(f"{os.path.basename(path)}: {error}") from error


def _load(path: str, weld: Sequence[str]) -> ModelFile:
    return load_model(path, weld=weld)


def _headings(path: str) -> list[str]:
    return list(load_table(path).columns)


def _read(path: str, table: ChannelTable) -> Recording:
    return read_recording(path, channels=table)
