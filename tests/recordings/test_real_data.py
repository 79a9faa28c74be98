"""Recordings of real machines: they are read without loss, and the checks see what is known about them."""

import numpy as np
import polars
import pytest

from shadowfit.errors import RecordingError
from shadowfit.recordings import check_recording, lowpass, quantisation, read_recording

pytestmark = pytest.mark.data


def files(data_dir, pattern):
    found = sorted(data_dir.glob(pattern))
    assert found, f"no files {pattern} in {data_dir}"
    return found


# Machines whose encoders are read fast and finely enough for the bound below: it is one of smoothing, not of robots.
FINE = ("cartpole_quanser", "double_pendulum_dfki", "furuta_qube2", "pendulum_double_uw", "pendulum_single_uw")


@pytest.mark.parametrize("machine", FINE)
def test_every_file_of_one_run_is_read_and_smoothed(data_dir, machine):
    for path in files(data_dir, f"{machine}/*.csv"):
        recording = read_recording(path)
        # Targets are commands: they jump.
        angles = [key for key, unit in recording.units.items() if unit == "rad" and not key.endswith(".target")]
        assert angles
        for key in angles:
            assert np.isfinite(recording.channels[key]).all()
            error = lowpass(recording.time, recording.channels[key]) - recording.channels[key]
            assert np.abs(error[25:-25]).max() < 0.02


def test_quanser_furuta_pendulum(data_dir):
    for path in files(data_dir, "furuta_qube2/*.csv"):
        recording = read_recording(path, channels={"theta1": "theta", "theta2": "alpha_rad"})
        assert len(recording) == 2501
        assert recording.sample_interval == pytest.approx(0.004, rel=1e-9)
        for sensor in ("theta1", "theta2"):
            assert quantisation(recording.channel(sensor)) == pytest.approx(2 * np.pi / 2048, rel=1e-4)
        u = recording.channel("u")
        assert np.isnan(u[-1])
        assert np.isfinite(u[:-1]).all()
        warnings = check_recording(recording, {"theta1": "angle", "theta2": "angle"}, ["u"])
        assert len(warnings) == 2
        assert all("lies on a grid of 0.00306796" in text for text in warnings)


def test_small_swing_sits_on_its_encoder_grid_and_the_smoothed_one_on_decimals(data_dir):
    small = read_recording(data_dir / "pendulum_single_uw" / "single_small_swing_500Hz.csv")
    assert quantisation(small.channel("theta1")) == pytest.approx(2 * np.pi / 40000, rel=1e-4)
    smoothed = read_recording(data_dir / "pendulum_single_uw" / "single_free_swing_500Hz.csv")
    assert quantisation(smoothed.channel("theta1")) == pytest.approx(1e-6, rel=1e-6)
    assert check_recording(smoothed, {"theta1": "angle"}) == ()


def test_first_and_last_samples_of_the_cart_pole_are_seen_to_be_stray(data_dir):
    for path in files(data_dir, "cartpole_quanser/*.csv"):
        recording = read_recording(path)
        warnings = check_recording(recording, {"x": "length", "theta": "angle"}, ["u"])
        assert any("'x': row 1 is off its neighbours" in text for text in warnings)
        assert any("'theta': row 1376 is off its neighbours" in text for text in warnings)
        cleaned = recording.between(0.002, 5.497)
        texts = check_recording(cleaned, {"x": "length", "theta": "angle"}, ["u"])
        assert not any("off its neighbours" in text for text in texts)


def test_irregular_sampling_is_reported(data_dir):
    recording = read_recording(data_dir / "double_pendulum_dfki" / "A0_traj11.csv")
    assert recording.units["tau_meas1"] == "N m"
    assert [text[:15] for text in recording.warnings] == ["uneven sampling"]


def test_a_file_with_many_runs_is_refused_and_read_run_by_run(data_dir):
    path = data_dir / "cube_tosses" / "tosses_0_39.csv"
    with pytest.raises(RecordingError, match=r"time goes back .* split the file if it holds several recordings"):
        read_recording(path)
    tosses = [read_recording(frame, name=f"toss {toss[0]}") for toss, frame in polars.read_csv(path).group_by("toss")]
    assert len(tosses) == 40
    assert all(0.5 < toss.duration < 0.9 and toss.units["wx"] == "rad/s" for toss in tosses)
