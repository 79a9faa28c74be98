"""What a fit will be off by, whatever the noise: what happens between samples, and dry friction near rest.

Promised error bars are those of noise. A recording also lacks what happens between its samples: a torque that is read
while a controller follows a motion is known there as a line, (ωh)²/12 of its size off, and not at all where dry
friction reverses in between; and a fit lets dry friction fade below the speed that it would stop within half a step
(:mod:`shadowfit.dynamics.sliding`), so that level and viscous part are exchanged a little. With the same motion in
steps a quarter as long, and its inputs as a recording has them, the impulses r that the steps of the fit lack shift
the estimate by one linear step,

    δ = −(TᵀT)⁻¹ Tᵀ r,

T being the rows with the states projected out.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

from shadowfit.designs.drives import Drive, JointMotion
from shadowfit.designs.experiment import Experiment
from shadowfit.designs.motions import Motions
from shadowfit.estimation.linear.threads import one_thread
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.truncation import renewed
from shadowfit.estimation.uncertainty.evidence import gather
from shadowfit.geometry import Pose

# Steps of the machine in a step of the fit.
FINER = 4


def systematic(
    own: Experiment, exact: Experiment, drive: Drive, coefficients: Float[np.ndarray, " n"], motion: Motions
) -> Float[np.ndarray, " p"]:
    """Shift of each parameter, in its unit, of a fit to a recording of a motion without any noise; NaN if unknown.

    ``exact`` is the experiment in steps a FINER-th as long; ``motion`` the one of ``own`` with these coefficients.
    """
    recorded = _recorded(own, exact, drive, coefficients, motion)
    if not recorded.good[0]:
        return np.full(len(own.labels), np.nan)
    problem, point = own.posed(recorded)
    readings = own.readings(Pose(recorded.pose.position[0], recorded.pose.orientation[0]))
    tracks = (dataclasses.replace(problem.tracks[0], measured=readings),)
    kernels = problem.kernels
    problem = dataclasses.replace(problem, tracks=tracks)
    vars(problem)["kernels"] = kernels
    with one_thread():
        evidence = gather(problem, objective.linearise(problem, renewed(problem, point), own.weights), own.weights)
    return -evidence.bread(~evidence.at_bound) @ evidence.gradient


def _recorded(
    own: Experiment, exact: Experiment, drive: Drive, coefficients: Float[np.ndarray, " n"], motion: Motions
) -> Motions:
    """The motion in fine steps, at the steps of the fit: what a controller needs, or how the machine answers."""
    if isinstance(drive, JointMotion):
        fine = drive.motions(exact, coefficients[None])
    else:
        fine = exact.simulated(motion.coordinates[:, 0], _between(own, exact, motion.inputs))
    at = slice(None, None, FINER)
    pose = Pose(fine.pose.position[:, at], fine.pose.orientation[:, at])
    return Motions(motion.time, pose, fine.coordinates[:, at], fine.inputs[:, at], fine.good)


def _between(own: Experiment, exact: Experiment, inputs: Float[np.ndarray, "1 n k"]) -> Float[np.ndarray, "1 f k"]:
    """Inputs at fine steps, held or connected by lines as the model says."""
    coarse, fine = own.sampling.times, exact.sampling.times
    held = np.clip(np.floor(fine / own.sampling.timestep * (1.0 + 1e-12)).astype(int), 0, len(coarse) - 1)
    columns = [
        np.interp(fine, coarse, inputs[0, :, i]) if part.hold == "linear" else inputs[0, held, i]
        for i, part in enumerate(own.mechanism.inputs.values)
    ]
    return np.stack(columns, axis=-1)[None] if columns else np.zeros((1, len(fine), 0))
