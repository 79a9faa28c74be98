"""Contacts that the measured motion does not surely reach: their free places start where it does.

What is not touched acts on nothing. A plane or end stop that starts beyond the motion has no derivatives, so a fit
cannot tell which way it should go, and ends in a minimum in which the forces of the contact are unexplained. One that
starts some standard deviations of the readings on this side of the motion's end pushes too early, which fits correct.
So with c the smallest gap along the initial trajectory, and σ what the readings' noise does to it, the free numbers p
of the contact are changed by as little as possible for c to be −2 σ:

    δ = −(c + 2 σ) s / (s·s),   s = ∂c/∂p
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from shadowfit.arrays import Array, Bool, Float
from shadowfit.dynamics.contact_law import stopped_joints
from shadowfit.dynamics.contact_rows import contact_gaps
from shadowfit.dynamics.elements import StopElement, assemble
from shadowfit.dynamics.state import with_world
from shadowfit.estimation.problem.initial import followed, followed_off
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.geometry import Pose
from shadowfit.kernels.along import along
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from shadowfit.estimation.problem.problem import Problem

# Standard deviations of a gap by which a contact is surely touched.
SURELY = 2.0
# Part of a number's typical size by which it is moved to see what that does to gaps.
SMALL = 1e-6


def within_reach(problem: Problem, values: Values) -> Values:
    """The values, with the free places of contacts where the measured motion surely touches them."""
    parameters = problem.parameters
    labels = parameters.labels()
    movable = np.flatnonzero([_of_contact(label, problem.mechanism) for label in labels])
    if not len(movable):
        return values
    measured = [followed(problem, values, recording) for recording in range(len(problem.tracks))]
    gaps = _smallest(problem, values, measured)
    slopes = np.zeros((*gaps.shape, parameters.size))
    for place in movable:
        step = np.zeros(parameters.size)
        step[place] = SMALL * parameters.scales[place]
        slopes[..., place] = (_smallest(problem, parameters.plus(values, step), measured) - gaps) / step[place]
    missing = gaps + SURELY * _uncertainty(problem, values, measured)
    shared = np.array(["@" not in label for label in labels])
    closing = [_closing(missing[:, side], slopes[:, side], shared) for side in range(gaps.shape[1])]
    return parameters.plus(values, np.sum(closing, axis=0))


def _of_contact(label: str, mechanism: Mechanism) -> bool:
    """Whether an increment is of a contact's number; how a plane is turned is left to the fit."""
    contact, _, number = label.partition(".")
    return contact in mechanism.contacts and not number.startswith("plane_rotation")


def _closing(
    missing: Float[np.ndarray, " recordings"],
    slopes: Float[np.ndarray, "recordings p"],
    shared: Bool[np.ndarray, " p"],
) -> Float[np.ndarray, " p"]:
    """Increments after which one side of a contact is touched: in the nearest recording, or where each has its own."""
    increments = np.zeros(slopes.shape[1])
    for recording in np.argsort(missing):
        slope = slopes[recording]
        if missing[recording] > 0.0 and slope.any():
            increments -= missing[recording] * slope / (slope @ slope)
        if slope[shared].any():
            break
    return increments


def _uncertainty(problem: Problem, values: Values, measured: Sequence[Pose]) -> Float[np.ndarray, "recordings sides"]:
    """Standard deviation of each smallest gap by the stated noise of the readings."""
    moves = []
    for recording, poses in enumerate(measured):
        gaps = _gaps_along(problem, values, recording, poses)
        nearest = np.argmin(gaps, axis=0)[None]
        changes = [
            np.take_along_axis(_gaps_along(problem, values, recording, off) - gaps, nearest, axis=0)[0]
            for off in followed_off(problem, values, recording)
        ]
        moves.append(np.sqrt(np.sum(np.square(changes), axis=0)))
    return np.stack(moves)


def _smallest(problem: Problem, values: Values, measured: Sequence[Pose]) -> Float[np.ndarray, "recordings sides"]:
    """Smallest gap [m, rad] of each side of each contact along each recording's motion."""
    return np.stack([_gaps_along(problem, values, *one).min(axis=0) for one in enumerate(measured)])


def _gaps_along(problem: Problem, values: Values, recording: int, nodes: Pose) -> Float[np.ndarray, "steps sides"]:
    bodies = problem.at(values, recording).bodies(nodes)
    arrays = [np.asarray(bodies.position), np.asarray(bodies.orientation)]
    return np.concatenate(along(_gaps, problem.written(values, recording), arrays), axis=1)


def _gaps(mechanism: Mechanism, position: Array, orientation: Array) -> list[Array]:
    """Of both sides of a stop, and of the nearest point of what may touch a plane."""
    elements = assemble(mechanism)
    pose, _ = with_world(Pose(position, orientation), jnp.zeros((len(position), 6)))
    gaps = contact_gaps(elements, pose, stopped_joints(elements, pose))
    return [
        gap if isinstance(contact, StopElement) else jnp.min(gap, keepdims=True)
        for contact, gap in zip(elements.contacts, gaps, strict=True)
    ]
