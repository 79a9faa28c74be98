"""The task behind sweeps and studies: one fit, described by JSON values.

    model         built-in model or model file
    recordings    files
    channels      sensor or input → column
    interval      time between the samples that are used [s]; absent: all
    set           number of the model → value
    free          parameter → {start, lower, upper, prior, per_recording}
    options       settings of the method (``Options``)
    optimiser     settings of the optimiser (``LevenbergMarquardt``)
    validate      files: states alone are estimated there with the calibrated model, for cross-validation
    validate_set  number of the model → value for that, for what the fit could not know
    rollout       whether to simulate the calibrated model along the recordings
    save          folder for the whole result, as ``shadowfit fit`` writes it
    digests       fingerprints of the files

Files are relative to the study's folder, unless they are absolute.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shadowfit.dynamics import Trajectory, place
from shadowfit.errors import ShadowfitError, SimulationError
from shadowfit.estimation import Estimate, Free, LevenbergMarquardt, Options, fit
from shadowfit.evaluation.joint_motion import joint_positions
from shadowfit.evaluation.rollout import roll_out, start_states, stepping
from shadowfit.evaluation.series import compare
from shadowfit.evaluation.store import recording_names, save_estimate
from shadowfit.evaluation.summary import Details, as_json, summarise
from shadowfit.geometry import rotations
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism import Mechanism
from shadowfit.models import catalogue, load_model
from shadowfit.recordings import Recording, read_recording

TASK = f"{__name__}:fit_case"
# Readings of a rollout that are kept; more are thinned out.
KEPT_SAMPLES = 1500


def fit_case(arguments: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Fit, and report it as ``result.json`` does, with the log of iterations and what else was asked for."""
    mechanism = case_mechanism(arguments, folder)
    options, optimiser = Options.of(arguments["options"]), LevenbergMarquardt(**arguments["optimiser"])
    with warnings.catch_warnings():
        # What is remarkable about the recordings is the same in all cases, and said once by whoever made them.
        warnings.simplefilter("ignore", UserWarning)
        recordings = read_all(arguments, arguments["recordings"], folder)
        free = free_parameters(arguments)
        estimate = fit(mechanism, recordings, free, options=options, optimiser=optimiser).unless_interrupted()
        result = summarise(estimate, _comparisons(estimate), recording_names(estimate), Details(optimiser=optimiser))
        result["log"] = as_json([dataclasses.asdict(entry) for entry in estimate.log])
        if arguments.get("validate"):
            calibrated = estimate.mechanism().write(arguments.get("validate_set", {}))
            others = read_all(arguments, arguments["validate"], folder)
            fixed = dataclasses.replace(options, state_weight=estimate.state_weight)
            result["validation"] = _cross_validation(calibrated, others, fixed, optimiser)
    if arguments.get("rollout"):
        result["rollout"] = as_json(_rollouts(estimate))
    if arguments.get("save"):
        text = load_model(_model(arguments, folder)).text
        save_estimate(estimate, folder / arguments["save"], model_text=text, optimiser=optimiser)
    return result


def case_mechanism(arguments: Mapping[str, Any], folder: Path) -> Mechanism:
    """The mechanism of a case, with its settings."""
    mechanism = load_model(_model(arguments, folder)).mechanism
    return mechanism.set(expand(mechanism, arguments["set"]))


def expand(mechanism: Mechanism, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of numbers by name: patterns are expanded, rotation vectors [rad] become quaternions."""
    numbers: dict[str, Any] = {}
    for pattern, value in values.items():
        for name in mechanism.expand(pattern):
            numbers[name] = _rotation(name, value) if mechanism.leaf(name).kind == "rotation" else _number(name, value)
    return numbers


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ShadowfitError(f"{name}: {value!r} is not a number")
    return float(value)


def _rotation(name: str, value: Any) -> Any:
    if not isinstance(value, list | tuple) or len(value) not in (3, 4):
        raise ShadowfitError(f"{name} is a rotation: write three numbers (rotation vector [rad]) or four (quaternion)")
    numbers = np.array([_number(name, part) for part in value])
    return np.asarray(rotations.exp(jnp.asarray(numbers))) if len(numbers) == 3 else numbers


def free_parameters(arguments: Mapping[str, Any]) -> dict[str, Free]:
    """Name or pattern → how it is estimated."""
    return {name: Free(**fields) for name, fields in arguments["free"].items()}


def read_all(arguments: Mapping[str, Any], files: Sequence[str], folder: Path) -> list[Recording]:
    """The recordings of a case, thinned to its interval."""
    recordings = [read_recording(folder / file, channels=arguments.get("channels")) for file in files]
    interval = arguments.get("interval")
    return recordings if interval is None else [thinned(recording, interval) for recording in recordings]


def thinned(recording: Recording, interval: float) -> Recording:
    """Every so-many-th sample, so that they are ``interval`` [s] apart; what lies between is left out, unfiltered."""
    every = round(interval / recording.sample_interval)
    if every < 1 or abs(every * recording.sample_interval - interval) > 1e-6 * interval:
        raise ShadowfitError(
            f"recording {recording.name!r} has a sample each {recording.sample_interval:g} s; "
            f"an interval of {interval:g} s is no whole multiple of that"
        )
    channels = {name: values[::every] for name, values in recording.channels.items()}
    return dataclasses.replace(recording, time=recording.time[::every], channels=channels)


def _model(arguments: Mapping[str, Any], folder: Path) -> str | Path:
    model = arguments["model"]
    return model if catalogue.is_builtin(model) else folder / model


def _comparisons(estimate: Estimate) -> list[Any]:
    comparisons = []
    for index, track in enumerate(estimate.problem.tracks):
        trajectory = estimate.trajectory(index)
        comparisons.append(compare(estimate.mechanism(index), track.recording, trajectory.time, trajectory.readings))
    return comparisons


def _cross_validation(
    mechanism: Mechanism, recordings: Sequence[Recording], options: Options, optimiser: LevenbergMarquardt
) -> dict[str, Any]:
    """Recording → cost per time step of the states alone (the paper's measure), and whether that fit converged."""
    costs = {}
    for recording in recordings:
        estimate = fit(mechanism, recording, (), options=options, optimiser=optimiser).unless_interrupted()
        costs[recording.name] = {"cost": estimate.cost, "converged": estimate.converged, "steps": estimate.steps}
    return as_json(costs)


def _rollout(estimate: Estimate, index: int) -> Trajectory:
    """Simulation along a recording from its first estimated state.

    With a small state weight, estimated states may open a joint faster than a simulation accepts; it then starts at the
    same joint positions and speeds with all joints closed.
    """
    track, mechanism = estimate.problem.tracks[index], estimate.mechanism(index)
    how, steps = stepping(estimate), track.steps - 1
    try:
        return roll_out(mechanism, start_states(estimate, index)[0], track.recording, how, steps=steps)
    except SimulationError:
        joints = joint_positions(mechanism, estimate.trajectory(index).states)
        speeds = {name: float(np.diff(angles[:2])[0]) / estimate.problem.timestep for name, angles in joints.items()}
        state = place(mechanism, {name: float(angles[0]) for name, angles in joints.items()}, speeds)
        return roll_out(mechanism, state, track.recording, how, steps=steps)


def _rollouts(estimate: Estimate) -> list[dict[str, Any]]:
    """For each recording times [s] and sensors' readings of a simulation from its first estimated state, thinned."""
    runs = []
    for index, track in enumerate(estimate.problem.tracks):
        run = _rollout(estimate, index)
        every = -(-len(run) // KEPT_SAMPLES)
        readings = {name: np.asarray(values)[::every].tolist() for name, values in run.readings.items()}
        runs.append({"time": (track.start_time + np.asarray(run.time))[::every].tolist(), "readings": readings})
    return runs
