"""Validation: a rollout continues the estimate, the true model beats a wrong one, on unseen data too."""

import numpy as np
import pytest

from quick import quick
from shadowfit.dynamics import simulate
from shadowfit.estimation import Options, fit
from shadowfit.evaluation import validate
from shadowfit.evaluation.inputs import recorded_inputs
from shadowfit.evaluation.rollout import Stepping, roll_out, start_states
from shadowfit.evaluation.torques import TorquePrediction
from shadowfit.evaluation.validation import SensorValidation, Validation, judged, saved_options
from shadowfit.models import load_model, read_model
from shadowfit.recordings import Recording


@pytest.mark.parametrize("discretization", quick(["exact", "spook"], "exact"))
def test_states_continue_a_simulation_of_the_same_equations(base, truth, discretization):
    """Data of the stepper itself, without noise: a rollout from any estimated state follows them."""
    model = load_model("pendulum")
    mechanism = model.mechanism.set({**base, **truth, "theta.std": 1e-6})
    state = model.start.with_joints({"hinge": 2.0}, {}).state(mechanism)
    run = simulate(
        mechanism, state, timestep=0.01, steps=120, discretization=discretization, joints="compliant", substeps=1
    )
    recording = Recording(np.asarray(run.time), {"theta": np.asarray(run.readings["theta"])})
    estimate = fit(
        mechanism,
        recording,
        (),
        options=Options(unknowns="configuration", correction="none", discretization=discretization, state_weight=1e6),
    )
    states = start_states(estimate)
    for first in (20, 60):
        again = roll_out(
            mechanism,
            states[first],
            recording,
            Stepping(0.01, discretization, "compliant"),
            steps=40,
            first_step=first,
        )
        expected = np.asarray(run.readings["theta"])[first : first + 41]
        # A velocity half a step off would be wrong by about 0.05 rad/s here, which is 0.02 rad after 40 steps.
        np.testing.assert_allclose(again.readings["theta"], expected, atol=2e-3)


def test_the_settings_of_the_fit_are_used(saved, estimate):
    options = saved_options(saved)
    assert options.timestep == estimate.problem.timestep
    assert options.discretization == "exact"
    assert options.state_weight == estimate.state_weight
    assert estimate.problem.options.state_weight == "auto"
    assert (options.unknowns, options.correction) == ("joint", "deferred")


def test_an_estimate_is_validated_as_its_result_is(saved, estimate, make_swing):
    other = make_swing(2, 1.2, name="other")
    (of_estimate,), (of_result,) = validate(estimate, other), validate(saved, [other])
    assert of_estimate.cost == pytest.approx(of_result.cost, rel=1e-6)
    one, two = of_estimate.sensors["theta"], of_result.sensors["theta"]
    assert one.rollout_rmse == pytest.approx(two.rollout_rmse, rel=1e-4)
    assert one.enclosed == pytest.approx(two.enclosed, abs=0.01)


def test_unseen_data(saved, make_swing):
    other = make_swing(2, 1.2, name="other")
    good = validate(saved, other)[0]
    wrong = validate(saved.mechanism().set({"pendulum.inertia.yy": 0.0043}), other, saved_options(saved))[0]
    assert good.converged
    assert good.recording == "other"
    assert good.cost < 0.5 * wrong.cost
    sensor, worse = good.sensors["theta"], wrong.sensors["theta"]
    assert sensor.rollout_horizon == pytest.approx(other.duration)
    assert worse.rollout_horizon < 0.5 * other.duration
    assert sensor.rollout_rmse < 0.2 * worse.rollout_rmse
    # The samples' own noise bounds what any prediction can reach.
    assert 0.5e-3 < sensor.prediction_rmse[1] < 2e-3
    assert worse.prediction_rmse[100] > 5.0 * sensor.prediction_rmse[100]
    assert sensor.band == pytest.approx(0.05 * np.ptp(other.channel("theta")))
    assert good.to_json()["sensors"]["theta"]["prediction_rmse"]["1"] == sensor.prediction_rmse[1]


def test_inputs_without_their_missing_samples():
    mechanism = read_model("cartpole")
    time = 0.1 * np.arange(6)
    recording = Recording(time, {"u": np.array([1.0, 2.0, np.nan, 4.0, 5.0, 6.0])})
    np.testing.assert_allclose(recorded_inputs(mechanism, recording, 0.1, 5)["u"], [1.0, 2.0, 2.0, 4.0, 5.0])
    np.testing.assert_array_equal(recorded_inputs(mechanism, None, 0.1, 2)["u"], 0.0)


def test_what_is_not_predicted_is_named():
    def one(rmse, converged=True):
        sensors = {"theta": SensorValidation(rmse, 1.0, 0.05, {1: rmse, 10: 1.0})}
        return Validation("run", "", 0.0, 0.0, 0.0, converged, "stopped", 100, 0.01, sensors)

    assert one(0.01).failures() == []
    assert len(one(0.3).failures()) == 1
    assert one(0.3).failures()[0].startswith("theta is missed by 30 % of its range within 1 steps")
    assert one(0.01, converged=False).failures() == ["the states were not found: stopped"]


def test_the_verdict_names_the_recording_that_fails():
    def one(name, horizon, rmse=0.01, torques=None):
        sensors = {"theta": SensorValidation(rmse, horizon, 0.05, {1: rmse})}
        return Validation(name, "", 0.0, 0.0, 0.0, True, "", 100, 0.01, sensors, torques or {})

    held, lost, missed = one("monday", 1.0), one("tuesday", 0.3), one("friday", 0.0, rmse=0.3)
    assert judged([held]) == ([], "green", "The model predicts these recordings.")
    (notice,), colour, sentence = judged([held, lost])
    assert colour == "amber"
    assert notice.text.startswith("tuesday: the simulation from the first state is off theta")
    assert "0.3 of 1 s" in notice.text
    assert "1 of 2" in sentence
    notices, colour, _ = judged([lost, missed])
    assert colour == "red"
    assert notices[0].text.startswith("friday: theta is missed")
    # A simulation without the controller says nothing about an arm: its torques do.
    measured = np.array([1.0, -2.0, 1.5])
    good, bad = (TorquePrediction("N m", np.arange(3.0), measured, part * measured) for part in (0.9, 0.2))
    assert judged([one("arm", 0.1, torques={"elbow": good})])[1] == "green"
    ((notice,), colour, _) = judged([one("arm", 0.1, torques={"elbow": bad})])
    assert colour == "red"
    assert "torque at elbow" in notice.text


def test_simulations_of_draws_enclose_new_recordings_as_often_as_they_say(saved, make_swing):
    """Of this machine 95 in a hundred samples; of one that is not the fitted one less."""
    own = validate(saved, [make_swing(seed, start) for seed, start in ((5, 1.2), (6, 2.2), (7, 1.7))])
    assert 0.92 <= np.mean([one.sensors["theta"].enclosed for one in own]) <= 0.98
    (other,) = validate(saved, make_swing(5, 1.2, viscous=8e-4))
    assert other.sensors["theta"].enclosed < 0.9
    (model,) = validate(saved.mechanism(), make_swing(5, 1.2), saved_options(saved))
    assert np.isnan(model.sensors["theta"].enclosed)
