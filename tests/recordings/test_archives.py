"""MATLAB and HDF5 files: vectors, tables, structures; what is no channel is not read."""

import numpy as np
import pytest
import scipy.io

from shadowfit.errors import RecordingError
from shadowfit.recordings import read_recording

N = 20
TIME = 0.01 * np.arange(N)
ANGLES = np.stack([np.sin(TIME), np.cos(TIME), TIME**2], axis=1)


def check(recording, columns: list[str]) -> None:
    np.testing.assert_array_equal(recording.time, TIME)
    for name, values in zip(columns, ANGLES.T, strict=True):
        np.testing.assert_array_equal(recording.channels[name], values)


def test_matlab_5(tmp_path) -> None:
    content = {"t": TIME[:, None], "q": ANGLES, "log": {"tau_Nm": 2.0 * TIME}, "rig": "left", "mass": 3.0}
    scipy.io.savemat(tmp_path / "run.mat", content)
    recording = read_recording(tmp_path / "run.mat")
    check(recording, ["q[1]", "q[2]", "q[3]"])
    assert recording.units["log.tau"] == "N m"
    assert "mass" not in recording.channels


def test_damaged_files(tmp_path) -> None:
    for name in ("run.mat", "run.h5"):
        (tmp_path / name).write_bytes(b"nothing of the kind" * 20)
        with pytest.raises(RecordingError, match=f"{name}: is not a readable"):
            read_recording(tmp_path / name)


def test_hdf5(tmp_path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "run.h5", "w") as file:
        file["time"], file["arm/q"], file["camera"] = TIME, ANGLES, np.zeros((N, 200, 300), np.uint8)
    recording = read_recording(tmp_path / "run.h5")
    check(recording, ["arm.q[0]", "arm.q[1]", "arm.q[2]"])
    assert "camera" not in recording.channels


def test_matlab_7_3(tmp_path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "run.mat"
    # MATLAB writes a block of text before the HDF5 part, and its arrays column by column.
    with h5py.File(path, "w", userblock_size=512) as file:
        file["t"], file["log/q"] = TIME[None], ANGLES.T
        file["name"] = np.array([[97, 98]], np.uint16)
        file["name"].attrs["MATLAB_class"] = np.bytes_("char")
    content = bytearray(path.read_bytes())
    content[:128] = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    path.write_bytes(bytes(content))
    check(read_recording(path), ["log.q[1]", "log.q[2]", "log.q[3]"])
