"""Given errors of joints' forces where the unknowns are poses of bodies: a weight for each time step.

In joint coordinates a residual is the missing impulse of a joint, and its weight one over its level. Residuals of
bodies' poses are velocities that no impulse of one body alone explains: an impulse p along the free axis of a joint
moves the whole assembled machine and leaves ``B p``, B being what a unit impulse leaves at the present configuration
(`Unknowns.axis_answers`). With errors of the named joints, of standard deviations s, and of κ's level in all directions
that these do not reach,

    r̂ = W r,   W B = U R,   p = R⁻¹ Uᵀ r̂,        N = (1 − U Uᵀ) + U diag(σ₀/s) R⁻¹ Uᵀ

``N r̂`` has rows of one level (:mod:`shaping`): W is the weight of all directions alike, U R an orthogonal
factorisation, and p the missing impulses of the joints, each its own. B changes slowly along a motion and with
inertias, and is *held* while the optimiser moves (:class:`Point`), so that a lighter machine does not make errors
smaller: given errors are forces that act, and the determinant of their likelihood is in this
(:mod:`uncertainty.determinant`).
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.shaping import Shaping
from shadowfit.estimation.problem.weights import Weights
from shadowfit.geometry import Pose


def is_shaped(problem: Problem) -> bool:
    """Whether steps have weights of their own."""
    return bool(problem.options.errors.forces) and problem.level_names is None


def answers_at(problem: Problem, point: Point, recording: int) -> Float[np.ndarray, "steps r j"]:
    """B of the joints whose errors are given, at the steps of a recording."""
    plan, steps = problem.plan, problem.tracks[recording].steps
    places = np.clip(np.arange(-1, steps + 1) + plan.centre, 0, None)
    pose = problem.bodies(point, recording).pose
    around = Pose(np.asarray(pose.position)[places], np.asarray(pose.orientation)[places])
    joints = [problem.mechanism.joints.index(name) for name in problem.options.errors.forces]
    here = problem.at(point.values, recording)
    return plan.unknowns.axis_answers(joints, plan.equations, around, problem.timestep, here)


def shaping(point: Point, weights: Weights, recording: int) -> Shaping | None:
    """N of a recording by what its point holds; None where all steps have the same weight."""
    if point.answers is None or not weights.axis_std:
        return None
    levels = weights.reference / np.array(weights.axis_std)
    return Shaping.of(weights.dynamics, np.asarray(point.answers[recording]), levels)


def unweighted(
    point: Point, weights: Weights, recording: int, rows: Float[np.ndarray, "steps k*r"]
) -> Float[np.ndarray, "steps k*r"]:
    """Impulse residuals [N m s, N s] of weighted ones."""
    shaped = shaping(point, weights, recording)
    rows = rows if shaped is None else shaped.undone(rows[..., None])[..., 0]
    size = len(weights.dynamics)
    return np.linalg.solve(weights.dynamics, rows.reshape(-1, size).T).T.reshape(rows.shape)
