"""Does a calibrated model hold beyond the data that it was fitted to? Answers for each recording.

* **Cross-validation cost**: the states alone are estimated, all parameters fixed; the cost per time step says how much
  the model has to be helped along. It is the paper's measure, and comparable between models of one recording.
* **Prediction over N steps**: simulations of increasing length from many of those states, against the samples.
* **Torques**: what the drives would have to give along the measured motion, against what was measured (:mod:`torques`).
* **Enclosure**: how many samples lie between simulations of machines drawn from the result (:mod:`enclosure`).
* **Rollout**: one simulation from the first state to the end, with nothing but the recorded inputs. Unstable or chaotic
  motion leaves every model behind after a while, hence the time until it leaves a band around the measurement.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from shadowfit.arrays import Float
from shadowfit.errors import ShadowfitError
from shadowfit.estimation import Estimate, LevenbergMarquardt, Options, fit
from shadowfit.estimation.posterior import DrawError, Draws
from shadowfit.estimation.problem.pieces import all_pieces
from shadowfit.estimation.uncertainty.truncated_normal import ImpossibleError
from shadowfit.evaluation import enclosure
from shadowfit.evaluation.notices import Colour, Notice, colour, ordered
from shadowfit.evaluation.rollout import fineness, roll_out, start_states, stepping
from shadowfit.evaluation.series import compare
from shadowfit.evaluation.store import SavedResult
from shadowfit.evaluation.summary import as_json
from shadowfit.evaluation.torques import TorquePrediction, predicted_torques
from shadowfit.mechanism import Mechanism
from shadowfit.models.matching import matched
from shadowfit.recordings import Recording
from shadowfit.records import record

# Steps ahead at which predictions are compared, as far as the recording reaches.
HORIZONS = (1, 3, 10, 30, 100)
# Predictions of a recording, spread evenly over it.
STARTS = 40
# The band that a rollout has to stay in, as a fraction of the measured range.
BAND = 0.05
# Error of the shortest predictions, as such a fraction, from which on nothing is predicted: noise has about 0.3.
MISSED = 0.15
# Part of the recording over which a simulation has to stay in its band.
HELD = 0.9
SENTENCES: dict[Colour, str] = {
    "green": "The model predicts these recordings",
    "amber": "Simulations leave these recordings before their end",
    "red": "The model does not describe these recordings",
}


@record(frozen=True)
class SensorValidation:
    """How well a model predicts one sensor, in the sensor's unit."""

    rollout_rmse: float
    """Root mean square error of the rollout over the whole recording."""
    rollout_horizon: float
    """Time until the rollout first leaves the band [s]; the recording's duration if it never does."""
    band: float
    """Half the width of the band around the measurement."""
    prediction_rmse: dict[int, float]
    """Steps ahead → root mean square error."""
    enclosed: float = float("nan")
    """Part of the samples between simulations of draws, which 95 % should be; NaN where there are none (a model)."""


@record(frozen=True)
class Validation:
    """How well a model describes one recording."""

    recording: str
    fingerprint: str
    cost: float
    """Cross-validation cost per time step, and its parts."""
    cost_dynamics: float
    cost_observation: float
    converged: bool
    message: str
    """How the estimation of the states ended."""
    steps: int
    timestep: float
    sensors: dict[str, SensorValidation]
    torques: dict[str, TorquePrediction] = dataclasses.field(default_factory=dict)
    """Joint with a torque or force input → what the model predicts along the measured motion (:mod:`torques`)."""

    def failures(self) -> list[str]:
        """Why the model does not describe the recording at all, in sentences; empty where it does."""
        reasons = [] if self.converged else [f"the states were not found: {self.message}"]
        for name, sensor in self.sensors.items():
            steps = min(sensor.prediction_rmse, default=0)
            share = BAND * sensor.prediction_rmse.get(steps, 0.0) / sensor.band if sensor.band > 0.0 else 0.0
            if share > MISSED:
                reasons.append(
                    f"{name} is missed by {100.0 * share:.0f} % of its range within {steps} steps; is it the same "
                    "machine, column, unit and order of samples?"
                )
        return reasons

    def notices(self) -> list[Notice]:
        """The same as notices; a simulation that leaves the measurement after a while is amber.

        Where torques are measured they are judged instead: no simulation of an arm without its controller holds long.
        """
        failed = [Notice("red", f"{self.recording}: {reason.rstrip('.')}") for reason in self.failures()]
        if failed or self.torques:
            return [*failed, *self._about_torques()]
        duration = self.steps * self.timestep
        return [
            Notice(
                "amber",
                f"{self.recording}: the simulation from the first state is off {name} by more than {100.0 * BAND:.0f} "
                f"% of its range after {sensor.rollout_horizon:.2g} of {duration:.2g} s",
                "Chaotic and unstable motion leaves every simulation behind; else the machine differs from that of the "
                "fit, or the model lacks something (`shadowfit advise`)",
            )
            for name, sensor in self.sensors.items()
            if sensor.rollout_horizon < HELD * duration
        ]

    def _about_torques(self) -> list[Notice]:
        return [
            Notice(
                "red",
                f"{self.recording}: less than half of the torque at {name} is predicted (error {torque.rmse:.2g} "
                f"{torque.unit}, {100.0 * torque.share:.0f} % of its rms)",
                "Compare the curves (`--out page.html`): sign, unit and order of the torques, friction of the joint",
            )
            for name, torque in self.torques.items()
            if torque.share**2 > 0.5
        ]

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values; NaN becomes null. Of torques the errors, without the curves."""
        plain = dataclasses.asdict(dataclasses.replace(self, torques={}))
        return as_json({**plain, "torques": {name: torque.to_json() for name, torque in self.torques.items()}})


def judged(validations: Sequence[Validation]) -> tuple[list[Notice], Colour, str]:
    """What validations say together: notices with the most serious first, the colour, and a sentence.

    The sentence of a part of the recordings names how many: a model may describe nine of ten.
    """
    by_recording = [one.notices() for one in validations]
    notices = ordered(notice for found in by_recording for notice in found)
    bad = sum(colour(found) == colour(notices) for found in by_recording)
    part = f" ({bad} of {len(validations)})" if notices and len(validations) > 1 else ""
    return notices, colour(notices), f"{SENTENCES[colour(notices)]}{part}."


def validate(
    model: Estimate | SavedResult | Mechanism,
    recordings: Recording | Sequence[Recording],
    options: Options | None = None,
    optimiser: LevenbergMarquardt | None = None,
) -> list[Validation]:
    """Validate a model on recordings, with the method's settings of its fit unless others are given.

    Args:
        model: an estimate, a saved result, or a mechanism.
        recordings: measured data; for a fair answer, other than those of the fit.
        options: settings of the method; required to be those of the fit for costs that can be compared.
        optimiser: settings of the state estimation.
    """
    mechanism, own, draws = (
        (model, Options(), None)
        if isinstance(model, Mechanism)
        else (model.mechanism(), _options(model), _draws(model))
    )
    options = options or own
    listed = [recordings] if isinstance(recordings, Recording) else list(recordings)
    pieces = all_pieces(mechanism, [matched(mechanism, one) for one in listed])
    return [_validate_one(mechanism, one, options, optimiser, draws) for one in pieces]


def _draws(fitted: Estimate | SavedResult) -> tuple[Draws, dict[str, float]] | None:
    """Possible machines, with the noise of their sensors; None where nothing can be drawn."""
    try:
        draws = fitted.draw(enclosure.DRAWS, red=True)
    except (DrawError, ImpossibleError):
        return None
    return draws, fitted.noise


def _options(fitted: Estimate | SavedResult) -> Options:
    """Settings with which a result was made; a state weight that was estimated is kept as it came out."""
    if isinstance(fitted, SavedResult):
        return saved_options(fitted)
    options = dataclasses.replace(fitted.problem.options, timestep=fitted.problem.timestep)
    return _kept(options, fitted.state_weight, fitted.impulse_variances)


def saved_options(saved: SavedResult) -> Options:
    """The same of a saved result."""
    return _kept(given_options(saved), saved.summary["state_weight"], saved.summary.get("impulse_variances"))


def _kept(options: Options, state_weight: float, impulse_variances: Any) -> Options:
    kept = dataclasses.replace(options, state_weight=state_weight)
    if impulse_variances is None:
        return kept
    errors = dataclasses.replace(options.errors, forces={})
    return dataclasses.replace(kept, impulse_covariance=impulse_variances, errors=errors)


def given_options(saved: SavedResult) -> Options:
    """Settings of the method with which a result was made, as they were given."""
    known = {field.name for field in dataclasses.fields(Options)}
    return Options.of({key: value for key, value in saved.summary["settings"].items() if key in known})


def _validate_one(
    mechanism: Mechanism,
    recording: Recording,
    options: Options,
    optimiser: LevenbergMarquardt | None,
    draws: tuple[Draws, dict[str, float]] | None,
) -> Validation:
    estimate = fit(mechanism, recording, (), options=options, optimiser=optimiser).unless_interrupted()
    rolled = rollout_errors(estimate)
    predicted = _prediction_errors(estimate)
    shares = {} if draws is None else enclosure.enclosed(estimate, *draws)
    sensors = {}
    for name in mechanism.sensors:
        band, error = rolled[name]
        sensors[name] = SensorValidation(
            _rms(error),
            _time_inside(recording, error, band),
            band,
            {n: _rms(predicted[n][name]) for n in predicted},
            shares.get(name, float("nan")),
        )
    return Validation(
        recording.name,
        recording.fingerprint,
        estimate.cost,
        estimate.cost_dynamics,
        estimate.cost_observation,
        estimate.converged,
        estimate.status.value,
        estimate.steps,
        estimate.problem.timestep,
        sensors,
        predicted_torques(estimate),
    )


def rollout_errors(estimate: Estimate, recording: int = 0) -> dict[str, tuple[float, Float[np.ndarray, " n"]]]:
    """Sensor → half-width of its band, and size of the rollout's error at each sample (NaN where nothing is known)."""
    track, mechanism = estimate.problem.tracks[recording], estimate.mechanism(recording)
    finer = fineness(estimate)
    run = roll_out(
        mechanism,
        start_states(estimate, recording)[0],
        track.recording,
        stepping(estimate, finer),
        steps=(track.steps - 1) * finer,
    )
    readings = {name: np.asarray(values) for name, values in run.readings.items()}
    comparisons = compare(mechanism, track.recording, track.start_time + np.asarray(run.time), readings)
    bands = {name: BAND * _range(comparison.measured) for name, comparison in comparisons.items()}
    return {name: (bands[name], _size(comparison.residual)) for name, comparison in comparisons.items()}


def _prediction_errors(estimate: Estimate) -> dict[int, dict[str, Float[np.ndarray, " m"]]]:
    """Steps ahead → sensor → sizes of the prediction errors from evenly spread states."""
    problem, track, mechanism = estimate.problem, estimate.problem.tracks[0], estimate.mechanism()
    horizons = [n for n in HORIZONS if n < track.steps - 1]
    if not horizons:
        raise ShadowfitError(f"recording {track.recording.name!r} has too few steps ({track.steps}) for predictions")
    longest, finer = horizons[-1], fineness(estimate)
    states = start_states(estimate)
    errors: dict[int, dict[str, list[float]]] = {n: {name: [] for name in mechanism.sensors} for n in horizons}
    times = track.times(problem.timestep)
    for first in np.unique(np.linspace(0, track.steps - 1 - longest, STARTS).astype(int)).tolist():
        run = roll_out(
            mechanism,
            states[first],
            track.recording,
            stepping(estimate, finer),
            steps=longest * finer,
            first_step=first * finer,
        )
        readings = {name: np.asarray(values) for name, values in run.readings.items()}
        comparisons = compare(mechanism, track.recording, times[first] + np.asarray(run.time), readings)
        for n in horizons:
            sample = int(np.argmin(np.abs(track.recording.time - times[first + n])))
            for name, comparison in comparisons.items():
                errors[n][name].append(float(_size(comparison.residual[sample : sample + 1])[0]))
    return {n: {name: np.array(values) for name, values in parts.items()} for n, parts in errors.items()}


def _range(measured: Float[np.ndarray, "n d"]) -> float:
    """Largest range of a sensor's channels; zero without samples."""
    known = measured[np.isfinite(measured).all(axis=1)]
    return float(np.max(np.ptp(known, axis=0))) if len(known) else 0.0


def _size(residual: Float[np.ndarray, "n e"]) -> Float[np.ndarray, " n"]:
    return np.linalg.norm(residual, axis=1)


def _rms(errors: Float[np.ndarray, " n"]) -> float:
    known = errors[np.isfinite(errors)]
    return float(np.sqrt(np.mean(known**2))) if known.size else float("nan")


def _time_inside(recording: Recording, error: Float[np.ndarray, " n"], band: float) -> float:
    """Time until the error first exceeds the band [s]."""
    outside = np.flatnonzero(error > band)
    return float(recording.time[outside[0]] - recording.time[0]) if outside.size else recording.duration
