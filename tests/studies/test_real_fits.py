"""Fits of real recordings find what independent regressions of the same recordings found."""

from pathlib import Path

import pytest

from shadowfit.estimation import Options, fit
from shadowfit.models import read_model
from shadowfit.recordings import read_recording

# What recordings of real encoders are warned about (their grid, uneven sampling) is known here.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:recording")]

FOLDER = Path(__file__).parents[2] / "studies"


def test_the_rods_frequency_is_that_of_a_regression(data_dir):
    """m g l/J of the QUBE's rod is 120.9 1/s² by regression of the pendulum's equation on these files."""
    recording = read_recording(data_dir / "furuta_qube2" / "qq_chirp_10to0Hz_pos1.5V_250Hz_10s_0.csv")
    mechanism = read_model(FOLDER / "qube.toml")
    free = ["rod.inertia.yy", "arm.inertia.zz", "motor_hinge.motor.torque_constant", "motor_hinge.coulomb", "u.delay"]
    found = fit(
        mechanism, recording, free, options=Options(unknowns="configuration", correction="none", state_weight=1e6)
    ).values
    inertia = found["rod.inertia.yy"] + 0.024 * 0.0645**2
    assert 0.024 * 9.81 * 0.0645 / inertia == pytest.approx(120.9, rel=0.02)
    assert found["motor_hinge.motor.torque_constant"] / 8.4 == pytest.approx(4.74e-3, rel=0.05)
