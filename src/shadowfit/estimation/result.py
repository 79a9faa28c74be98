"""The result of a fit: parameters with their uncertainty, trajectories, costs, status and log."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.kinematics import read_sensors
from shadowfit.dynamics.state import State
from shadowfit.estimation import front, objective
from shadowfit.estimation.box_step import solve_on
from shadowfit.estimation.levenberg_marquardt import Iteration, Outcome, Status
from shadowfit.estimation.linearise import Nodes
from shadowfit.estimation.objective import Weights
from shadowfit.estimation.problem import Problem
from shadowfit.geometry import Pose, rotations
from shadowfit.mechanism.mechanism import Mechanism

# A parameter whose standard deviation exceeds its own size is not identified by the data.
IDENTIFIABLE = 1.0
# Components of an unidentified direction below this are rounding.
UNRELATED = 1e-4
# Information, in units of one over squared typical size, is taken to be at least this: a direction without any gets
# a standard deviation of ten typical sizes, enough to be seen and not so much that it drowns its neighbours.
LEAST_INFORMATION = 1e-2
# A value within this fraction of its typical size from a bound sits on it.
AT_BOUND = 1e-9


@dataclasses.dataclass(frozen=True)
class Seconds:
    """Where the time went."""

    total: float
    initial: float
    solve: float


@dataclasses.dataclass(frozen=True)
class ParameterEstimate:
    """One row of the result: a parameter's value and standard deviation, in its unit.

    ``at_bound`` does not exclude ``identifiable``: the data may well push a parameter to its bound. A rotation is
    given as a rotation vector from the world's axes, one row for each component. ``std`` is conditional on the
    parameters that sit on a bound, whose own ``std`` is NaN; ``identifiable`` is False where the data say (almost)
    nothing.
    """

    name: str
    value: float
    std: float
    unit: str
    start: float
    lower: float
    upper: float
    at_bound: bool
    identifiable: bool


@dataclasses.dataclass(frozen=True)
class EstimatedTrajectory:
    """States of one recording at the steps, and what the sensors would read there."""

    time: Float[np.ndarray, " n"]
    states: State
    readings: dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What a fit found. The factor of the undamped normal equations is kept, for uncertainty."""

    problem: Problem
    weights: Weights
    outcome: Outcome
    seconds: Seconds

    @property
    def status(self) -> Status:
        """How the fit ended, with an explaining text."""
        return self.outcome.status

    @property
    def converged(self) -> bool:
        """Whether a minimum was reached."""
        return self.status.converged

    @property
    def log(self) -> tuple[Iteration, ...]:
        """One entry for each iteration."""
        return self.outcome.log

    @property
    def iterations(self) -> int:
        """Number of accepted steps."""
        return max(len(self.log) - 1, 0)

    @property
    def steps(self) -> int:
        """Time steps of all recordings."""
        return sum(track.steps for track in self.problem.tracks)

    @property
    def state_weight(self) -> float:
        """κ of the (last) fit, in the paper's scaling."""
        return float(np.mean(np.diagonal(self.weights.dynamics) ** 2))

    @property
    def noise(self) -> dict[str, float]:
        """Standard deviation of each sensor's noise that the fit assumed, or estimated with ``auto``."""
        std = np.array(self.weights.std) * self.weights.reference
        return dict(zip(self.problem.sensors, std.tolist(), strict=True))

    @property
    def cost(self) -> float:
        """Squared residuals divided by the number of time steps, as the paper reports them."""
        return self.outcome.linearisation.cost.total / self.steps

    @property
    def cost_dynamics(self) -> float:
        """Part of the cost from the dynamics."""
        return sum(self.outcome.linearisation.cost.dynamics) / self.steps

    @property
    def cost_observation(self) -> float:
        """Part of the cost from the observations."""
        return self.outcome.linearisation.cost.observation / self.steps

    def mechanism(self, recording: int = 0) -> Mechanism:
        """The calibrated mechanism."""
        values = self.outcome.linearisation.point.values
        return self.problem.given.write(self.problem.parameters.named(values, recording))

    @functools.cached_property
    def values(self) -> dict[str, Any]:
        """Estimated values by name (of the first recording, for those that differ between recordings)."""
        return self.problem.parameters.named(self.outcome.linearisation.point.values)

    @functools.cached_property
    def factors(self) -> tuple[front.Factor, ...]:
        """Undamped factor of each recording's normal equations."""
        return tuple(front.factorise(n, objective.unseen(n)) for n in self.outcome.linearisation.normals)

    @functools.cached_property
    def information(self) -> Float[np.ndarray, "p p"]:
        """Reduced, undamped matrix of the parameters (states eliminated, priors included), as inverse variance."""
        parameters = self.problem.parameters
        places = [parameters.places(i) for i in range(len(self.factors))]
        reduced = front.join([factor.reduced() for factor in self.factors], places, parameters.size)
        prior = np.diag(self.outcome.linearisation.prior_matrix)
        return (reduced.matrix + prior) / self.weights.reference**2

    @functools.cached_property
    def at_bound(self) -> np.ndarray:
        """Which increments sit on a bound of their box."""
        parameters = self.problem.parameters
        lower, upper = parameters.bounds(self.outcome.linearisation.point.values)
        slack = AT_BOUND * parameters.spread(lambda p: p.scale)
        return (lower >= -slack) | (upper <= slack)

    @functools.cached_property
    def covariance(self) -> Float[np.ndarray, "p p"]:
        """Gauss–Newton covariance of the increments with the weights of the fit; zero rows for those on a bound.

        Directions without information have a standard deviation of ten times the parameters' typical size.
        """
        return self._inverse(~self.at_bound)

    def _inverse(self, free: np.ndarray) -> Float[np.ndarray, "p p"]:
        """Inverse of the information on the free increments, zero on the others.

        In units of the parameters' typical sizes, an eigenvector with a standard deviation above one is not identified.
        Rounding gives it small components on parameters that have nothing to do with it; these are cleared, so that
        they keep their own uncertainty.
        """
        scale = self.problem.parameters.spread(lambda p: p.scale)[free]
        block = np.nan_to_num(self.information[np.ix_(free, free)]) * np.outer(scale, scale)
        values, vectors = np.linalg.eigh(block)
        weak = values < 1.0
        if not weak.any():
            exact = solve_on(self.information, free, np.eye(len(free)))
            if exact is not None:
                return exact
        vectors = np.where(weak & (np.abs(vectors) < UNRELATED), 0.0, vectors)
        inverse = (vectors / np.maximum(values, LEAST_INFORMATION)) @ vectors.T
        covariance = np.zeros_like(self.information)
        covariance[np.ix_(free, free)] = inverse * np.outer(scale, scale)
        return covariance

    @functools.cached_property
    def parameters(self) -> tuple[ParameterEstimate, ...]:
        """The table of parameters."""
        std = np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))
        values = self._increment_values(self.outcome.linearisation.point.values)
        starts = self._increment_values(self.problem.parameters.start())
        spread = self.problem.parameters.spread
        lower, upper = spread(lambda p: p.lower), spread(lambda p: p.upper)
        units = [p.unit for p in self.problem.parameters.parameters for _ in range(self._copies(p))]
        scale = np.maximum(spread(lambda p: p.scale), np.abs(values))
        rows = []
        for i, label in enumerate(self.problem.parameters.labels()):
            bound = bool(self.at_bound[i])
            rows.append(
                ParameterEstimate(
                    label,
                    float(values[i]),
                    float("nan") if bound else float(std[i]),
                    units[i],
                    float(starts[i]),
                    float(lower[i]),
                    float(upper[i]),
                    bound,
                    bool((self._freed_std(i) if bound else std[i]) < IDENTIFIABLE * scale[i]),
                )
            )
        return tuple(rows)

    def _freed_std(self, increment: int) -> float:
        """Standard deviation that a parameter on a bound would have if it were free."""
        free = ~self.at_bound
        free[increment] = True
        return float(np.sqrt(max(self._inverse(free)[increment, increment], 0.0)))

    def _copies(self, parameter: Any) -> int:
        return parameter.size * (self.problem.parameters.recordings if parameter.per_recording else 1)

    def _increment_values(self, values: Any) -> np.ndarray:
        """Value of each increment: numbers, and rotation vectors of rotations."""
        entries: list[np.ndarray] = []
        numbers, turns = iter(values.numbers), iter(values.turns)
        for parameter in self.problem.parameters.parameters:
            entries.append(_rotation_vectors(next(turns)) if parameter.is_rotation else next(numbers))
        return np.concatenate(entries) if entries else np.zeros(0)

    def trajectory(self, recording: int = 0) -> EstimatedTrajectory:
        """Estimated states at the steps of a recording and the sensors' readings there."""
        track = self.problem.tracks[recording]
        nodes: Nodes = self.outcome.linearisation.point.nodes[recording]
        states = _states_at_steps(self.problem, nodes, track.steps)
        mechanism = self.mechanism(recording)
        values = _read_all(mechanism, states)
        readings = {}
        for name, value in zip(mechanism.sensors, values, strict=True):
            table = np.asarray(value)
            readings[name] = table[:, 0] if table.shape[1] == 1 else table
        return EstimatedTrajectory(track.times(self.problem.timestep), states, readings)

    def summary(self) -> str:
        """The verdict and the parameter table as plain text."""
        lines = [f"{self.status.value} ({self.iterations} iterations, {self.seconds.total:.2f} s)"]
        lines.append(
            f"cost {self.cost:.4g} per time step "
            f"(dynamics {self.cost_dynamics:.3g}, observation {self.cost_observation:.3g})"
        )
        width = max([len(row.name) for row in self.parameters], default=0)
        for row in self.parameters:
            note = (" at bound" if row.at_bound else "") + ("" if row.identifiable else " not identifiable")
            spread = "" if row.at_bound else f" ± {row.std:.2g}"
            lines.append(f"{row.name:<{width}}  {row.value:.6g}{spread} {row.unit}{note}")
        return "\n".join(lines)


_log = jax.jit(rotations.log)


def _rotation_vectors(quaternions: np.ndarray) -> np.ndarray:
    return np.asarray(_log(quaternions)).ravel()


def _states_at_steps(problem: Problem, nodes: Nodes, steps: int) -> State:
    """Poses at the steps; velocities of the unknowns, or the mean of the differences before and after."""
    first = problem.plan.centre
    pose = Pose(nodes.pose.position[first : first + steps], nodes.pose.orientation[first : first + steps])
    if nodes.velocity is not None:
        return State(pose, nodes.velocity[first : first + steps])
    before = Pose(nodes.pose.position[:steps], nodes.pose.orientation[:steps])
    after = Pose(nodes.pose.position[2 : 2 + steps], nodes.pose.orientation[2 : 2 + steps])
    velocity = 0.5 * (np.asarray(_minus(after, pose)) + np.asarray(_minus(pose, before))) / problem.timestep
    return State(pose, velocity)


_minus = jax.jit(lambda later, earlier: later.minus(earlier))


@jax.jit
def _read_all(mechanism: Mechanism, states: State) -> tuple:
    elements = assemble(mechanism)
    readings = jax.vmap(lambda state: read_sensors(mechanism, elements, state))(states)
    return tuple(s.follow(value) for s, value in zip(mechanism.sensors.values, readings, strict=True))
