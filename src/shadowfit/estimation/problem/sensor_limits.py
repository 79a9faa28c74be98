"""Between which levels the noise of each sensor is looked for: about the stated one, and what readings show."""

from __future__ import annotations

import numpy as np

from shadowfit.estimation.problem.problem import Problem

# Largest factor between a sensor's standard deviation and the stated one, where readings do not show that it is less.
LARGEST_CHANGE = 10.0
# The least that rounding leaves.
SMALLEST_ERROR = 1e-13


def stated_std(problem: Problem) -> np.ndarray:
    """Standard deviation of each sensor as the model states it."""
    return np.array([float(sensor.std) for sensor in problem.mechanism.sensors.values])


def sensor_limits(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest standard deviation of each sensor, relative to the stated one.

    Readings that are smoother than a tenth of the stated noise tell better what their noise can be at most: robot files
    do not state any, and recordings may have been filtered.
    """
    return np.minimum(1.0 / LARGEST_CHANGE, shown_ratio(problem)), np.full(len(problem.error_sizes), LARGEST_CHANGE)


def shown_ratio(problem: Problem) -> np.ndarray:
    """The most noise that each sensor's readings can have by themselves, relative to the stated; one at most."""
    return np.clip(problem.noise_floors / stated_std(problem), SMALLEST_ERROR, 1.0)
