"""Tables of channels: columns by name with unit, sign, scale, offset and delay, and what is wrong with them."""

import numpy as np
import pytest

from shadowfit.errors import RecordingError
from shadowfit.recordings import read_channel_table, read_recording

TIME = 0.01 * np.arange(6)
COLUMNS = {"clock [ms]": 1e3 * TIME, "alpha": 10.0 * TIME, "i3": TIME**2}


def read(tmp_path, text: str):
    (tmp_path / "channels.toml").write_text(text)
    return read_recording(COLUMNS, channels=read_channel_table(tmp_path / "channels.toml"))


def test_units_signs_and_offsets(tmp_path) -> None:
    found = read(
        tmp_path,
        'time = "clock"\n[channels]\ntheta = "alpha"\n'
        'elbow.effort = { column = "i3", unit = "mNm", sign = -1, scale = 2.0, offset = 0.5 }\n',
    )
    np.testing.assert_allclose(found.time, TIME, atol=1e-15)
    np.testing.assert_array_equal(found.channels["theta"], COLUMNS["alpha"])
    np.testing.assert_allclose(found.channels["elbow.effort"], 0.5 - 2e-3 * TIME**2, atol=1e-15)
    assert found.units["elbow.effort"] == "N m"


@pytest.mark.parametrize("delay", [0.02, 0.004])
def test_a_late_column_is_put_back_where_it_belongs(tmp_path, delay: float) -> None:
    text = f'time = "clock"\n[channels]\ntheta = "alpha"\nu = {{ column = "i3", delay = {delay} }}\n'
    found = read(tmp_path, text)
    for name, late, values in (("theta", 0.0, COLUMNS["alpha"]), ("u", delay, COLUMNS["i3"])):
        here = np.isfinite(found.channels[name])
        np.testing.assert_allclose(found.time[here], TIME - late, atol=1e-12)
        np.testing.assert_array_equal(found.channels[name][here], values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("theta = 1", "there is no key 'theta'"),
        ("[channels]\ntheta = 3", "write a column's name"),
        ('[channels]\ntheta = { column = "alpha", unit = "parsec" }', "'parsec' is not a known unit"),
        ('[channels]\ntheta = { column = "alpha", sign = 2 }', "sign is 2; it is 1 or -1"),
        ('[channels]\ntheta = { column = "alpha", delay = "late" }', "delay is 'late'; it must be a number"),
        ('[channels]\ntheta = { column = "alpha", gain = 2 }', "there is no key 'gain'"),
        ("[channels", "channels.toml: "),
    ],
)
def test_mistakes_are_named(tmp_path, text: str, message: str) -> None:
    with pytest.raises(RecordingError, match=message):
        read(tmp_path, text)
