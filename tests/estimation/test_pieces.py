"""Recordings with gaps of seconds: the minimum is that of the whole recording, or the fit says why not."""

import dataclasses
import warnings

import numpy as np
import pytest

from shadowfit.dynamics import simulate
from shadowfit.estimation import fit
from shadowfit.models import load_model
from shadowfit.recordings import Recording

CART = ("cart.mass", "pole.inertia.yy", "rail.viscous")


@pytest.fixture(scope="module")
def cart():
    """A cart that is pushed, with a hanging pole, for eight seconds."""
    mechanism = load_model("cartpole").mechanism

    def push(time):
        return 2.0 * np.sin(4.0 * time) + 1.5 * np.sin(9.0 * time + 1.0)

    return mechanism, _recorded("cartpole", mechanism, {"pivot": 0.4}, {}, push)


@pytest.fixture(scope="module")
def wheel():
    """A pendulum that turns round and round, and is read in one turn."""
    mechanism = load_model("pendulum").mechanism.set({"pendulum.inertia.xx": 5e-4})
    recording = _recorded("pendulum", mechanism, {"hinge": 0.1}, {"hinge": 25.0}, None)
    return mechanism, dataclasses.replace(
        recording, channels={"theta": np.remainder(recording.channels["theta"] + np.pi, 2.0 * np.pi) - np.pi}
    )


def _recorded(model, mechanism, positions, speeds, push):
    steps, random = 8000, np.random.default_rng(3)
    held = 0.01 * (np.arange(steps) // 10)
    inputs = {} if push is None else {"u": push(held)}
    state = load_model(model).start.with_joints(positions, speeds).state(mechanism)
    run = simulate(mechanism, state, inputs, timestep=1e-3, steps=steps, joints="rigid", substeps=1)
    time = np.asarray(run.time)[::10]
    channels = {
        name: np.asarray(run.readings[name]).ravel()[::10] + random.normal(0.0, float(sensor.std), len(time))
        for name, sensor in mechanism.sensors.items()
    }
    return Recording(time, channels | ({} if push is None else {"u": push(time)}), name=model)


def lost(recording, start, stop):
    """Without the rows between two times."""
    kept = (recording.time <= start) | (recording.time >= stop)
    channels = {name: values[kept] for name, values in recording.channels.items()}
    return dataclasses.replace(recording, time=recording.time[kept], channels=channels)


def silent(recording, names, start, stop):
    """With nothing in some channels between two times."""
    inside = (recording.time > start) & (recording.time < stop)
    channels = {
        name: np.where(inside, np.nan, values) if name in names else values
        for name, values in recording.channels.items()
    }
    return dataclasses.replace(recording, channels=channels)


def is_right(mechanism, recording, names, said):
    """Whether parameters that start a third off are found, and the fit says why not all of the recording counts."""
    free = {name: 1.3 * mechanism.get(name) for name in names}
    with pytest.warns(UserWarning, match=said):
        estimate = fit(mechanism, recording, free)
    found = np.array([estimate.values[name] for name in names])
    off = (found - [mechanism.get(name) for name in names]) / [row.std for row in estimate.parameters]
    return estimate.converged and np.all(np.abs(off) < 4.0)


def heard(mechanism, recording):
    """The fit of the states alone, and all that was said meanwhile."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimate = fit(mechanism, recording)
    return estimate, "\n".join(str(one.message) for one in caught)


@pytest.mark.parametrize("seconds", [0.3, 2.0])
def test_lost_rows_of_a_driven_machine(cart, seconds):
    mechanism, whole = cart
    recording = lost(whole, 3.2, 3.2 + seconds)
    assert is_right(mechanism, recording, CART, rf"input 'u' is not known between 3.2 and {3.2 + seconds:g} s")


def test_a_sensor_that_dies_midway(cart):
    mechanism, whole = cart
    assert is_right(mechanism, silent(whole, ("x",), 4.0, 99.0), CART, "the position of 'rail' is not known after 4 s")


def test_an_input_that_is_not_logged_any_more(cart):
    mechanism, whole = cart
    assert is_right(mechanism, silent(whole, ("u",), 4.0, 99.0), CART, "input 'u' is not known after 4 s")


@pytest.mark.parametrize("seconds", [0.3, 3.0])
def test_turns_that_nobody_counted(wheel, seconds):
    mechanism, whole = wheel
    names = ("pendulum.inertia.yy", "hinge.viscous")
    assert is_right(mechanism, lost(whole, 3.2, 3.2 + seconds), names, "the position of 'hinge' is not known between")


def test_short_gaps_stay(cart):
    """Less than the motion forgets: the equations lead across, and nothing is cut."""
    mechanism, whole = cart
    recording = silent(whole, ("x", "theta"), 3.2, 3.27)
    estimate, said = heard(mechanism, recording)
    assert len(estimate.problem.tracks) == 1
    assert "not known" not in said


def test_inputs_that_are_logged_when_they_change(cart):
    """An input that is the same behind a gap was not another one in it."""
    mechanism, whole = cart
    constant = dataclasses.replace(whole, channels={**whole.channels, "u": np.full(len(whole), 0.5)})
    estimate, _ = heard(mechanism, silent(constant, ("u",), 3.0, 5.0))
    assert len(estimate.problem.tracks) == 1


def test_where_too_much_would_be_left_out(cart):
    """A fit of what would be left is another fit: it is said, and the recording stays."""
    mechanism, whole = cart
    estimate, said = heard(mechanism, silent(whole, ("x",), 2.0, 99.0))
    assert len(estimate.problem.tracks) == 1
    assert "too much lies there to be left out" in said
