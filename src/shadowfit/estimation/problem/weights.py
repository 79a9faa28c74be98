"""Weights of the residuals, in the paper's scaling."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

from shadowfit.estimation.problem.problem import Problem


@dataclasses.dataclass(frozen=True)
class Weights:
    """Weights of the residuals."""

    dynamics: Float[np.ndarray, "r r"]
    """Square root of the inverse covariance of the impulse residual, in the paper's scaling: ``√κ I``."""
    std: tuple[float, ...]
    """Standard deviation of each sensor, relative to ``σ₀``."""
    reference: float
    """σ₀."""

    @property
    def state_weight(self) -> float:
        """κ: the mean weight of an impulse."""
        return float(np.sum(self.dynamics**2) / len(self.dynamics))


def default_weights(problem: Problem, state_weight: float) -> Weights:
    """``κ Ω⁻¹`` for the dynamics (``κ I`` if no Ω is given), the sensors' standard deviations for the observations."""
    std = np.array([float(sensor.std) for sensor in problem.mechanism.sensors.values])
    reference = float(np.exp(np.mean(np.log(std))))
    size = problem.plan.impulses
    root = np.eye(size)
    if problem.options.impulse_covariance is not None:
        covariance = np.asarray(problem.options.impulse_covariance, float)
        inverse = np.linalg.inv(np.diag(covariance) if covariance.ndim == 1 else covariance)
        root = np.linalg.cholesky(inverse * size / np.trace(inverse)).T
    return Weights(np.sqrt(state_weight) * root, tuple(std / reference), reference)
