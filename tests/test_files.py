"""Files are data: no reader leaves the folder it was given, waits for a pipe, or takes what a file asks for."""

import os
import zipfile

import numpy as np
import polars
import pytest

from shadowfit.errors import RecordingError, ShadowfitError
from shadowfit.files import named_in, read_bytes
from shadowfit.memory import NotEnoughMemoryError
from shadowfit.models import ModelFileError, load_model
from shadowfit.models.builtin import pendulum
from shadowfit.models.writer import format_model
from shadowfit.projects.project import ProjectError, read_project
from shadowfit.recordings import read_channel_table, read_recording
from shadowfit.sweeps.sweep import SweepError, read_sweep

N = 20
TIME = 0.01 * np.arange(N)


@pytest.fixture
def secret(tmp_path):
    """Numbers outside of the folder that is given."""
    path = tmp_path / "secret.bin"
    path.write_bytes(np.cos(TIME).tobytes())
    (tmp_path / "given").mkdir()
    return path


@pytest.mark.parametrize("kind", ["external storage", "virtual", "external link"])
def test_datasets_of_other_files_are_not_read(secret, kind):
    h5py = pytest.importorskip("h5py")
    given = secret.parent / "given" / "run.h5"
    other = secret.parent / "other.h5"
    with h5py.File(other, "w") as file:
        file["theta"] = np.cos(TIME)
    with h5py.File(given, "w") as file:
        file["time"], file["x"] = TIME, np.sin(TIME)
        if kind == "external storage":
            file.create_dataset("theta", (N,), "f8", external=[(str(secret), 0, 8 * N)])
        elif kind == "virtual":
            layout = h5py.VirtualLayout((N,), "f8")
            layout[:] = h5py.VirtualSource(str(other), "theta", (N,))
            file.create_virtual_dataset("theta", layout)
        else:
            file["theta"] = h5py.ExternalLink(str(other), "theta")
    if kind == "external link":
        assert set(read_recording(given).channels) == {"x"}
    else:
        with pytest.raises(RecordingError, match="'theta' lies in other files"):
            read_recording(given)


def test_what_is_large_only_when_it_is_read_is_refused_before(tmp_path, monkeypatch):
    rows = 10**6
    monkeypatch.setenv("SHADOWFIT_MEMORY", "0.3")
    polars.DataFrame({"time": np.zeros(20 * rows), "x": np.zeros(20 * rows)}).write_parquet(tmp_path / "run.parquet")
    with (
        zipfile.ZipFile(tmp_path / "run.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.npy", "w") as file,
    ):
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (20 * rows,)})
        for _ in range(20):
            file.write(bytes(8 * rows))
    for name in ("run.parquet", "run.npz"):
        assert (tmp_path / name).stat().st_size < 1e6
        with pytest.raises(NotEnoughMemoryError, match=r"would take about .* of memory; the limit .* --memory"):
            read_recording(tmp_path / name)


def test_an_empty_dataset_of_any_size_is_refused_before(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "run.h5", "w") as file:
        for name in ("time", "x"):
            file.create_dataset(name, (10**12,), "f8", chunks=(10**6,))
    with pytest.raises(NotEnoughMemoryError, match=r"would take about 48 TB"):
        read_recording(tmp_path / "run.h5")


def test_the_limit_is_the_users(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "run.npz", time=np.arange(1e6), x=np.zeros(10**6))
    monkeypatch.setenv("SHADOWFIT_MEMORY", "0.01")
    with pytest.raises(NotEnoughMemoryError, match=r"the limit for a file of .* is 10 MB"):
        read_recording(tmp_path / "run.npz")
    monkeypatch.setenv("SHADOWFIT_MEMORY", "1")
    assert len(read_recording(tmp_path / "run.npz")) == 10**6
    monkeypatch.setenv("SHADOWFIT_MEMORY", "much")
    with pytest.raises(NotEnoughMemoryError, match=r"SHADOWFIT_MEMORY. is 'much'"):
        read_recording(tmp_path / "run.npz")


@pytest.mark.parametrize(
    "name",
    [
        *("run.csv", "run.npz", "run.parquet", "run.h5", "run.mat", "run.bag", "run.db3", "run.mcap"),
        *("model.toml", "robot.urdf", "robot.xml", "channels.toml", "project.toml", "sweep.toml"),
    ],
)
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_pipes_and_devices_are_refused_at_once(tmp_path, name, kind):
    path = tmp_path / name
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    readers = {"model": load_model, "robot": load_model, "channels": read_channel_table, "project": read_project}
    with pytest.raises(ShadowfitError, match=rf"{name}.*.*it is a {kind}|{name}.* tells no known format"):
        {**readers, "sweep": read_sweep}.get(path.stem, read_recording)(path)


def test_files_without_end_end_at_the_limit(monkeypatch):
    monkeypatch.setenv("SHADOWFIT_MEMORY", "0.001")
    with pytest.raises((NotEnoughMemoryError, OSError)):
        read_bytes("/proc/kallsyms")


@pytest.mark.parametrize("text", ["a" + ".a" * 50_000 + " = 1\n", "[" + "a." * 50_000 + "a]\n", "a = " + "[" * 50_000])
def test_keys_of_any_depth_take_no_time(tmp_path, text):
    path = tmp_path / "file.toml"
    path.write_text(text)
    for read in (load_model, read_channel_table, read_project, read_sweep):
        with pytest.raises(ShadowfitError, match=r"parts|nested"):
            read(path)


def test_what_files_name_lies_beside_them_or_where_the_user_says(tmp_path, monkeypatch):
    folder = tmp_path / "given"
    folder.mkdir()
    outside = tmp_path / "outside.csv"
    outside.write_text("time,theta\n0,1\n1,2\n2,3\n")
    (folder / "link.csv").symlink_to(outside)
    (folder / "model.toml").write_text(format_model(pendulum()))
    for name in ("../outside.csv", str(outside), "link.csv"):
        (folder / "project.toml").write_text(f'model = "pendulum"\n[fit]\nrecordings = ["{name}"]\n')
        (folder / "sweep.toml").write_text(f'model = "model.toml"\nrecordings = ["{name}"]\n')
        (folder / "overlay.toml").write_text(f'robot = "{name}"\n')
        monkeypatch.delenv("SHADOWFIT_FOLDERS", raising=False)
        for read, error, file in (
            (read_project, ProjectError, "project.toml"),
            (read_sweep, SweepError, "sweep.toml"),
            (load_model, ModelFileError, "overlay.toml"),
        ):
            with pytest.raises(error, match=r"lies outside of .*SHADOWFIT_FOLDERS"):
                read(folder / file)
        monkeypatch.setenv("SHADOWFIT_FOLDERS", str(tmp_path))
        assert read_project(folder / "project.toml").fit.recordings == (name,)
        assert named_in(folder, name).exists()


def test_a_projects_files_are_no_options(tmp_path):
    (tmp_path / "project.toml").write_text('model = "pendulum"\n[fit]\nrecordings = ["--out=/tmp/elsewhere"]\n')
    with pytest.raises(ProjectError, match="would be an option"):
        read_project(tmp_path / "project.toml")


@pytest.mark.parametrize("text", ["time = nan", "time = -1", f"interval = 1{400 * '0'}"])
def test_a_table_of_channels_of_other_types(tmp_path, text):
    """One sentence: a column's name is text, and integers have 64 bits."""
    path = tmp_path / "table.toml"
    path.write_text(f'{text}\n[channels]\ntheta = "alpha"\n', "utf-8")
    with pytest.raises(RecordingError, match=r"the name of a column|more than 64 bits"):
        read_channel_table(path)
