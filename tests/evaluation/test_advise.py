"""What a model lacks is found, with its value, and nothing is found where nothing is missing."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from shadowfit.cli.app import app
from shadowfit.dynamics import place, simulate
from shadowfit.estimation import Free, LevenbergMarquardt, Options, fit
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.levenberg_marquardt import Status
from shadowfit.estimation.uncertainty.missing import releases
from shadowfit.evaluation import load_result, save_estimate
from shadowfit.evaluation.advise import AdviceError, advise, extended_problem
from shadowfit.evaluation.candidates import OwnForces, contradicts, extended
from shadowfit.evaluation.reopen import recordings_of, refitted
from shadowfit.geometry import rotations
from shadowfit.mechanism import (
    Body,
    ConstantForce,
    Coulomb,
    Drag,
    Gravity,
    Input,
    JointPosition,
    Mechanism,
    Spring,
    Stribeck,
    TorqueMotor,
    slider,
)
from shadowfit.mechanism.leaves import Parts
from shadowfit.models import builtin, load_model, read_model
from shadowfit.recordings import Recording, read_recording

STEP, FINER, STEPS = 0.01, 4, 300
FREE = ("pendulum.inertia.yy", "hinge.viscous")


def with_joint(mechanism: Mechanism, name: str, **fields) -> Mechanism:
    joints = dict(mechanism.joints.items())
    joints[name] = dataclasses.replace(joints[name], **fields)
    return mechanism.having(joints=Parts(joints))


@pytest.fixture(scope="module")
def model():
    return with_joint(load_model("pendulum").mechanism.set({"pendulum.inertia.xx": 5e-4}), "hinge", friction=None)


@pytest.fixture(scope="module")
def fitted(model):
    """A fit without the laws that the truth has."""

    def make(seed, **laws):
        truth = with_joint(model, "hinge", laws=Parts(laws))
        start = load_model("pendulum").start.with_joints({"hinge": 2.0}, {}).state(truth)
        run = simulate(truth, start, timestep=STEP / FINER, steps=STEPS * FINER, joints="rigid", substeps=1)
        theta = np.asarray(run.readings["theta"]).reshape(-1)[::FINER]
        noise = np.random.default_rng(seed).normal(0.0, 1e-3, STEPS + 1)
        recording = Recording(STEP * np.arange(STEPS + 1), {"theta": theta + noise}, name="swing")
        return fit(model, recording, FREE, options=Options.physical(model))

    return make


@pytest.fixture(scope="module")
def without_drag(fitted):
    return fitted(1, drag=Drag(3e-4))


@pytest.mark.slow
def test_missing_drag_is_found_with_its_value(without_drag):
    advice = advise(without_drag)
    first = advice.suggestions[0]
    assert first.candidate.name == "hinge.drag.coefficient"
    assert first.units == ("N m s²/rad²",)
    assert abs(first.value[0] - 3e-4) < 2.5 * first.std[0]
    assert first.std[0] < 0.1 * 3e-4
    assert [one.candidate.name for one in advice.suggestions if one.significant] == [first.candidate.name]
    (refit,) = advice.refits  # and with it nothing is missing any more
    assert refit.kept
    assert refit.value[0] == pytest.approx(first.value[0], abs=first.std[0])
    before, after = refit.rollout["theta"]
    assert after < 1.2e-3
    assert after < 0.1 * before


@pytest.mark.slow
def test_a_missing_constant_force_is_told_from_what_looks_like_it(fitted):
    """A tilt, an offset of the sensor and a bent spring pull to one side, too, and explain most of it."""
    advice = advise(fitted(2, constant=ConstantForce(4e-3)), refits=0)
    first = advice.suggestions[0]
    assert first.candidate.name == "hinge.constant.force"
    assert abs(first.value[0] - 4e-3) < 2.5 * first.std[0]
    assert {"theta.offset", "gravity.tilt"} <= {one.candidate.name for one in advice.suggestions if one.share > 0.5}
    assert advice.refits == ()


def test_a_missing_spring_is_found_with_its_rest(fitted):
    """The step is too long to be linear; the refit ends where it should."""
    advice = advise(fitted(4, cable=Spring(0.02, rest=0.5)))
    first = advice.suggestions[0]
    assert first.candidate.names == ("hinge.spring.stiffness", "hinge.constant.force")
    assert first.value == pytest.approx([0.02, 0.01], rel=0.2)
    assert advice.kept[0].value == pytest.approx([0.02, 0.01], rel=0.05)
    assert advice.kept[0].rollout["theta"][1] < 1.2e-3


def test_an_eccentric_encoder_is_found(model, fitted):
    """Readings of a swing that have 20 mrad times the sine of the angle more."""
    right = fitted(3).problem.tracks[0].recording
    theta = right.channels["theta"]
    worn = dataclasses.replace(right, channels={"theta": theta + 0.02 * np.sin(theta) - 0.01 * np.cos(theta)})
    free = (*FREE, "theta.offset")
    first = advise(fit(model, worn, free), refits=0).suggestions[0]
    assert first.candidate.names == ("theta.eccentric_sin", "theta.eccentric_cos")
    assert first.significant
    assert first.value == pytest.approx([0.02, -0.01], abs=2e-3)


@pytest.mark.slow
def test_the_loss_of_a_gear_is_found():
    """A cart whose motor loses 15 % of its force in a gear, fitted with a mass that cannot make up for it."""
    plain = Mechanism(
        {"cart": Body(1.5, (1.0, 1.0, 1.0))},
        {"rail": slider("world", "cart", axis=(1, 0, 0), viscous=0.5, laws={"motor": TorqueMotor(1.0)})},
        sensors={"x": JointPosition("rail", rotary=False, std=1e-4)},
        inputs={"u": Input(hold="linear")},
        gravity=Gravity(0.0),
    )
    truth = with_joint(plain, "rail", friction=Coulomb(gear_loss=0.15))
    steps, fine = 300, 5
    time = 0.01 / fine * np.arange(steps * fine)
    drive = 5.0 * np.sin(5.0 * time) + 2.0 * np.sin(12.0 * time + 1.0)
    run = simulate(
        truth, place(truth), {"u": drive}, timestep=0.01 / fine, steps=steps * fine, joints="rigid", substeps=1
    )
    noise = 1e-4 * np.random.default_rng(0).standard_normal(steps + 1)
    x = np.asarray(run.readings["x"]).reshape(-1)[::fine] + noise
    recording = Recording(0.01 * np.arange(steps + 1), {"x": x, "u": np.append(drive, drive[-1])[::fine]})
    advice = advise(fit(plain, recording, ("cart.mass", "rail.viscous")), refits=1)
    first = advice.refits[0]
    assert first.suggestion.candidate.name == "rail.gear_loss"
    assert first.kept
    assert first.value[0] == pytest.approx(0.15, rel=0.05)


def test_a_complete_model_lacks_nothing(fitted):
    advice = advise(fitted(3))
    assert advice.suggestions
    assert not any(one.significant for one in advice.suggestions)
    assert advice.refits == ()


@pytest.mark.data
@pytest.mark.slow
def test_the_drag_of_a_real_pendulum_is_found(data_dir):
    """A decay over large angles, fitted with viscous friction alone."""
    text = Path(__file__).parents[2] / "studies" / "single_pendulum.toml"
    real = with_joint(read_model(text), "hinge", friction=None, laws=Parts())
    swing = read_recording(data_dir / "pendulum_single_uw" / "single_free_swing_500Hz.csv").between(0.0, 20.0)
    estimate = fit(real, swing, ("pendulum.inertia.yy", "hinge.viscous", "theta1.offset"))
    refit = advise(estimate, refits=1).refits[0]
    assert refit.suggestion.candidate.name == "hinge.drag.coefficient"
    assert refit.kept
    # Without drag the fit follows the swing as well as any viscous friction can, to 9 mrad.
    before, after = refit.rollout["theta1"]
    assert after < 2e-3 < 0.25 * before


def test_prediction_is_what_freeing_a_parameter_does(without_drag):
    """Holding a parameter of a fit and releasing it leads back, with its error bar by the levels of the noise."""
    evidence = without_drag.evidence
    bread = evidence.bread(np.array([True, True]))
    std = np.sqrt((bread @ evidence.by_levels() @ bread)[1, 1])
    present = np.array([True, False])
    (release,) = releases(evidence, 1.0, present, [[1]])
    assert abs(release.step[0]) < 1e-2 * std
    moved = dataclasses.replace(evidence, prior_gradient=evidence.prior_gradient + evidence.matrix @ [0.0, 1e-5])
    (release,) = releases(moved, np.inf, present, [[1]])
    assert release.step[0] == pytest.approx(-1e-5, rel=1e-2)
    assert release.std[0] == pytest.approx(std, rel=1e-6)
    assert release.gain == pytest.approx((release.step[0] / release.std[0]) ** 2, rel=1e-9)
    twice = np.array([True, True])
    assert releases(evidence, 1.0, twice, [[1]])[0].degrees == 0  # nothing is left to tell


def test_candidates_are_what_a_model_has_not():
    furuta = builtin.furuta(friction=False)
    dry = with_joint(furuta, "hinge1", friction=Coulomb(coulomb=1e-3), laws=Parts({"rotor": TorqueMotor(0.1, 0.0)}))
    whole, candidates = extended(dry, ("theta2.offset",), {"hinge1": 2.0, "hinge2": 4.0})
    names = {one.name for one in candidates}
    assert {"hinge1.rotor.shaft_inertia", "hinge2.rotor.shaft_inertia", "hinge1.stribeck_coulomb"} <= names
    assert {"hinge2.coulomb", "hinge2.drag.coefficient", "gravity.tilt", "theta1.offset"} <= names
    assert "hinge1.coulomb" in names  # its number may be wrong
    assert "theta2.offset" not in names
    assert isinstance(whole.joints["hinge1"].friction, Stribeck)
    assert whole.get("hinge1.coulomb") == 1e-3
    whole.check()


@pytest.mark.parametrize(
    ("name", "value", "contradicted"),
    [("spring.stiffness", 2.0, True), ("spring.stiffness", 0.5, False), ("coulomb", 9.0, False)],
)
def test_no_spring_pulls_more_than_all_that_moves_the_machine(model, name, value, contradicted):
    """At a motion of one radian (0.7 rms) with forces of 1 N m; friction holds, and moves nothing."""
    whole, candidates = extended(model, (), {"hinge": 1.0})
    (candidate,) = (one for one in candidates if one.names == (f"hinge.{name}",))
    angle = np.linspace(0.0, 20.0 * np.pi, 1000)
    own = {"hinge": OwnForces(np.sin(angle), np.cos(angle), strongest=1.0)}
    assert contradicts(whole, candidate, [value], own) == contradicted


def test_elements_that_are_off_change_nothing(without_drag):
    """The extended problem has the residuals of the fit."""
    problem, _, point = extended_problem(without_drag)
    cost = objective.linearise(problem, point, without_drag.weights).cost.total
    assert cost == pytest.approx(without_drag.outcome.linearisation.cost.total, rel=1e-6)


def test_a_saved_result_can_be_fitted_again(without_drag, tmp_path):
    save_estimate(without_drag, tmp_path / "result")
    saved = load_result(tmp_path / "result")
    (recording,) = recordings_of(saved)
    own = without_drag.problem.tracks[0].recording
    np.testing.assert_allclose(recording.channels["theta"], own.channels["theta"], rtol=1e-11)
    again = refitted(saved)
    for before, after in zip(without_drag.parameters, again.parameters, strict=True):
        assert (after.name, after.lower, after.upper) == (before.name, before.lower, before.upper)
        assert abs(after.value - before.value) < 0.2 * before.std
    run = CliRunner().invoke(app, ["advise", str(tmp_path / "result"), "--refits", "0"])
    assert run.exit_code == 0, run.output
    assert "hinge.drag.coefficient" in run.output
    assert "--refits 3 would tell" in run.output


def test_priors_of_a_result_hold_when_it_is_fitted_again(model, make_swing, tmp_path):
    """A mass that only its prior tells keeps mean and error bar, and a tilt that starts elsewhere its own."""
    tilted = model.set({"gravity.tilt": rotations.exp(np.array([0.0, 0.02, 0.0]))})
    free = {"pendulum.mass": Free(prior=0.01), "pendulum.inertia.yy": None, "gravity.tilt": Free(prior=0.01)}
    estimate = fit(tilted, make_swing(2, 1.0), free, options=Options(state_weight=1e4))
    table = {row.name: row.value for row in estimate.parameters}
    assert estimate.log[-1].parameters == pytest.approx(table, rel=1e-9), "a log tells rotations, too"
    save_estimate(estimate, tmp_path / "result")
    again = refitted(load_result(tmp_path / "result"))
    first, _, last = again.problem.parameters.parameters
    assert (first.prior, last.prior) == (0.01, 0.01)
    assert first.start == pytest.approx(float(model.get("pendulum.mass")), rel=1e-12)
    np.testing.assert_allclose(last.start, tilted.get("gravity.tilt"), rtol=1e-12)
    for before, after in zip(estimate.table("gauss-newton"), again.table("gauss-newton"), strict=True):
        assert after.std == pytest.approx(before.std, rel=0.02)
        assert abs(after.value - before.value) < 0.1 * before.std


def test_what_cannot_be_advised_on_is_refused(model, without_drag):
    cut = dataclasses.replace(without_drag.outcome, status=Status.ITERATIONS)
    with pytest.raises(AdviceError, match="has not converged"):
        advise(dataclasses.replace(without_drag, outcome=cut))
    swing = without_drag.problem.tracks[0].recording
    full = fit(model, swing, FREE, options=Options(unknowns="full"), optimiser=LevenbergMarquardt(max_iterations=1))
    with pytest.raises(AdviceError, match="'joint' or 'configuration'"):
        advise(full)
