"""Bootstrap: fit again and again to recordings that the estimated model makes, and look how the estimates scatter.

Each replicate simulates the estimated mechanism from its estimated first state under the recorded inputs, with errors
in every step and on every sample, and fits the result with the settings of the original fit. Errors are

* ``parametric``: drawn from the distribution that the fit's weights stand for (white, Gaussian);
* ``block``: the fit's own residuals in random order, blown up to the size that errors have (residuals are smaller,
  since states and parameters follow the noise). The sensors' go in blocks, which keep correlation in time up to their
  length; the impulses' one by one, because theirs is the smoothness of the estimated motion and says nothing of the
  errors.

Nothing is linearised, so bounds and strong nonlinearity show as they are. A motion that is unstable under the recorded
inputs (a swing-up whose controller would have acted otherwise) runs away in the replicates: they then describe another
experiment, and those that cannot be fitted are counted as failed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal

import numpy as np

from shadowfit.arrays import Float
from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.state import State
from shadowfit.estimation.problem.axis_noise import unweighted
from shadowfit.estimation.problem.initial import initial_nodes
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.track import Track
from shadowfit.estimation.problem.variation import varied
from shadowfit.estimation.refits.many import many
from shadowfit.estimation.refits.synthetic import disturbed_readings, with_readings
from shadowfit.estimation.residuals.reference_mass import reference_mass
from shadowfit.estimation.result import Estimate
from shadowfit.estimation.solve.levenberg_marquardt import LevenbergMarquardt, minimise
from shadowfit.estimation.uncertainty.covariance import Interval
from shadowfit.estimation.uncertainty.residual_covariance import LEAST_FREEDOM, GroupNoise
from shadowfit.geometry import Pose
from shadowfit.records import record

Errors = Literal["parametric", "block"]
# Length of a block [s].
BLOCK = 0.25
# Replicates start near their solution.
SETTINGS = LevenbergMarquardt(start_damping=1e-4)


@record(frozen=True)
class Bootstrap:
    """Estimates of the replicates."""

    labels: tuple[str, ...]
    values: Float[np.ndarray, " p"]
    """The estimate itself."""
    replicates: Float[np.ndarray, "r p"]
    failed: int
    """Replicates without a converged fit, which are left out."""
    interrupted: bool

    @property
    def std(self) -> Float[np.ndarray, " p"]:
        """Standard deviation of the replicates."""
        return self.replicates.std(axis=0, ddof=1) if len(self.replicates) > 1 else np.full(len(self.labels), np.nan)

    def intervals(self, level: float = 0.95) -> tuple[Interval, ...]:
        """Percentile intervals: between quantiles of the replicates."""
        low, high = np.quantile(self.replicates, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)
        return tuple(
            Interval(label, float(a), float(b), False) for label, a, b in zip(self.labels, low, high, strict=True)
        )


def bootstrap(
    estimate: Estimate,
    replicates: int = 100,
    errors: Errors = "parametric",
    *,
    seed: int = 0,
    optimiser: LevenbergMarquardt = SETTINGS,
    n_jobs: int | None = -1,
    progress: Callable[[int, int], None] | None = None,
) -> Bootstrap:
    """Refit ``replicates`` simulated recordings, in ``n_jobs`` threads (−1: one for each processor), or on a cluster.

    ``progress(done, all)`` follows each. Ctrl-C keeps what is done. Every replicate has random numbers of its own, so
    that the result does not depend on the number of workers.
    """
    values = np.array([row.value for row in estimate.parameters])
    seeds = np.random.SeedSequence(seed).spawn(replicates)
    tried, interrupted = many(_refit, seeds, (estimate, errors, optimiser), n_jobs, progress)
    successes = [moved for moved in tried if moved is not None]
    moved = values + np.array(successes).reshape(len(successes), len(values))
    labels = tuple(estimate.problem.parameters.labels())
    return Bootstrap(labels, values, moved, len(tried) - len(successes), interrupted)


def _refit(
    seed: np.random.SeedSequence, estimate: Estimate, errors: Errors, optimiser: LevenbergMarquardt
) -> np.ndarray | None:
    """How far the parameters of a replicate are from those of the estimate; None if its fit did not converge."""
    point = estimate.outcome.linearisation.point
    problem = replicate(estimate, errors, np.random.default_rng(seed))
    nodes = tuple(initial_nodes(problem, point.values, i) for i in range(len(problem.tracks)))
    outcome = minimise(
        problem, dataclasses.replace(point, nodes=nodes), estimate.weights, optimiser
    ).unless_interrupted()
    if not outcome.status.converged:
        return None
    return problem.parameters.minus(outcome.linearisation.point.values, point.values)


def replicate(estimate: Estimate, errors: Errors, random: np.random.Generator) -> Problem:
    """The problem with simulated measurements in place of the recorded ones."""
    tracks = tuple(_track(estimate, i, errors, random) for i in range(len(estimate.problem.tracks)))
    return varied(estimate.problem, tracks=tracks)


def _track(estimate: Estimate, recording: int, errors: Errors, random: np.random.Generator) -> Track:
    problem = estimate.problem
    track = problem.tracks[recording]
    point = estimate.outcome.linearisation.point
    values = point.values
    drawn = _drawn(estimate, recording, errors, random)
    truncation = point.truncation
    known = 0.0 if truncation is None else truncation[recording].dynamics
    command, _ = problem.commands_at(values, recording)
    readings = disturbed_readings(
        problem.written(values, recording),
        _first_state(estimate, recording),
        command,
        _velocity_errors(problem, point, recording, drawn[0] + known),
        np.asarray(problem.timestep),
        problem.plan.equations.discretization,
    )
    shapes = [
        (track.steps, track.fraction.shape[1], sensor.error_size()) for sensor in problem.mechanism.sensors.values
    ]
    noise = tuple(errors_drawn.reshape(shape) for errors_drawn, shape in zip(drawn[1:], shapes, strict=True))
    return with_readings(problem, track, tuple(np.asarray(r) for r in readings), noise)


def _velocity_errors(
    problem: Problem, point: Point, recording: int, errors: Float[np.ndarray, "steps r"]
) -> Float[np.ndarray, "steps bodies 6"]:
    """Impulse errors of the dynamics as errors of the bodies' velocities, by the mass that the fit weighs them with."""
    plan = problem.plan
    poses = point.nodes[recording].pose[plan.centre : plan.centre + len(errors)]
    mass = np.asarray(reference_mass(assemble(problem.mechanism).bodies))
    return plan.unknowns.impulses_on_bodies(errors, poses, mass, problem.at(point.values, recording)) / mass


def _first_state(estimate: Estimate, recording: int) -> State:
    """Pose at the first step and the velocity that led there."""
    problem = estimate.problem
    nodes = problem.bodies(estimate.outcome.linearisation.point, recording)
    here = problem.plan.centre
    pose = Pose(nodes.pose.position[here], nodes.pose.orientation[here])
    if nodes.velocity is not None:
        return State(pose, nodes.velocity[here])
    before = Pose(nodes.pose.position[here - 1], nodes.pose.orientation[here - 1])
    return State(pose, np.asarray(pose.minus(before)) / problem.timestep)


def _drawn(estimate: Estimate, recording: int, errors: Errors, random: np.random.Generator) -> list[np.ndarray]:
    """Errors of each group in its own units: impulses, then each sensor's readings; shape (steps, rows)."""
    evidence, weights = estimate.evidence, estimate.weights
    layout, residual = evidence.layouts[recording], evidence.projections[recording].residual
    order = _blocks(len(residual), max(1, round(BLOCK / estimate.problem.timestep)), random)
    drawn = []
    for index, group in enumerate(layout):
        if errors == "parametric":
            scaled = weights.reference * random.standard_normal((len(residual), group.repeats * group.size))
        else:
            blown = [residual[:, rows] @ _inflation(evidence.noise[index]) for rows in group.samples()]
            chosen = random.integers(0, len(residual), len(residual)) if index == 0 else order
            scaled = np.concatenate([part - part.mean(axis=0) for part in blown], axis=1)[chosen]
        if index == 0:
            point = estimate.outcome.linearisation.point
            drawn.append(unweighted(point, weights, recording, scaled))
        else:
            drawn.append(scaled * weights.std[index - 1])
    return drawn


def _blocks(count: int, length: int, random: np.random.Generator) -> np.ndarray:
    """Steps in blocks of a length, drawn with replacement from anywhere (around the end to the beginning)."""
    starts = random.integers(0, count, -(-count // length))
    return ((starts[:, None] + np.arange(length)) % count).ravel()[:count]


def _inflation(noise: GroupNoise) -> Float[np.ndarray, "d d"]:
    """``√n D^{−1/2}``: brings residuals back to the size of errors; zero where the states take them up entirely."""
    values, vectors = np.linalg.eigh(noise.freedom)
    free = values > LEAST_FREEDOM * max(noise.count, 1)
    return np.sqrt(noise.count) * (vectors[:, free] / np.sqrt(values[free])) @ vectors[:, free].T
