"""What a model is for: the most likely parameters, or those whose simulations follow the recording.

A pendulum with drag that its model lacks, by an independent integrator.
"""

import functools

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from shadowfit.errors import UnknownNameError
from shadowfit.estimation import ErrorModel, Options, fit
from shadowfit.evaluation.rollout import fineness, roll_out, start_states, stepping
from shadowfit.evaluation.rules import judge
from shadowfit.evaluation.series import compare
from shadowfit.mechanism import Body, JointPosition, Mechanism, hinge
from shadowfit.recordings import Recording
from shadowfit.trees import map_leaves

MASS, LEVER, INERTIA, VISCOUS = 0.2, 0.15, 1e-3, 2e-3
FREE = ["pendulum.inertia.xx", "pivot.viscous"]
TIME = 4e-3 * np.arange(2500)
NOISE = 1e-4


def pendulum():
    pivot = hinge("world", "pendulum", child_point=(0.0, 0.0, LEVER), axis=(1.0, 0.0, 0.0), viscous=VISCOUS)
    body = Body(MASS, (1.5 * INERTIA, 1e-3, 1e-3))
    return Mechanism({"pendulum": body}, {"pivot": pivot}, sensors={"angle": JointPosition("pivot", std=NOISE)})


def swinging(drag):
    moment = INERTIA + MASS * LEVER**2

    def derivative(_, state):
        angle, speed = state
        torque = -MASS * 9.81 * LEVER * np.sin(angle) - VISCOUS * speed - drag * speed * abs(speed)
        return speed, torque / moment

    run = solve_ivp(derivative, (0.0, TIME[-1]), (2.0, 0.0), t_eval=TIME, rtol=1e-10, atol=1e-12)
    noise = NOISE * np.random.default_rng(0).standard_normal(len(TIME))
    return Recording(TIME, {"angle": run.y[0] + noise}, units={"angle": "rad"})


@functools.cache
def fitted(drag, criterion):
    return fit(pendulum(), swinging(drag), FREE, options=Options(errors=ErrorModel(criterion=criterion)))


def astray(estimate):
    """Root mean square error of a simulation from the first estimated state [rad]."""
    finer, track = fineness(estimate), estimate.problem.tracks[0]
    first = map_leaves(lambda x: x[0], start_states(estimate, 0))
    run = roll_out(
        estimate.mechanism(), first, track.recording, stepping(estimate, finer), steps=(track.steps - 1) * finer
    )
    readings = {name: np.asarray(values)[::finer] for name, values in run.readings.items()}
    times = np.asarray(track.times(estimate.problem.timestep))[: len(readings["angle"])]
    return compare(estimate.mechanism(), track.recording, times, readings)["angle"].rmse()


def test_simulations_of_a_model_that_lacks_something_follow_best_where_it_is_asked_to_simulate():
    likely, simulating = fitted(2e-3, "parameters"), fitted(2e-3, "simulate")
    assert astray(simulating) < astray(likely)
    assert likely.most_likely == {}
    for row in likely.parameters:
        assert simulating.most_likely[row.name] == pytest.approx(row.value, rel=1e-2)


def test_a_machine_without_drives_is_to_be_simulated():
    assert [row.value for row in fitted(2e-3, "auto").parameters] == pytest.approx(
        [row.value for row in fitted(2e-3, "simulate").parameters], rel=1e-9
    )


def test_two_answers_that_differ_are_told():
    estimate = fitted(2e-3, "auto")
    apart = [row for row in estimate.parameters if abs(row.value - estimate.most_likely[row.name]) > row.std]
    told = [notice.text for notice in judge(estimate) if "not the most likely ones" in notice.text]
    assert bool(told) == bool(apart)
    for row in apart:
        assert f"{row.name} {row.value:.4g} ({estimate.most_likely[row.name]:.4g}" in told[0]


def test_of_a_model_that_is_right_both_criteria_have_the_same_answer():
    likely, simulating = fitted(0.0, "parameters"), fitted(0.0, "simulate")
    for own, other in zip(likely.parameters, simulating.parameters, strict=True):
        assert abs(own.value - other.value) < 0.3 * other.std
    assert not [notice for notice in judge(simulating) if "not the most likely ones" in notice.text]


def test_an_unknown_criterion_is_named():
    with pytest.raises(UnknownNameError, match="criterion 'simulat'"):
        fit(pendulum(), swinging(0.0), FREE, options=Options(errors=ErrorModel(criterion="simulat")))
