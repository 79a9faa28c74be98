"""Weights of the residuals, in the paper's scaling, and the noise that is believed to be behind them.

Both are the same where a fit takes its noise for white: a residual is weighed by one over its standard deviation. They
differ where the equations of motion are weighed by how well the fitted model is to predict over a long time
(:mod:`shadowfit.estimation.noise`); error bars then follow from the noise, not from the weights.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.problem.parameters import ParameterSet
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.proportion import Proportion
from shadowfit.estimation.problem.read_forces import ReadForces
from shadowfit.estimation.problem.sensor_limits import stated_std
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.records import record


@record(frozen=True)
class Pull:
    """What a likelihood says about the parameters beyond residuals, as a parabola for each (:mod:`determinant`)."""

    center: tuple[float, ...]
    curvature: tuple[float, ...]
    """Half the second derivative of −2 log L by each parameter."""


@record(frozen=True)
class Weights:
    """Weights of the residuals."""

    dynamics: Float[np.ndarray, "r r"]
    """Square root of the weight of the impulse residual, in the paper's scaling: ``√κ I``, or ``diag(σ₀/σ_j)``."""
    std: tuple[float, ...]
    """Standard deviation of each sensor, relative to ``σ₀``."""
    reference: float
    """σ₀."""
    impulse_std: tuple[float, ...] | None = None
    """Estimated standard deviation of each impulse residual [N s, N m s]; None: what the weights say."""
    pull: Pull | None = None
    """Where errors are forces that act: the pull of their determinant on inertias."""
    file_spread: float = np.inf
    """How far bodies are taken to be from the model file's, relative to themselves (:mod:`uncertainty.file_prior`);
    infinite: nothing is taken from there."""
    axis_std: tuple[float, ...] = ()
    """Where residuals are those of bodies: given standard deviations of impulses along the axes of joints [N m s, N s],
    which make a weight of its own for each step (:mod:`axis_noise`)."""
    proportion: Proportion | None = None
    """Where a joint that nothing drives hangs on a machine that is led: its equation is measured by its forces."""
    read: ReadForces | None = None
    """Where a machine is led by forces whose gains are free: equations are counted in units of the readings."""
    between: tuple[float, ...] | None = None
    """Variance of each parameter between exact equations and the most likely errors (:mod:`constraints`)."""
    sticks: bool = False
    """Whether equations of joints that rest leave friction open (:mod:`sticking`); a simulator's do not."""

    @property
    def state_weight(self) -> float:
        """κ: the mean weight of an impulse."""
        return float(np.sum(self.dynamics**2) / len(self.dynamics))

    @property
    def impulse_ratio(self) -> Float[np.ndarray, " r"]:
        """Standard deviation of each weighted impulse residual in units of ``σ₀``: one where weights are believed."""
        if self.impulse_std is None:
            return np.ones(len(self.dynamics))
        return np.asarray(self.impulse_std) * np.diagonal(self.dynamics) / self.reference

    @property
    def believed(self) -> bool:
        """Whether the weights are those of the noise."""
        return bool(np.allclose(self.impulse_ratio, 1.0, rtol=1e-9, atol=0.0))

    @property
    def unexplained(self) -> Float[np.ndarray, " r"]:
        """Standard deviation of the impulses that steps lack, by the noise behind the weights [N m s, N s]."""
        return self.reference / np.diagonal(self.dynamics) * self.impulse_ratio

    @property
    def likely(self) -> Weights:
        """The weights of the noise behind these."""
        if self.believed:
            return dataclasses.replace(self, impulse_std=None, pull=None)
        dynamics = np.diag(self.reference / self.unexplained)
        return dataclasses.replace(self, dynamics=dynamics, impulse_std=None, pull=None)

    def scaled(self, factor: float) -> Weights:
        """All equations of motion weighed ``factor`` times as much (in κ), the noise behind them left as it is."""
        return dataclasses.replace(self, dynamics=np.sqrt(factor) * self.dynamics, pull=None)

    def believing(self, factor: float) -> Weights:
        """The same weights with a noise of the impulses behind them that is ``factor`` times the present one."""
        believed = factor * self.impulse_ratio * self.reference / np.diagonal(self.dynamics)
        return dataclasses.replace(self, impulse_std=tuple(believed.tolist()))

    def units(
        self, parameters: ParameterSet, values: Values, recording: int
    ) -> tuple[Float[np.ndarray, " r"], Float[np.ndarray, "r p"]] | None:
        """Factors that bring the impulse residuals of a recording into the units that they are counted in.

        With derivatives ``d log`` of one over them by its increments; None: they are counted as impulses.
        """
        found = []
        if self.proportion is not None:
            factor, slope = self.proportion.at(parameters, values)
            found.append((factor, slope[:, parameters.places(recording)]))
        if self.read is not None:
            found.append(self.read.at(parameters, values, recording))
        if not found:
            return None
        factors, slopes = zip(*found, strict=True)
        return np.prod(factors, axis=0), np.sum(slopes, axis=0)

    def settled_at(self, parameters: ParameterSet, values: Values) -> Weights:
        """The same weights at other parameters: levels are impulses there."""
        if self.proportion is None and self.read is None:
            return self
        factor, proportion, read = np.ones(len(self.dynamics)), self.proportion, self.read
        if proportion is not None:
            factor = factor * proportion.at(parameters, values)[0]
            proportion = proportion.centred(parameters, values)
        if read is not None:
            before, read = read.size, read.centred(parameters, values)
            factor = factor * np.exp(before - read.size)
        std = None if self.impulse_std is None else tuple((np.array(self.impulse_std) / factor).tolist())
        dynamics = factor[:, None] * self.dynamics
        return dataclasses.replace(self, dynamics=dynamics, impulse_std=std, proportion=proportion, read=read)

    def with_levels(self, impulses: Float[np.ndarray, " r"], sensors: Float[np.ndarray, " s"]) -> Weights:
        """Levels of the noise multiplied by factors: of each impulse residual and of each sensor's readings."""
        std = np.array(self.std) * self.reference * sensors
        reference = float(np.exp(np.mean(np.log(std))))
        # √W = σ₀/σ for each impulse: σ₀ changes with the sensors.
        dynamics = self.dynamics * (reference / self.reference) / np.asarray(impulses)
        std = tuple((std / reference).tolist())
        return dataclasses.replace(
            self, dynamics=dynamics, std=std, reference=reference, impulse_std=None, pull=None, axis_std=()
        )


def default_weights(problem: Problem, state_weight: float) -> Weights:
    """``κ Ω⁻¹`` for the dynamics (``κ I`` if no Ω is given), the sensors' standard deviations for the observations."""
    std = stated_std(problem)
    reference = float(np.exp(np.mean(np.log(std))))
    size = problem.plan.impulses
    root = np.eye(size)
    if problem.options.impulse_covariance is not None:
        covariance = np.asarray(problem.options.impulse_covariance, float)
        inverse = np.linalg.inv(np.diag(covariance) if covariance.ndim == 1 else covariance)
        root = np.linalg.cholesky(inverse * size / np.trace(inverse)).T
    return with_given(problem, Weights(np.sqrt(state_weight) * root, tuple(std / reference), reference))


def unit_weights(problem: Problem) -> Weights:
    """Weights of one: rows are then impulses [N s, N m s] and errors of readings in their own units."""
    return Weights(np.eye(problem.plan.node_size), (1.0,) * len(problem.error_sizes), 1.0)


def with_given(problem: Problem, weights: Weights) -> Weights:
    """Weights with the errors of forces that are known.

    A force that is white at the sampling interval Δt, of standard deviation s, has an impulse of variance ``s² Δt h``
    in a step h.
    """
    given, names = problem.options.errors.forces, problem.level_names
    if not given:
        return weights
    if names is None:
        return dataclasses.replace(weights, axis_std=tuple(given_impulses(problem).tolist()))
    diagonal = np.diagonal(weights.dynamics).copy()
    for name, std in zip(given, given_impulses(problem), strict=True):
        diagonal[names.index(name)] = weights.reference / std
    return dataclasses.replace(weights, dynamics=np.diag(diagonal))


def given_impulses(problem: Problem) -> Float[np.ndarray, " j"]:
    """Errors of the impulses of a step [N m s, N s] that are known, in their order."""
    interval = min(track.recording.sample_interval for track in problem.tracks)
    return np.array(list(problem.options.errors.forces.values())) * np.sqrt(interval * problem.timestep)
