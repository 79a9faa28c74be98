"""The model files and scripts of the studies of real recordings fit together; the recordings have what they name."""

import importlib
import sys
from pathlib import Path

import pytest

from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.models import read_model
from shadowfit.recordings import read_recording

FOLDER = Path(__file__).parents[2] / "studies"
# Study → a recording of it and the columns that are called otherwise.
STUDIES = {
    "qube": ("furuta_qube2/qq_chirp_10to0Hz_pos1.5V_250Hz_10s_0.csv", {}),
    "cartpole": ("cartpole_quanser/qcp_chirp_3to0Hz_pos3.5V_250Hz_0.csv", {}),
    "single_pendulum": ("pendulum_single_uw/single_free_swing_500Hz.csv", {}),
    "double_pendulum_uw": ("pendulum_double_uw/double_free_swing_500Hz.csv", {}),
    "double_pendulum_dfki": ("double_pendulum_dfki/A0_traj00.csv", {"tau1": "tau_cmd1", "tau2": "tau_cmd2"}),
}
studies = pytest.mark.parametrize("name", STUDIES)


@pytest.fixture
def script(name, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    module = importlib.import_module(name)
    yield module
    sys.modules.pop(name)


@studies
def test_every_free_parameter_exists_and_starts_inside_its_bounds(name, script):
    mechanism = read_model(FOLDER / script.MODEL)
    assert parameter_set(mechanism, script.FREE).names == tuple(script.FREE)


@studies
def test_the_recording_has_the_channels_of_the_model(name, data_dir):
    file, channels = STUDIES[name]
    mechanism = read_model(FOLDER / f"{name}.toml")
    recording = read_recording(data_dir / file, channels=channels)
    for channel in (*mechanism.sensors, *mechanism.inputs):
        assert len(recording.channel(channel)) == len(recording)
