"""What was measured and what a trajectory says, side by side at the times of the samples.

A time-step may be coarser than the sampling. Readings are therefore taken at the steps and connected by a cubic spline;
a sample on a step meets the reading there itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.geometry.cubic import cubic
from shadowfit.kernels.along import along
from shadowfit.mechanism import Mechanism
from shadowfit.mechanism.sensors import Sensor
from shadowfit.recordings import Recording
from shadowfit.records import record

TURN = 2.0 * np.pi


@record(frozen=True)
class SensorSeries:
    """One sensor over the samples of a recording; NaN where a sample is missing."""

    measured: Float[np.ndarray, "n d"]
    predicted: Float[np.ndarray, "n d"]
    """Reading, in the turn of the measurement for angles."""
    residual: Float[np.ndarray, "n e"]
    """Prediction minus measurement, in the sensor's own sense (angles wrapped, orientations as vectors)."""

    def rmse(self) -> float:
        """Root mean square of the residuals; NaN without samples."""
        finite = self.residual[np.isfinite(self.residual)]
        return float(np.sqrt(np.mean(finite**2))) if finite.size else float("nan")

    def spread(self) -> float:
        """Standard deviation of the readings about their mean, the largest of the channels; 0 without samples."""
        known = self.measured[np.isfinite(self.measured).all(axis=1)]
        return float(np.max(np.std(known, axis=0))) if len(known) else 0.0


def compare(
    mechanism: Mechanism, recording: Recording, time: Float[np.ndarray, " k"], readings: Mapping[str, np.ndarray]
) -> dict[str, SensorSeries]:
    """Sensor → its series: readings at the steps' times [s] against the samples of a recording."""
    return {
        name: _sensor_series(sensor, measured_samples(sensor, name, recording), recording.time, time, readings[name])
        for name, sensor in mechanism.sensors.items()
    }


def measured_samples(sensor: Sensor, name: str, recording: Recording) -> Float[np.ndarray, "n d"]:
    """A sensor's samples, NaN for those that are missing or incomplete."""
    names = sensor.channels(name)
    if not all(channel in recording.channels for channel in names):
        return np.full((len(recording.time), len(names)), np.nan)
    table = np.stack([recording.channels[channel] for channel in names], axis=1)
    return np.where(np.isfinite(table).all(axis=1, keepdims=True), table, np.nan)


def at_samples(
    time: Float[np.ndarray, " k"], values: Float[np.ndarray, "k *d"], samples: Float[np.ndarray, " n"]
) -> np.ndarray:
    """Values at the steps carried over to the samples' times; samples beyond the last step are NaN."""
    carried = np.full((len(samples), *np.shape(values)[1:]), np.nan)
    if len(time) < 2:  # a simulation that failed at its first step
        return carried
    step = (time[-1] - time[0]) / (len(time) - 1)
    nearest = np.rint((samples - time[0]) / step).astype(int)
    if nearest[0] >= 0 and nearest[-1] < len(time) and np.allclose(time[nearest], samples, rtol=0.0, atol=1e-9 * step):
        return np.asarray(values, float)[nearest]
    # A sample lies at most one step behind the last step; a trajectory that ended early says nothing further on.
    inside = (samples >= time[0] - 1e-6 * step) & (samples <= time[-1] + (1.0 + 1e-6) * step)
    carried[inside] = cubic(np.asarray(values, float), (samples[inside] - time[0]) / step)
    return carried


def _sensor_series(
    sensor: Sensor, measured: np.ndarray, samples: np.ndarray, time: np.ndarray, readings: np.ndarray
) -> SensorSeries:
    predicted = at_samples(time, np.asarray(readings).reshape(len(time), -1), samples)
    present = np.isfinite(measured).all(axis=1)
    both = present & np.isfinite(predicted).all(axis=1)
    if getattr(sensor, "rotary", False) and both.any():
        first = int(np.argmax(both))
        predicted = predicted + TURN * np.round((measured[first] - predicted[first]) / TURN)
    target = np.where(present[:, None], measured, predicted)
    residual = along(_residual, sensor, [predicted, target])[0].copy()
    residual[~present] = np.nan
    return SensorSeries(measured, predicted, residual)


def _residual(sensor: Sensor, predicted: Array, measured: Array) -> list[Array]:
    return [sensor.residual(predicted, measured)]
