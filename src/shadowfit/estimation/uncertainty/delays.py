"""How late do drives act, as far as the data tell?

An input that is held between its samples is a staircase, and equations that are linearised see of its delay only where
stairs begin and end within one time step: what a step more or less would bring they do not know. Where the model does
not say how a drive answers within a step or two (a lag of its loop, a gear that yields) the cost has a minimum in every
step, and a fit that starts without delay ends in the first one. So delays are moved by whole time steps and compared
by their likelihood, the equations linearised along the present motion and the step that they ask for thought to be
made, as long as one of them gains.

Drives have delays of their own. With all of them moved alike, χ² of the equations of the joints that an input drives,
and of the sensors that read these, says which delay is the most likely for it.
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.problem import rows
from shadowfit.estimation.problem.drives import inputs_of
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.uncertainty.start_levels import EVIDENCE
from shadowfit.estimation.uncertainty.thought_step import left_by_step

# Longest way that is tried, in time steps to each side; steps without a gain that end it.
MOST, PATIENCE = 20, 2

# Recordings and coordinates whose equations feel a delay.
Felt = list[tuple[int, int]]
Squares = Float[np.ndarray, "r d"]


def caught_up(problem: Problem, point: Point, weights: Weights) -> Point:
    """The point with delays of drives moved by whole time steps to where they are most likely; as it is, if here."""
    felt = _felt(problem)
    if not felt:
        return point
    here = _after_step(problem, point, weights)
    best, shifts = here, dict.fromkeys(felt, 0)
    for way in (1, -1):
        since = 0
        for steps in range(way, way * (MOST + 1), way):
            moved = _moved(problem, point, dict.fromkeys(felt, steps))
            if moved is None:
                break
            tried, since = _after_step(problem, moved, weights), since + 1
            for place, cells in felt.items():
                if _growth(tried, best, cells) > EVIDENCE:
                    best, shifts[place], since = _taken(best, tried, cells), steps, 0
            if since == PATIENCE:
                break
    together = _moved(problem, point, {place: steps for place, steps in shifts.items() if steps})
    if together is None:
        return point
    # Equations share parameters: what is best for each may not be for all.
    gain = np.sum(here) - np.sum(_after_step(problem, together, weights))
    return together if gain > EVIDENCE else point


def _felt(problem: Problem) -> dict[int, Felt]:
    """Free delays by their places among the parameters, and the equations of the joints that their inputs drive."""
    names, places = problem.level_names or (), dict[str, list[int]]()
    for name, sources in inputs_of(problem).items():
        for source in set(sources.values()) if name in names else ():
            places.setdefault(f"{source}.delay", []).append(names.index(name))
    felt: dict[int, Felt] = {}
    labels = problem.parameters.labels()
    for recording in range(len(problem.tracks)):
        for place in problem.parameters.places(recording).tolist():
            for coordinate in places.get(labels[place].partition("@")[0], ()):
                felt.setdefault(place, []).append((recording, coordinate))
    return felt


def _moved(problem: Problem, point: Point, shifts: dict[int, int]) -> Point | None:
    """The point with delays moved by so many time steps within their bounds, or None if none moves."""
    lower, upper = problem.parameters.bounds(point.values)
    increments = np.zeros(problem.parameters.size)
    for place, steps in shifts.items():
        increments[place] = np.clip(steps * problem.timestep, lower[place], upper[place])
    if not increments.any():
        return None
    return problem.revalued(point, problem.parameters.plus(point.values, increments))


def _growth(before: Squares, after: Squares, cells: Felt) -> float:
    """Growth of χ² over some equations."""
    return float(sum(after[r, d] - before[r, d] for r, d in cells))


def _taken(best: Squares, tried: Squares, cells: Felt) -> Squares:
    """χ² with that of some equations replaced."""
    taken = best.copy()
    for cell in cells:
        taken[cell] = tried[cell]
    return taken


def _after_step(problem: Problem, point: Point, weights: Weights) -> Squares:
    """χ² of each recording and coordinate, with the sensors that read it, after the step that equations ask for."""
    left = left_by_step(problem, point, weights)
    if left is None:
        return np.full((len(problem.tracks), problem.plan.node_size), np.inf)
    names, found = problem.level_names or (), []
    for index, own in enumerate(left):
        dynamics, *sensors = rows.groups(problem, index)
        squares = np.sum(own[:, : dynamics.size] ** 2, axis=0)
        for sensor, group in zip(problem.mechanism.sensors.values, sensors, strict=True):
            if getattr(sensor, "joint", None) in names:
                read = sum(float(np.sum(own[:, part] ** 2)) for part in group.samples())
                squares[names.index(sensor.joint)] += read
        found.append(squares / weights.reference**2)
    return np.stack(found)
