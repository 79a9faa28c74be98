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
import itertools
from collections.abc import Sequence

import numpy as np

from shadowfit.arrays import Float, Int
from shadowfit.estimation.linear.substitution import library
from shadowfit.estimation.linear.threads import in_threads
from shadowfit.estimation.problem.evaluator import Readings
from shadowfit.estimation.problem.point import Point, Truncation
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.step_kernels import windows
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.residuals.stopping import Stopping
from shadowfit.geometry import Pose
from shadowfit.geometry.differences import differences
from shadowfit.geometry.lagrange import lagrange
from shadowfit.records import record
from shadowfit.trees import map_leaves

# m: fine steps in a step.
FINER = 4
# Distance of the places, in steps, whose difference is the speed on the curve.
CLOSE = 1.0 / 64.0
# Steps that one thread does at a time.
PART = 1008
# States that a piece of the curve goes through (a polynomial of seventh degree), and how many at the ends of a
# recording. There they all lie to one side, and a higher degree multiplies what is uneven in them: where held targets
# jump, fits did not come to an end.
NODES, AT_ENDS = 8, 6


def truncation(problem: Problem, point: Point, recording: int) -> Truncation:
    """Errors of the discretisation along the states of one recording."""
    steps = problem.tracks[recording].steps
    parts = [slice(begin, min(begin + PART, steps)) for begin in range(0, steps, PART)]
    found = list(in_threads(lambda part: _of_steps(problem, point, recording, part), parts))
    return Truncation(
        np.concatenate([one.dynamics for one in found]),
        tuple(np.concatenate(each) for each in zip(*(one.readings for one in found), strict=True)),
    )


def renewed(problem: Problem, point: Point) -> Point:
    """The point with the discretisation errors of its own motion; as it is, if they are not to be corrected."""
    if problem.options.correction == "none":
        return point
    errors = tuple(truncation(problem, point, recording) for recording in range(len(problem.tracks)))
    return dataclasses.replace(point, truncation=errors, truncated_at=point.values)


def _of_steps(problem: Problem, point: Point, recording: int, part: slice) -> Truncation:
    """Errors of some steps: places of finer steps and of samples are found on the curve together."""
    intervals = part.stop - part.start + 1
    finer = part.start + np.arange(intervals * FINER + 1) / FINER
    fine, *beside = curves(problem, point.nodes[recording], [finer, *_sampled(problem, recording, part)])
    return Truncation(
        _of_dynamics(problem, point, recording, part, fine), _of_readings(problem, point, recording, part, beside)
    )


def _of_dynamics(
    problem: Problem, point: Point, recording: int, part: slice, fine: Pose
) -> Float[np.ndarray, "steps r"]:
    """E of some steps [N s, N m s], as the dynamics residual has it; ``fine`` are the poses of finer steps."""
    nodes, finer = point.nodes[recording], FINER
    around = nodes.pose[part.start : part.stop + 2]
    coarse = _impulses(problem, point, recording, around, part.start, 1)
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
    stopping = _stopping(point, recording, first + (1.0 + np.arange(len(acting[0]))) / finer - 1.0, finer)
    residuals = here.dynamics_residuals(poses, acting, problem.timestep / finer, stopping)
    return problem.plan.unknowns.impulses_of(residuals, poses[1:-1], here)


def _stopping(point: Point, recording: int, at: Float[np.ndarray, " n"], finer: int) -> Stopping | None:
    """Speeds from which friction stops the axes in finer steps; None: those of the motion."""
    return None if point.stopping is None else point.stopping[recording].finer(at, finer)


def _sampled(problem: Problem, recording: int, part: slice) -> list[Float[np.ndarray, " n"]]:
    """Places of the samples of some steps, and those beside them where velocities are read; none if all are states."""
    moving = any(sensor.needs_velocity for sensor in problem.mechanism.sensors.values)
    if problem.plan.on_grid and not moving:
        return []
    fraction = problem.tracks[recording].fraction[part]
    at = np.repeat(np.arange(part.start, part.stop), fraction.shape[1]) + problem.plan.centre + fraction.ravel()
    return [at + side * CLOSE for side in ((-1, 0, 1) if moving else (0,))]


def _of_readings(
    problem: Problem, point: Point, recording: int, part: slice, beside: list[Pose]
) -> tuple[Float[np.ndarray, "steps samples e"], ...]:
    """Reading through the parabola less that of the curve, for each sensor, of some steps.

    ``beside`` are the poses on the curve where they are sampled.
    """
    track, nodes = problem.tracks[recording], point.nodes[recording]
    fraction = track.fraction[part]
    if not beside:
        return tuple(np.zeros((*fraction.shape, size)) for size in problem.error_sizes)
    window = windows(Nodes(nodes.pose[part.start : part.stop + 2], None), range(3), len(fraction)).pose
    command = problem.commands_at(point.values, recording)[0][part]
    curve = map_leaves(lambda x: x.reshape(*fraction.shape, *x.shape[1:]), _beside(beside))
    readings = Readings(window, fraction, curve, problem.timestep * CLOSE, command)
    errors = problem.at(point.values, recording).reading_errors(readings, problem.timestep)
    return tuple(
        np.where(here[part][..., None], error.reshape(*fraction.shape, -1), 0.0)
        for error, here in zip(errors, track.present, strict=True)
    )


def _beside(poses: list[Pose]) -> Pose:
    """Poses of several times beside each other, on a second axis."""
    return Pose(*(np.stack(x, axis=1) for x in zip(*((p.position, p.orientation) for p in poses), strict=True)))


def curves(problem: Problem, nodes: Nodes, places: Sequence[Float[np.ndarray, " n"]]) -> list[Pose]:
    """Poses of a smooth curve through the states, at several lists of places counted in steps from the first state.

    ``q(t) = q_b ⊞ Σ_i ℓ_i(t) (q_i ⊟ q_b)``: Lagrange's polynomial through the nearest states, in the tangent space of
    the nearest one.
    """
    at = np.concatenate(places)
    stencil = _stencil(len(nodes.pose.position), at.tobytes())
    increments = differences(nodes.pose[stencil.later], nodes.pose[stencil.earlier]).reshape(len(stencil.later), -1)
    poses = problem.kernels.shift(Nodes(nodes.pose[stencil.base], None), stencil.weighted(increments)).pose
    ends = list(itertools.accumulate(map(len, places), initial=0))
    return [poses[begin:end] for begin, end in itertools.pairwise(ends)]


@record(frozen=True)
class _Stencil:
    """How places on the curve follow from the states; the same for all motions."""

    later: Int[np.ndarray, " pairs"]
    earlier: Int[np.ndarray, " pairs"]
    """States whose differences are needed; many places share them, in both directions: ``q_i ⊟ q_b = −(q_b ⊟ q_i)``."""
    pairs: Int[np.ndarray, "n k"]
    """Which of them each place follows,"""
    weights: Float[np.ndarray, "n k"]
    """and with which weight."""
    base: Int[np.ndarray, " n"]

    def weighted(self, increments: Float[np.ndarray, "pairs d"]) -> Float[np.ndarray, "n d"]:
        """``Σ_i ℓ_i (q_i ⊟ q_b)`` of each place."""
        moved = np.empty((len(self.base), increments.shape[1]))
        library("gather", *self.pairs.shape, increments.shape[1], self.pairs, self.weights, increments, moved)
        return moved


@functools.lru_cache(maxsize=64)
def _stencil(nodes: int, places: bytes) -> _Stencil:
    """For places counted in steps, given as the bytes of their array."""
    at = np.frombuffer(places)
    index, weights = _nearest(at, nodes)
    base = np.clip(np.round(at).astype(int), 0, nodes - 1)
    low, high = np.minimum(index, base[:, None]), np.maximum(index, base[:, None])
    pairs, where = np.unique(low * nodes + high, return_inverse=True)
    signed = np.where(index < base[:, None], -weights, weights)
    return _Stencil(pairs % nodes, pairs // nodes, where.reshape(index.shape), signed, base)


def _nearest(at: Float[np.ndarray, " n"], nodes: int) -> tuple[Int[np.ndarray, "n k"], Float[np.ndarray, "n k"]]:
    """States nearest to each place, and their weights there; those that are not needed at the ends have none."""
    before = np.floor(at).astype(int)
    one_sided = (before < NODES // 2 - 1) | (before >= nodes - NODES // 2)
    index, weights = np.zeros((len(at), NODES), int), np.zeros((len(at), NODES))
    for these, count in ((~one_sided, NODES), (one_sided, min(AT_ENDS, nodes))):
        first = np.clip(before[these] - (count // 2 - 1), 0, nodes - count)
        index[these] = first[:, None] + np.minimum(np.arange(NODES), count - 1)
        weights[these, :count] = np.stack(lagrange(at[these] - first, count), axis=1)
    return index, weights


def velocities(
    problem: Problem, point: Point, recording: int, at: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "n bodies 6"]:
    """Velocities of the bodies on the curve [m/s, rad/s], by differences over a short distance."""
    here = problem.at(point.values, recording)
    beside = curves(problem, point.nodes[recording], [at + sign * CLOSE for sign in (1, -1)])
    later, earlier = (here.bodies(poses) for poses in beside)
    return differences(later, earlier) / (2.0 * CLOSE * problem.timestep)
