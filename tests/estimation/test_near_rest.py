"""Over which speed dry friction turns is found from torques through rest: a jump stays one, a slow turn is seen."""

import dataclasses

import numpy as np
import pytest

from estimation.arms import TIMESTEP, arm, driven, paths
from shadowfit.dynamics.sliding import mean_direction
from shadowfit.estimation import Options
from shadowfit.estimation.fit import start_point
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.problem import build_problem
from shadowfit.estimation.solve.first_weights import first_weights
from shadowfit.estimation.uncertainty.near_rest import fading

STEPS = 500
LEVEL = 2.0
FREE = ("joint1.coulomb", "joint1.viscous", "joint2.coulomb", "joint2.viscous")


def rubbing(width, seed=3):
    """A two-link arm whose friction [N m] turns over a speed [rad/s], with noisy torques."""
    numbers = {f"joint{i}.dry": 0.0 for i in (1, 2)}
    smooth = arm(2).set(numbers | {f"joint{i}.coulomb": 0.0 for i in (1, 2)})
    recording, speed = driven(smooth, STEPS), np.diff(paths(2, STEPS), axis=0) / TIMESTEP
    friction = LEVEL * np.asarray(mean_direction(speed[:-1], speed[1:], np.full_like(speed[1:], width)))
    rng, channels = np.random.default_rng(seed), dict(recording.channels)
    for i in range(2):
        felt = np.append(friction[1:, i], friction[-1, i])
        channels[f"u{i + 1}"] = channels[f"u{i + 1}"] + felt + 0.05 * rng.standard_normal(STEPS)
    file = smooth.set({f"joint{i}.coulomb": LEVEL for i in (1, 2)})
    return file, dataclasses.replace(recording, channels=channels)


@pytest.mark.parametrize(("width", "creeps"), [(1e-9, False), (0.5, True)])
def test_the_turn_of_friction_is_seen(width, creeps):
    file, recording = rubbing(width)
    problem = build_problem(file, [recording], parameter_set(file, FREE), Options())
    assert problem.rubs
    start = start_point(problem)
    found = fading(problem, start, first_weights(problem, start))
    assert (found is not problem) == creeps
    if creeps:
        assert found.options.stick_time >= 0.5 * TIMESTEP
        assert not found.rubs


def test_a_time_that_is_given_stays():
    file, recording = rubbing(0.5)
    problem = build_problem(file, [recording], parameter_set(file, FREE), Options(stick_time=0.01))
    assert not problem.rubs
