"""Torques along a measured motion: exact for the true model, not for a wrong one; signs and units before a fit."""

import dataclasses

import numpy as np
import pytest

from estimation.arms import arm, driven
from shadowfit.estimation import Options
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.problem import build_problem
from shadowfit.evaluation.precheck import at_start, check
from shadowfit.evaluation.torque_page import torque_page
from shadowfit.evaluation.torques import predicted_torques
from shadowfit.evaluation.validation import Validation

STEPS = 400


@pytest.fixture(scope="module")
def mechanism():
    return arm(2)


@pytest.fixture(scope="module")
def recording(mechanism):
    return driven(mechanism, STEPS)


def predicted(mechanism, recording, **options):
    problem = build_problem(mechanism, [recording], parameter_set(mechanism, ()), Options(**options))
    return predicted_torques(at_start(problem))


def test_true_model_predicts_its_torques(mechanism, recording):
    """The recording comes from the discrete equations; what is left is the low-pass of the motion."""
    found = predicted(mechanism, recording, correction="none", stick_time=None)
    assert list(found) == ["joint1", "joint2"]
    for name, own in found.items():
        assert own.unit == "N m"
        assert own.share < 0.01, name
        expected = np.interp(own.time, recording.time, recording.channels[name.replace("joint", "u")])
        # Half a step of delay: a sample of the input acts on the step before it.
        shifted = np.interp(own.time - 0.01, recording.time, recording.channels[name.replace("joint", "u")])
        assert min(np.std(own.measured - expected), np.std(own.measured - shifted)) < 0.05 * np.std(expected)


def test_wrong_mass_shows(mechanism, recording):
    good = predicted(mechanism, recording, correction="none", stick_time=None)
    heavy = mechanism.set({"link2.mass": 1.3 * mechanism.get("link2.mass")})
    wrong = predicted(heavy, recording, correction="none", stick_time=None)
    for name in good:
        assert wrong[name].rmse > 5.0 * good[name].rmse
        np.testing.assert_allclose(wrong[name].measured, good[name].measured)


def test_page_holds_the_curves(mechanism, recording):
    found = predicted(mechanism, recording, correction="none", stick_time=None)
    validation = Validation("run", "", 0.0, 0.0, 0.0, True, "", STEPS, 0.01, {}, found)
    page = torque_page("arm", [validation])
    assert "joint2: torque" in page
    assert f"{found['joint1'].rmse:.3g} N m" in page
    assert validation.to_json()["torques"]["joint1"]["share"] == found["joint1"].share


@pytest.mark.parametrize(("factor", "words"), [(-1.0, "opposite sign"), (1000.0, "times the measured torque")])
def test_sign_and_unit_of_a_torque_are_found_before_the_fit(mechanism, recording, factor, words):
    turned = {**recording.channels, "u2": factor * recording.channels["u2"]}
    found = check(mechanism, [dataclasses.replace(recording, channels=turned)], {})
    said = [notice for notice in found.notices if words in notice.text]
    assert len(said) == 1
    assert said[0].text.startswith("joint2")
    assert said[0].severity == "red"
    assert found.balances[0][1].torque == pytest.approx(1.0 / factor, rel=0.1)


def test_right_torques_are_not_doubted(mechanism, recording):
    found = check(mechanism, [recording], {})
    assert not [notice for notice in found.notices if "torque" in notice.text]
    assert all(own.torque == pytest.approx(1.0, rel=0.1) for own in found.balances[0])
