"""Checks at the door: each warning appears where it should and nowhere else."""

import numpy as np
import pytest

from shadowfit.errors import RecordingError, UnknownNameError
from shadowfit.recordings import Recording, check_recording, clipped, looks_like_degrees

TIME = np.arange(0.0, 10.0, 0.004)
NOISE = 1e-3 * np.random.default_rng(0).normal(size=TIME.size)
SWING = 1.2 * np.exp(-0.1 * TIME) * np.cos(5.0 * TIME) + NOISE
DRIVE = np.sin(2.0 * TIME)


def warnings(time=TIME, theta=SWING, u=DRIVE, kind="angle", units=None):
    run = Recording(time, {"theta": theta, "u": u}, units=units or {}, source="run.csv")
    return check_recording(run, {"theta": kind}, ["u"])


def only(texts):
    assert len(texts) == 1, texts
    return texts[0]


def test_a_clean_recording_has_no_warnings():
    assert warnings() == ()


def test_degrees_without_a_unit():
    text = only(warnings(theta=np.degrees(SWING)))
    assert "'theta' has no unit and is taken as radians, but looks like degrees" in text
    assert "'theta [deg]'" in text
    assert warnings(theta=np.degrees(SWING), units={"theta": "rad"}) == ()
    assert warnings(theta=np.degrees(SWING), kind="length") == ()


def test_many_turns_are_not_degrees():
    assert not looks_like_degrees(TIME, 20.0 * TIME + SWING)
    assert looks_like_degrees(TIME, np.degrees(20.0 * TIME))  # 1146 per second
    assert looks_like_degrees(TIME, 40.0 * np.sin(0.5 * TIME))  # slow, but back and forth over twelve turns


def test_constant_channels():
    assert "'u' is constant at 0.5" in only(warnings(u=np.full_like(TIME, 0.5)))
    assert "'theta' is constant at 0" in only(warnings(theta=np.zeros_like(TIME)))


def test_gaps():
    keep = (TIME < 2.0) | (TIME > 2.5)
    text = only(warnings(TIME[keep], SWING[keep], DRIVE[keep]))
    assert text.startswith("1 gap in the times: the longest lasts 0.508 s after row 500 at 1.996 s")


def test_jitter():
    rng = np.random.default_rng(2)
    assert warnings(TIME + 5e-5 * rng.uniform(-1, 1, TIME.size)) == ()
    text = only(warnings(TIME + 1e-3 * rng.uniform(-1, 1, TIME.size)))
    assert text.startswith("uneven sampling: intervals vary by 20%")


@pytest.mark.parametrize(("factor", "unit"), [(1e3, "ms"), (1e6, "us")])
def test_times_in_another_unit(factor, unit):
    assert f"call the column 'time [{unit}]'" in only(warnings(TIME * factor))


def test_missing_samples():
    theta = SWING.copy()
    theta[:20] = np.nan  # below one per cent
    assert warnings(theta=theta) == ()
    theta[::10] = np.nan
    assert "'theta': 10.7% of the samples are missing" in only(warnings(theta=theta))


def test_clipping():
    assert "runs into 0.8 and stays there" in only(warnings(theta=np.minimum(SWING, 0.8)))
    assert "runs into -0.5 and stays there" in only(warnings(theta=np.maximum(SWING, -0.5)))


def test_turning_points_and_rest_are_not_clipping():
    smooth = 1.2 * np.cos(5.0 * TIME)
    step = 2 * np.pi / 512
    assert clipped(smooth) is None
    assert clipped(step * np.rint(smooth / step), step) is None
    held = np.where(TIME < 2.0, 1.2, 1.2 * np.cos(5.0 * (TIME - 2.0)))  # held at its largest value, then let go
    assert clipped(held) is None
    assert clipped(np.zeros(10)) is None


@pytest.mark.parametrize(("index", "row"), [(0, 1), (-2, TIME.size - 1)])
def test_stray_samples_at_the_ends(index, row):
    theta = SWING.copy()
    theta[-1] = np.nan  # the last sample that is present counts
    theta[index] += 0.2
    assert f"'theta': row {row} is off its neighbours by" in only(warnings(theta=theta))
    theta[index] -= 0.19
    assert warnings(theta=theta) == ()


def test_quantisation_is_reported_with_its_standard_deviation():
    step = 2 * np.pi / 4096
    text = only(warnings(theta=step * np.rint(SWING / step)))
    assert "'theta' lies on a grid of 0.00153398: its standard deviation is at least 0.000443" in text


def test_digits_of_a_text_file_are_not_reported():
    assert warnings(theta=np.round(SWING, 5)) == ()
    assert "lies on a grid of 0.01" in only(warnings(theta=np.round(SWING, 2)))


def test_a_unit_of_another_kind_is_refused():
    with pytest.raises(RecordingError, match=r"run\.csv: sensor 'theta' measures in rad, but column 'theta' is in m;"):
        warnings(units={"theta": "m"})
    assert warnings(units={"theta": "m"}, kind="something new") == ()


def test_channels_that_do_not_exist_or_are_empty_are_refused():
    run = Recording(TIME, {"theta": SWING, "u": np.full_like(TIME, np.nan)})
    with pytest.raises(UnknownNameError, match="no channel 'theta1'; did you mean 'theta'"):
        check_recording(run, {"theta1": "angle"})
    with pytest.raises(RecordingError, match="every sample of channel 'u' is missing"):
        check_recording(run, {"theta": "angle"}, ["u"])
    assert check_recording(run, {"theta": "angle"}) == ()
    assert only(check_recording(run)) == "channel 'u': every sample is missing"


def test_a_standard_deviation_that_allows_for_the_grid_is_not_warned_about():
    time = np.arange(400) * 0.01
    step = 2 * np.pi / 1024
    recording = Recording(time, {"theta": step * np.round(0.3 * np.sin(3.0 * time) / step)}, units={"theta": "rad"})
    kinds = {"theta": "angle"}
    assert any("lies on a grid" in text for text in check_recording(recording, kinds, assumed_std={"theta": 1e-3}))
    enough = step / np.sqrt(12.0)
    assert not any("grid" in text for text in check_recording(recording, kinds, assumed_std={"theta": enough}))


def test_outliers_are_reported_with_their_rows():
    theta = SWING.copy()
    theta[[49, 200]] += (0.5, -0.2)
    text = only(warnings(theta=theta))
    assert "2 outliers in row 50, 201; row 50 is off its neighbours by 0.5" in text


@pytest.mark.parametrize("theta", [np.abs(SWING), np.where(TIME > 2.0, 1.0, 0.0) + NOISE, np.round(SWING, 2), NOISE])
def test_jumps_and_kinks_are_no_outliers(theta):
    assert not any("outlier" in text for text in warnings(theta=theta))
