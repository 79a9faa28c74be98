"""The verdict: recordings of the model end green, wrong ones do not; what stands in the way is named."""

import dataclasses
import functools
from types import SimpleNamespace

import numpy as np
import pytest

from estimation.arms import arm
from estimation.arms import driven as driven_along
from shadowfit.dynamics import place, simulate
from shadowfit.estimation import Free, Options, fit
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.problem import build_problem
from shadowfit.estimation.solve.levenberg_marquardt import Status
from shadowfit.evaluation import rules, verdict
from shadowfit.evaluation.notices import Notice, colour, from_json, ordered
from shadowfit.evaluation.rules import disagreement, followed_readings, judge, simulated_motion, told_parameters
from shadowfit.evaluation.rules.force_scale import known_forces
from shadowfit.evaluation.series import SensorSeries
from shadowfit.evaluation.unexplained import unexplained
from shadowfit.mechanism import (
    Body,
    Gravity,
    Input,
    JointPosition,
    Mechanism,
    PositionMotor,
    TorqueMotor,
    hinge,
    slider,
)
from shadowfit.models import load_model
from shadowfit.recordings import Recording


@pytest.fixture(scope="module")
def model(base):
    return load_model("pendulum").mechanism.set(base)


FREE = ("pendulum.inertia.yy", "hinge.viscous")


def judged(model, recording, free=FREE):
    return judge(fit(model, recording, free))


def with_theta(recording, theta):
    return dataclasses.replace(recording, channels={"theta": theta})


def test_a_recording_of_the_model_ends_green(model, make_swing):
    assert colour(judged(model, make_swing(5, 2.0))) == "green"


def test_forces_are_compared_with_the_strongest_one(estimate):
    (own,) = unexplained(estimate)
    assert (own.name, own.unit) == ("hinge", "N m")
    assert own.share < 0.02
    # The strongest force of a swing from 2 rad: m g l sin θ.
    theta = np.asarray(estimate.trajectory().readings["theta"])
    weight = float(estimate.mechanism().get("pendulum.mass")) * 9.81 * 0.092 * np.sqrt(np.mean(np.sin(theta) ** 2))
    assert own.typical == pytest.approx(weight, rel=0.2)


@pytest.mark.parametrize(
    "wrong", ["shuffled", "backwards", "half the unit", pytest.param("noise", marks=pytest.mark.slow)]
)
def test_wrong_data_do_not_end_green(model, make_swing, wrong):
    good = make_swing(6, 2.0)
    theta, rng = good.channels["theta"], np.random.default_rng(0)
    other = {
        "noise": lambda: rng.standard_normal(len(theta)),
        "shuffled": lambda: rng.permutation(theta),
        "backwards": lambda: theta[::-1],
        "half the unit": lambda: 0.3 * theta + 0.5,
    }[wrong]()
    assert colour(judged(model, with_theta(good, other))) != "green"


def test_a_fit_without_end_names_what_the_data_do_not_tell():
    """Directions without information are where searches lose themselves."""
    rows = [SimpleNamespace(name=name, at_bound=name == "b", identifiable=name != "c") for name in "abc"]
    lost = SimpleNamespace(converged=False, status=Status.ITERATIONS, parameters=rows)
    (one,) = rules.ending(lost)
    assert one.severity == "red"
    assert one.advice == "Free fewer parameters: the data do not tell b and c, or hold them at a bound"


def test_friction_that_is_held_too_high_is_named(model, make_swing):
    """The free part of it goes to zero; a joint's constraint has a damping as well, which is none."""
    worst = judged(model.set({"hinge.dry": 0.01}), make_swing(5, 2.0))[0]
    assert worst.severity == "red"
    assert "less friction than the model holds it at (hinge.dry = 0.01)" in worst.text
    assert "--free hinge.dry" in worst.advice


@pytest.fixture(scope="module")
def driven():
    """A cart that is pushed along its rail, and a recording of it."""
    cart = Mechanism(
        {"cart": Body(1.5, (1.0, 1.0, 1.0))},
        {"rail": slider("world", "cart", axis=(1, 0, 0), viscous=0.5, laws={"motor": TorqueMotor(1.0)})},
        sensors={"x": JointPosition("rail", rotary=False, std=1e-4)},
        inputs={"u": Input(hold="linear")},
        gravity=Gravity(0.0),
    )
    time = 0.01 * np.arange(301)
    push = 5.0 * np.sin(5.0 * time) + 2.0 * np.sin(12.0 * time + 1.0)
    run = simulate(cart, place(cart), {"u": push[:-1]}, timestep=0.01, steps=300, joints="rigid", substeps=1)
    noise = 1e-4 * np.random.default_rng(0).standard_normal(301)
    return cart, Recording(time, {"x": np.asarray(run.readings["x"]).reshape(-1) + noise, "u": push})


FREE_CART = ("cart.mass", "rail.viscous")


def test_a_mirrored_input_is_named(driven):
    """A negative gain explains it exactly, so that nothing but the sign speaks against it."""
    cart, recording = driven
    free = ("rail.motor.gain", "rail.viscous")
    assert colour(judged(cart, recording, free)) == "green"
    mirrored = dataclasses.replace(recording, channels={**recording.channels, "u": -recording.channels["u"]})
    estimate = fit(cart, mirrored, free)
    assert estimate.values["rail.motor.gain"] == pytest.approx(-1.0, rel=0.02)
    (notice,) = judge(estimate)
    assert notice.severity == "amber"
    assert "opposite sign" in notice.text
    # A machine that is that way round says so in its model, and ends green.
    assert colour(judged(cart.set({"rail.motor.gain": -0.8}), mirrored, free)) == "green"


@pytest.mark.parametrize(
    ("torque", "verdict"),
    [
        ("losses", "amber"),
        ("backwards", "red"),
        ("shuffled", "red"),
    ],
)
def test_losses_of_a_gear_are_told_from_wrong_torques(driven, torque, verdict):
    """A measured force of which 40 % do not reach the cart, slowly changing, as in a gear; and wrong ones."""
    cart, recording = driven
    push, rng = recording.channels["u"], np.random.default_rng(1)
    slow = np.convolve(rng.standard_normal(len(push) + 30), np.ones(31) / np.sqrt(31.0), "valid")
    other = {
        "losses": push + 0.4 * np.sqrt(np.mean(push**2)) * slow / np.sqrt(np.mean(slow**2)),
        "backwards": push[::-1],
        "shuffled": rng.permutation(push),
    }[torque]
    found = judged(cart, dataclasses.replace(recording, channels={**recording.channels, "u": other}), FREE_CART)
    assert colour(found) == verdict
    (notice,) = [own for own in found if "unexplained" in own.text]
    assert notice.advice


@functools.cache
def servo():
    """A wheel in a position loop, and its motion: inertia and weight are next to nothing beside what the loop gives."""
    wheel = Mechanism(
        {"wheel": Body(1.0, (0.01, 0.01, 0.01))},
        {
            "hinge": hinge(
                "world",
                "wheel",
                axis=(0.0, 0.0, 1.0),
                viscous=1.0,
                laws={"loop": PositionMotor(20.0, 1.5, input="aim")},
            )
        },
        sensors={"theta": JointPosition("hinge", std=1e-4)},
        inputs={"aim": Input(unit="rad", hold="linear")},
    )
    time = 0.01 * np.arange(601)
    aim = 0.5 * np.sin(3.0 * time) + 0.2 * np.sin(7.0 * time + 1.0)
    run = simulate(wheel, place(wheel), {"aim": aim[:-1]}, timestep=0.01, steps=600, joints="rigid", substeps=1)
    noise = 1e-4 * np.random.default_rng(0).standard_normal(601)
    return wheel, Recording(time, {"theta": np.asarray(run.readings["theta"]).reshape(-1) + noise, "aim": aim})


@pytest.mark.parametrize(("aimed", "verdict"), [("as it was", "green"), ("losses", "amber"), ("backwards", "red")])
def test_a_loop_whose_gains_are_given_says_how_strong_its_joint_is(aimed, verdict):
    """Targets with another, slow motion of 40 % of the loop's force in them, as a gear's losses; and wrong ones."""
    wheel, recording = servo()
    aim, theta = recording.channels["aim"], recording.channels["theta"]
    force = 20.0 * (aim - theta) - 1.5 * np.gradient(theta, 0.01)
    rng = np.random.default_rng(1)
    slow = np.convolve(rng.standard_normal(len(aim) + 30), np.ones(31) / np.sqrt(31.0), "valid")
    other = {
        "as it was": aim,
        "losses": aim + 0.4 * np.sqrt(np.mean(force**2)) / 20.0 * slow / np.sqrt(np.mean(slow**2)),
        "backwards": aim[::-1],
    }[aimed]
    estimate = fit(wheel, dataclasses.replace(recording, channels={"theta": theta, "aim": other}), ("hinge.viscous",))
    assert colour(judge(estimate)) == verdict
    (own,) = unexplained(estimate)
    assert own.driven == "loop"
    if aimed == "as it was":
        assert own.typical == pytest.approx(np.sqrt(np.mean(force**2)), rel=0.05)


def test_free_gains_say_nothing_about_how_strong_a_joint_is():
    wheel, recording = servo()
    (own,) = unexplained(fit(wheel, recording, ("hinge.loop.kp", "hinge.viscous")))
    assert own.driven is None


def test_coloured_and_loud_residuals_are_named(model, make_swing):
    quiet = make_swing(3, 2.0)
    rng = np.random.default_rng(4)
    drift = np.zeros(len(quiet.time))
    for k in range(1, len(drift)):
        drift[k] = 0.95 * drift[k - 1] + 1e-3 * rng.standard_normal()
    loud = with_theta(quiet, quiet.channels["theta"] + drift)
    options = Options(unknowns="configuration", correction="none", state_weight=1e6)
    found = judge(fit(model, loud, FREE, options=options))
    assert any("correlated in time" in notice.text for notice in found)
    assert all(notice.advice for notice in found if notice.severity != "info")


def test_what_a_real_machine_leaves_is_information():
    """More than the noise, but a part of the motion that no simulation would show: told, and no warning."""
    sensor = JointPosition("hinge", std=1e-3)
    severities = {
        share: next(
            followed_readings._following(followed_readings._Left("theta", share, 1.0, 0.0), sensor, "theta")
        ).severity
        for share in (0.05, 0.15, 0.5)
    }
    assert severities == {0.05: "info", 0.15: "amber", 0.5: "red"}
    assert not list(followed_readings._following(followed_readings._Left("theta", 2e-3, 1.0, 0.0), sensor, "theta"))
    (told,) = followed_readings._following(followed_readings._Left("theta", 2e-3, 1.0, 0.9), sensor, "theta")
    assert told.severity == "info"
    assert "correlated in time (0.90" in told.text


def test_friction_that_cannot_be_told_from_zero_is_information(estimate):
    """An interval that begins at zero says how large it may be; an inertia like that is not known at all."""
    unknown = [dataclasses.replace(own, identifiable=False) for own in estimate.parameters]
    fields = {"parameters": unknown, "findings": (), "cost": 1.0}
    found = {notice.severity: notice.text for notice in told_parameters._untold(SimpleNamespace(**fields))}
    assert "hinge.viscous" in found["info"]
    assert "cannot be told from zero" in found["info"]
    assert "pendulum.inertia.yy" in found["amber"]
    # Unless no motion of the recording depends on it.
    unseen = SimpleNamespace(names=("hinge.viscous",), text="")
    texts = [one.text for one in told_parameters._untold(SimpleNamespace(**(fields | {"findings": (unseen,)})))]
    assert any("hinge.viscous" in text and "not identifiable" in text for text in texts)


def test_readings_that_drown_in_rounding_do_not_end_green(model, make_swing):
    found = judge(fit(model, make_swing(7, 2.0), FREE, options=Options(state_weight=9e49)))
    assert colour(found) == "red"
    assert any("lost in rounding" in notice.text for notice in found)


def test_pieces_have_no_say_about_what_is_not_identifiable(estimate, monkeypatch):
    row = SimpleNamespace(name="hinge.viscous", wider=1e13)
    monkeypatch.setattr(disagreement, "compared", lambda _: [row])
    unknown = [dataclasses.replace(own, identifiable=False) for own in estimate.parameters]
    assert list(rules.pieces(SimpleNamespace(parameters=unknown, cost=1.0))) == []


def test_bounds_are_named(model, make_swing):
    free = {"pendulum.inertia.yy": Free(0.01, 0.006, 0.02), "hinge.viscous": None}
    found = judge(fit(model, make_swing(7, 2.0), free, options=Options(state_weight=100.0)))
    assert any("sits on its bound" in notice.text for notice in found)


def test_notices_are_ordered_and_survive_a_file():
    red, amber, info = Notice("red", "a", "b"), Notice("amber", "c"), Notice("info", "d")
    assert ordered([info, amber, red, amber]) == [red, amber, info]
    assert from_json([one.to_json() for one in (red, amber, info)]) == [red, amber, info]
    assert [colour(x) for x in ([info], [amber, info], [amber, red], [])] == ["green", "amber", "red", "green"]
    assert red.sentences() == "a. b."


def test_the_sentence_opens_with_the_verdict(saved):
    assert verdict.sentence(saved.summary).startswith("Nothing speaks against these numbers: the fit converged after")
    worse = {**saved.summary, "notices": [Notice("red", "wrong by ten").to_json()]}
    assert verdict.sentence(worse).startswith("Do not use these numbers yet")


@pytest.mark.parametrize(("weight", "lost"), [(1e4, False), (1e24, True)])
def test_weights_beyond_the_digits_leave_no_error_bars_and_say_so(model, make_swing, weight, lost):
    estimate = fit(model, make_swing(5, 2.0), FREE, options=Options(state_weight=weight))
    assert estimate.evidence.settled is not lost
    assert any("lost in rounding" in notice.text for notice in judge(estimate)) is lost


@pytest.mark.parametrize(
    ("error", "left"),
    [
        ([0.0, 0.04, -0.04, 0.0], None),
        ([0.0, 0.06, 0.04, 0.19], None),  # off for a while, but never astray
        ([0.0, 0.04, -0.06, 0.5], 2.0),
        ([0.0, 0.04, np.nan, np.nan], 2.0),  # the simulation failed
    ],
)
def test_a_simulation_has_left_when_it_is_first_off_on_its_way_astray(error, left):
    measured = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    series = SensorSeries(measured, measured + np.array([error]).T, np.array([error]).T)
    assert simulated_motion.leaves_at(np.arange(4.0), series) == left


def test_nobody_asks_for_simulations_of_a_machine_that_is_led():
    estimate = SimpleNamespace(noise_choice=SimpleNamespace(led=True))
    assert list(simulated_motion.simulations(estimate, [])) == []


@pytest.mark.parametrize(
    ("held", "prior", "expected"),
    [(None, None, ["amber"]), ("joint2.motor.gain", None, []), ("link1.mass", None, []), (None, 0.05, ["info"])],
)
def test_how_large_forces_are_must_be_known_from_somewhere(held, prior, expected):
    """Not if gains and masses are free all together, and nothing is known of them."""
    mechanism = arm(2)
    names = [name for pattern in ("*.mass", "*.motor.gain", "*.viscous") for name in mechanism.expand(pattern)]
    free = {name: Free(prior=prior if name.endswith("gain") else None) for name in names if name != held}
    problem = build_problem(mechanism, [driven_along(mechanism, 40)], parameter_set(mechanism, free), Options())
    notices = list(known_forces(SimpleNamespace(problem=problem)))
    assert [notice.severity for notice in notices] == expected
