"""Figures of a fit (matplotlib, extra ``plots``): ``estimate.plot.fit()`` and its neighbours return its panels."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from shadowfit.arrays import Float
from shadowfit.errors import ShadowfitError
from shadowfit.estimation import Estimate
from shadowfit.estimation.posterior import Draws
from shadowfit.evaluation.axis_forces import axis_forces
from shadowfit.evaluation.forest import HALF, compared
from shadowfit.evaluation.machine_figure import draw_machine
from shadowfit.evaluation.rollout import fineness, roll_out, start_states, stepping
from shadowfit.evaluation.series import SensorSeries, compare
from shadowfit.frames import optional
from shadowfit.mechanism import Mechanism
from shadowfit.records import record

# Inches of a panel, and of one parameter in a pair plot.
WIDTH, HEIGHT, CELL = 7.0, 2.2, 1.7


class PlotError(ShadowfitError):
    """A figure that cannot be drawn."""


@record(frozen=True)
class Plots:
    """Figures of one estimate; ``recording`` counts from zero."""

    estimate: Estimate

    def machine(self, recording: int = 0) -> Any:
        """The machine at some moments of the estimated motion, the last one in full."""
        self._check(recording)
        motion = self.estimate.trajectory(recording)
        figure = _pyplot().figure(figsize=(WIDTH, 2.0 * HEIGHT), layout="constrained")
        axes = figure.add_subplot(projection="3d")
        draw_machine(axes, self.estimate.mechanism(recording), motion.time, motion.states)
        return axes

    def fit(self, recording: int = 0) -> Any:
        """Readings of the estimated motion over the samples."""
        panels = self._of_sensors(recording)
        for axes, (name, series, unit) in zip(panels, self._series(recording), strict=True):
            time = self._time(recording)
            axes.plot(time, series.measured, ".", color="0.6", markersize=3)
            axes.plot(time, series.predicted, linewidth=1)
            axes.set_ylabel(f"{name} [{unit}]")
        return panels

    def residuals(self, recording: int = 0) -> Any:
        """Readings of the estimated motion minus the samples, with the noise that the fit believes (±1 std)."""
        panels = self._of_sensors(recording)
        for axes, (name, series, unit) in zip(panels, self._series(recording), strict=True):
            axes.plot(self._time(recording), series.residual, linewidth=0.7)
            axes.axhspan(-self.estimate.noise[name], self.estimate.noise[name], color="0.9", zorder=0)
            axes.set_ylabel(f"{name} [{unit}]")
        return panels

    def forces(self, over: Literal["speed", "position", "time"] = "speed", recording: int = 0) -> Any:
        """Force of each joint that the model does not explain: single steps, and means with their standard errors."""
        self._check(recording)
        forces = axis_forces(self.estimate)[recording]
        if not forces:
            raise PlotError("no joint of this machine has an axis to which a force could belong")
        panels = _panels(len(forces), sharex=over == "time")
        for axes, (name, force) in zip(panels, forces.items(), strict=True):
            bins = force.binned(over)
            axes.plot(getattr(force, over), force.force, ".", color="0.8", markersize=2)
            axes.errorbar(bins.over, bins.force, HALF * bins.error, fmt="o-", markersize=3, linewidth=1)
            axes.axhline(0.0, color="0.5", linewidth=0.5)
            axes.set_ylabel(f"{name} unexplained")
        panels[-1].set_xlabel(over)
        return panels

    def forest(self) -> Any:
        """What pieces of the data say about each parameter by themselves, beside what all of them say (95 %)."""
        rows = compared(self.estimate)
        if not rows:
            raise PlotError("there is nothing to compare: no parameter was free, or the data cannot be cut into pieces")
        panels = _panels(len(rows), sharex=False)
        for axes, row in zip(panels, rows, strict=True):
            known = np.isfinite(row.std)
            places = np.arange(len(row.values))[known]
            axes.errorbar(row.values[known], places, xerr=HALF * row.std[known], fmt="o", markersize=3)
            interval = next(one for one in self.estimate.uncertainty().intervals() if one.name == row.name)
            axes.axvspan(interval.lower, interval.upper, color="0.9", zorder=0)
            axes.axvline(row.value, color="0.5", linewidth=0.7)
            axes.set_yticks([])
            axes.set_ylabel(row.name, rotation=0, ha="right")
            axes.set_xlabel("" if row.unit == "1" else row.unit)
        return panels

    def pairs(self, draws: Draws | None = None) -> Any:
        """Possible machines, two parameters at a time; 300 of them unless some are given."""
        drawn = draws or self.estimate.draw(300, red=True)
        count = len(drawn.labels)
        figure, grid = _pyplot().subplots(count, count, figsize=(CELL * count, CELL * count), squeeze=False)
        for i, j in np.ndindex(count, count):
            axes = grid[i, j]
            if i == j:
                axes.hist(drawn.table[:, i], bins=20, color="0.7")
            elif i > j:
                axes.plot(drawn.table[:, j], drawn.table[:, i], ".", markersize=2)
            else:
                axes.set_visible(False)
            axes.set_xlabel(drawn.labels[j] if i == count - 1 else "")
            axes.set_ylabel(drawn.labels[i] if j == 0 else "")
            axes.locator_params(nbins=3)
            axes.label_outer()
        figure.tight_layout()
        return grid

    def rollouts(self, draws: Draws | None = None, recording: int = 0) -> Any:
        """Simulations from the first state, nothing corrected: of the estimate, and 95 % of possible machines."""
        panels = self._of_sensors(recording)
        drawn = draws or self.estimate.draw(40, red=True)
        machines = [drawn.mechanism(number, recording) for number in range(len(drawn))]
        own, *others = [self._simulated(one, recording) for one in (self.estimate.mechanism(recording), *machines)]
        time = self._time(recording)
        for axes, (name, _, unit) in zip(panels, self._series(recording), strict=True):
            axes.plot(time, own[name].measured, ".", color="0.6", markersize=3)
            table = np.array([one[name].predicted for one in others])
            reached = np.isfinite(table).all(axis=(0, 2))
            low, high = np.quantile(table[:, reached], [0.025, 0.975], axis=0)
            for channel in range(table.shape[2]):
                axes.fill_between(time[reached], low[:, channel], high[:, channel], alpha=0.4)
            axes.plot(time, own[name].predicted, linewidth=1)
            axes.set_ylabel(f"{name} [{unit}]")
        return panels

    def _check(self, recording: int) -> None:
        count = len(self.estimate.problem.tracks)
        if not 0 <= recording < count:
            raise PlotError(f"there is no recording {recording}; this fit has {count}, counted from 0")

    def _of_sensors(self, recording: int) -> Any:
        self._check(recording)
        panels = _panels(len(self.estimate.problem.mechanism.sensors), sharex=True)
        panels[0].set_title(self.estimate.problem.tracks[recording].recording.name)
        panels[-1].set_xlabel("time [s]")
        return panels

    def _time(self, recording: int) -> Float[np.ndarray, " n"]:
        return self.estimate.problem.tracks[recording].recording.time

    def _series(self, recording: int) -> list[tuple[str, SensorSeries, str]]:
        """Name, series and unit of each sensor along the estimated motion."""
        mechanism, motion = self.estimate.mechanism(recording), self.estimate.trajectory(recording)
        found = compare(mechanism, self.estimate.problem.tracks[recording].recording, motion.time, motion.readings)
        return [(name, series, mechanism.sensors[name].unit()) for name, series in found.items()]

    def _simulated(self, mechanism: Mechanism, recording: int) -> dict[str, SensorSeries]:
        track, finer = self.estimate.problem.tracks[recording], fineness(self.estimate)
        run = roll_out(
            mechanism,
            start_states(self.estimate, recording)[0],
            track.recording,
            stepping(self.estimate, finer),
            steps=(track.steps - 1) * finer,
        )
        readings = {name: np.asarray(values) for name, values in run.readings.items()}
        return compare(mechanism, track.recording, track.start_time + np.asarray(run.time), readings)


def _panels(count: int, sharex: bool) -> Any:
    """The panels of a new figure, below each other."""
    return _pyplot().subplots(
        count, 1, figsize=(WIDTH, HEIGHT * count), sharex=sharex, squeeze=False, layout="constrained"
    )[1][:, 0]


def _pyplot() -> Any:
    return optional("matplotlib.pyplot", "plots")
