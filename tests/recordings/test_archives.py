"""MATLAB and HDF5 files: vectors, tables, structures; what is no channel is not read."""

import numpy as np
import pytest
import scipy.io

from shadowfit.errors import RecordingError
from shadowfit.recordings import read_channel_table, read_recording
from shadowfit.recordings.archives import read_matlab

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


def test_cells_and_arrays_of_structures(tmp_path) -> None:
    cells = np.empty((1, 3), dtype=object)
    for i in range(3):
        cells[0, i] = ANGLES[:, i : i + 1]
    signals = [{"values": ANGLES[:, :2], "label": "q"}, {"values": ANGLES[:, 2], "label": "tau"}]
    scipy.io.savemat(tmp_path / "run.mat", {"t": TIME, "q": cells, "out": {"signals": signals}, "rate": 100.0})
    recording = read_recording(tmp_path / "run.mat")
    check(recording, ["q[1]", "q[2]", "q[3]"])
    check(recording, ["out.signals[1].values[1]", "out.signals[1].values[2]", "out.signals[2].values"])
    assert recording.warnings == ()


def test_objects_that_only_matlab_reads_are_named(tmp_path, monkeypatch) -> None:
    kinds = [("s0", object), ("s1", object), ("s2", object), ("arr", object)]
    opaque = scipy.io.matlab.MatlabOpaque(np.array([("TT", "MCOS", "timetable", 0)], dtype=kinds))
    monkeypatch.setattr(scipy.io, "loadmat", lambda *_, **__: {"__header__": b"", "None": opaque})
    (tmp_path / "run.mat").write_bytes(b"")
    with pytest.raises(RecordingError, match=r"run\.mat: holds MATLAB objects .*: TT\).* table2struct"):
        read_matlab(tmp_path / "run.mat")


def test_objects_in_version_7_3(tmp_path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "run.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["TT"] = np.zeros((1, 6), np.uint32)
        file["TT"].attrs["MATLAB_object_decode"] = np.int32(3)
    content = bytearray(path.read_bytes())
    content[:128] = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    path.write_bytes(bytes(content))
    with pytest.raises(RecordingError, match=r"holds MATLAB objects .*: TT\)"):
        read_recording(path)


def test_tables_of_records(tmp_path) -> None:
    h5py = pytest.importorskip("h5py")
    rows = np.zeros(N, dtype=[("time", float), ("q", float, 2), ("tau", float), ("mode", "S3")])
    rows["time"], rows["q"], rows["tau"] = TIME, ANGLES[:, :2], ANGLES[:, 2]
    with h5py.File(tmp_path / "run.h5", "w") as file:
        file["log/table"] = rows
    check(read_recording(tmp_path / "run.h5"), ["log.table.q[0]", "log.table.q[1]", "log.table.tau"])


def test_samples_without_times(tmp_path) -> None:
    scipy.io.savemat(tmp_path / "run.mat", {"q": ANGLES, "Ts": 0.01})
    with pytest.raises(RecordingError, match=r"interval = 0\.01"):
        read_recording(tmp_path / "run.mat")
    (tmp_path / "channels.toml").write_text("interval = 0.01")
    table = read_channel_table(tmp_path / "channels.toml")
    check(read_recording(tmp_path / "run.mat", channels=table), ["q[1]", "q[2]", "q[3]"])


def test_one_of_several_times_must_be_named(tmp_path) -> None:
    runs = {f"run{i}": {"time": TIME, "q": ANGLES} for i in (1, 2)}
    scipy.io.savemat(tmp_path / "run.mat", runs)
    with pytest.raises(RecordingError, match=r"several columns may be the times: 'run1\.time', 'run2\.time'"):
        read_recording(tmp_path / "run.mat")
    (tmp_path / "channels.toml").write_text('time = "run2.time"')
    table = read_channel_table(tmp_path / "channels.toml")
    check(read_recording(tmp_path / "run.mat", channels=table), ["run2.q[1]", "run2.q[2]", "run2.q[3]"])
