"""Friction tells which way time runs: recordings that run backwards are found out, driven or not, others are not."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from shadowfit.dynamics import simulate
from shadowfit.estimation import Free, Options
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.problem import build_problem
from shadowfit.evaluation.arrow_of_time import CERTAIN, direction
from shadowfit.evaluation.precheck import at_start, check
from shadowfit.models import load_model
from shadowfit.models.twins import furuta_swing_up
from shadowfit.recordings import Recording, read_recording

FREE = ("pendulum.inertia.yy", "hinge.viscous")


def reversed_in_time(recording):
    time = recording.time[0] + recording.time[-1] - recording.time[::-1]
    return dataclasses.replace(
        recording, time=time, channels={key: own[::-1] for key, own in recording.channels.items()}
    )


def found(mechanism, recording, free=FREE):
    parameters = parameter_set(mechanism, {name: Free() for name in free}, 1)
    return direction(at_start(build_problem(mechanism, [recording], parameters, Options())))


def odds(mechanism, recording, free=FREE):
    return found(mechanism, recording, free).prompt


@pytest.fixture(scope="module")
def rod(base):
    return load_model("pendulum").mechanism.set(base)


def test_turning_time_round_turns_the_odds_round(rod, make_swing):
    swing = make_swing(6, 2.0)
    forward, back = odds(rod, swing), odds(rod, reversed_in_time(swing))
    assert forward < -CERTAIN
    # Samples of either direction are interpolated and filtered alike, but for rounding and the ends.
    assert back == pytest.approx(-forward, rel=0.15)


def test_the_start_value_of_friction_does_not_matter(rod, make_swing):
    swing = make_swing(6, 2.0)
    assert odds(rod.set({"hinge.viscous": 1.0}), swing) == pytest.approx(odds(rod, swing), rel=1e-6)
    # Nor is friction asked for, or any parameter.
    assert odds(rod, swing, ()) < -CERTAIN


def test_without_friction_nothing_is_told(rod):
    bare = rod.set({"hinge.viscous": 0.0, "hinge.dry": 0.0})
    state = load_model("pendulum").start.with_joints({"hinge": 2.0}, {}).state(bare)
    run = simulate(bare, state, timestep=1e-3, steps=2400, joints="rigid", substeps=1)
    noise = 1e-3 * np.random.default_rng(0).standard_normal(241)
    swing = Recording(np.asarray(run.time)[::10], {"theta": np.asarray(run.readings["theta"])[::10] + noise})
    for own in (swing, reversed_in_time(swing)):
        assert abs(odds(rod, own)) < CERTAIN


def test_a_driven_machine():
    """A swing-up, driven all the time, with start values of the built-in model."""
    twin = furuta_swing_up()
    mechanism = load_model(twin.model).mechanism.set(twin.settings)
    assert odds(mechanism, twin.recording, twin.free) < -CERTAIN
    # The row of an input says what it does until the next one: read backwards, it is late by a sample.
    assert found(mechanism, reversed_in_time(twin.recording), twin.free).certain


def test_the_recording_that_runs_backwards_is_named(rod, make_swing):
    swings = [make_swing(1, 2.0, name="first"), reversed_in_time(make_swing(2, 1.5, name="second"))]
    here = at_start(build_problem(rod, swings, parameter_set(rod, {FREE[0]: Free()}, 2), Options()))
    assert [direction(here, index).certain for index in (0, 1)] == [False, True]
    said = [notice.text for notice in check(rod, swings, {FREE[0]: Free()}).notices if "energy" in notice.text]
    assert said == ["the motion in second gains energy where friction should take it"]


@pytest.mark.data
@pytest.mark.parametrize(
    ("model", "file", "window"),
    [
        ("qube", "furuta_qube2/qq_chirp_10to0Hz_pos1.5V_250Hz_10s_0.csv", (0.0, 10.0)),
        pytest.param(
            *("cartpole", "cartpole_quanser/qcp_chirp_3to0Hz_neg3.5V_250Hz_3.csv", (0.51, 5.497)),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_real_machines_that_are_driven_by_a_voltage(data_dir, model, file, window):
    """With the constants of their data sheets, and inputs that act when they do."""
    mechanism = load_model(str(Path(__file__).parents[2] / "studies" / f"{model}.toml")).mechanism
    recording = read_recording(data_dir / file).between(*window)
    assert not found(mechanism, recording, ()).likely
    assert found(mechanism, reversed_in_time(recording), ()).certain


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(
    "free", [(), pytest.param(("link*.com.z", "link*.inertia.yy", "*.viscous", "*.coulomb"), marks=pytest.mark.slow)]
)
def test_a_real_driven_double_pendulum(data_dir, free):
    """Start values are off by half; the shoulder alone would seem to gain energy in either direction."""
    mechanism = load_model(str(Path(__file__).parents[2] / "studies" / "double_pendulum_dfki.toml")).mechanism
    columns = {"tau1": "tau_cmd1", "tau2": "tau_cmd2"}
    recording = read_recording(data_dir / "double_pendulum_dfki" / "A0_traj00.csv", channels=columns)
    names = [name for pattern in free for name in mechanism.match(pattern)]
    forward, back = (found(mechanism, own, names) for own in (recording, reversed_in_time(recording)))
    assert forward.prompt < -CERTAIN
    assert back.likely
    # Sines look alike late and backwards: that it is time takes the parameters.
    assert back.certain == bool(free)
