"""A few recordings and their states, which stay with one worker: what happens to them, as pure functions.

Everything here runs where the recordings are read. Sums over a shard are taken in the order of its recordings.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.linear import front
from shadowfit.estimation.linear.threads import alone
from shadowfit.estimation.problem.initial import initial_nodes
from shadowfit.estimation.problem.options import Options
from shadowfit.estimation.problem.parameters import ParameterSet
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem, build_problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.objective import Linearisation
from shadowfit.estimation.solve.proposal import Restraint, parameter_damping, state_damping, typical_sizes
from shadowfit.estimation.solve.settling import NOT_HELD, Expectation, settled
from shadowfit.estimation.solve.truncation import renewed
from shadowfit.estimation.spread import quadratic
from shadowfit.estimation.spread.quadratic import Pull
from shadowfit.estimation.spread.roles import Request, Roles
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.recordings import Recording
from shadowfit.records import record
from shadowfit.runtime import double_precision


@record(frozen=True)
class Task:
    """What is fitted; the same for all shards."""

    mechanism: Mechanism
    request: Request
    options: Options
    roles: Roles
    reference: float = 1.0
    """σ₀."""

    @functools.cached_property
    def parameters(self) -> Callable[[int], ParameterSet]:
        """The parameters as so many recordings see them. There are two sizes of shards at most."""
        return functools.cache(functools.partial(self.request.local, self.mechanism))

    def __getstate__(self) -> dict[str, Any]:
        """Without what each process remembers."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


@record(frozen=True)
class Stance:
    """Where the common unknowns are, and what is believed; the same for all shards."""

    values: Values
    """Of the common parameters."""
    weights: Weights
    pull: Float[np.ndarray, " q"]
    """λ of each individual parameter; zero where there is no mean."""
    slack: float = 0.0
    """By how much a recording may miss the cost that it was promised (:mod:`settling`)."""


def build(recordings: Sequence[Recording], task: Task) -> Problem:
    """The estimation problem of a shard by itself."""
    double_precision()
    return build_problem(task.mechanism, list(recordings), task.parameters(len(recordings)), task.options)


def sample_count(problem: Problem) -> int:
    """Scalar observations of a shard."""
    return problem.sample_count()


@record(frozen=True)
class Motion:
    """Unknowns of a shard: states, and all values as its recordings see them."""

    point: Point
    change: float = 0.0
    """Of the model's cost, in the step that led here."""
    largest: float = 0.0
    """Largest step of a state [m, rad], or relative one of an individual parameter, in that step."""
    expected: Expectation = NOT_HELD
    """What that step promised of each recording."""

    def __sizeof__(self) -> int:
        """Of the arrays, which tells a cluster what it costs to move it."""
        poses = [node.pose for node in (*self.point.nodes, *self.expected.before)]
        return 1000 + 2 * sum(np.asarray(p.position).nbytes + np.asarray(p.orientation).nbytes for p in poses)


def begin(problem: Problem, start: Mapping[str, Any]) -> Motion:
    """Initial trajectories at given values of the parameters, by name."""
    with alone():
        values = problem.parameters.of_names(start)
        nodes = tuple(initial_nodes(problem, values, i) for i in range(len(problem.tracks)))
        return Motion(Point(values, nodes))


def corrected(problem: Problem, motion: Motion | Linear) -> Motion:
    """The same with the discretisation errors of its own motion."""
    with alone():
        return Motion(renewed(problem, motion.point))


def hold(problem: Problem, motion: Motion | Linear, weights: Weights) -> Motion:
    """The same with widths of dry friction from its own motion, for a descent from it."""
    with alone():
        return Motion(objective.held(problem, motion.point))


def holds(problem: Problem) -> bool:
    """Whether there are such widths."""
    return objective.holds(problem)


@record(frozen=True)
class Linear:
    """Normal equations of a shard at a point."""

    here: Linearisation
    pulls: tuple[Pull, ...]
    """Of each recording."""

    @property
    def point(self) -> Point:
        """Where the shard's unknowns are."""
        return self.here.point

    def __sizeof__(self) -> int:
        """Of the arrays."""
        return 1000 + sum(normal.pivot.nbytes + normal.after.nbytes for normal in self.here.normals)


def linearise(problem: Problem, motion: Motion, task: Task, stance: Stance) -> Linear:
    """Evaluate and condense the rows of a shard; recordings that went astray are set right."""
    with alone(), np.errstate(over="ignore", invalid="ignore"):
        here = objective.linearise(problem, motion.point, stance.weights)
        here = settled(problem, here, stance.weights, motion.expected, stance.slack)
        pulls = tuple(_pull(problem, here, task.roles, stance, i) for i in range(len(problem.tracks)))
        return Linear(here, pulls)


def motion(linear: Linear) -> Motion:
    """Where the unknowns are: what the normal equations are made again from."""
    return Motion(linear.point)


def _pull(problem: Problem, here: Linearisation, roles: Roles, stance: Stance, recording: int) -> Pull:
    places = problem.parameters.places(recording)[roles.individual]
    tied = roles.scattering
    weight, distance = stance.pull, np.zeros(len(roles.individual))
    values = problem.parameters.flat(here.point.values)[places]
    distance[tied] = values[tied] - stance.values.numbers[roles.mean_numbers]
    # The prior of a parameter that scatters is that of its mean.
    free = roles.mean < 0
    return Pull(
        np.where(free, np.diagonal(here.prior_matrix)[places], 0.0),
        np.where(free, here.prior_gradient[places], 0.0),
        weight,
        distance,
    )


@record(frozen=True)
class Report:
    """What the optimiser has to know of a shard's normal equations."""

    dynamics: float
    sensors: Float[np.ndarray, " sensors"]
    start: float
    pulls: float
    diagonal: Float[np.ndarray, " d"]
    """Of the common parameters."""
    largest: float
    """Largest diagonal entry of all unknowns but the common ones."""
    gradient: float
    """Norm of the gradient of all unknowns but the common ones."""
    common_gradient: Float[np.ndarray, " d"]

    def __add__(self, other: Report) -> Report:
        """Of the recordings of both."""
        return Report(
            self.dynamics + other.dynamics,
            self.sensors + other.sensors,
            self.start + other.start,
            self.pulls + other.pulls,
            self.diagonal + other.diagonal,
            max(self.largest, other.largest),
            float(np.hypot(self.gradient, other.gradient)),
            self.common_gradient + other.common_gradient,
        )


def report(linear: Linear, task: Task) -> Report:
    """Costs and diagonals."""
    roles, here, size = task.roles, linear.here, task.roles.size
    diagonal, gradient = np.zeros(size), np.zeros(size)
    norms, largest = [0.0], 0.0
    for normal, pull in zip(here.normals, linear.pulls, strict=True):
        parts = quadratic.model(roles, normal.corner[:-1, :-1], normal.corner[:-1, -1], pull)
        diagonal += np.diagonal(parts.common)
        gradient += parts.common_gradient
        norms += [float(np.hypot.reduce(normal.gradient().ravel())), float(np.hypot.reduce(parts.individual_gradient))]
        largest = max(largest, float(normal.diagonal().max(initial=0.0)))
    cost = here.cost
    return Report(
        sum(cost.dynamics),
        np.sum(cost.sensors, axis=0),
        sum(cost.start),
        sum(pull.cost for pull in linear.pulls),
        diagonal,
        largest,
        float(np.hypot.reduce(norms)),
        gradient,
    )


# --- steps ---


def reduce(problem: Problem, linear: Linear, task: Task, restraint: Restraint) -> front.Reduced:
    """The shard's share of the damped system of the common unknowns, without states and individual parameters."""
    with alone():
        parts = [_eliminated(problem, linear, task, restraint, i) for i in range(len(problem.tracks))]
        return front.join(parts, [np.arange(task.roles.size)] * len(parts), task.roles.size)


def _factored(linear: Linear, recording: int, restraint: Restraint) -> front.Factor:
    normal = linear.here.normals[recording]
    return front.factorise(normal, state_damping(normal, restraint.alpha, restraint.damping))


def _model(
    problem: Problem, linear: Linear, task: Task, restraint: Restraint, recording: int, left: front.Reduced
) -> quadratic.Model:
    """The damped model of a recording without its states."""
    roles = task.roles
    places = problem.parameters.places(recording)[roles.individual]
    normal = linear.here.normals[recording]
    diagonal = normal.parameter_diagonal()[roles.individual]
    sizes = typical_sizes(problem.parameters, linear.here)[places]
    scale = problem.parameters.scales[places]
    damping = parameter_damping(restraint, diagonal, scale, sizes)
    return quadratic.model(roles, left.matrix, left.gradient, linear.pulls[recording], damping)


def _box(problem: Problem, linear: Linear, task: Task, recording: int) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest steps of a recording's individual parameters."""
    places = problem.parameters.places(recording)[task.roles.individual]
    lower, upper = problem.parameters.bounds(linear.here.point.values)
    return lower[places], upper[places]


def _eliminated(problem: Problem, linear: Linear, task: Task, restraint: Restraint, recording: int) -> front.Reduced:
    left = _factored(linear, recording, restraint).reduced()
    if not left.ok:
        return quadratic.failed(task.roles.size)
    model = _model(problem, linear, task, restraint, recording, left)
    free = ~quadratic.held(model.individual_gradient, *_box(problem, linear, task, recording))
    eliminated = model.eliminated(free)
    if eliminated is None:
        return quadratic.failed(task.roles.size)
    matrix, gradient, fall, _ = eliminated
    return front.Reduced(matrix, gradient, left.value - fall, left.margin)


def move(problem: Problem, linear: Linear, task: Task, restraint: Restraint, step: np.ndarray) -> Motion:
    """Where the shard's unknowns go with a step of the common ones."""
    with alone():
        roles, parameters = task.roles, problem.parameters
        increments, states = np.zeros(parameters.size), []
        change, largest, costs = 0.0, 0.0, []
        for recording, normal in enumerate(linear.here.normals):
            factor = _factored(linear, recording, restraint)
            model = _model(problem, linear, task, restraint, recording, factor.reduced())
            mine = model.step(step, *_box(problem, linear, task, recording))
            local = np.zeros(len(roles.shared) + len(roles.individual))
            local[roles.shared], local[roles.individual] = step[roles.common], mine
            places = parameters.places(recording)
            increments[places] = local
            states.append(factor.states(local))
            promised = normal.change(states[-1], local)
            costs.append(normal.cost + promised)
            change += promised
            mean = np.zeros(len(roles.individual))
            mean[roles.scattering] = step[roles.mean[roles.scattering]]
            change += linear.pulls[recording].change(mine, mean)
            relative = np.abs(mine) / typical_sizes(parameters, linear.here)[places[roles.individual]]
            largest = max(largest, float(np.max(np.abs(states[-1]))), float(np.max(relative, initial=0.0)))
        moved = objective.plus(problem, linear.point, tuple(states), increments)
        # The paper's method takes its steps as they are.
        held = restraint.damping == "scaled"
        return Motion(moved, change, largest, Expectation(tuple(costs), linear.point.nodes) if held else NOT_HELD)


@record(frozen=True)
class Step:
    """How the model changed in a step, and how large it was."""

    change: float
    largest: float

    def __add__(self, other: Step) -> Step:
        """Of the recordings of both."""
        return Step(self.change + other.change, max(self.largest, other.largest))


def step_of(motion: Motion) -> Step:
    """The step that led to a motion."""
    return Step(motion.change, motion.largest)
