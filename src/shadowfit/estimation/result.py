"""The result of a fit: parameters with their uncertainty, trajectories, costs, status and log."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import os
from typing import Any, Self

import numpy as np

from shadowfit.arrays import Bool, Float
from shadowfit.dynamics import observe
from shadowfit.dynamics.state import Instant, State
from shadowfit.estimation.linear import front
from shadowfit.estimation.linear.threads import one_thread
from shadowfit.estimation.noise import NoiseChoice
from shadowfit.estimation.posterior import DrawError, Draws, Posterior, last_prior, with_prior
from shadowfit.estimation.problem.error_model import ErrorModel
from shadowfit.estimation.problem.parameters import ParameterSet
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.levenberg_marquardt import WARM_DAMPING, Iteration, Outcome, Status
from shadowfit.estimation.solve.proposal import share_of
from shadowfit.estimation.solve.system import LocalSystem
from shadowfit.estimation.uncertainty.base_parameters import BaseParameters, base_parameters
from shadowfit.estimation.uncertainty.covariance import Uncertainty, check_kind
from shadowfit.estimation.uncertainty.evidence import Evidence, Kind, gather, gather_over_stairs
from shadowfit.estimation.uncertainty.identifiability import Finding
from shadowfit.frames import pandas_frame, polars_frame
from shadowfit.geometry import Pose
from shadowfit.geometry.differences import differences
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.scales import scales_of
from shadowfit.records import record

# A parameter whose standard deviation exceeds its own size is not identified by the data.
IDENTIFIABLE = 1.0
# Part of a prior's standard deviation above which the data have hardly added to it (less than it knew itself).
FROM_PRIOR = 0.7
# Compliance that is as good as none, relative to one that gives by the machine's length under its weight.
RIGID = 1e-8
RED = (
    "the verdict on this result is red: its error bars are not to be believed, and draws follow them; read its notices "
    "(`shadowfit report`), or draw all the same with red=True (--force)"
)


@record(frozen=True)
class Seconds:
    """Where the time went."""

    total: float
    initial: float
    solve: float


@record(frozen=True)
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


@record(frozen=True)
class Accuracy:
    """How well each increment is known: columns of the table of parameters."""

    std: Float[np.ndarray, " p"]
    at_bound: Bool[np.ndarray, " p"]
    identifiable: Bool[np.ndarray, " p"]
    prior_std: Float[np.ndarray, " p"]


def tabulate(parameters: ParameterSet, values: Values, accuracy: Accuracy) -> tuple[ParameterEstimate, ...]:
    """The table of parameters at some values: one row for each increment."""
    columns = zip(
        parameters.labels(),
        parameters.vector(values).tolist(),
        accuracy.std.tolist(),
        parameters.units(),
        parameters.vector(parameters.start()).tolist(),
        parameters.lower.tolist(),
        parameters.upper.tolist(),
        accuracy.at_bound.tolist(),
        accuracy.identifiable.tolist(),
        accuracy.prior_std.tolist(),
        strict=True,
    )
    return tuple(ParameterEstimate(*row) for row in columns)


@record(frozen=True)
class EstimatedTrajectory:
    """States of one recording at the steps, and what the sensors would read there."""

    time: Float[np.ndarray, " n"]
    states: State
    readings: dict[str, np.ndarray]


class Ended:
    """How an optimisation ended, of any result that holds its outcome."""

    outcome: Outcome

    def unless_interrupted(self) -> Self:
        """Itself, for work that needs a whole fit: a Ctrl-C that ended it is raised again."""
        self.outcome.unless_interrupted()
        return self

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


@record(frozen=True)
class Estimate(Ended):
    """What a fit found. Its normal equations are kept, for uncertainty."""

    problem: Problem
    weights: Weights
    outcome: Outcome
    seconds: Seconds
    noise_choice: NoiseChoice | None = None
    """How the weights were found from the data; None where they were given."""

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

        Where errors are those of bodies, only of the joints whose errors were given.
        """
        if self.problem.level_names is None:
            std = np.array(self.weights.axis_std) / self.problem.timestep
            return dict(zip(self.problem.options.errors.forces, std.tolist(), strict=True))
        force = self.weights.unexplained / self.problem.timestep
        return dict(zip(self.problem.level_names, force.tolist(), strict=True))

    @property
    def errors(self) -> ErrorModel:
        """The error model that came out: levels of forces and readings, and what the parameters are for.

        ``fit(…, options=Options(errors=estimate.errors))`` believes in the same.
        """
        criterion = self.problem.options.errors.criterion
        if criterion == "auto" and self.noise_choice is not None:
            criterion = "simulate" if self.noise_choice.added_weight > 1.0 else "parameters"
        tracks = self.problem.tracks
        per_sample = np.sqrt(self.problem.timestep / min(track.recording.sample_interval for track in tracks))
        forces = {name: std * per_sample for name, std in self.unexplained.items()}
        return ErrorModel(forces, self.noise, criterion)

    @property
    def noise(self) -> dict[str, float]:
        """Standard deviation of each sensor's noise that the fit assumed, or estimated with ``auto``."""
        std = np.array(self.weights.std) * self.weights.reference
        return dict(zip(self.problem.sensors, std.tolist(), strict=True))

    @property
    def most_likely(self) -> dict[str, float]:
        """The most likely values by their rows, where those that simulate best were chosen instead; else none."""
        found = None if self.noise_choice is None else self.noise_choice.most_likely
        return {} if found is None else dict(zip(self.problem.parameters.labels(), found, strict=True))

    @property
    def cost(self) -> float:
        """Squared residuals divided by the number of time steps, as the paper reports them."""
        return self.outcome.linearisation.cost.total / self.steps

    @functools.cached_property
    def unkept_promise(self) -> float:
        """Decrease of χ² that the linearised equations promise and that their step does not bring.

        Next to zero at a smooth minimum; where a fit has ended on an edge of its cost it is not.
        """
        system, here = LocalSystem(self.problem, self.weights), self.outcome.linearisation
        with one_thread():
            proposal = system.propose(here, WARM_DAMPING, "scaled", None, True)
            if proposal is None:
                return 0.0
            kept = here.cost.total - system.follow(here, proposal).cost.total
        return (-proposal.change - max(float(np.nan_to_num(kept)), 0.0)) / share_of(system.samples, here)

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
        taken = [name for name, joint in given.joints.items() if not joint.compliant]
        names = [f"{name}.compliance.{kind}" for name in taken for kind in ("linear", "rotational")]
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
            own = self.problem, self.outcome.linearisation
            if self.noise_choice is None:
                return gather(*own, self.weights)  # weights that were given say nothing about the data
            explanation = self.noise_choice.explanation
            find_latent = functools.partial(explanation.added, self.weights)
            if not explanation.functions:
                return gather(*own, self.weights, find_latent)
            return gather_over_stairs(*own, self.weights.believing(explanation.white), find_latent)

    @property
    def information(self) -> Float[np.ndarray, "p p"]:
        """Information of the parameters (states projected out, undamped, priors included), as inverse variance."""
        return self.evidence.information

    @property
    def at_bound(self) -> np.ndarray:
        """Which increments sit on a bound of their box."""
        return self.evidence.at_bound

    def uncertainty(self, kind: Kind = "robust") -> Uncertainty:
        """Covariance, correlations and intervals of a kind (:mod:`uncertainty.covariance`)."""
        return self._uncertainty(self.evidence, kind)

    def _uncertainty(self, evidence: Evidence, kind: Kind) -> Uncertainty:
        parameters = self.problem.parameters
        values = parameters.vector(self.outcome.linearisation.point.values)
        return Uncertainty(check_kind(kind), evidence, values, parameters.lower, parameters.upper)

    @functools.cached_property
    def covariance(self) -> Float[np.ndarray, "p p"]:
        """Gauss–Newton covariance of the increments with the weights of the fit; zero rows for those on a bound."""
        return self.uncertainty("gauss-newton").covariance

    def covariance_of_data(self, kind: Kind = "robust") -> Float[np.ndarray, "p p"]:
        """Covariance by the data and what was given, without the model file's bodies (:mod:`file_prior`).

        With parameters that sit on a bound: their mean squares from there, and what others follow them by.
        """
        return self._uncertainty(self.evidence.without_file, kind).with_bounds

    def values_of_data(self) -> Float[np.ndarray, " p"]:
        """Values that the data and what was given ask for by themselves, to first order, without the edges of bodies.

        Combinations that the data tell are then as free of the model file's bodies as :meth:`covariance_of_data` is. Of
        what they do not tell these values say nothing.
        """
        evidence, values = self.evidence, self.outcome.linearisation.point.values
        away, carried = self.problem.parameters.from_start(values)
        known = self.problem.parameters.file_information / self.weights.file_spread**2
        of_file = self.weights.reference**2 * carried.T @ known @ away
        step = evidence.without_file.bread(~evidence.at_bound) @ (of_file - evidence.gradient)
        return self.problem.parameters.vector(values) + step

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the data cannot tell about the parameters, in words."""
        return self.evidence.findings

    @functools.cached_property
    def base_parameters(self) -> BaseParameters:
        """The combinations of parameters that the data determine, and what they never see."""
        values = self.problem.parameters.vector(self.outcome.linearisation.point.values)
        return base_parameters(self.evidence, values, self.problem.parameters.units())

    def state_std(self, recording: int = 0) -> Float[np.ndarray, "n bodies k"]:
        """Standard deviation of each body's state at the steps of a recording, parameters' uncertainty included.

        k counts position [m] and rotation [rad], and with ``full`` unknowns the velocities of both. States that nothing
        observes have a very large one.
        """
        place = self.problem.parameters.places(recording)
        covariance = self.covariance[np.ix_(place, place)] / self.weights.reference**2
        point = self.outcome.linearisation.point
        of_bodies = self.problem.plan.unknowns.body_covariance(
            self.factors[recording].covariances(covariance),
            point.nodes[recording].pose,
            self.problem.at(point.values, recording),
        )
        variance = np.diagonal(of_bodies, axis1=1, axis2=2) * self.weights.reference**2
        first, steps = self.problem.plan.centre, self.problem.tracks[recording].steps
        table = np.sqrt(np.maximum(variance[first : first + steps], 0.0))
        return table.reshape(steps, len(self.problem.mechanism.bodies), -1)

    @functools.cached_property
    def parameters(self) -> tuple[ParameterEstimate, ...]:
        """The table of parameters; standard deviations know about disagreement between pieces of the data."""
        return self.table()

    def table(self, kind: Kind = "robust") -> tuple[ParameterEstimate, ...]:
        """The table of parameters with standard deviations of a kind."""
        with one_thread():
            uncertainty = self.uncertainty(kind)
            accuracy = Accuracy(
                uncertainty.std,
                self.at_bound,
                (uncertainty.freed_std < IDENTIFIABLE * self.evidence.scale) & self._told(uncertainty.freed_std),
                self.evidence.prior_std,
            )
        return tabulate(self.problem.parameters, self.outcome.linearisation.point.values, accuracy)

    def _told(self, std: Float[np.ndarray, " p"]) -> Bool[np.ndarray, " p"]:
        """Whether the data add to what the model file says of bodies, which nobody has vouched for."""
        of_file = np.diagonal(self.evidence.file_prior) > 0.0
        return ~of_file | (std < FROM_PRIOR * self.evidence.prior_std)

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
        return estimated_trajectory(
            self.problem, self.outcome.linearisation.point, self.mechanism(recording), recording
        )

    def posterior(self, kind: Kind = "robust") -> Posterior:
        """Which machines the data leave possible, with error bars of a kind."""
        untold = np.array([not row.identifiable and np.isinf(row.prior_std) for row in self.table(kind)], bool)
        of_file = self.evidence.file_prior / self.evidence.reference**2
        known = of_file + last_prior(untold, self.evidence.scale)
        covariance = with_prior(self.covariance_of_data(kind), known)
        values, degrees = self.outcome.linearisation.point.values, self.uncertainty(kind).degrees
        return Posterior(self.mechanism(), self.problem.parameters, values, covariance, degrees)

    def draw(self, count: int, seed: int = 0, *, kind: Kind = "robust", red: bool = False) -> Draws:
        """Possible machines: for domain randomisation, or to see what the error bars mean for a simulation.

        Args:
            count: how many.
            seed: the same seed gives the same machines.
            kind: of the error bars.
            red: draw from a result with a red verdict, too.

        Raises:
            DrawError: the verdict is red, no machine is asked for, or nothing was free.
        """
        if self.verdict == "red" and not red:
            raise DrawError(RED)
        return self.posterior(kind).draw(count, seed)

    @functools.cached_property
    def notices(self) -> tuple[Any, ...]:
        """What a reader has to know before using the numbers, the most serious first (docs/verdict.md)."""
        return tuple(_above("evaluation.rules").judge(self))

    @property
    def verdict(self) -> str:
        """``"green"``, ``"amber"`` or ``"red"``: that of the most serious notice."""
        return _above("evaluation.notices").colour(self.notices)

    def save(self, folder: str | os.PathLike[str], **details: Any) -> dict[str, Any]:
        """Write the result into a folder as ``shadowfit.save_estimate`` does, with the same keywords."""
        return _above("evaluation").save_estimate(self, folder, **details)

    def __repr__(self) -> str:
        return (
            f"<fit of {self.problem.mechanism.name or 'a mechanism'}: {self.status.name.lower()}, "
            f"{self.problem.parameters.size} parameters, {len(self.problem.tracks)} recordings; see .summary()>"
        )

    def _repr_html_(self) -> str:
        return _above("evaluation.notebook").html(self)

    @property
    def plot(self) -> Any:
        """Figures in matplotlib (extra ``plots``): ``plot.machine()``, ``.fit()``, ``.residuals()``, ``.forces()``,
        ``.forest()``, ``.pairs()`` and ``.rollouts()``."""
        return _above("evaluation.plots").Plots(self)

    def to_polars(self) -> Any:
        """The table of parameters as a Polars frame."""
        return polars_frame(self._columns())

    def to_pandas(self) -> Any:
        """The same as a pandas frame (extra ``pandas``)."""
        return pandas_frame(self._columns())

    def _columns(self) -> dict[str, list[Any]]:
        names = [field.name for field in dataclasses.fields(ParameterEstimate)]
        return {name: [getattr(row, name) for row in self.parameters] for name in names}

    def summary(self) -> str:
        """The verdict with its reasons, and the parameter table as plain text."""
        lines = _above("evaluation.notebook").sentences(self)
        lines += [f"{self.status.value} ({self.iterations} iterations, {self.seconds.total:.2f} s)"]
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


def _above(module: str) -> Any:
    """A door to the layers above, opened when it is called."""
    return importlib.import_module(f"shadowfit.{module}")


def estimated_trajectory(problem: Problem, point: Point, mechanism: Mechanism, recording: int) -> EstimatedTrajectory:
    """The states of one recording at a point, and what the sensors of a mechanism would read there."""
    track, nodes = problem.tracks[recording], problem.bodies(point, recording)
    states = _states_at_steps(problem, nodes, track.steps)
    command, _ = problem.commands_at(point.values, recording)
    instants = Instant(_accelerations_at_steps(problem, nodes, track.steps), command)
    return EstimatedTrajectory(track.times(problem.timestep), states, observe.readings(mechanism, states, instants))


def _states_at_steps(problem: Problem, nodes: Nodes, steps: int) -> State:
    """Poses at the steps; velocities of the unknowns, or the mean of the differences before and after."""
    first = problem.plan.centre
    pose = Pose(nodes.pose.position[first : first + steps], nodes.pose.orientation[first : first + steps])
    if nodes.velocity is not None:
        return State(pose, nodes.velocity[first : first + steps])
    later, earlier = _differences_at_steps(nodes, steps)
    return State(pose, 0.5 * (later + earlier) / problem.timestep)


def _accelerations_at_steps(problem: Problem, nodes: Nodes, steps: int) -> Float[np.ndarray, "n bodies 6"]:
    """Rates of the velocities at the steps [m/s², rad/s²]."""
    first = problem.plan.centre
    if nodes.velocity is not None:
        return np.gradient(nodes.velocity, problem.timestep, axis=0)[first : first + steps]
    later, earlier = _differences_at_steps(nodes, steps)
    return (later - earlier) / problem.timestep**2


def _differences_at_steps(nodes: Nodes, steps: int) -> tuple[Float[np.ndarray, "n bodies 6"], ...]:
    """``q_{k+1} ⊟ q_k`` and ``q_k ⊟ q_{k−1}``."""
    before, pose, after = (nodes.pose[i : i + steps] for i in range(3))
    return differences(after, pose), differences(pose, before)
