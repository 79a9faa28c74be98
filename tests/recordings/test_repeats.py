"""Samples that a logger wrote twice: found by what their absence does to the motion, and only then left out."""

import numpy as np
import pytest

from shadowfit.recordings import Recording, read_recording
from shadowfit.recordings.channel_table import read_channel_table
from shadowfit.recordings.repeats import without_repeats

INTERVAL = 0.02


def motion(time):
    """Two angles [rad] and a noisy torque."""
    noise = np.random.default_rng(1)
    return {
        "first": np.sin(2.0 * time) + 1e-5 * noise.standard_normal(len(time)),
        "second": np.cos(3.1 * time) + 1e-5 * noise.standard_normal(len(time)),
        "effort": np.sin(5.0 * time) + 0.3 * noise.standard_normal(len(time)),
    }


def polled(every, logged):
    """A source with a message ``every`` so often [s], whose last one is written at each time of the logger."""
    sent = np.arange(0.0, logged[-1] + every, every)
    last = np.searchsorted(sent, logged, side="right") - 1
    return sent, last, {name: values[last] for name, values in motion(sent).items()}


def test_messages_of_a_slower_source_get_its_clock():
    logged = INTERVAL * np.arange(700)
    sent, last, channels = polled(1.03 * INTERVAL, logged)
    found, said = without_repeats(Recording(logged, channels))
    assert len(found) == len(np.unique(last)) < len(logged)
    assert np.diff(found.time) == pytest.approx(1.03 * INTERVAL, rel=1e-3)
    # The logger comes later by half an interval on average.
    late = found.time - sent[: len(found)]
    assert np.all((late > 0.0) & (late < INTERVAL))
    assert "even clock of 20.6 ms" in said[0]


def test_lost_messages_leave_the_others_in_time():
    time = INTERVAL * np.arange(400)
    channels = motion(time)
    lost = np.array([37, 91, 92, 166, 210, 333])
    held = {name: np.array(values) for name, values in channels.items()}
    for row in lost:
        for values in held.values():
            values[row] = values[row - 1]
    found, said = without_repeats(Recording(time, held))
    assert np.array_equal(found.time, np.delete(time, lost))
    assert np.array_equal(found.channels["first"], np.delete(channels["first"], lost))
    assert "6 of 400 samples" in said[0]


@pytest.mark.parametrize("step", [1e-2, 1e-3])
def test_encoders_that_stand_still_repeat_by_right(step):
    time = INTERVAL * np.arange(2000)
    swing = np.exp(-0.2 * time) * np.sin(2.0 * time)
    recording = Recording(time, {"angle": step * np.round(swing / step)})
    found, said = without_repeats(recording)
    assert found is recording
    assert said == ()


def test_recordings_without_repeats_are_untouched():
    time = INTERVAL * np.arange(100)
    recording = Recording(time, motion(time))
    assert without_repeats(recording) == (recording, ())


def test_reading_says_so_and_can_be_told_not_to(tmp_path):
    logged = INTERVAL * np.arange(300)
    table = {"time": logged, **polled(1.03 * INTERVAL, logged)[2]}
    recording = read_recording(table)
    assert len(recording) < len(logged)
    assert any("repeat the one before" in text for text in recording.warnings)
    (tmp_path / "channels.toml").write_text('repeats = "keep"\n')
    assert len(read_recording(table, channels=read_channel_table(tmp_path / "channels.toml"))) == len(logged)


def started(time, begins, how):
    """At rest, then a motion from there: exactly still, or read by an encoder."""
    moved = np.maximum(time - begins, 0.0)
    motions = {"slowly": moved**2, "suddenly": 5.0 * moved, "like a motor": 1.0 - np.exp(-3.0 * moved)}
    angle = {**motions, "swinging": np.sin(4.0 * moved) ** 2}[how]
    return {"angle": angle, "u": (time >= begins) * 1.0}


@pytest.mark.parametrize("how", ["slowly", "suddenly", "like a motor", "swinging"])
@pytest.mark.parametrize("resolution", [0.0, 1e-4])
@pytest.mark.parametrize("begins", [0.1, 2.7])
def test_a_rest_before_a_motion_stays(how, resolution, begins):
    time = 0.01 * np.arange(600)
    channels = started(time, begins, how)
    if resolution:
        channels["angle"] = resolution * np.round(channels["angle"] / resolution)
    recording = Recording(time, channels)
    assert without_repeats(recording) == (recording, ())
    backwards = Recording(time, {name: values[::-1] for name, values in channels.items()})
    assert without_repeats(backwards) == (backwards, ())


def test_a_rest_stays_though_messages_came_twice_later():
    time = 0.01 * np.arange(800)
    sent = time[::2]
    channels = {name: np.repeat(values, 2) for name, values in started(sent, 3.0, "swinging").items()}
    found, _ = without_repeats(Recording(time, channels))
    resting = found.time < 3.0
    assert np.diff(found.time[resting]).max() < 0.03
    moving = (found.time > 3.1) & (found.time < 4.0)
    np.testing.assert_array_equal(found.time[moving], sent[(sent > 3.1) & (sent < 4.0)])
