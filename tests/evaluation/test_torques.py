"""Torques along a measured motion: exact for the true model, not for a wrong one; signs and units before a fit."""

import dataclasses

import numpy as np
import pytest

from dynamics.linkages import fourbar
from estimation.arms import arm, driven
from estimation.test_loops import recorded
from shadowfit.estimation import Options
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.problem import build_problem
from shadowfit.evaluation.precheck import at_start, check
from shadowfit.evaluation.store import load_result, save_estimate
from shadowfit.evaluation.torque_page import torque_page
from shadowfit.evaluation.torques import predicted_torques, torque_cutoff, torques_of, whole_share
from shadowfit.evaluation.unexplained import unexplained
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


@pytest.mark.filterwarnings("ignore:recording .* is constant:UserWarning")
def test_joints_that_stand_still_have_no_say_in_the_cut_off(mechanism, recording):
    """Encoders of joints at rest repeat to the last digit."""

    def with_still(*joints):
        held = {f"q{joint}": np.full(len(recording), 0.3) for joint in joints}
        one = dataclasses.replace(recording, channels={**recording.channels, **held})
        return build_problem(mechanism, [one], parameter_set(mechanism, ()), Options())

    assert torque_cutoff(with_still(1), 0) == torque_cutoff(with_still(), 0) > 0.0
    assert torque_cutoff(with_still(1, 2), 0) == 0.0
    assert predicted_torques(at_start(with_still(1, 2))) == {}


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
    assert found.balances[0][1].torque.factor == pytest.approx(1.0 / factor, rel=0.1)


def test_right_torques_are_not_doubted(mechanism, recording):
    found = check(mechanism, [recording], {})
    assert not [notice for notice in found.notices if "torque" in notice.text]
    assert all(own.torque.factor == pytest.approx(1.0, rel=0.1) for own in found.balances[0])


def test_a_centre_of_mass_on_the_other_side_is_no_wrong_sign(mechanism):
    """A wrist's torque is mostly friction's, which has a sign of its own."""
    rubbing = mechanism.set({"joint2.viscous": 3.0 * mechanism.get("joint2.viscous") + 1.0})
    recording = driven(rubbing, STEPS)
    file = mechanism.set({"link2.com.x": -mechanism.get("link2.com.x"), "link2.com.z": -mechanism.get("link2.com.z")})
    said = [notice.text for notice in check(file, [recording], {}).notices if "opposite sign" in notice.text]
    assert not said
    turned = {**recording.channels, "u2": -recording.channels["u2"]}
    found = check(file, [dataclasses.replace(recording, channels=turned)], {})
    assert any("opposite sign" in notice.text and notice.text.startswith("joint2") for notice in found.notices)


@pytest.mark.slow
def test_a_missing_rotor_is_no_wrong_unit(mechanism):
    """A wrist whose rotor is many times its link: without weight to carry its torque tells no factor."""
    light = mechanism.set({"gravity.acceleration": 0.0})
    geared = light.set({"joint2.motor.shaft_inertia": 50.0 * light.get("link2.inertia.yy")})
    found = check(light, [driven(geared, STEPS)], {})
    assert not [notice for notice in found.notices if notice.severity == "red"]
    assert any("rotor" in notice.advice for notice in found.notices)


def test_report_of_a_fit_has_the_curves(mechanism, recording, tmp_path):
    """Written beside the result, read again, and drawn behind the recordings."""
    problem = build_problem(mechanism, [recording], parameter_set(mechanism, ()), Options(correction="none"))
    estimate = at_start(problem)
    summary = save_estimate(estimate, tmp_path)
    expected = predicted_torques(estimate)
    saved = load_result(tmp_path)
    (columns,) = saved.torques.values()
    found = torques_of(columns)
    for name, own in expected.items():
        np.testing.assert_allclose(found[name].predicted, own.predicted, rtol=1e-6, atol=1e-9)
        assert found[name].rmse == pytest.approx(own.rmse, rel=1e-6)
    assert next(iter(summary["torques"].values()))["joint1"]["rmse"] == expected["joint1"].rmse
    page = saved.report().read_text()
    assert 'id="recording-1"' in page
    assert "joint2: torque" in page
    assert f"{100.0 * whole_share(expected):.1f} %" in page


def test_torques_are_compared_below_the_noise_of_the_readings(mechanism, recording):
    """Noise that is added to angles lowers the cut-off, and the prediction of the true model stays usable."""
    noise = np.random.default_rng(5)
    size = 2e-3
    noisy = {
        name: values + (size * noise.standard_normal(len(values)) if name not in ("u1", "u2") else 0.0)
        for name, values in recording.channels.items()
    }
    rough = dataclasses.replace(recording, channels=noisy)
    problem = build_problem(mechanism, [rough], parameter_set(mechanism, ()), Options(correction="none"))
    assert torque_cutoff(problem, 0) < 0.6 * problem.options.cutoff
    found = predicted_torques(at_start(problem))
    assert whole_share(found) < 0.3


@pytest.mark.slow
def test_a_driven_loop_predicts_the_torque_of_its_drive():
    """A four-bar linkage with a motor at its crank: one coordinate, whose force is the motor's."""
    linkage = fourbar()
    recording = recorded(linkage, {"a": -1.0}, {"a": 6.0}, size=0.02)
    found = predicted(linkage, recording, correction="none", cutoff=40.0)
    assert list(found) == ["a"]
    assert found["a"].share < 0.1
    heavy = linkage.set({"coupler.mass": 2.0 * linkage.get("coupler.mass")})
    assert predicted(heavy, recording, correction="none", cutoff=40.0)["a"].rmse > 3.0 * found["a"].rmse


def test_a_measured_torque_is_one_of_the_forces_that_errors_are_compared_with(mechanism, recording):
    """What is unexplained at a joint that mostly rubs is small beside the torque that overcomes its friction."""
    rubbing = mechanism.set({"joint2.viscous": 1e3 * max(mechanism.get("joint2.viscous"), 1e-3)})
    problem = build_problem(rubbing, [recording], parameter_set(rubbing, ()), Options(correction="none"))
    estimate = at_start(problem)
    torques = predicted_torques(estimate)
    for own in unexplained(estimate):
        assert own.typical >= 0.9 * np.sqrt(np.mean(torques[own.name].measured ** 2))
