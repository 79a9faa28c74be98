"""Errors of the discretisation, from the estimated motion itself: what deferred correction takes off the residuals.

The discrete equations of motion are of second order: on the true motion the dynamics residual of a step h is not zero
but ``E = O(h³)``, and a fit that asks for zero finds parameters that are off by ``O(h²)``. The same residual with a
step m times as fine is m² times better, and it can be evaluated on a curve through the states. Both see the same
equation: the residual of a step is a mean of the balance of momentum over ``[t_k − h, t_k + h]``. Its inertial part is
the second difference of the configurations, the sum of the fine ones with the weights of a hat:

    R_k = Σ_{|j|<m} (1 − |j|/m) r_{h/m}(t_k + j h/m),        E_k = (r_h − R_k) m²/(m² − 1)

The factor extrapolates to vanishing steps, which leaves ``O(h⁵)``. Accelerations drop out of the difference, so that E
compares forces along the curve (at one instant, and as a mean over the step) and amplifies no noise; jumps of held
inputs are resolved m times finer. Dry friction is a mean over the step in both, and near rest fades over a speed that
belongs to the step (:mod:`shadowfit.dynamics.sliding`): E takes most of that off, too.

A fit with E held, E renewed at its result, and so on, settles quickly: each round multiplies what is left by about
``(ωh)²/12``. Where it stands, the motion satisfies the better equations. Derivatives of E do not enter.

Samples see the states through a parabola over three steps; the error of that, against the same curve, is treated alike.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from jaxtyping import Float, Int

from shadowfit.estimation.linear.threads import in_threads
from shadowfit.estimation.problem.evaluator import Readings
from shadowfit.estimation.problem.point import Point, Truncation
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.residuals.fading import PRESENT, Fading
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.geometry import Pose
from shadowfit.geometry.differences import differences
from shadowfit.geometry.lagrange import lagrange

# m: fine steps in a step.
FINER = 4
# Distance of the places, in steps, whose difference is the speed on the curve.
CLOSE = 1.0 / 64.0
# Steps that one thread does at a time.
PART = 1008
# States that a piece of the curve goes through: a polynomial of fifth degree.
NODES = 6


def truncation(problem: Problem, point: Point, recording: int) -> Truncation:
    """Errors of the discretisation along the states of one recording."""
    steps = problem.tracks[recording].steps
    parts = [slice(begin, min(begin + PART, steps)) for begin in range(0, steps, PART)]
    dynamics = in_threads(lambda part: _of_dynamics(problem, point, recording, part), parts)
    impulses = np.concatenate(list(dynamics))
    readings = list(in_threads(lambda part: _of_readings(problem, point, recording, part), parts))
    return Truncation(impulses, tuple(np.concatenate(each) for each in zip(*readings, strict=True)))


def renewed(problem: Problem, point: Point) -> Point:
    """The point with the discretisation errors of its own motion; as it is, if they are not to be corrected."""
    if problem.options.correction == "none":
        return point
    errors = tuple(truncation(problem, point, recording) for recording in range(len(problem.tracks)))
    return dataclasses.replace(point, truncation=errors)


def _of_dynamics(problem: Problem, point: Point, recording: int, part: slice) -> Float[np.ndarray, "steps r"]:
    """E of some steps [N s, N m s], as the dynamics residual has it."""
    nodes, finer = point.nodes[recording], FINER
    around = nodes.pose[part.start : part.stop + 2]
    coarse = _impulses(problem, point, recording, around, part.start, 1)
    intervals = part.stop - part.start + 1
    fine = curve(problem, nodes, part.start + np.arange(intervals * finer + 1) / finer)
    between = _impulses(problem, point, recording, fine, part.start, finer)
    weights = 1.0 - np.abs(np.arange(1 - finer, finer)) / finer
    mean = np.lib.stride_tricks.sliding_window_view(between, len(weights), axis=0)[::finer] @ weights
    missing = (coarse - mean) * finer**2 / (finer**2 - 1.0)
    return problem.plan.unknowns.residuals_of(missing, around, problem.at(point.values, recording))


def _impulses(
    problem: Problem, point: Point, recording: int, poses: Pose, first: int, finer: int
) -> Float[np.ndarray, "times r"]:
    """Impulses ``A (v' − φ)`` that are missing in steps of ``h/finer``, at all but the first and last of the poses.

    ``first`` is the step to which the first of the poses leads.
    """
    here = problem.at(point.values, recording)
    times = slice(first * finer, first * finer + len(poses.position) - 2)
    command, slopes = problem.commands_at(point.values, recording, finer)
    acting = command[times], slopes[times]
    residuals = here.dynamics_residuals(poses, acting, problem.timestep / finer, _fading(point, recording))
    return problem.plan.unknowns.impulses_of(residuals, poses[1:-1], here)


def _fading(point: Point, recording: int) -> Fading:
    """Where dry friction fades: as in the fit, whose mobilities are those of the present motion at this point."""
    return PRESENT if point.fading is None else Fading(None, point.fading[recording].fastest)


def _of_readings(
    problem: Problem, point: Point, recording: int, part: slice
) -> tuple[Float[np.ndarray, "steps samples e"], ...]:
    """Reading through the parabola less that of the curve, for each sensor, of some steps."""
    track, nodes = problem.tracks[recording], point.nodes[recording]
    moving = any(sensor.needs_velocity for sensor in problem.mechanism.sensors.values)
    fraction = track.fraction[part]
    if problem.plan.on_grid and not moving:
        return tuple(np.zeros((*fraction.shape, size)) for size in problem.error_sizes)
    step = np.repeat(np.arange(part.start, part.stop), fraction.shape[1])
    at = step + problem.plan.centre + fraction.ravel()
    beside = [curve(problem, nodes, at + side * CLOSE) for side in ((-1, 0, 1) if moving else (0,))]
    window = _windows([nodes.pose[step + i] for i in range(3)])
    command = problem.commands_at(point.values, recording)[0][step]
    readings = Readings(window, fraction.ravel(), _windows(beside), problem.timestep * CLOSE, command)
    errors = problem.at(point.values, recording).reading_errors(readings, problem.timestep)
    return tuple(
        np.where(here[part][..., None], error.reshape(*fraction.shape, -1), 0.0)
        for error, here in zip(errors, track.present, strict=True)
    )


def _windows(poses: list[Pose]) -> Pose:
    """Poses of several times beside each other, on a second axis."""
    return Pose(*(np.stack(x, axis=1) for x in zip(*((p.position, p.orientation) for p in poses), strict=True)))


def curve(problem: Problem, nodes: Nodes, at: Float[np.ndarray, " n"]) -> Pose:
    """Poses of a smooth curve through the states, at places counted in steps from the first state.

    ``q(t) = q_b ⊞ Σ_i ℓ_i(t) (q_i ⊟ q_b)``: Lagrange's polynomial through the nearest states, in the tangent space of
    the nearest one.
    """
    stencil = _stencil(len(nodes.pose.position), at.tobytes())
    increments = differences(nodes.pose[stencil.later], nodes.pose[stencil.earlier]).reshape(len(stencil.later), -1)
    return problem.kernels.shift(Nodes(nodes.pose[stencil.base], None), stencil.weighted(increments)).pose


@dataclasses.dataclass(frozen=True)
class _Stencil:
    """How places on the curve follow from the states; the same for all motions."""

    later: Int[np.ndarray, " pairs"]
    earlier: Int[np.ndarray, " pairs"]
    """States whose differences ``q_i ⊟ q_b`` are needed; many places share them."""
    pairs: Int[np.ndarray, "n k"]
    """Which of them each place follows,"""
    weights: Float[np.ndarray, "n k"]
    """and with which weight."""
    base: Int[np.ndarray, " n"]

    def weighted(self, increments: Float[np.ndarray, "pairs d"]) -> Float[np.ndarray, "n d"]:
        """``Σ_i ℓ_i (q_i ⊟ q_b)`` of each place."""
        return np.matmul(self.weights[:, None], increments[self.pairs])[:, 0]


@functools.lru_cache(maxsize=64)
def _stencil(nodes: int, places: bytes) -> _Stencil:
    """For places counted in steps, given as the bytes of their array."""
    at = np.frombuffer(places)
    count = min(NODES, nodes)
    first = np.clip(np.floor(at).astype(int) - (count // 2 - 1), 0, nodes - count)
    base = np.clip(np.round(at).astype(int), 0, nodes - 1)
    index = first[:, None] + np.arange(count)
    pairs, where = np.unique(base[:, None] * nodes + index, return_inverse=True)
    weights = np.stack(lagrange(at - first, count), axis=1)
    return _Stencil(pairs % nodes, pairs // nodes, where.reshape(index.shape), weights, base)


def velocities(
    problem: Problem, point: Point, recording: int, at: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "n bodies 6"]:
    """Velocities of the bodies on the curve [m/s, rad/s], by differences over a short distance."""
    here = problem.at(point.values, recording)
    later, earlier = (here.bodies(curve(problem, point.nodes[recording], at + sign * CLOSE)) for sign in (1, -1))
    return differences(later, earlier) / (2.0 * CLOSE * problem.timestep)
