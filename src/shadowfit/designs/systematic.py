"""What a fit will be off by, whatever the noise: what happens within its steps, and dry friction near rest.

Promised error bars are those of noise. The steps of a fit also miss what happens within them: an axis whose dry
friction reverses there changes its speed in a kink, which the fit rounds off, and friction fades near rest
(:mod:`shadowfit.dynamics.sliding`), of which deferred correction takes off most. The machine is therefore simulated in
steps a sixteenth as long, led along the motion where a controller does that (:mod:`shadowfit.designs.led`), and what it
does is fitted without any noise, from the truth on. (One linear step from there would say too little where the errors
that deferred correction takes off change with the estimate, as at the reversals of an arm's wrists.)
"""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.arrays import Float
from shadowfit.designs.drives import Drive, JointMotion
from shadowfit.designs.experiment import Experiment
from shadowfit.designs.led import between, led
from shadowfit.designs.motions import Motions
from shadowfit.estimation.linear.threads import one_thread
from shadowfit.estimation.solve.deferred_correction import minimise_corrected
from shadowfit.estimation.solve.levenberg_marquardt import LevenbergMarquardt
from shadowfit.geometry import Pose

# Steps of the machine in a step of the fit.
FINER = 16


def systematic(
    experiment: Experiment, exact: Experiment, drive: Drive, coefficients: Float[np.ndarray, " n"], motion: Motions
) -> Float[np.ndarray, " p"]:
    """Shift of each parameter, in its unit, of a fit to a recording of a motion without any noise; NaN if unknown.

    ``exact`` is the experiment in steps a FINER-th as long; ``motion`` the one with these coefficients.
    """
    recorded = _recorded(experiment, exact, drive, coefficients, motion)
    if not recorded.good[0]:
        return np.full(len(experiment.labels), np.nan)
    problem, point = experiment.posed(recorded)
    readings = experiment.readings(Pose(recorded.pose.position[0], recorded.pose.orientation[0]))
    tracks = (dataclasses.replace(problem.tracks[0], measured=readings),)
    kernels = problem.kernels
    problem = dataclasses.replace(problem, tracks=tracks)
    vars(problem)["kernels"] = kernels
    with one_thread():
        outcome = minimise_corrected(problem, point, experiment.weights, LevenbergMarquardt())
    parameters = problem.parameters
    return np.asarray(parameters.minus(outcome.linearisation.point.values, parameters.start()))


def _recorded(
    experiment: Experiment, exact: Experiment, drive: Drive, coefficients: Float[np.ndarray, " n"], motion: Motions
) -> Motions:
    """The motion in fine steps, at the steps of the fit: as a controller leads the machine, or as it answers."""
    if isinstance(drive, JointMotion):
        return led(experiment, exact, drive, coefficients)
    fine = exact.simulated(motion.coordinates[:, 0], between(experiment, exact, motion.inputs[0])[None])
    at = slice(None, None, FINER)
    pose = Pose(fine.pose.position[:, at], fine.pose.orientation[:, at])
    return Motions(motion.time, pose, fine.coordinates[:, at], motion.inputs, fine.good)
