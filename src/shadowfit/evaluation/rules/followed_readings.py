"""How sensors are followed: what is left of their readings, its level, and whether it is noise."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from shadowfit.estimation import Estimate
from shadowfit.evaluation.diagnostics import autocorrelation
from shadowfit.evaluation.latent_words import described, wider
from shadowfit.evaluation.notices import Notice, Severity
from shadowfit.evaluation.rules.disagreement import MOST_PIECES, WIDER
from shadowfit.evaluation.series import compare
from shadowfit.mechanism import Sensor
from shadowfit.records import record

# What is left of a sensor's readings, over its stated noise and over their spread. Models of real machines leave more
# than the noise of a good sensor; error bars know that, and what is left is judged by the motion: a twentieth of
# it, and a fifth.
LOUD = 3.0
OFF, ONLY_NOISE = 0.05, 0.2
# Correlation of a sensor's residuals with the sample before.
NOT_WHITE = 0.5


def sensors(estimate: Estimate) -> Iterator[Notice]:
    """How well sensors are followed, each in the recording in which that is worst."""
    tracks = estimate.problem.tracks
    rows_of: dict[str, list[_Left]] = {}
    for index, track in enumerate(tracks):
        trajectory = estimate.trajectory(index)
        series = compare(estimate.mechanism(index), track.recording, trajectory.time, trajectory.readings)
        for name in estimate.problem.given.sensors:
            readings = series[name]
            if readings.residual.shape[1] != readings.measured.shape[1]:
                continue  # an orientation: its readings and its errors are different things
            known = readings.residual[np.isfinite(readings.residual).all(axis=1), 0]
            where = name if len(tracks) == 1 else f"{name} in {track.recording.name}"
            lag = autocorrelation(known, 1)[1] if len(known) > 20 else 0.0
            rows_of.setdefault(name, []).append(_Left(where, readings.rmse(), readings.spread(), float(lag)))
    for name, sensor in estimate.problem.given.sensors.items():
        rows = [row for row in rows_of.get(name, ()) if math.isfinite(row.rms)]
        if rows:
            yield from _following(max(rows, key=lambda row: row.rms), sensor, name)


@record(frozen=True)
class _Left:
    """What is left of a sensor's readings in one recording."""

    where: str
    rms: float
    spread: float
    """Standard deviation of the readings."""
    lag: float
    """Correlation from sample to sample."""


def _following(left: _Left, sensor: Sensor, name: str) -> Iterator[Notice]:
    unit, stated = sensor.unit(), float(sensor.std)
    coloured = f"; what is left is correlated in time ({left.lag:.2f} from sample to sample)"
    also = coloured if left.lag > NOT_WHITE else ""
    if left.rms <= LOUD * stated:
        if also:
            yield Notice(
                "info",
                f"{left.where} is followed within its noise{also}",
                "Error bars include that; their curve in the report shows what the model lacks",
            )
        return
    share = left.rms / left.spread if left.spread > 0.0 else math.inf
    if share > ONLY_NOISE:
        yield Notice(
            "red",
            f"{left.where} is not followed: {left.rms:.2g} {unit} are left of readings that vary by {left.spread:.2g} "
            f"{unit}",
            "Check column, sign and unit of the channel and of the inputs: this motion is not that of the model",
        )
        return
    severity: Severity = "amber" if share > OFF else "info"
    yield Notice(
        severity,
        f"{left.where} is followed to {left.rms:.2g} {unit}: {_percent(share)} of its spread, {left.rms / stated:.0f} "
        f"times the stated noise{also}",
        "That is how exact the model is; error bars include what it lacks, and `shadowfit advise` names candidates"
        if severity == "info"
        else f"If the sensor is that noisy say so (`--set {name}.std=…`), else the model lacks something: "
        "`shadowfit advise` names candidates",
    )


def _percent(share: float) -> str:
    return f"{100.0 * share:.2g} %"


def levels(estimate: Estimate) -> Iterator[Notice]:
    """Noise that was estimated: sensors far from what the model states, a search that found no end."""
    choice = estimate.noise_choice
    if choice is None:
        return
    if choice.at_end:
        yield Notice(
            "amber",
            "how far the equations of motion hold was not told by the data: the search for it reached the end of its "
            "range",
            "State the noise of the sensors (`--set SENSOR.std=…`), or how well forces are known (`--force-noise "
            "JOINT=STD`)",
        )
    rated = list(zip(estimate.problem.given.sensors.items(), choice.sensor_ratio, strict=True))
    yield from _sensors_beyond("amber", [(name, own, ratio) for (name, own), ratio in rated if ratio >= LOUD])
    yield from _sensors_beyond("info", [(name, own, ratio) for (name, own), ratio in rated if ratio <= 1.0 / LOUD])


def _sensors_beyond(severity: Severity, rows: list[tuple[str, Sensor, float]]) -> Iterator[Notice]:
    """Sensors that are noisier than stated, or better, in one sentence."""
    if not rows:
        return
    texts = [
        f"{name} as {ratio * float(sensor.std):.2g} {sensor.unit()} "
        f"({f'{ratio:.1f} times' if ratio > 1.0 else f'1/{1.0 / ratio:.0f} of'} the stated one)"
        for name, sensor, ratio in rows
    ]
    first, sensor, ratio = rows[0]
    state = f"`--set {first}.std={ratio * float(sensor.std):.2g}`"
    yield Notice(
        severity,
        f"the noise of {'sensors' if len(rows) > 1 else 'a sensor'} was estimated: {', '.join(texts)}",
        f"If the noise is known, the model lacks something; else state it ({state})"
        if severity == "amber"
        else f"These are better than the model says; stating it ({state}) spares the search",
    )


def unlike_noise(estimate: Estimate) -> Iterator[Notice]:
    """Errors that are functions of the motion, of time or of a reading, and what they do to the error bars."""
    found = described(estimate)
    if not found:
        return
    most = sorted(wider(estimate).items(), key=lambda one: -one[1])[:MOST_PIECES]
    named = ", ".join(f"{name} {factor:.2g} times" for name, factor in most if factor > WIDER)
    yield Notice(
        "info",
        f"errors that are not noise: {'; '.join(found)}. Error bars include what they may do to the parameters"
        + (f" (wider for it: {named})" if named else ""),
        "`shadowfit advise` names what the model may lack",
    )
