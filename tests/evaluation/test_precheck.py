"""Before a fit: wrong signs, units and order are found out along the measured motion; a right recording passes."""

import dataclasses
import re

import numpy as np
import pytest

from dynamics.linkages import compliant, fourbar
from estimation.test_loops import SPUN, recorded
from shadowfit.dynamics import place, simulate
from shadowfit.estimation import Free
from shadowfit.evaluation import precheck
from shadowfit.evaluation.check_page import check_page
from shadowfit.evaluation.notices import colour
from shadowfit.evaluation.precheck import check, surely_wrong
from shadowfit.evaluation.used_channels import used_channels
from shadowfit.models import load_model
from shadowfit.recordings import Recording, read_channel_table, read_recording
from shadowfit.recordings.smoothness import roughness

FREE = {"pendulum.inertia.yy": Free(), "hinge.viscous": Free()}


@pytest.fixture(scope="module")
def model(base):
    return load_model("pendulum").mechanism.set(base)


@pytest.fixture(scope="module")
def swing(make_swing):
    return make_swing(6, 2.0)


def checked(model, recording, change):
    theta = change(recording.channels["theta"])
    return check(model, [dataclasses.replace(recording, channels={"theta": theta})], FREE)


def test_a_recording_of_the_model_passes(model, swing):
    found = checked(model, swing, lambda theta: theta)
    assert colour(found.notices) == "green"
    ((own,),) = found.balances
    assert own.explained > 0.99
    # The start value of the inertia is 11 % too large.
    assert own.coefficients["gravity"] == pytest.approx(1.0, abs=0.15)
    assert found.relative_std["pendulum.inertia.yy"] < 0.01
    page = check_page(model, [swing], found)
    assert "nothing speaks against a fit" in page
    assert 'id="recording-0"' in page


def test_it_takes_what_a_fit_takes(model, swing):
    assert check(model, swing, "hinge.viscous").told[0].name == "hinge.viscous"
    assert check(model, swing, list(FREE)).relative_std == check(model, [swing], FREE).relative_std


@pytest.fixture(scope="module")
def double():
    """Two hanging links that swing, and their angles."""
    model = load_model("chain2")
    start = model.start.with_joints({"hinge1": 1.2, "hinge2": -0.7}, {}).state(model.mechanism)
    run = simulate(model.mechanism, start, timestep=0.01, steps=300, joints="rigid", substeps=1)
    return model.mechanism, Recording(
        np.asarray(run.time), {name: np.asarray(values).ravel() for name, values in run.readings.items()}
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a, b: (b, a), "swapped"),
        (lambda a, b: (a, np.degrees(b)), "theta2 in degrees"),
        (lambda a, b: (-a, b), "other sign of theta"),
    ],
    ids=["swapped", "degrees", "mirrored"],
)
def test_the_remedy_is_named(double, change, words):
    """Of usual mistakes with columns the one that, turned back, explains the motion; said first."""
    mechanism, recording = double
    first, second = change(recording.channels["theta1"], recording.channels["theta2"])
    wrong = dataclasses.replace(recording, channels={"theta1": first, "theta2": second})
    found = check(mechanism, [wrong], {})
    assert found.notices[0].severity == "red"
    assert words in found.notices[0].text
    assert colour(check(mechanism, [recording], {}).notices) == "green"


def test_a_sign_is_named_where_most_is_explained_without_it():
    """A pole that hangs from a cart feels more of gravity than of the cart, so its sign does not matter much."""
    model = load_model("cartpole")
    start = model.start.with_joints({"pivot": 0.5}, {}).state(model.mechanism)
    push = 0.5 * np.sin(4.0 * 0.01 * np.arange(400))
    run = simulate(model.mechanism, start, {"u": push}, timestep=0.01, steps=400, joints="rigid", substeps=1)
    readings = {name: np.asarray(values).ravel() for name, values in run.readings.items()}
    right = Recording(np.asarray(run.time), {**readings, "u": np.append(push, 0.0)})
    wrong = dataclasses.replace(right, channels={**right.channels, "theta": -right.channels["theta"]})
    assert not any("other sign" in notice.text for notice in check(model.mechanism, [right], {}).notices)
    assert any("with the other sign of theta" in notice.text for notice in check(model.mechanism, [wrong], {}).notices)


def test_times_in_milliseconds_are_named(model, swing):
    slow = dataclasses.replace(swing, time=1e3 * swing.time)
    found = check(model, [slow], {})
    assert colour(found.notices) == "red"
    assert any("milliseconds" in notice.sentences() for notice in found.notices)


def test_the_columns_that_are_used_are_listed(model, swing):
    """Where they come from, their range and their grid; columns that the model does not ask for are left out."""
    grid = 0.01
    theta = grid * np.rint(swing.channels["theta"] / grid)
    recording = dataclasses.replace(
        swing, channels={"theta": theta, "noise": theta}, columns={"theta": "alpha [deg]"}, units={"theta": "rad"}
    )
    (one,) = used_channels(model, [recording])
    assert (one.name, one.column, one.unit, one.samples) == ("theta", "alpha [deg]", "rad", len(theta))
    assert one.step == pytest.approx(grid)
    assert (one.low, one.high) == (theta.min(), theta.max())
    (bare,) = used_channels(model, [swing])
    assert bare.unit == "rad, not stated"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda theta: theta[::-1], "gains energy"),
        (lambda theta: theta + np.pi, "gravity pulls the other way"),
        (lambda theta: np.random.default_rng(0).permutation(theta), "differ as much as any two"),
        (lambda theta: np.random.default_rng(0).standard_normal(len(theta)), "differ as much as any two"),
        (np.degrees, "of the forces that the motion shows"),
    ],
    ids=["backwards", "half a turn", "shuffled", "noise", "degrees"],
)
def test_what_is_wrong_is_named(model, swing, change, words):
    found = checked(model, swing, change)
    assert colour(found.notices) == "red"
    assert any(words in notice.text for notice in found.notices)


def test_weight_that_pulls_the_wrong_way_says_nothing_of_time(model, swing):
    """Its energy is wrong whichever way time runs: one cause, one notice, with the setting that mends it."""
    (only,) = checked(model, swing, lambda theta: theta + np.pi).notices
    assert "gravity pulls the other way" in only.text
    assert "theta = { column = …, offset = 3.14159 }" in only.advice
    mended = model.set({"theta.offset": np.pi})
    assert colour(checked(mended, swing, lambda theta: theta + np.pi).notices) == "green"


def test_only_disorder_stops_a_fit(model, swing):
    assert surely_wrong(model, [swing]) == []
    theta = np.random.default_rng(0).permutation(swing.channels["theta"])
    assert surely_wrong(model, [dataclasses.replace(swing, channels={"theta": theta})])


def test_roughness_is_one_for_noise_and_small_for_motion():
    rng = np.random.default_rng(1)
    noise = rng.uniform(-np.pi, np.pi, 5000)
    assert roughness(noise) == pytest.approx(1.0, abs=0.05)
    assert roughness(noise, wraps=True) == pytest.approx(1.0, abs=0.05)
    turns = 0.1 * np.arange(5000)
    assert roughness(np.angle(np.exp(1j * turns)), wraps=True) < 0.01
    assert roughness(np.ones(10)) == 0.0


@pytest.mark.slow
def test_readings_that_a_loop_could_not_have_are_no_remedy():
    """Of a linkage whose spring the model takes for a far softer one: other signs and units close its loop nowhere."""
    stiff = fourbar().set({"d.spring.stiffness": 1.0})
    looked = precheck.look(fourbar(), [recorded(stiff, *SPUN["fourbar"])], {})
    assert looked.forces[0].balances[0].explained < precheck.FOREIGN
    assert any("of the forces that the motion shows" in notice.text for notice in looked.notices)
    assert not any("instead of" in notice.text for notice in looked.notices)


@pytest.mark.slow
def test_machines_with_joints_that_give_are_not_looked_at_joint_by_joint():
    mechanism = compliant(fourbar(), "d", 1e-3)
    looked = precheck.look(mechanism, [recorded(mechanism, *SPUN["fourbar"])], {})
    assert not looked.forces


@pytest.fixture(scope="module")
def standing():
    """A cart with a pole, pushed to and fro."""
    loaded = load_model("cartpole")
    mechanism = loaded.mechanism
    time = 0.01 * np.arange(400)
    push = 2.0 * np.sin(2.0 * time) + np.sin(0.7 * time + 1.0)
    start = place(mechanism, positions={"pivot": 2.5})
    run = simulate(mechanism, start, {"u": push}, timestep=0.01, steps=400, joints="rigid")
    readings = {name: np.asarray(values).ravel() for name, values in run.readings.items()}
    return mechanism, Recording(np.asarray(run.time), {**readings, "u": np.append(push, push[-1])})


@pytest.mark.parametrize(("sign", "offset"), [(1.0, 0.0), (-1.0, np.pi)])
def test_following_what_is_said_of_an_angle_mends_it(standing, tmp_path, sign, offset):
    """An angle that is counted the other way round and from the other side: half a turn alone would not do."""
    mechanism, recording = standing
    theta = sign * recording.channels["theta"] + offset
    table = {"time": recording.time, **recording.channels, "theta": theta}
    found = check(mechanism, [read_recording(table)], {})
    if sign > 0.0:
        assert colour(found.notices) == "green"
        return
    (told,) = [notice for notice in found.notices if "gravity pulls the other way" in notice.text]
    entry = re.search(r"`(theta = .*?)`", told.advice)[1].replace("…", '"theta"')
    (tmp_path / "channels.toml").write_text(f"[channels]\n{entry}\n")
    mended = read_recording(table, channels=read_channel_table(tmp_path / "channels.toml"))
    assert colour(check(mechanism, [mended], {}).notices) == "green"
