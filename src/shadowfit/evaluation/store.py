"""Results on disk, in open formats, without pickle. Docs: docs/result-files.md.

    result.json               status, costs, parameters, settings, versions (see ``summary``)
    model.toml                the calibrated model, which ``simulate`` accepts
    log.csv                   one row for each iteration
    trajectory_<name>.csv     for each recording: measured, estimated and rolled-out readings, residuals, joints, inputs
    forces_<name>.csv         for each recording: the force of each joint that the model does not explain
    torques_<name>.csv        for each recording with measured torques: these, and what the model predicts
    state.npz                 poses, velocities, parameter values and covariance as arrays
    manifest.json             digests of all these (:mod:`manifest`)
    report.html               written by ``report``
    unfinished.json           of a fit that was killed, or that no disk takes: its parameters (see ``checkpoint``)

A result appears whole or not at all, and an earlier one stays until then (:mod:`exchange`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shadowfit.arrays import Float
from shadowfit.dynamics import State
from shadowfit.errors import ShadowfitError
from shadowfit.estimation import Estimate
from shadowfit.estimation.posterior import DrawError, Draws
from shadowfit.estimation.result import RED
from shadowfit.estimation.uncertainty.evidence import Kind
from shadowfit.evaluation.axis_forces import AxisForce, axis_forces
from shadowfit.evaluation.checkpoint import UNFINISHED
from shadowfit.evaluation.columns import read_csv, write_csv
from shadowfit.evaluation.exchange import recover, replacing
from shadowfit.evaluation.joint_motion import joint_positions
from shadowfit.evaluation.manifest import NAME as MANIFEST
from shadowfit.evaluation.manifest import changed_files, write_manifest
from shadowfit.evaluation.notices import Colour, Notice, ordered
from shadowfit.evaluation.rollout import fineness, roll_out, start_states, stepping
from shadowfit.evaluation.rules.simulated_motion import simulations
from shadowfit.evaluation.series import SensorSeries, at_samples, compare
from shadowfit.evaluation.summary import SCHEMA, Details, summarise
from shadowfit.evaluation.torques import predicted_torques, torque_columns
from shadowfit.evaluation.verdict import colour
from shadowfit.files import named_in, read_bytes, read_text
from shadowfit.geometry import Pose
from shadowfit.mechanism import Mechanism, leaves
from shadowfit.memory import require_for_file
from shadowfit.models import format_model, parse_model, read_model, update_model
from shadowfit.models.atomic import write_bytes, write_text
from shadowfit.models.errors import ModelFileError
from shadowfit.models.writer import same_numbers
from shadowfit.records import record

# Files of a result, besides a table for each recording; the last one to appear where they are moved one by one.
FILES = ("result.json", "model.toml", "log.csv", "state.npz", "report.html", MANIFEST, UNFINISHED)
LAST = "result.json"
# Characters of a recording's name that a file's name may have: with all else it stays below 255 bytes.
NAME_LENGTH = 50
# Of each recording in state.npz, besides its times.
STATE_ARRAYS = ("position", "orientation", "velocity")


class ResultError(ShadowfitError):
    """A folder that holds no readable result."""


@record(frozen=True)
class SavedResult:
    """A result as it was read from its folder."""

    folder: Path
    summary: Mapping[str, Any]
    """The contents of ``result.json``."""
    tables: Mapping[str, Mapping[str, np.ndarray]]
    """Recording → heading → column of its ``trajectory_<name>.csv``, shape (samples,)."""
    forces: Mapping[str, Mapping[str, np.ndarray]]
    """Recording → heading → column of its ``forces_<name>.csv``, shape (steps,); empty for an older result."""
    torques: Mapping[str, Mapping[str, np.ndarray]]
    """Recording → heading → column of its ``torques_<name>.csv``; none without measured torques."""
    log: Mapping[str, np.ndarray]
    """Heading → column of ``log.csv``, shape (iterations + 1,)."""
    states: Mapping[str, tuple[Float[np.ndarray, " k"], State]]
    """Recording → times of the steps [s] and the states there, with the velocities that a simulation starts with."""
    labels: tuple[str, ...]
    """Names of the parameters, in the order of ``covariance``."""
    covariance: Float[np.ndarray, "p p"]
    covariance_of_data: Float[np.ndarray, "p p"]
    """Without what the model file says about bodies whose numbers are all free, and with bounds; else the same."""
    values_of_data: Float[np.ndarray, " p"]
    """Values that go with it (:meth:`Estimate.values_of_data`)."""
    spread: tuple[Float[np.ndarray, "p p"], Float[np.ndarray, " p"]] | None = None
    """Covariance and degrees of freedom of its :class:`Posterior`; None for an older result."""
    changed: tuple[str, ...] = ()
    """Files that are not as the fit wrote them, where it was read all the same."""

    def __repr__(self) -> str:
        return f"<result {self.folder}: {self.summary['status']}, {len(self.labels)} parameters; see .summary>"

    @property
    def converged(self) -> bool:
        """Whether the fit reached a minimum."""
        return bool(self.summary["converged"])

    def report(self) -> Path:
        """Write the page ``report.html`` into the folder, and return its path."""
        # The page is made of a result, and a result asks for its page.
        from shadowfit.evaluation.report import write_report  # noqa: PLC0415

        return write_report(self)

    def mechanism(self) -> Mechanism:
        """The calibrated mechanism."""
        return read_model(self.folder / "model.toml")

    @property
    def verdict(self) -> Colour:
        """Green, amber or red."""
        return colour(self.summary)

    @property
    def noise(self) -> dict[str, float]:
        """Standard deviation of each sensor's noise, as the fit had it."""
        return {name: sensor["std"] for name, sensor in self.summary["model"]["sensors"].items()}

    def draw(self, count: int, seed: int = 0, *, red: bool = False) -> Draws:
        """Possible machines, as :meth:`Estimate.draw` has them; with the error bars that were saved.

        Raises:
            DrawError: the verdict is red, no machine is asked for, or nothing was free.
        """
        if self.verdict == "red" and not red:
            raise DrawError(RED)
        # What is drawn is made of a result, as its page is.
        from shadowfit.evaluation.posterior import posterior  # noqa: PLC0415

        return posterior(self).draw(count, seed)


def save_estimate(
    estimate: Estimate,
    folder: str | os.PathLike[str],
    details: Details | None = None,
    *,
    finish: Callable[[Path], None] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Write everything but the report into a folder, and return the contents of ``result.json``.

    Args:
        estimate: what a fit found, however it ended.
        folder: made if it does not exist; files of an earlier result are replaced, all at once, and others stay.
        details: what the result tells besides the estimate.
        finish: called with the folder of the new files before they take the place of the old ones, to add to them.
        **more: fields of :class:`Details`, for short: ``model_text``, ``optimiser``, ``truth``, ``kind``...

    Raises:
        WriteError: the file system refuses; an earlier result is still there.
    """
    details = dataclasses.replace(details or Details(), **more)
    with replacing(folder, is_own, LAST) as target:
        summary = _write_files(estimate, target, details)
        if finish is not None:
            finish(target)
    return summary


def is_own(name: str) -> bool:
    """Whether a file of this name belongs to a result."""
    return name in FILES or (name.startswith(("trajectory_", "forces_", "torques_")) and name.endswith(".csv"))


def _write_files(estimate: Estimate, target: Path, details: Details) -> dict[str, Any]:
    names = recording_names(estimate)
    estimated = [_estimated(estimate, index) for index in range(len(names))]
    rolled = [_rolled_out(estimate, index) for index in range(len(names))]
    for index, name in enumerate(names):
        _write_trajectory(estimate, index, estimated[index], rolled[index], target / f"trajectory_{name}.csv")
    for name, forces in zip(names, axis_forces(estimate), strict=True):
        write_csv(target / f"forces_{name}.csv", _force_table(estimate, forces))
    torques = {name: predicted_torques(estimate, index) for index, name in enumerate(names)}
    for name, predictions in torques.items():
        if predictions:
            write_csv(target / f"torques_{name}.csv", torque_columns(predictions))
    notes = _write_model(estimate, target / "model.toml", details.model_text)
    write_csv(target / "log.csv", _log_table(estimate))
    write_bytes(target / "state.npz", _archive(estimate, names, details.kind))
    sentences = [*details.warnings, *notes, *_about_recordings(estimate)]
    # What is odd about a recording is the likeliest cause of what follows.
    told = [Notice("amber", text) for text in sentences]
    notices = ordered([*told, *estimate.notices, *simulations(estimate, rolled)])
    summary = summarise(estimate, estimated, names, details, notices)
    summary["torques"] = {
        name: {joint: one.to_json() for joint, one in predictions.items()}
        for name, predictions in torques.items()
        if predictions
    }
    summary["manifest"] = MANIFEST
    write_text(target / "result.json", json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    write_manifest(target, (path.name for path in target.iterdir()))
    return summary


def _about_recordings(estimate: Estimate) -> list[str]:
    recordings = [track.recording for track in estimate.problem.tracks]
    return [f"recording {one.name!r}: {text}" for one in recordings for text in one.warnings]


def load_result(folder: str | os.PathLike[str], *, force: bool = False) -> SavedResult:
    """Read a result that :func:`save_estimate` wrote.

    Args:
        folder: of the result.
        force: whether one is read of which files were changed since.

    Raises:
        ResultError: the folder holds none, not all of it, or files that are not those of its fit.
    """
    source = Path(folder)
    try:
        if not (source / LAST).exists() and source.is_dir():
            recover(source.resolve(), is_own, LAST)
        # The summary first: where there is none, there is no result.
        summary = _summary(source)
        changed = _changed(source, summary)
        if changed and not force:
            raise ResultError(
                f"{source}: {', '.join(changed)}: not as the fit wrote it: changed, cut, missing or of another run; "
                "fit again, or use it all the same with --force (force=True)"
            )
        return _read(source, summary, changed)
    except FileNotFoundError as error:
        missing = Path(error.filename).name
        advice = "`fit --out` writes one"
        if (source / UNFINISHED).exists():
            advice = f"its fit ended before it was written, with the values in {UNFINISHED}; fit again"
        raise ResultError(f"{source} is not the folder of a result: {missing} is missing; {advice}") from error
    except ResultError:
        raise
    except ShadowfitError as error:
        raise ResultError(f"{source}: {error}") from error
    except Exception as error:  # what a damaged file raises depends on the damaged byte
        raise ResultError(f"{source}: the result is damaged ({type(error).__name__}: {error})") from error


def _summary(source: Path) -> dict[str, Any]:
    try:
        summary = json.loads(read_text(source / "result.json"))
    except ValueError as error:
        raise ResultError(f"{source}: result.json is no JSON, cut or changed ({error}); fit again") from error
    if not isinstance(summary, dict) or summary.get("schema") != SCHEMA:
        schema = summary.get("schema") if isinstance(summary, dict) else None
        raise ResultError(f"{source}: result.json has the schema {schema!r}, expected {SCHEMA!r}")
    return summary


def _changed(source: Path, summary: Mapping[str, Any]) -> tuple[str, ...]:
    """Files that are not as they were written; results of earlier versions do not tell."""
    try:
        return changed_files(source)
    except FileNotFoundError:
        return (MANIFEST,) if "manifest" in summary else ()


def _read(source: Path, summary: Mapping[str, Any], changed: tuple[str, ...]) -> SavedResult:
    names = [recording["name"] for recording in summary["recordings"]]
    for name in names:
        named_in(source, f"trajectory_{name}.csv")
    tables = {name: read_csv(source / f"trajectory_{name}.csv") for name in names}
    forces, torques = (
        {name: read_csv(path) for name in names if (path := source / f"{kind}_{name}.csv").exists()}
        for kind in ("forces", "torques")
    )
    content = read_bytes(source / "state.npz")
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        require_for_file(sum(member.file_size for member in archive.zip.infolist()), str(source), len(content))
        states = {name: _states(archive, name) for name in names}
        labels, spread = tuple(archive["parameters"].tolist()), archive["covariance"]
        of_data = archive.get("covariance_of_data", spread), archive.get("values_of_data", archive["values"])
        known = "posterior" in archive
        posterior = (archive["posterior"], archive["degrees_of_freedom"]) if known else None
    log = read_csv(source / "log.csv")
    return SavedResult(
        source, summary, tables, forces, torques, log, states, labels, spread, *of_data, posterior, changed
    )


@contextlib.contextmanager
def blamed(*results: SavedResult) -> Iterator[None]:
    """What goes wrong with results that were changed by hand is an error about the changes."""
    try:
        yield
    except ShadowfitError:
        raise
    except Exception as error:
        changed = [f"{saved.folder / name}" for saved in results for name in saved.changed]
        if not changed:
            raise
        raise ResultError(
            f"{', '.join(changed)} cannot be used as changed ({type(error).__name__}: {error})"
        ) from error


def recording_names(estimate: Estimate) -> list[str]:
    """A name for each recording that can stand in a file's name, each one different."""
    names: list[str] = []
    for track in estimate.problem.tracks:
        plain = re.sub(r"[^\w.-]+", "_", track.recording.name).strip("._")[:NAME_LENGTH] or "recording"
        name, number = plain, 2
        while name.lower() in (other.lower() for other in names):
            name, number = f"{plain}_{number}", number + 1
        names.append(name)
    return names


# ---- trajectories


def _write_trajectory(
    estimate: Estimate,
    index: int,
    estimated: Mapping[str, SensorSeries],
    rolled: Mapping[str, SensorSeries],
    path: Path,
) -> None:
    track = estimate.problem.tracks[index]
    mechanism, trajectory = estimate.mechanism(index), estimate.trajectory(index)
    samples = track.recording.time
    table: dict[str, Any] = {"time [s]": samples}
    for sensor_name, sensor in mechanism.sensors.items():
        readings, free = estimated[sensor_name], rolled.get(sensor_name)
        simulated = np.full_like(readings.predicted, np.nan) if free is None else free.predicted
        unit = sensor.unit()
        for i, channel in enumerate(sensor.channels(sensor_name)):
            table[f"{channel}.measured [{unit}]"] = readings.measured[:, i]
            table[f"{channel}.estimated [{unit}]"] = readings.predicted[:, i]
            table[f"{channel}.rollout [{unit}]"] = simulated[:, i]
        for i, error in enumerate(sensor.error_channels(sensor_name)):
            table[f"{error}.residual [{'rad' if unit == '1' else unit}]"] = readings.residual[:, i]
    for joint, positions in joint_positions(mechanism, trajectory.states).items():
        unit = "m" if mechanism.joints[joint].kind.axis_kind == "translation" else "rad"
        table[f"{joint}.position [{unit}]"] = at_samples(trajectory.time, positions, samples)
    for key, part in mechanism.inputs.items():
        table[f"{key} [{part.unit}]"] = track.recording.channels[key]
    write_csv(path, table)


def _force_table(estimate: Estimate, forces: Mapping[str, AxisForce]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for joint, force in forces.items():
        straight = estimate.problem.mechanism.joints[joint].kind.axis_kind == "translation"
        table["time [s]"] = force.time
        table[f"{joint}.position [{'m' if straight else 'rad'}]"] = force.position
        table[f"{joint}.speed [{'m/s' if straight else 'rad/s'}]"] = force.speed
        table[f"{joint}.unexplained [{'N' if straight else 'N m'}]"] = force.force
    return table


def _estimated(estimate: Estimate, index: int) -> dict[str, SensorSeries]:
    trajectory = estimate.trajectory(index)
    recording = estimate.problem.tracks[index].recording
    return compare(estimate.mechanism(index), recording, trajectory.time, trajectory.readings)


def _rolled_out(estimate: Estimate, index: int) -> dict[str, SensorSeries]:
    """Open-loop readings from the first estimated state; empty where the calibrated model cannot be simulated."""
    track, mechanism = estimate.problem.tracks[index], estimate.mechanism(index)
    try:
        run = roll_out(
            mechanism,
            start_states(estimate, index)[0],
            track.recording,
            stepping(estimate, fineness(estimate)),
            steps=(track.steps - 1) * fineness(estimate),
        )
    except ShadowfitError:
        return {}
    time = track.start_time + np.asarray(run.time)
    return compare(mechanism, track.recording, time, {k: np.asarray(v) for k, v in run.readings.items()})


# ---- the other files


def _write_model(estimate: Estimate, path: Path, text: str | None) -> list[str]:
    """The calibrated model, in the user's own text where it can be; returns what the reader should know."""
    try:
        write_text(path, _model_text(estimate.mechanism(), text))
        return []
    except ModelFileError as error:
        path.unlink(missing_ok=True)
        return [f"there is no model.toml, since this mechanism cannot be written as a model file: {error}"]


def _model_text(mechanism: Mechanism, text: str | None) -> str:
    if text is None:
        return format_model(mechanism)
    before = parse_model(text)
    known = before.mechanism.leaves()
    both = {
        name: (np.asarray(leaves.read(mechanism, leaf)), np.asarray(leaves.read(before.mechanism, known[name])))
        for name, leaf in mechanism.leaves().items()
        if name in known
    }
    changed = {
        name: new if new.ndim else float(new) for name, (new, old) in both.items() if not np.array_equal(new, old)
    }
    try:
        updated = update_model(text, changed)
        # Which reads as the model with what changed.
        if same_numbers(before.mechanism.write(changed), mechanism):
            return updated
    except ShadowfitError:
        pass  # written anew instead, with the same numbers but without the text's comments
    return format_model(mechanism, start=before.start, description=before.description, derived=before.derived)


def _log_table(estimate: Estimate) -> dict[str, Any]:
    fields = ("number", "cost", "dynamics", "observation", "damping", "gain", "step", "trials", "seconds")
    table: dict[str, Any] = {key: [getattr(entry, key) for entry in estimate.log] for key in fields}
    for label in estimate.problem.parameters.labels():
        table[label] = [entry.parameters[label] for entry in estimate.log]
    for key in ("cost", "dynamics", "observation"):
        table[key] = np.asarray(table[key], float) / estimate.steps
    return table


def _archive(estimate: Estimate, names: Sequence[str], kind: Kind) -> bytes:
    rows = estimate.parameters
    arrays: dict[str, Any] = {
        "parameters": np.array([row.name for row in rows], dtype=str),
        "values": np.array([row.value for row in rows], dtype=float),
        "covariance": estimate.uncertainty(kind).covariance,
    }
    posterior = estimate.posterior(kind)
    arrays |= {"posterior": posterior.covariance, "degrees_of_freedom": posterior.degrees}
    if np.any(estimate.evidence.file_prior):
        arrays["covariance_of_data"] = estimate.covariance_of_data(kind)
        arrays["values_of_data"] = estimate.values_of_data()
    for index, name in enumerate(names):
        states = start_states(estimate, index)
        arrays[f"{name}/time"] = estimate.problem.tracks[index].times(estimate.problem.timestep)
        values = (states.pose.position, states.pose.orientation, states.velocity)
        arrays |= {f"{name}/{key}": np.asarray(value) for key, value in zip(STATE_ARRAYS, values, strict=True)}
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    return content.getvalue()


def _states(archive: Mapping[str, np.ndarray], name: str) -> tuple[np.ndarray, State]:
    position, orientation, velocity = (archive[f"{name}/{key}"] for key in STATE_ARRAYS)
    return archive[f"{name}/time"], State(Pose(position, orientation), velocity)
