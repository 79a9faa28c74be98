"""A machine that a controller leads along a motion, as a drive does it: with inputs that are held between samples.

Inverse dynamics gives the inputs that a motion needs at every instant. A drive gets them at the samples, and holds them
or goes on in lines (`Input.hold`); the machine then moves a little differently, most where dry friction reverses, which
no drive makes up for within a sample. A soft controller, whose force is recorded with the inputs, keeps it on its way:

    f = k (x* − x) + d (ẋ* − ẋ),        k = ω² m,  d = 2 ω m,   m the inertia about the joint.

Its force is added to the inputs at the samples and the motion that was found takes the place of x*. Some rounds later
the controller has nothing left to do, and inputs and motion belong to each other exactly.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.arrays import Float
from shadowfit.designs.drives import JointMotion
from shadowfit.designs.experiment import Experiment
from shadowfit.designs.motions import Motions, moved
from shadowfit.dynamics.tree import coordinate_names
from shadowfit.geometry import Pose
from shadowfit.mechanism.laws import PositionMotor, TorqueMotor
from shadowfit.mechanism.leaves import Parts
from shadowfit.mechanism.surroundings import Input

# ω of the controller [rad/s], and rounds in which its force becomes part of the inputs.
PACE, ROUNDS = 10.0, 4
# Acceleration [rad/s², m/s²] from which inertias are told: large enough for friction not to matter.
SHOVE = 1e4


def led(
    experiment: Experiment, exact: Experiment, drive: JointMotion, coefficients: Float[np.ndarray, " n"]
) -> Motions:
    """The motion that the machine makes, and its inputs, at the steps of an experiment.

    ``exact`` is the experiment in steps that are some times as fine, in which the machine is simulated.
    """
    finer = round(experiment.sampling.timestep / exact.sampling.timestep)
    wished = drive.motions(exact, coefficients[None])
    inputs, path = _sampled(experiment, wished.inputs[0], finer), wished.coordinates[0]
    inertia = _inertias(exact)
    stiffness, damping = PACE**2 * inertia, 2.0 * PACE * inertia
    machine = _controlled(exact, stiffness, damping)
    gain = np.array([float(part.gain) for part in experiment.mechanism.inputs.values])
    for _ in range(ROUNDS):
        speed = np.gradient(path, exact.sampling.timestep, axis=0)
        signals = np.hstack([between(experiment, exact, inputs), path, damping * speed])
        motion = machine.simulated(path[:1], signals[None])
        away = path - motion.coordinates[0]
        force = stiffness * away + damping * np.gradient(away, exact.sampling.timestep, axis=0)
        inputs = inputs - _sampled(experiment, force @ drive.command_of_force.T / gain, finer)
        path = motion.coordinates[0]
    at = slice(None, None, finer)
    pose = Pose(motion.pose.position[:, at], motion.pose.orientation[:, at])
    return Motions(experiment.sampling.times, pose, motion.coordinates[:, at], inputs[None], motion.good)


def between(experiment: Experiment, exact: Experiment, inputs: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "f k"]:
    """Inputs at fine steps, held or connected by lines as the model says."""
    coarse, fine = experiment.sampling.times, exact.sampling.times
    held = np.clip(np.floor(fine / experiment.sampling.timestep * (1.0 + 1e-12)).astype(int), 0, len(coarse) - 1)
    columns = [
        np.interp(fine, coarse, inputs[:, i]) if part.hold == "linear" else inputs[held, i]
        for i, part in enumerate(experiment.mechanism.inputs.values)
    ]
    return np.stack(columns, axis=-1) if columns else np.zeros((len(fine), 0))


def _sampled(experiment: Experiment, signals: Float[np.ndarray, "f k"], finer: int) -> Float[np.ndarray, "n k"]:
    """Signals at the steps of the experiment: their values, or the mean until the next where they are held."""
    sampled = signals[::finer].copy()
    for i, part in enumerate(experiment.mechanism.inputs.values):
        if part.hold == "zero":
            sampled[:-1, i] = signals[:-1, i].reshape(-1, finer).mean(axis=1)
    return sampled


def _inertias(exact: Experiment) -> Float[np.ndarray, " d"]:
    """Inertia about each joint [kg m², kg], the others standing still, where the machine rests."""
    size = exact.tree.size
    coordinates = np.tile(exact.rest_coordinates, (size + 1, 3, 1))
    coordinates[:size, 2] += SHOVE * exact.sampling.timestep**2 * np.eye(size)
    forces = exact.lacking(moved(exact.tree, exact.rest, coordinates), np.zeros(len(exact.mechanism.inputs)))[:, 0]
    return np.diagonal(forces[:size] - forces[size]) / SHOVE


def _controlled(exact: Experiment, stiffness: Float[np.ndarray, " d"], damping: Float[np.ndarray, " d"]) -> Experiment:
    """The machine with a controller at each joint, whose inputs come behind the machine's: all paths, all d ẋ*."""
    mechanism = exact.mechanism
    joints, paths, paces = dict(mechanism.joints.items()), {}, {}
    for i, name in enumerate(coordinate_names(exact.tree, mechanism)):
        part = joints[name]
        rotary = part.kind.axis_kind == "rotation"
        path, pace = f"{name}_path", f"{name}_pace"
        laws = {
            "lead": PositionMotor(kp=stiffness[i], kd=damping[i], input=path, rotary=rotary),
            "pace": TorqueMotor(gain=1.0, input=pace),
        }
        joints[name] = dataclasses.replace(part, laws=Parts({**dict(part.laws.items()), **laws}))
        paths[path] = Input(unit="rad" if rotary else "m", hold="linear")
        paces[pace] = Input(unit="N m" if rotary else "N", hold="linear")
    inputs = Parts({**dict(mechanism.inputs.items()), **paths, **paces})
    led_machine = mechanism.having(joints=Parts(joints), inputs=inputs)
    return dataclasses.replace(exact, mechanism=led_machine)
