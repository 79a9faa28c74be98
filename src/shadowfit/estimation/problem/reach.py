"""Contacts that the measured motion does not reach: their free places start where it does.

What is not touched acts on nothing. A plane or end stop that starts beyond the motion has no derivatives, so a fit
cannot tell which way it should go, and ends in a minimum in which the forces of the contact are unexplained. Instead,
the smallest gap c along the initial trajectory is closed by the smallest change of the contact's free numbers p:

    δ = −c s / (s·s),   s = ∂c/∂p
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from shadowfit.arrays import Array
from shadowfit.dynamics.contact_law import stopped_joints
from shadowfit.dynamics.contact_rows import contact_gaps
from shadowfit.dynamics.elements import StopElement, assemble
from shadowfit.dynamics.state import with_world
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.geometry import Pose
from shadowfit.kernels.along import along
from shadowfit.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from shadowfit.estimation.problem.problem import Problem

# Part of a number's typical size by which it is moved to see what that does to gaps.
SMALL = 1e-6


def within_reach(problem: Problem, point: Point) -> Values:
    """The point's values, with the free places of contacts where the motion touches them."""
    parameters = problem.parameters
    labels = parameters.labels()
    movable = np.flatnonzero([_of_contact(label, problem.mechanism) for label in labels])
    if not len(movable):
        return point.values
    gaps = _smallest_gaps(problem, point, point.values)
    slopes = np.zeros((*gaps.shape, parameters.size))
    for place in movable:
        step = np.zeros(parameters.size)
        step[place] = SMALL * parameters.scales[place]
        moved = _smallest_gaps(problem, point, parameters.plus(point.values, step))
        slopes[..., place] = (moved - gaps) / step[place]
    shared = np.array(["@" not in label for label in labels])
    closing = [_closing(gaps[:, side], slopes[:, side], shared) for side in range(gaps.shape[1])]
    return parameters.plus(point.values, np.sum(closing, axis=0))


def _of_contact(label: str, mechanism: Mechanism) -> bool:
    """Whether an increment is of a contact's number; how a plane is turned is left to the fit."""
    contact, _, number = label.partition(".")
    return contact in mechanism.contacts and not number.startswith("plane_rotation")


def _closing(
    gaps: Float[np.ndarray, " recordings"],
    slopes: Float[np.ndarray, "recordings p"],
    shared: Bool[np.ndarray, " p"],
) -> Float[np.ndarray, " p"]:
    """Increments after which one side of a contact is touched: in the nearest recording, or where each has its own."""
    increments = np.zeros(slopes.shape[1])
    for recording in np.argsort(gaps):
        slope = slopes[recording]
        if gaps[recording] > 0.0 and slope.any():
            increments -= gaps[recording] * slope / (slope @ slope)
        if slope[shared].any():
            break
    return increments


def _smallest_gaps(problem: Problem, point: Point, values: Values) -> Float[np.ndarray, "recordings sides"]:
    """Smallest gap [m, rad] of each side of each contact along each recording's motion."""
    smallest = []
    for index in range(len(problem.tracks)):
        poses = problem.bodies(point, index).pose
        arrays = [np.asarray(poses.position), np.asarray(poses.orientation)]
        smallest.append(np.concatenate(along(_gaps, problem.written(values, index), arrays), axis=1).min(axis=0))
    return np.stack(smallest)


def _gaps(mechanism: Mechanism, position: Array, orientation: Array) -> list[Array]:
    """Of both sides of a stop, and of the nearest point of what may touch a plane."""
    elements = assemble(mechanism)
    pose, _ = with_world(Pose(position, orientation), jnp.zeros((len(position), 6)))
    gaps = contact_gaps(elements, pose, stopped_joints(elements, pose))
    return [
        gap if isinstance(contact, StopElement) else jnp.min(gap, keepdims=True)
        for contact, gap in zip(elements.contacts, gaps, strict=True)
    ]
