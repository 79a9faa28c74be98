"""Kinds of unexplained forces: planted shares of friction, drift and noise are found."""

import numpy as np
import pytest

from shadowfit.evaluation.axis_forces import AxisForce
from shadowfit.evaluation.error_kinds import error_kinds

STEPS = 4000


def swing(force, seed=0):
    """A decaying swing with a force of time, position, speed and noise."""
    time = 0.01 * np.arange(STEPS)
    position = np.exp(-0.03 * time) * np.cos(6.0 * time)
    speed = np.gradient(position, time)
    noise = np.random.default_rng(seed).standard_normal(STEPS)
    return AxisForce(time, position, speed, force(time, position, speed, noise))


def unit(values):
    return values / np.sqrt(np.mean(values**2))


def test_drag_is_a_function_of_the_state():
    kinds = error_kinds([swing(lambda t, q, v, e: unit(v * np.abs(v)) + 0.5 * unit(e))])
    assert kinds.state == pytest.approx(1.0 / 1.25, abs=0.03)
    assert kinds.slow < 0.02
    assert kinds.state + kinds.slow + kinds.neither == pytest.approx(1.0)


def test_drift_is_slow():
    kinds = error_kinds([swing(lambda t, q, v, e: unit(np.sin(0.25 * t)) + unit(e))])
    assert kinds.slow == pytest.approx(0.5, abs=0.08)
    assert kinds.state < 0.05


def test_noise_is_neither():
    kinds = error_kinds([swing(lambda t, q, v, e: e, seed) for seed in (1, 2)])
    assert kinds.neither > 0.97


def test_nothing_is_said_about_nothing():
    assert error_kinds([swing(lambda t, q, v, e: 0.0 * e)]) is None
