"""The result of a fit: parameters with their uncertainty, trajectories, costs, status and log."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import os
from typing import Any

import numpy as np
from jaxtyping import Float

from shadowfit.dynamics import observe
from shadowfit.dynamics.state import State
from shadowfit.estimation.linear import front
from shadowfit.estimation.linear.threads import one_thread
from shadowfit.estimation.noise import NoiseChoice
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.levenberg_marquardt import Iteration, Outcome, Status
from shadowfit.estimation.uncertainty.base_parameters import BaseParameters, base_parameters
from shadowfit.estimation.uncertainty.covariance import Uncertainty, check_kind
from shadowfit.estimation.uncertainty.evidence import Evidence, Kind, gather
from shadowfit.estimation.uncertainty.identifiability import Finding
from shadowfit.geometry import Pose
from shadowfit.geometry.differences import differences
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.scales import scales_of

# A parameter whose standard deviation exceeds its own size is not identified by the data.
IDENTIFIABLE = 1.0
# Part of a prior's standard deviation above which the data have hardly added to it (less than it knew itself).
FROM_PRIOR = 0.7
# Compliance that is as good as none, relative to one that gives by the machine's length under its weight.
RIGID = 1e-8


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
    prior_std: float = np.inf
    """Standard deviation of the prior alone; infinite without one."""

    @property
    def from_prior(self) -> bool:
        """Whether the data hardly add to the prior: the value stays near the model's."""
        return bool(self.std > FROM_PRIOR * self.prior_std)


@dataclasses.dataclass(frozen=True)
class EstimatedTrajectory:
    """States of one recording at the steps, and what the sensors would read there."""

    time: Float[np.ndarray, " n"]
    states: State
    readings: dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What a fit found. Its normal equations are kept, for uncertainty."""

    problem: Problem
    weights: Weights
    outcome: Outcome
    seconds: Seconds
    noise_choice: NoiseChoice | None = None
    """How the weights were found from the data; None where they were given."""

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
        return self.weights.state_weight

    @property
    def impulse_variances(self) -> tuple[float, ...] | None:
        """Relative variances of the impulses that the weights stand for, as `Options.impulse_covariance` takes them.

        None where all are alike, or were given.
        """
        if self.problem.level_names is None or self.problem.options.impulse_covariance is not None:
            return None
        return tuple((self.state_weight / np.diagonal(self.weights.dynamics) ** 2).tolist())

    @property
    def unexplained(self) -> dict[str, float]:
        """Force of each joint that its model does not explain: standard deviation [N m, N] of a step's mean force.

        Empty where errors are those of bodies.
        """
        if self.problem.level_names is None:
            return {}
        std = self.weights.reference / np.diagonal(self.weights.dynamics) * self.weights.impulse_ratio
        return dict(zip(self.problem.level_names, (std / self.problem.timestep).tolist(), strict=True))

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
        """The calibrated mechanism; with joint coordinates its joints are rigid, as the fit took them."""
        if recording not in self._mechanisms:
            values = self.problem.parameters.named(self.outcome.linearisation.point.values, recording)
            all_values = {**values, **self.followers(recording), **self._rigid_joints()}
            self._mechanisms[recording] = self.problem.given.write(all_values)
        return self._mechanisms[recording]

    @functools.cached_property
    def _mechanisms(self) -> dict[int, Mechanism]:
        """Calibrated mechanisms that were asked for, by recording."""
        return {}

    def followers(self, recording: int = 0) -> dict[str, float]:
        """Moments of inertia that were held and give way, for the calibrated bodies to be possible, by name."""
        last = self.problem.parameters.followers(self.outcome.linearisation.point.values, recording)
        return {**self.problem.followed, **last}

    @property
    def on_edge(self) -> tuple[str, ...]:
        """Bodies that ended on the edge of what a body can have: flat ones, with a second moment of zero."""
        return self.problem.parameters.on_edge(self.outcome.linearisation.point.values)

    def _rigid_joints(self) -> dict[str, float]:
        """Compliances of joints that would give, if the fit did not let them."""
        if not self.problem.plan.unknowns.scope.rigid:
            return {}
        given, scales = self.problem.given, scales_of(self.problem.given)
        names = [f"{name}.compliance.{kind}" for name in given.joints for kind in ("linear", "rotational")]
        rigid = {name: RIGID * scales.of(given.unit(name)) for name in names}
        return {name: value for name, value in rigid.items() if given.get(name) > value}

    @functools.cached_property
    def values(self) -> dict[str, Any]:
        """Estimated values by name (of the first recording, for those that differ between recordings)."""
        return self.problem.parameters.named(self.outcome.linearisation.point.values)

    @functools.cached_property
    def factors(self) -> tuple[front.Factor, ...]:
        """Factor of each recording's normal equations: undamped, or as little damped as unobserved states need."""
        with one_thread():
            return tuple(objective.undamped(normal)[0] for normal in self.outcome.linearisation.normals)

    @functools.cached_property
    def evidence(self) -> Evidence:
        """What the data say about the parameters: the linearised problem with the states projected out."""
        with one_thread():
            return gather(self.problem, self.outcome.linearisation, self.weights)

    @property
    def information(self) -> Float[np.ndarray, "p p"]:
        """Information of the parameters (states projected out, undamped, priors included), as inverse variance."""
        return self.evidence.information

    @property
    def at_bound(self) -> np.ndarray:
        """Which increments sit on a bound of their box."""
        return self.evidence.at_bound

    def uncertainty(self, kind: Kind = "blocks") -> Uncertainty:
        """Covariance, correlations and intervals of a kind (:mod:`uncertainty.covariance`)."""
        parameters = self.problem.parameters
        values = parameters.vector(self.outcome.linearisation.point.values)
        bounds = parameters.spread(lambda p: p.lower), parameters.spread(lambda p: p.upper)
        return Uncertainty(check_kind(kind), self.evidence, values, *bounds)

    @functools.cached_property
    def covariance(self) -> Float[np.ndarray, "p p"]:
        """Gauss–Newton covariance of the increments with the weights of the fit; zero rows for those on a bound."""
        return self.uncertainty("gauss-newton").covariance

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the data cannot tell about the parameters, in words."""
        return self.evidence.findings

    @functools.cached_property
    def base_parameters(self) -> BaseParameters:
        """The combinations of parameters that the data determine, and what they never see."""
        values = self.problem.parameters.vector(self.outcome.linearisation.point.values)
        return base_parameters(self.evidence, values, self._units)

    @property
    def _units(self) -> list[str]:
        return [p.unit for p in self.problem.parameters.parameters for _ in range(self._copies(p))]

    def state_std(self, recording: int = 0) -> Float[np.ndarray, "n bodies k"]:
        """Standard deviation of each body's state at the steps of a recording, parameters' uncertainty included.

        k counts position [m] and rotation [rad], and with ``full`` unknowns the velocities of both. States that nothing
        observes have a very large one.
        """
        place = self.problem.parameters.places(recording)
        own = self.covariance[np.ix_(place, place)] / self.weights.reference**2
        point = self.outcome.linearisation.point
        found = self.problem.plan.unknowns.body_covariance(
            self.factors[recording].covariances(own),
            point.nodes[recording].pose,
            self.problem.at(point.values, recording),
        )
        variance = np.diagonal(found, axis1=1, axis2=2) * self.weights.reference**2
        first, steps = self.problem.plan.centre, self.problem.tracks[recording].steps
        table = np.sqrt(np.maximum(variance[first : first + steps], 0.0))
        return table.reshape(steps, len(self.problem.mechanism.bodies), -1)

    @functools.cached_property
    def parameters(self) -> tuple[ParameterEstimate, ...]:
        """The table of parameters; standard deviations know about disagreement between pieces of the data."""
        return self.table()

    def table(self, kind: Kind = "blocks") -> tuple[ParameterEstimate, ...]:
        """The table of parameters with standard deviations of a kind."""
        found = self.uncertainty(kind)
        std, freed = found.std, found.freed_std
        values = self.problem.parameters.vector(self.outcome.linearisation.point.values)
        starts = self.problem.parameters.vector(self.problem.parameters.start())
        spread = self.problem.parameters.spread
        lower, upper = spread(lambda p: p.lower), spread(lambda p: p.upper)
        units = self._units
        scale = self.evidence.scale
        listed = []
        for i, label in enumerate(self.problem.parameters.labels()):
            bound = bool(self.at_bound[i])
            listed.append(
                ParameterEstimate(
                    label,
                    float(values[i]),
                    float(std[i]),
                    units[i],
                    float(starts[i]),
                    float(lower[i]),
                    float(upper[i]),
                    bound,
                    bool(freed[i] < IDENTIFIABLE * scale[i]),
                    float(self.evidence.prior_std[i]),
                )
            )
        return tuple(listed)

    def _copies(self, parameter: Any) -> int:
        return parameter.size * (self.problem.parameters.recordings if parameter.per_recording else 1)

    def trajectory(self, recording: int = 0) -> EstimatedTrajectory:
        """Estimated states at the steps of a recording and the sensors' readings there."""
        if recording not in self._trajectories:
            self._trajectories[recording] = self._trajectory(recording)
        return self._trajectories[recording]

    @functools.cached_property
    def _trajectories(self) -> dict[int, EstimatedTrajectory]:
        """Trajectories that were asked for, by recording."""
        return {}

    def _trajectory(self, recording: int) -> EstimatedTrajectory:
        track = self.problem.tracks[recording]
        nodes = self.problem.bodies(self.outcome.linearisation.point, recording)
        states = _states_at_steps(self.problem, nodes, track.steps)
        mechanism = self.mechanism(recording)
        return EstimatedTrajectory(track.times(self.problem.timestep), states, observe.readings(mechanism, states))

    def save(self, folder: str | os.PathLike[str], **details: Any) -> dict[str, Any]:
        """Write the result into a folder as ``shadowfit.save_estimate`` does, with the same keywords."""
        # A door to the layer above, opened when it is called.
        return importlib.import_module("shadowfit").save_estimate(self, folder, **details)

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


def _states_at_steps(problem: Problem, nodes: Nodes, steps: int) -> State:
    """Poses at the steps; velocities of the unknowns, or the mean of the differences before and after."""
    first = problem.plan.centre
    pose = Pose(nodes.pose.position[first : first + steps], nodes.pose.orientation[first : first + steps])
    if nodes.velocity is not None:
        return State(pose, nodes.velocity[first : first + steps])
    before = Pose(nodes.pose.position[:steps], nodes.pose.orientation[:steps])
    after = Pose(nodes.pose.position[2 : 2 + steps], nodes.pose.orientation[2 : 2 + steps])
    return State(pose, 0.5 * (differences(after, pose) + differences(pose, before)) / problem.timestep)
