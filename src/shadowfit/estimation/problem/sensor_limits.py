"""Between which levels the noise of each sensor is looked for: about the stated one, and what readings show."""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Bool
from shadowfit.estimation.problem.problem import Problem

# Largest factor between a sensor's standard deviation and the stated one, where readings do not show that it is less.
LARGEST_CHANGE = 10.0
# The least that rounding leaves.
SMALLEST_ERROR = 1e-13


def stated_std(problem: Problem) -> np.ndarray:
    """Standard deviation of each sensor as the error model gives it, else as the sensor states it."""
    given = problem.options.errors.sensors
    return np.array([float(given.get(name, sensor.std)) for name, sensor in problem.mechanism.sensors.items()])


def given_sensors(problem: Problem) -> Bool[np.ndarray, " s"]:
    """Sensors whose noise is known."""
    return np.array([name in problem.options.errors.sensors for name in problem.mechanism.sensors], bool)


def sensor_limits(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest standard deviation of each sensor, relative to the stated one.

    Readings that are smoother than a tenth of the stated noise tell better what their noise can be at most: robot files
    do not state any, and recordings may have been filtered.
    """
    given = given_sensors(problem)
    least = np.where(given, 1.0, np.minimum(1.0 / LARGEST_CHANGE, shown_ratio(problem)))
    return least, np.where(given, 1.0, LARGEST_CHANGE)


def shown_ratio(problem: Problem) -> np.ndarray:
    """The most noise that each sensor's readings can have by themselves, relative to the stated; one at most."""
    shown = np.clip(problem.noise_floors / stated_std(problem), SMALLEST_ERROR, 1.0)
    return np.where(given_sensors(problem), 1.0, shown)
