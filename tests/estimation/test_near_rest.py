"""Over which speed dry friction turns is found from torques through rest: a jump stays one, a slow turn is seen."""

import dataclasses

import numpy as np
import pytest

from estimation.arms import TIMESTEP, arm, driven, paths
from shadowfit.dynamics.sliding import mean_direction
from shadowfit.errors import UnknownNameError
from shadowfit.estimation import Options
from shadowfit.estimation.fit import start_point
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.problem import build_problem
from shadowfit.estimation.solve.first_weights import first_weights
from shadowfit.estimation.uncertainty.near_rest import creeping

STEPS = 500
LEVEL = 2.0
FREE = ("joint1.coulomb", "joint1.viscous", "joint2.coulomb", "joint2.viscous")


def rubbing(widths, seed=3):
    """A two-link arm whose friction [N m] turns over a speed [rad/s] of each joint, with noisy torques."""
    numbers = {f"joint{i}.dry": 0.0 for i in (1, 2)}
    smooth = arm(2).set(numbers | {f"joint{i}.coulomb": 0.0 for i in (1, 2)})
    recording, speed = driven(smooth, STEPS), np.diff(paths(2, STEPS), axis=0) / TIMESTEP
    friction = LEVEL * np.asarray(mean_direction(speed[:-1], speed[1:], np.broadcast_to(widths, speed[1:].shape)))
    rng, channels = np.random.default_rng(seed), dict(recording.channels)
    for i in range(2):
        felt = np.append(friction[1:, i], friction[-1, i])
        channels[f"u{i + 1}"] = channels[f"u{i + 1}"] + felt + 0.05 * rng.standard_normal(STEPS)
    file = smooth.set({f"joint{i}.coulomb": LEVEL for i in (1, 2)})
    return file, dataclasses.replace(recording, channels=channels)


@pytest.mark.parametrize(
    "creeps", [(), ("joint1",), *(pytest.param(x, marks=pytest.mark.slow) for x in (("joint2",), ("joint1", "joint2")))]
)
def test_the_turn_of_friction_is_seen_joint_by_joint(creeps):
    file, recording = rubbing([0.5 if f"joint{i}" in creeps else 1e-9 for i in (1, 2)])
    problem = build_problem(file, [recording], parameter_set(file, FREE), Options())
    assert problem.rubs
    start = start_point(problem)
    found = creeping(problem, start, first_weights(problem, start))
    if not creeps:
        assert found is problem
        return
    assert set(found.options.stick_time) == set(creeps)
    assert not found.rubs
    for name in ("joint1", "joint2"):
        own = float(file.get(f"{name}.stick_time"))
        assert float(found.mechanism.get(f"{name}.stick_time")) == found.options.stick_time.get(name, own)


def test_friction_that_turns_over_twice_the_speed_is_given_twice_the_time():
    """A stuck axis creeps for the time in which friction alone stops it from the speed over which it turns."""
    times = []
    for width in (0.12, 0.24, 0.48):
        file, recording = rubbing([width, 1e-9])
        problem = build_problem(file, [recording], parameter_set(file, FREE), Options())
        start = start_point(problem)
        found = creeping(problem, start, first_weights(problem, start)).options.stick_time
        assert set(found) == {"joint1"}
        times.append(found["joint1"])
    assert times[1:] == pytest.approx([2.0 * times[0], 4.0 * times[0]])


def test_a_time_that_is_given_stays():
    file, recording = rubbing([0.5, 0.5])
    for given in (0.01, {"joint2": 0.01}):
        problem = build_problem(file, [recording], parameter_set(file, FREE), Options(stick_time=given))
        assert not problem.rubs
        assert float(problem.mechanism.get("joint2.stick_time")) == 0.01


def test_a_time_of_the_model_stays():
    """Whatever the data say of the other joint, and whatever a step would like."""
    file, recording = rubbing([0.5, 0.5])
    file = file.set({"joint2.stick_time": 0.02})
    problem = build_problem(file, [recording], parameter_set(file, FREE), Options())
    assert float(problem.mechanism.get("joint2.stick_time")) == 0.02
    start = start_point(problem)
    found = creeping(problem, start, first_weights(problem, start))
    assert set(found.options.stick_time) == {"joint1"}
    assert float(found.mechanism.get("joint2.stick_time")) == 0.02


def test_without_correction_half_a_step_is_the_least():
    file, recording = rubbing([0.5, 0.5])
    file = file.set({"joint2.stick_time": 0.02})
    options = Options(correction="none", timestep=0.01)
    problem = build_problem(file, [recording], parameter_set(file, FREE), options)
    assert [float(problem.mechanism.get(f"joint{i}.stick_time")) for i in (1, 2)] == [0.005, 0.02]


def test_joints_without_dry_friction_do_not_creep():
    file, recording = rubbing([0.5, 0.5])
    with pytest.raises(UnknownNameError, match="no joint 'joint3' has dry friction"):
        build_problem(file, [recording], parameter_set(file, FREE), Options(stick_time={"joint3": 0.01}))
