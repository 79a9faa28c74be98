"""The Recording noun: what it refuses, how it finds channels, its fingerprint, its parts."""

import dataclasses
import pickle

import numpy as np
import pytest

from shadowfit.errors import RecordingError, UnknownNameError
from shadowfit.recordings import Recording

TIME = np.array([0.0, 0.1, 0.2, 0.3])
THETA = np.array([1.0, np.nan, 3.0, 4.0])


def recording(time=TIME, **channels):
    return Recording(time, channels or {"theta": THETA}, name="run")


@pytest.mark.parametrize(
    ("time", "message"),
    [
        ([0.0, 0.1], "2 samples, at least 3"),
        ([0.0, np.nan, 0.2, 0.3], "time in row 2 is nan"),
        ([0.0, 0.1, np.inf, 0.3], "time in row 3 is inf"),
        ([0.0, 0.1, 0.1, 0.3], r"rows 2 and 3 have the same time 0.1 s; keep one"),
        ([0.0, 0.0, 0.0, 0.3], r"rows 1 and 2 .* \(and 1 more such places\)"),
        ([0.0, 0.2, 0.1, 0.3], r"goes back from 0.2 s in row 2 to 0.1 s in row 3; sort the rows"),
        ([[0.0], [0.1], [0.2], [0.3]], "one-dimensional"),
        (["0", "1", "2", "3"], "real numbers"),
        ([[0.0], [0.1, 0.2]], "time is no array"),
    ],
)
def test_bad_times_are_refused_with_their_rows(time, message):
    with pytest.raises(RecordingError, match=message) as caught:
        recording(time)
    assert str(caught.value).startswith("run: ")


@pytest.mark.parametrize(
    ("channels", "message"),
    [
        ({"theta": THETA[:3]}, "'theta' has 3 samples, but there are 4 times"),
        ({"theta": [0.0, 1.0, -np.inf, 2.0]}, "'theta' is -inf in row 3; write missing samples as NaN"),
        ({"theta": [0.0, 1.0, 1e300, 2.0]}, r"'theta' is 1e\+300 in row 3"),
        ({"theta": THETA * 1j}, "complex128"),
    ],
)
def test_bad_channels_are_refused(channels, message):
    with pytest.raises(RecordingError, match=message):
        recording(**channels)


def test_no_channels_and_stray_units_are_refused():
    with pytest.raises(RecordingError, match="no channels besides time"):
        Recording(TIME, {})
    with pytest.raises(RecordingError, match="units name channel 'thet'; did you mean 'theta'"):
        Recording(TIME, {"theta": THETA}, units={"thet": "rad"})


def test_arrays_are_copies_that_cannot_be_changed():
    original = THETA.copy()
    run = recording(theta=original)
    original[0] = 99.0
    assert run.channels["theta"][0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        run.channels["theta"][0] = 0.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.time = TIME


def test_channels_are_found_by_name_and_by_heading():
    run = Recording(TIME, {"theta": THETA}, columns={"theta": "theta [deg]"})
    assert run.channel("theta [deg]") is run.channel("theta") is run.channels["theta"]
    with pytest.raises(UnknownNameError, match="no channel 'tehta'; did you mean 'theta'"):
        run.channel("tehta")


def test_a_channel_that_is_missing_throughout_cannot_be_used():
    run = recording(theta=np.full(4, np.nan), u=np.zeros(4))
    with pytest.raises(RecordingError, match="every sample of channel 'theta' is missing"):
        run.channel("theta")


def test_fingerprint_depends_on_contents_only():
    first = recording(theta=THETA, u=np.zeros(4))
    assert first.fingerprint == recording(u=-np.zeros(4), theta=THETA).fingerprint
    assert first.fingerprint == dataclasses.replace(first, name="other", source="file.csv").fingerprint
    others = [
        recording(theta=THETA, u=np.full(4, 1e-16)),
        recording(theta=THETA, v=np.zeros(4)),
        recording(TIME + 1e-9, theta=THETA, u=np.zeros(4)),
        dataclasses.replace(first, units={"u": "V"}),
    ]
    assert len({first.fingerprint, *(other.fingerprint for other in others)}) == 5


def test_a_part_keeps_its_times():
    part = recording().between(0.05, 0.3)
    np.testing.assert_array_equal(part.time, TIME[1:])
    np.testing.assert_array_equal(part.channels["theta"], THETA[1:])
    with pytest.raises(RecordingError, match=r"1 samples lie between 0.25 and 0.3 s"):
        recording().between(0.25, 0.3)


def test_length_duration_interval_and_text():
    run = Recording([0.0, 0.1, 0.2, 1.0], {"theta": THETA, "u": THETA}, units={"u": "V"}, name="run")
    assert (len(run), run.duration) == (4, 1.0)
    assert run.sample_interval == pytest.approx(0.1)
    assert repr(run) == "Recording('run': 4 samples, 1 s; theta [?], u [V])"


def test_a_recording_travels_between_processes():
    run = recording()
    copy = pickle.loads(pickle.dumps(run))
    assert copy.fingerprint == run.fingerprint
