"""Recordings of a rig in place of twins: which are taken, how they are written, what is wrong with a folder."""

import numpy as np
import pytest

from paper import pendulum
from paper.__main__ import main
from paper.methods import Size
from paper.rig import Rig, RigError
from shadowfit.evaluation.columns import write_csv
from shadowfit.recordings import read_recording
from shadowfit.sweeps.cases import attempt


@pytest.fixture
def folder(tmp_path):
    """Two recordings of a pendulum at 300 Hz, in degrees, with an input."""
    time = np.arange(601) / 300.0
    for i in range(2):
        columns = {"time": time, "theta [deg]": np.degrees(np.sin(3.0 * time + i)), "u": np.floor(time)}
        write_csv(tmp_path / "data" / f"pendulum-{i}.csv", columns)
    return tmp_path / "data"


def test_recordings_are_written_like_twins(folder, tmp_path):
    rig = Rig(folder)
    assert rig.series() == 2
    cases = [rig.case(case) for case in pendulum.twins(Size(series=2))]
    outcomes = [attempt(case, tmp_path) for case in cases]
    assert [outcome.error for outcome in outcomes] == ["", ""]
    taken = read_recording(tmp_path / outcomes[1].result["file"])
    assert taken.sample_interval == pytest.approx(1e-3)
    np.testing.assert_allclose(taken.channel("theta"), np.sin(3.0 * taken.time + 1.0), atol=1e-4)
    np.testing.assert_array_equal(taken.channel("u")[[0, 999, 1000, 1999, 2000]], [0.0, 0.0, 1.0, 1.0, 2.0])


def test_a_missing_recording_is_named(folder):
    with pytest.raises(RigError, match=r"pendulum-2\.csv is not there"):
        [Rig(folder).case(case) for case in pendulum.twins(Size(series=3))]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pendulum", "--recordings", "{tmp}"], "two or more"),
        (["synthetic", "--recordings", "{tmp}"], "the others need a truth"),
        (["pendulum", "--model", "mine.toml"], "name their folder with --recordings"),
        (["furuta", "--recordings", "{tmp}"], "furuta-release.csv is not there"),
        (["rocket"], "'synthetic'"),
    ],
)
def test_wrong_use(arguments, message, tmp_path, capsys):
    texts = [text.format(tmp=tmp_path) for text in arguments]
    with pytest.raises(SystemExit) as ended:
        main([*texts, "--out", str(tmp_path / "out"), "--quiet"])
    assert ended.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())
