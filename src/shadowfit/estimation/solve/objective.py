"""The objective at a point: residuals of all recordings linearised, condensed into normal equations.

    Σ_recordings [ κ Σ ‖Δp‖² + Σ ‖Δy‖²_{R⁻¹} ] + priors

in the paper's scaling: a sensor with the reference standard deviation ``σ₀`` (the geometric mean of the sensors'
ones) has weight one, so that κ means the same as in the paper whatever the units of the noise are, and costs are
squared readings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.linear import front, projection
from shadowfit.estimation.linear.threads import in_threads
from shadowfit.estimation.problem.axis_noise import answers_at, is_shaped
from shadowfit.estimation.problem.chunk import Chunk
from shadowfit.estimation.problem.parameters import ParameterSet
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.regularisation import is_regularised, with_stopping
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.estimation.residuals.stopping import Stopping
from shadowfit.estimation.residuals.unknowns import Start
from shadowfit.estimation.solve.chunks import RecordingRows, sum_of_squares
from shadowfit.records import record
from shadowfit.trees import map_leaves

Result = TypeVar("Result")

# Diagonal entries this small, relative to the largest, are rounding errors of zero.
ROUNDING = 1e-25
# Most numbers in rows of the dynamics that are kept: 64 MB.
KEPT = 2**23


@record(frozen=True)
class Cost:
    """The objective and its parts, in the paper's scaling."""

    dynamics: tuple[float, ...]
    """For each recording."""
    sensors: tuple[tuple[float, ...], ...]
    """For each recording and sensor."""
    start: tuple[float, ...]
    """Initial states of each recording."""
    prior: float
    """Priors of the parameters."""

    @property
    def total(self) -> float:
        """The objective."""
        return sum(self.dynamics) + self.observation + sum(self.start) + self.prior

    @property
    def observation(self) -> float:
        """Observations of all recordings."""
        return sum(sum(parts) for parts in self.sensors)


@record(frozen=True)
class Linearisation:
    """Normal equations at a point."""

    point: Point
    normals: tuple[front.Normal, ...]
    cost: Cost
    prior_matrix: Float[np.ndarray, "p p"]
    prior_gradient: Float[np.ndarray, " p"]
    dynamics: tuple[tuple[front.RowTable, ...], ...] = ()
    """Rows of the dynamics of each recording, chunk by chunk, where they are kept (:func:`keeps_rows`)."""


def prepare(problem: Problem, values: Values, weights: Weights) -> None:
    """Have the code of the rows made in the background, while the states to start from are found."""
    blank = problem.plan.unknowns.blank(problem.plan.window)
    resting = Stopping(np.zeros((1, len(problem.kernels.stick_times))))
    count = len(problem.tracks)
    point = Point(values, (blank,) * count, stopping=(resting,) * count)
    front.prepare()
    for index in range(len(problem.tracks)):
        problem.kernels.prepare_rows(RecordingRows(problem, point, weights, index).chunk(0, 1))


def holds(problem: Problem) -> bool:
    """Whether rows depend on what can be held: widths of dry friction, or how they answer to forces of joints."""
    return is_shaped(problem) or is_regularised(problem)


def held(problem: Problem, point: Point, alike: float = 0.0) -> Point:
    """The point with what is held while a fit moves it, from its own motion.

    That is widths of dry friction (:mod:`regularisation`) and answers to forces of joints (:mod:`axis_noise`). Where
    nothing has changed by more than the part ``alike`` it is the same point.
    """
    return _answering(problem, with_stopping(problem, point, alike), alike)


def _answering(problem: Problem, point: Point, alike: float) -> Point:
    if not is_shaped(problem):
        return point
    answers = tuple(answers_at(problem, point, index) for index in range(len(problem.tracks)))
    if point.answers is not None:
        sizes = zip(answers, point.answers, strict=True)
        if all(np.max(np.abs(own - other)) <= alike * np.max(np.abs(other)) for own, other in sizes):
            return point
    return dataclasses.replace(point, answers=answers)


def linearise(problem: Problem, point: Point, weights: Weights) -> Linearisation:
    """Evaluate and condense, in threads; the Jacobian of a few chunks at a time exists."""
    parts = condensed(problem, point, weights, range(len(problem.tracks)))
    rows = tuple(part.rows for part in parts) if keeps_rows(problem) else ()
    matrix, gradient, known = prior(problem.parameters, point.values, weights)
    dynamics, sensors = tuple(part.dynamics for part in parts), tuple(part.sensors for part in parts)
    cost = Cost(dynamics, sensors, tuple(part.start for part in parts), known)
    return Linearisation(point, tuple(part.normal for part in parts), cost, matrix, gradient, rows)


def keeps_rows(problem: Problem) -> bool:
    """Whether rows of the dynamics outlive their condensing: where there are few, and residuals alone cost much less.

    Steps are then corrected for what their linear model leaves out (:mod:`second_order`).
    """
    if problem.kernels.recursion is None or len(problem.mechanism.contacts):
        return False
    plan = problem.plan
    width = plan.unknowns.reach * plan.node_size + plan.parameters + 1
    return sum(track.steps for track in problem.tracks) * plan.node_size * width <= KEPT


@record(frozen=True)
class Condensed:
    """Normal equations of one recording, and the parts of its cost."""

    normal: front.Normal
    dynamics: float
    sensors: tuple[float, ...]
    start: float
    rows: tuple[front.RowTable, ...]
    """Those of the dynamics, where they are kept."""


def condensed(problem: Problem, point: Point, weights: Weights, which: Sequence[int]) -> list[Condensed]:
    """Some of the recordings, evaluated and condensed."""
    recordings = {index: RecordingRows(problem, point, weights, index) for index in which}
    assemblies = {index: rows.assembly() for index, rows in recordings.items()}
    keeps = keeps_rows(problem)

    def condense(work: tuple[int, int, Chunk]) -> tuple[float, np.ndarray, front.RowTable | None]:
        recording, begin, chunk = work
        rows = problem.kernels.rows(chunk, passing=True)
        dynamics, observed = assemblies[recording].add(rows, begin)
        # Rows by recursion do not lie in memory that is used again.
        return float(np.sum(dynamics)), recordings[recording].sensor_costs(observed), rows[0] if keeps else None

    chunks = [(index, begin) for index, rows in recordings.items() for begin in rows.starts]
    # Chunks are cut out here, and threads have little but machine code to run: Python runs in one of them at a time.
    waiting = in_threads(condense, ((index, begin, recordings[index].chunk(begin)) for index, begin in chunks))
    starts = {index: start_rows_of(problem, point, weights, index) for index in which}
    costs = list(waiting)
    parts = []
    for index in which:
        of_chunks = [cost for cost, (recording, _) in zip(costs, chunks, strict=True) if recording == index]
        dynamics = sum(cost for cost, _, _ in of_chunks)
        sensors = tuple(np.sum([each for _, each, _ in of_chunks], axis=0).tolist())
        start, kept = (
            sum_of_squares(starts[index].residual),
            tuple(rows for _, _, rows in of_chunks if rows is not None),
        )
        parts.append(Condensed(assemblies[index].normal(starts[index]), dynamics, sensors, start, kept))
    return parts


def chunk_rows(problem: Problem, point: Point, weights: Weights, index: int) -> Iterator[front.Rows]:
    """Rows of one recording, chunk by chunk, those of dynamics and observations of a step together."""
    return each_chunk(problem, point, weights, index, lambda _, rows: rows)


def residuals(problem: Problem, point: Point, weights: Weights, index: int) -> Float[np.ndarray, "n m"]:
    """Weighted residuals of all steps of one recording, those of the dynamics first."""
    recording = RecordingRows(problem, point, weights, index)
    short = problem.kernels.recursion is None
    chunks = (recording.chunk(begin) for begin in recording.starts) if short else recording.long_chunks()
    return np.concatenate(list(in_threads(problem.kernels.residuals, chunks)))


def residuals_after(
    problem: Problem, point: Point, weights: Weights, index: int, states: np.ndarray, increments: np.ndarray
) -> Float[np.ndarray, "n m"]:
    """Those of the linearised equations after a step of the states and of the parameters of the whole problem."""
    local, begin, parts = increments[problem.parameters.places(index)], 0, []
    for rows in chunk_rows(problem, point, weights, index):
        residual, by_states = np.asarray(rows.residual), np.asarray(rows.states)
        end = begin + len(residual)
        around = np.stack([states[begin + i : end + i] for i in range(by_states.shape[2])], axis=1)
        moved = np.einsum("kmwb,kwb->km", by_states, around, optimize=True)
        parts.append(residual + moved + np.asarray(rows.parameters) @ local)
        begin = end
    return np.concatenate(parts)


def each_chunk(
    problem: Problem, point: Point, weights: Weights, index: int, work: Callable[[int, front.Rows], Result]
) -> Iterator[Result]:
    """``work(first step, rows)`` of each chunk of one recording, in threads; results in order."""
    recording = RecordingRows(problem, point, weights, index)

    def condense(begin: int) -> Result:
        return work(begin, front.merge(recording.tables(begin), problem.plan.window))

    return in_threads(condense, recording.starts)


def start_rows_of(problem: Problem, point: Point, weights: Weights, index: int) -> front.Rows:
    """Rows of the initial state of one recording."""
    plan = problem.plan
    first = map_leaves(lambda x: x[: plan.window - 1], point.nodes[index])
    start = Start(first, weights.dynamics, problem.timestep, plan.parameters)
    return plan.unknowns.start_rows(start, problem.at(point.values, index))


def unseen(normal: front.Normal) -> np.ndarray:
    """Damping for unknowns that no residual depends on, so that they stay where they are.

    The last node of a window of four is such a one when no sample lies behind the last step.
    """
    diagonal = normal.diagonal()
    return np.where(diagonal <= ROUNDING * diagonal.max(initial=0.0), 1.0, 0.0)


def missing_and_known(problem: Problem, point: Point, weights: Weights) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Weighted impulses that the steps of each recording lack, and those that its inputs give.

    The latter are means over steps: errors of readings are white in them. Under a hat neighbours share half of them,
    and a part of what is missing from step to step would seem to be none of theirs.
    """
    size = problem.plan.node_size
    stepwise, idle = dataclasses.replace(problem, stepwise=True), problem.without_inputs()
    for index in range(len(problem.tracks)):
        missing, felt, quiet = (residuals(p, point, weights, index)[:, :size] for p in (problem, stepwise, idle))
        yield missing, quiet - felt


def states_stepped(problem: Problem, point: Point, weights: Weights) -> Point:
    """One Gauss–Newton step of the states alone, parameters held."""
    none = np.zeros(problem.parameters.size)
    here = linearise(problem, point, weights)
    states = tuple(
        undamped(normal)[0].states(none[problem.parameters.places(i)]) for i, normal in enumerate(here.normals)
    )
    return plus(problem, here.point, states, none)


def with_states(problem: Problem, point: Point, index: int, states: Nodes) -> Point:
    """The point with other states of one recording; loops are closed."""
    nodes = list(point.nodes)
    nodes[index] = Nodes(problem.at(point.values, index).closed(states.pose), states.velocity)
    return dataclasses.replace(point, nodes=tuple(nodes))


def undamped(normal: front.Normal) -> tuple[front.Factor, float]:
    """The factor of all states that are seen, and the ridge that it needed, if any (:mod:`projection`)."""
    return projection.factorise(normal, unseen(normal))


def prior(parameters: ParameterSet, values: Values, weights: Weights) -> tuple[np.ndarray, np.ndarray, float]:
    """Gaussian priors around the start values, and the pull of the likelihood: matrix, gradient and cost."""
    weight, gradient, cost = np.zeros((parameters.size, parameters.size)), np.zeros(parameters.size), 0.0
    information = parameters.information(weights.file_spread)
    if information is not None:
        known = weights.reference**2 * information
        difference, carried = parameters.from_start(values)
        weight, gradient = carried.T @ known @ carried, carried.T @ (known @ difference)
        cost = float(difference @ known @ difference)
    if weights.pull is not None:
        added = weights.reference**2 * np.array(weights.pull.curvature)
        away = parameters.flat(values) - np.array(weights.pull.center)
        weight = weight + np.diag(added)
        gradient, cost = gradient + added * away, cost + float(np.sum(added * away**2))
    return weight, gradient, cost


def plus(problem: Problem, point: Point, states: tuple[np.ndarray, ...], increments: np.ndarray) -> Point:
    """``x ⊞ δ`` of all unknowns."""
    nodes = tuple(problem.kernels.retract(nodes, steps) for nodes, steps in zip(point.nodes, states, strict=True))
    moved = dataclasses.replace(point, nodes=nodes)
    return problem.revalued(moved, problem.parameters.plus(point.values, increments))
