"""Weights to begin with: errors of the dynamics as a part of the impulses that the motion shows."""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.sensor_limits import shown_ratio
from shadowfit.estimation.problem.weights import Weights, default_weights, unit_weights, with_given
from shadowfit.estimation.solve import objective
from shadowfit.geometry.differences import differences

# Errors of the dynamics in the first fit, as a fraction of the impulses of a time step.
FIRST_ERROR = 0.01
# Bodies and joints that move less than this, relative to the others, are at rest: their impulses are noise.
REST = 1e-6
# A joint that hardly moves is given this fraction of the largest impulse of the others.
SLOW = 1e-3


def first_weights(problem: Problem, start: Point) -> Weights:
    """Weights at which errors of the dynamics are a hundredth of the typical impulses of a step [N s, N m s].

    A level for each joint coordinate, or one for all impulses where bodies' poses are the unknowns.
    """
    if problem.level_names is None:
        return default_weights(problem, first_state_weight(problem, start))
    plain = default_weights(problem, 1.0)
    plain = dataclasses.replace(plain, std=tuple((np.array(plain.std) * shown_ratio(problem)).tolist()))
    std = FIRST_ERROR * typical_impulses(problem, start)
    return with_given(problem, dataclasses.replace(plain, dynamics=np.diag(plain.reference / std)))


def typical_impulses(problem: Problem, point: Point) -> np.ndarray:
    """Impulse of each coordinate in a step, root mean square: its inertia times its changes of speed [N m s, N s]."""
    size, total, count = problem.plan.node_size, np.zeros(problem.plan.node_size), 0
    directions = np.asarray(problem.plan.unknowns.directions(np.eye(size)))
    for index, track in enumerate(problem.tracks):
        rows = objective.chunk_rows(problem, point, unit_weights(problem), index)
        after = np.concatenate([np.asarray(table.states)[:, :size, 2] for table in rows])[: track.steps]
        pose = point.nodes[index].pose
        moved = differences(pose[1:], pose[:-1]).reshape(len(pose.position) - 1, -1) @ directions.T
        change = np.diff(moved, axis=0)[: track.steps]
        total += np.sum((np.diagonal(after, axis1=1, axis2=2) * change) ** 2, axis=0)
        count += track.steps
    size_of = np.sqrt(total / max(count, 1))
    return np.maximum(size_of, SLOW * size_of.max(initial=0.0)) if size_of.any() else np.ones(size)


def first_state_weight(problem: Problem, start: Point) -> float:
    """A decade of κ at which errors of the dynamics are a hundredth of the typical impulse of a step [N s, N m s]."""
    sizes = []
    for nodes in start.nodes:
        velocity = differences(nodes.pose[1:], nodes.pose[:-1]) / problem.timestep
        change = np.sqrt(np.mean(np.diff(velocity, axis=0).reshape(len(velocity) - 1, -1, 2, 3) ** 2, axis=(0, 3)))
        for body, (straight, turning) in zip(problem.mechanism.bodies.values, change, strict=True):
            inertia = float(np.trace(np.asarray(body.inertia.matrix()))) / 3.0
            sizes += [float(body.mass) * straight, inertia * turning]
    moving = [size for size in sizes if size > REST * max(sizes)]
    typical = np.exp(np.mean(np.log(moving))) if moving else 1.0
    reference = default_weights(problem, 1.0).reference
    return float(10.0 ** np.round(2.0 * np.log10(reference / (FIRST_ERROR * typical))))
