"""Joints that nothing drives in a machine that is led: their equations in proportion to their forces."""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.arrays import Bool, Float
from shadowfit.estimation.problem.drives import driven
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.proportion import Proportion, linear_numbers
from shadowfit.estimation.problem.weights import Weights, unit_weights
from shadowfit.estimation.solve import objective

# An equation scales with its free numbers if what does not is less than this part of its forces.
APART = 0.5
GRAVITY = "gravity.acceleration"


def proportioned(problem: Problem, point: Point, weights: Weights) -> Weights:
    """The weights with equations of joints that nothing drives measured by their forces along a motion."""
    loose = np.flatnonzero(_undriven(problem))
    if not len(loose):
        return weights
    forms = np.zeros((problem.plan.node_size, problem.parameters.size, problem.parameters.size))
    forms[loose], apart = _forces(problem, point, loose)
    numbers, _ = linear_numbers(problem.parameters, point.values)
    squares = forms @ numbers @ numbers
    forms[loose[apart >= APART**2 * squares[loose]]] = 0.0
    proportion = Proportion(forms, np.sqrt(forms @ numbers @ numbers))
    return dataclasses.replace(weights, proportion=proportion if proportion.measured.any() else None)


def _undriven(problem: Problem) -> Bool[np.ndarray, " d"]:
    """Coordinates that nothing drives."""
    moved = driven(problem)
    return np.array([name not in moved for name in problem.level_names or ()], bool)


def _forces(
    problem: Problem, point: Point, which: np.ndarray
) -> tuple[Float[np.ndarray, "j p p"], Float[np.ndarray, " j"]]:
    """Q of some equations, and mean squares of what their free numbers do not give."""
    parameters = problem.parameters
    numbers, by_increments = linear_numbers(parameters, point.values)
    per_number, inertial = np.linalg.inv(by_increments), _inertial(problem)
    forms, apart = np.zeros((len(which), parameters.size, parameters.size)), np.zeros(len(which))
    steps = 0
    for index, track in enumerate(problem.tracks):
        place = parameters.places(index)
        # Whole bodies are shared by all recordings: their moments are among those that one recording sees.
        local = per_number[np.ix_(place, place)]
        columns, residual = _columns(problem, point, index, which)
        falling, _ = _columns(problem.holding({GRAVITY: 0.0}), point, index, which)
        columns, falling = columns @ local, falling @ local
        groups = (columns - falling, falling * inertial[place], falling * ~inertial[place])
        forms[:, place[:, None], place] += sum(np.einsum("kjp,kjq->jpq", part, part, optimize=True) for part in groups)
        apart += np.sum((residual - columns @ numbers[place]) ** 2, axis=0)
        steps += track.steps
    return forms / steps, apart / steps


def _columns(
    problem: Problem, point: Point, index: int, which: np.ndarray
) -> tuple[Float[np.ndarray, "k j p"], Float[np.ndarray, "k j"]]:
    """Derivatives of some impulse residuals by a recording's increments, and these residuals."""
    chunks = list(objective.chunk_rows(problem, point, unit_weights(problem), index))
    columns = np.concatenate([np.asarray(rows.parameters)[:, which] for rows in chunks])
    return columns, np.concatenate([np.asarray(rows.residual)[:, which] for rows in chunks])


def _inertial(problem: Problem) -> Bool[np.ndarray, " p"]:
    """Which increments are those of bodies and rotors."""
    bodies, labels = set(problem.mechanism.bodies.names), problem.parameters.labels()
    return np.array([label.split(".")[0] in bodies or ".shaft_inertia" in label for label in labels], bool)
