"""A result where it is to be used: the user's own file, a layer over a USD stage, or Python for a framework."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shadowfit.errors import ShadowfitError, nearest
from shadowfit.estimation import Estimate
from shadowfit.estimation.posterior import Draws
from shadowfit.evaluation.calibrated import Calibrated, calibrated
from shadowfit.evaluation.store import SavedResult, load_result
from shadowfit.mechanism import Mechanism
from shadowfit.models import load_model
from shadowfit.models.atomic import write_bytes
from shadowfit.models.frameworks import usd
from shadowfit.models.frameworks.dialects import DIALECTS, Dialect
from shadowfit.models.frameworks.module import module
from shadowfit.models.frameworks.terms import LINK_WORDS, WORDS, Terms, terms_of
from shadowfit.models.robots.export import Exported, Source, export_robot, export_tables, read_source
from shadowfit.models.robots.read import is_robot_file
from shadowfit.records import record

# The user's own file, by its ending; USD has layers, and every other framework is one of Python.
OWN = {"urdf": (".urdf", ".xacro"), "mujoco": (".xml", ".mjcf"), "toml": (".toml",)}
FRAMEWORKS = (*OWN, "usd", *DIALECTS)
# Machines that ranges are taken from.
FOR_RANGES = 1000
RANGES = 0.95


class ExportError(ShadowfitError):
    """A result that cannot be exported as it is asked for."""


@record(frozen=True)
class Export:
    """What was written, and what was not."""

    paths: tuple[Path, ...]
    written: Mapping[str, Any]
    """Names of the numbers of the calibrated machine that the file now has."""
    changes: Calibrated
    homeless: Mapping[str, Any]
    """Numbers that the format has no place for."""
    impossible: Mapping[str, str]
    """Names of numbers that would leave nothing possible for a link, and why."""


def export(
    result: Estimate | SavedResult,
    file: str | os.PathLike[str],
    framework: str | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    draws: int = 0,
    ranges: float | None = None,
    seed: int = 0,
    everything: bool = False,
    replace: bool = False,
    red: bool = False,
) -> Export:
    """Write a result where a simulator reads it.

    Args:
        result: an estimate, or what :func:`load_result` read.
        file: the user's own robot file, model file or USD stage, which stays as it is.
        framework: one of ``FRAMEWORKS``; None: the user's own file again.
        out: where to write; default: beside ``file``, with ``.calibrated`` in its name.
        draws: so many possible machines in place of the calibrated one: a file for each, or all in one module.
        ranges: part of the possible machines that ranges enclose, for frameworks that draw by themselves; default 0.95.
        seed: of the draws.
        everything: write parameters that were not identified, too.
        replace: over files that exist.
        red: draw from a red result, too.

    Raises:
        ExportError: the framework does not take this file, or what is asked for; or a file exists.
    """
    if isinstance(result, Estimate):
        options: dict[str, Any] = {"out": out, "draws": draws, "ranges": ranges, "seed": seed}
        with tempfile.TemporaryDirectory() as folder:
            result.save(folder)
            saved = load_result(folder)
            return export(saved, file, framework, **options, everything=everything, replace=replace, red=red)
    source = Path(file)
    chosen = _framework(framework, source)
    _check_request(chosen, source, draws, ranges)
    if draws < 0 or (ranges is not None and not 0.0 < ranges < 1.0):
        raise ExportError("there are draws from 1 on, and ranges of a part of the machines such as 95 %")
    job = _Job(result, source, chosen, everything)
    dialect = DIALECTS.get(chosen)
    count = FOR_RANGES if dialect is not None and dialect.ranges else draws
    machines = result.draw(count, seed, red=red) if count else None
    suffix = ".py" if dialect is not None else ".usda" if chosen == "usd" else source.suffix
    target = Path(out) if out is not None else source.with_name(f"{source.stem}.calibrated{suffix}")
    if dialect is not None:
        return job.as_module(dialect, machines, ranges or RANGES, _free(target, replace))
    if machines is None:
        return job.as_file(_free(target, replace))
    return job.as_files(machines, [_free(_numbered(target, i, len(machines)), replace) for i in range(len(machines))])


def _framework(asked: str | None, file: Path) -> str:
    own = next((name for name, endings in OWN.items() if file.suffix.lower() in endings), None)
    own = "usd" if file.suffix.lower() in usd.SUFFIXES else own
    chosen = own if asked is None else asked
    if chosen is None:
        raise ExportError(f"{file}: this is no URDF, MJCF, TOML or USD file; say what for (one of {_list(FRAMEWORKS)})")
    if chosen not in FRAMEWORKS:
        raise ExportError(f"there is no framework {chosen!r}{nearest(chosen, FRAMEWORKS)}")
    return chosen


def _check_request(chosen: str, file: Path, draws: int, ranges: float | None) -> None:
    """Raise where a framework does not take a file, draws or ranges."""
    dialect = DIALECTS.get(chosen)
    endings = usd.SUFFIXES if chosen == "usd" else OWN[chosen] if dialect is None else dialect.suffixes
    if file.suffix.lower() not in endings:
        raise ExportError(f"{file}: for {chosen} this must be a file {_list(endings)}")
    if ranges is not None and (dialect is None or not dialect.ranges):
        raise ExportError(f"{chosen} has no place for ranges; ask for machines instead (draws, --draws 20)")
    if draws and dialect is not None and dialect.ranges:
        raise ExportError(f"{chosen} draws by itself from ranges (ranges=0.95, --ranges 95%), not from machines")


def _list(names: Sequence[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _free(target: Path, replace: bool) -> Path:
    if target.exists() and not replace:
        raise ExportError(f"{target} exists; name another one (--out), or say that it may be replaced (--force)")
    return target


def _numbered(target: Path, number: int, count: int) -> Path:
    return target.with_name(f"{target.stem}.{number:0{len(str(count - 1))}d}{target.suffix}")


@record(frozen=True)
class _Job:
    """A result and the file that it goes beside."""

    result: SavedResult
    file: Path
    framework: str
    everything: bool

    def as_file(self, target: Path) -> Export:
        """The calibrated machine."""
        changes = self._changes()
        if self.framework == "usd":
            made = usd.layer(self.file, target, self._terms(changes.values, self.result.mechanism()))
            write_bytes(target, made.text.encode())
            written = {name: value for name, value in changes.values.items() if name not in made.homeless}
            return Export((target,), written, changes, made.homeless, {})
        exported = self._own(changes.values)
        write_bytes(target, exported.content)
        return Export((target,), exported.written, changes, exported.homeless, exported.impossible)

    def as_files(self, draws: Draws, targets: Sequence[Path]) -> Export:
        """One file for each machine, all made before any is written."""
        changes = self._changes()
        names = self._drawn_names(changes, draws)
        contents: list[bytes] = []
        homeless: dict[str, Any] = {}
        impossible: dict[str, str] = {}
        for number, target in enumerate(targets):
            machine = draws.mechanism(number)
            values = {name: machine.get(name) for name in names}
            if self.framework == "usd":
                made = usd.layer(self.file, target, self._terms(values, machine))
                contents.append(made.text.encode())
                homeless |= made.homeless
            else:
                exported = self._own(values)
                contents.append(exported.content)
                homeless |= exported.homeless
                impossible |= exported.impossible
        for target, content in zip(targets, contents, strict=True):
            write_bytes(target, content)
        left = {**homeless, **impossible}
        written = {name: changes.values.get(name) for name in names if name not in left}
        return Export(tuple(targets), written, changes, homeless, impossible)

    def as_module(self, dialect: Dialect, draws: Draws | None, level: float, target: Path) -> Export:
        """Python for a framework, with all numbers of joints, and the links that changed."""
        changes, after = self._changes(), self.result.mechanism()
        names = dict.fromkeys([*self._joint_numbers(after), *self._drawn_names(changes, draws)])
        machines = [] if draws is None else [draws.mechanism(number) for number in range(len(draws))]
        calibrated_terms, *drawn = [
            self._terms({name: one.get(name) for name in names}, one) for one in (after, *machines)
        ]
        title = f"Machines by recordings: {self.file.name}, calibrated by shadowfit."
        made = module(dialect, calibrated_terms, drawn, level, title)
        write_bytes(target, made.text.encode())
        written = {name: after.get(name) for name in names if name not in made.homeless}
        return Export((target,), written, changes, made.homeless, {})

    def _changes(self) -> Calibrated:
        before = self.result.mechanism() if self.framework == "usd" else load_model(self.file).mechanism
        everything = self.everything
        found = calibrated(self.result, before, everything=everything, own_numbers=self._source is not None)
        if self.framework != "usd":
            return found
        # A stage is not read as a mechanism: all of the machine's own numbers are written.
        names = [*self._joint_numbers(before), *self._inertial_numbers(before)]
        kept = [name for name in names if name not in found.unidentified and name not in found.separate]
        return Calibrated({name: before.get(name) for name in kept}, found.together, found.unidentified, found.separate)

    def _own(self, values: Mapping[str, Any]) -> Exported:
        return (
            export_tables(self.file, values) if self._source is None else export_robot(self.file, values, self._source)
        )

    def _terms(self, values: Mapping[str, Any], mechanism: Mechanism) -> Terms:
        return terms_of(values, mechanism, None if self._source is None else self._source.robot)

    @functools.cached_property
    def _source(self) -> Source | None:
        """The robot of the file, read once for all machines; None where it is no robot file."""
        return read_source(self.file) if is_robot_file(self.file) else None

    def _drawn_names(self, changes: Calibrated, draws: Draws | None) -> list[str]:
        """Numbers that differ from the file's, or between machines."""
        if draws is None:
            return list(changes.values)
        moved = [name for number in range(len(draws)) for name in draws.values(number)]
        return [name for name in dict.fromkeys([*changes.values, *moved]) if name not in changes.separate]

    @staticmethod
    def _joint_numbers(mechanism: Mechanism) -> list[str]:
        return [
            name
            for name, leaf in mechanism.leaves().items()
            if leaf.tunable and name.partition(".")[0] in mechanism.joints and name.partition(".")[2] in WORDS
        ]

    @staticmethod
    def _inertial_numbers(mechanism: Mechanism) -> list[str]:
        parts = {name: name.partition(".") for name in mechanism.leaves()}
        return [
            name
            for name, (body, _, field) in parts.items()
            if body in mechanism.bodies and field.split(".")[0] in LINK_WORDS
        ]
