"""Sweeps: a TOML file that names a fit and the settings to vary, turned into cases. Docs: docs/sweeps.md.

Every combination of the axes' values is one case. Everything is checked before the first case runs: names, values,
recordings, and that each case makes an estimation problem.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shadowfit.errors import ShadowfitError, nearest
from shadowfit.estimation import Free, LevenbergMarquardt, Options
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.problem import build_problem
from shadowfit.files import named_in, read_toml
from shadowfit.models import catalogue
from shadowfit.models.atomic import write_text
from shadowfit.records import record
from shadowfit.sweeps import fitting
from shadowfit.sweeps.cases import Case, Outcome, digest
from shadowfit.sweeps.tables import csv_text

KEYS = (
    "model",
    "recordings",
    "validate",
    "channels",
    "interval",
    "save",
    "set",
    "free",
    "options",
    "optimiser",
    "axis",
)
AXIS_KEYS = ("name", "change", "values", "range")
RANGE_KEYS = ("from", "to", "points", "spacing")
CHANGEABLE = ("set", "options", "optimiser")
# Options on whose values compiled programs depend; the others are numbers that they are handed.
STRUCTURAL = ("residual", "discretization", "unknowns")


class SweepError(ShadowfitError):
    """A sweep's file that is not as it should be."""


@record(frozen=True)
class Axis:
    """One setting that varies, or several that share their value."""

    name: str
    change: tuple[str, ...]
    """``set.NAME``, ``options.NAME`` or ``optimiser.NAME``."""
    values: tuple[Any, ...]


@record(frozen=True)
class Sweep:
    """A checked sweep: its axes, and one case for each combination of their values."""

    axes: tuple[Axis, ...]
    cases: tuple[Case, ...]
    points: Mapping[str, Mapping[str, Any]]
    """Case → axis → value."""


def read_sweep(file: Path) -> Sweep:
    """Read and check a sweep's file; paths in it are relative to its own folder.

    Raises:
        SweepError: the message says where and what is allowed.
    """
    try:
        spec = read_toml(file)
    except OSError as error:
        raise SweepError(f"{file} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise SweepError(f"{file} is not TOML: {error}") from error
    try:
        return build_sweep(spec, file.parent.resolve())
    except ShadowfitError as error:
        raise SweepError(f"{file}: {error}") from error


def build_sweep(spec: Mapping[str, Any], folder: Path) -> Sweep:
    """A sweep from the contents of its file."""
    _check_keys(spec, KEYS, "the sweep")
    for key in ("model", "recordings"):
        if key not in spec:
            raise SweepError(f"{key} is missing; a sweep needs a model and recordings")
    base = _base(spec, folder)
    axes = tuple(_axis(entry, i) for i, entry in enumerate(_typed(spec, "axis", list, [])))
    _check_axes(axes)
    cases, points = [], {}
    for values in itertools.product(*(axis.values for axis in axes)):
        arguments = copy.deepcopy(base)
        for axis, value in zip(axes, values, strict=True):
            for target in axis.change:
                section, name = target.split(".", 1)
                arguments[section][name] = value
        name = _case_name(axes, values)
        if spec.get("save"):
            arguments["save"] = f"results/{name}"
        cases.append(Case(name, fitting.TASK, arguments, _group(arguments)))
        points[name] = {axis.name: value for axis, value in zip(axes, values, strict=True)}
    _check_cases(cases, folder)
    return Sweep(axes, tuple(cases), points)


# ---- reading


def _base(spec: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    model = _typed(spec, "model", str)
    if not catalogue.is_builtin(model):
        model = _inside(folder, model)
    recordings = [_inside(folder, name) for name in _files(spec, "recordings")]
    others = [_inside(folder, name) for name in _files(spec, "validate", [])]
    files = recordings + others + ([] if catalogue.is_builtin(model) else [model])
    free = _typed(spec, "free", dict, {})
    for name, fields in free.items():
        if not isinstance(fields, dict):
            raise SweepError(f"free.{name!r} is {fields!r}; write a table such as {{}} or {{ start = 1e-3 }}")
        _check_keys(fields, [field.name for field in dataclasses.fields(Free)], f"free.{name!r}")
    base = {
        "model": model,
        "recordings": recordings,
        "channels": _typed(spec, "channels", dict, {}),
        "set": _typed(spec, "set", dict, {}),
        "free": free,
        "options": _typed(spec, "options", dict, {}),
        "optimiser": _typed(spec, "optimiser", dict, {}),
        "validate": others,
        "digests": [digest(Path(file)) for file in files],
    }
    if "interval" in spec:
        base["interval"] = float(_typed(spec, "interval", (int, float)))
    _typed(spec, "save", bool, False)
    return base


def _files(spec: Mapping[str, Any], key: str, default: Any = None) -> list[str]:
    names = _typed(spec, key, list, default)
    if not all(isinstance(name, str) for name in names):
        raise SweepError(f"{key} is {names!r}; write a list of file names")
    return names


def _inside(folder: Path, name: str) -> str:
    try:
        return str(named_in(folder, name))
    except OSError as error:
        raise SweepError(f"{name} cannot be read: {error.strerror}") from error


def _typed(spec: Mapping[str, Any], key: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
    value = spec.get(key, default)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        names = {str: "text", list: "a list", dict: "a table", bool: "true or false"}
        wanted = names.get(kind, "a number") if isinstance(kind, type) else "a number"
        raise SweepError(f"{key} is {value!r}; write {wanted}")
    return value


def _check_keys(table: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise SweepError(f"{where} has no key {key!r}{nearest(key, known)}")


def _axis(entry: Any, index: int) -> Axis:
    where = f"axis {index + 1}"
    if not isinstance(entry, dict):
        raise SweepError(f"{where} is {entry!r}; write [[axis]] with change and values")
    _check_keys(entry, AXIS_KEYS, where)
    change = entry.get("change")
    targets = tuple([change] if isinstance(change, str) else change or ())
    if not targets or not all(isinstance(target, str) for target in targets):
        raise SweepError(f"{where}: change is {change!r}; write what varies, such as 'options.state_weight'")
    for target in targets:
        section, dot, name = target.partition(".")
        if section not in CHANGEABLE or not (dot and name):
            raise SweepError(f"{where}: change {target!r} must begin with set., options. or optimiser.")
    if ("values" in entry) == ("range" in entry):
        raise SweepError(f"{where}: give either values or range")
    values = entry["values"] if "values" in entry else _range(entry["range"], where)
    if not isinstance(values, list) or not values:
        raise SweepError(f"{where}: values is {values!r}; write a list of at least one value")
    name = entry.get("name", targets[0].rsplit(".", 1)[-1])
    if not isinstance(name, str) or not name:
        raise SweepError(f"{where}: name is {name!r}; write a word")
    return Axis(name, targets, tuple(values))


def _range(entry: Any, where: str) -> list[float]:
    if not isinstance(entry, dict):
        raise SweepError(f"{where}: range is {entry!r}; write {{ from = 1, to = 1000, points = 4 }}")
    _check_keys(entry, RANGE_KEYS, f"{where}: range")
    spacing, points = entry.get("spacing", "log"), entry.get("points")
    low, high = entry.get("from"), entry.get("to")
    if spacing not in ("log", "linear") or not isinstance(points, int) or points < 2:
        raise SweepError(f"{where}: a range needs points of at least 2, and spacing 'log' or 'linear'")
    ends = [float(end) if isinstance(end, int | float) else math.nan for end in (low, high)]
    if not all(math.isfinite(end) for end in ends) or (spacing == "log" and min(ends) <= 0.0):
        raise SweepError(f"{where}: a range needs numbers from and to, positive ones for spacing 'log'")
    made = (np.geomspace if spacing == "log" else np.linspace)(ends[0], ends[1], points)
    return [float(f"{value:.12g}") for value in made]


def _check_axes(axes: Sequence[Axis]) -> None:
    for what, names in (
        ("name", [axis.name for axis in axes]),
        ("change", [target for axis in axes for target in axis.change]),
    ):
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise SweepError(f"two axes have the {what} {twice[0]!r}; each must differ")


# ---- cases


def _case_name(axes: Sequence[Axis], values: Sequence[Any]) -> str:
    """A name that says what the case is and can stand in a file's name."""
    parts = [f"{axis.name}={_word(value)}" for axis, value in zip(axes, values, strict=True)]
    text = "_".join(parts) or "case"
    return "".join(c if c.isalnum() or c in "=_.+-" else "-" for c in text)


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _group(arguments: Mapping[str, Any]) -> str:
    """What compiled programs depend on."""
    chosen = {key: arguments["options"].get(key) for key in STRUCTURAL}
    return json.dumps([arguments["model"], chosen, sorted(arguments["free"])])


def _check_cases(cases: Sequence[Case], folder: Path) -> None:
    """Raise unless each case makes an estimation problem."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        recordings = fitting.read_all(cases[0].arguments, cases[0].arguments["recordings"], folder)
        fitting.read_all(cases[0].arguments, cases[0].arguments["validate"], folder)
        for case in cases:
            try:
                arguments = case.arguments
                mechanism = fitting.case_mechanism(arguments, folder)
                free = parameter_set(mechanism, fitting.free_parameters(arguments), len(recordings))
                build_problem(mechanism, recordings, free, _settings(Options, arguments["options"], "options"))
                _settings(LevenbergMarquardt, arguments["optimiser"], "optimiser")
            except ShadowfitError as error:
                raise SweepError(f"case {case.name}: {error}") from error


def _settings(kind: Any, values: Mapping[str, Any], where: str) -> Any:
    _check_keys(values, [field.name for field in dataclasses.fields(kind)], where)
    return kind(**values)


# ---- summary


def summary_table(sweep: Sweep, outcomes: Mapping[str, Outcome]) -> list[dict[str, Any]]:
    """One row for each case that has ended: axes, how it ended, costs, parameters and their standard deviations."""
    rows = []
    for case in sweep.cases:
        outcome = outcomes.get(case.name)
        if outcome is None:
            continue
        row: dict[str, Any] = {"case": case.name, **sweep.points[case.name]}
        row["status"] = outcome.result["status"] if outcome.result else "failed"
        row["error"] = outcome.error.strip().rsplit("\n", 1)[-1]
        if outcome.result:
            row |= {key: outcome.result[key] for key in ("converged", "iterations", "cost")}
            row |= {key: outcome.result[key] for key in ("cost_dynamics", "cost_observation")}
            row |= {f"validation {name}": fit["cost"] for name, fit in outcome.result.get("validation", {}).items()}
            for name, parameter in outcome.result["parameters"].items():
                row |= {name: parameter["value"], f"{name} std": parameter["std"]}
        rows.append(row)
    return rows


def write_summary(rows: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """The rows as ``summary.csv`` and ``summary.json``."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    write_text(folder / "summary.csv", csv_text(columns, [[row.get(key) for key in columns] for row in rows]))
    write_text(folder / "summary.json", json.dumps(list(rows), indent=1, ensure_ascii=False) + "\n")
