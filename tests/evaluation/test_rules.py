"""The verdict: recordings of the model end green, wrong ones do not; what stands in the way is named."""

import dataclasses

import numpy as np
import pytest

from shadowfit.estimation import Free, Options, fit
from shadowfit.evaluation import verdict
from shadowfit.evaluation.notices import Notice, colour, from_json, ordered
from shadowfit.evaluation.rules import judge
from shadowfit.evaluation.unexplained import unexplained
from shadowfit.models import load_model


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


@pytest.mark.parametrize("wrong", ["noise", "shuffled", "backwards", "half the unit"])
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
