"""Reading recordings: formats, names and units, and a clear message for every kind of bad file."""

import io
import subprocess
import sys

import numpy as np
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowfit.errors import RecordingError, UnknownNameError
from shadowfit.recordings import read_recording
from shadowfit.recordings.channel_table import ChannelTable
from shadowfit.recordings.delimited import read_delimited

GOOD = "time,theta_deg,u [V]\n0.0,0,1.5\n0.1,90,nan\n0.2,180,-1.5\n0.3,90,\n"


@pytest.fixture
def read(tmp_path):
    """Writes a file and reads it as a recording."""

    def write_and_read(content, file="run.csv", **options):
        path = tmp_path / file
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_recording(path, **options)

    return write_and_read


def assert_good(recording):
    np.testing.assert_allclose(recording.time, [0.0, 0.1, 0.2, 0.3], atol=1e-15)
    assert list(recording.channels) == ["theta", "u"]
    np.testing.assert_allclose(recording.channels["theta"], [0.0, np.pi / 2, np.pi, np.pi / 2], rtol=1e-15)
    np.testing.assert_array_equal(recording.channels["u"], [1.5, np.nan, -1.5, np.nan])
    assert recording.units == {"theta": "rad", "u": "V"}
    assert recording.columns == {"theta": "theta_deg", "u": "u [V]"}


# Formats


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", "\r"),
        GOOD.replace("\n", "\n\n"),
        GOOD.replace(",", ";"),
        GOOD.replace(",", "\t"),
        GOOD.replace(",", " , "),
        GOOD.replace("\n", ",\n"),
        "# made by a logger, version 2\n\n" + GOOD,
        "# a comment\n# time,theta_deg,u [V]\n" + GOOD.split("\n", 1)[1],
        GOOD.replace("theta_deg", '"theta_deg"').replace("90", '"90"'),
        GOOD.replace("nan", "N/A"),
        GOOD.replace("time", "Time (s)"),
        GOOD.rstrip("\n"),
    ],
)
def test_dialects_of_csv(read, content):
    recording = read(content)
    assert_good(recording)
    assert recording.name == "run"
    assert recording.source.endswith("run.csv")
    assert recording.warnings == ("channel 'u': 50.0% of the samples are missing",)


def frame_columns():
    return {"time": [0.0, 0.1, 0.2, 0.3], "theta_deg": [0, 90, 180, 90], "u [V]": [1.5, None, -1.5, None]}


def test_parquet_and_npz_files(tmp_path):
    polars.DataFrame(frame_columns()).write_parquet(tmp_path / "run.parquet")
    assert_good(read_recording(tmp_path / "run.parquet"))
    arrays = {key: np.array(values, dtype=float) for key, values in frame_columns().items()}
    np.savez(tmp_path / "run.npz", **arrays, gains=np.ones(7), mass=3.0)
    recording = read_recording(str(tmp_path / "run.npz"))
    assert_good(recording)
    assert not any("mass" in text for text in recording.warnings)
    assert "'gains' has 7 values for 4 times and was left out" in recording.warnings


class PandasLike:
    """What is used of a pandas frame: `columns` and `frame[heading]`, with objects for missing values."""

    class Missing:
        def __str__(self):
            return "<NA>"

    def __init__(self, columns):
        self._data = {key: np.array(values, dtype=object) for key, values in columns.items()}
        for values in self._data.values():
            values[values == None] = self.Missing()  # noqa: E711  (elementwise)
        self.columns = list(columns)

    def __getitem__(self, key):
        return self._data[key]


def test_frames_and_mappings():
    assert_good(read_recording(polars.DataFrame(frame_columns())))
    assert_good(read_recording(polars.LazyFrame(frame_columns())))
    assert_good(read_recording(PandasLike(frame_columns())))
    assert_good(read_recording({key: np.array(v, dtype=float) for key, v in frame_columns().items()}))
    assert read_recording(polars.DataFrame(frame_columns())).source == "polars frame"
    assert read_recording(polars.DataFrame(frame_columns()), name="first run").name == "first run"


def test_frames_of_text_are_read_as_numbers():
    assert_good(read_recording(polars.read_csv(io.StringIO(GOOD), infer_schema=False)))


def test_dates_count_in_seconds_from_the_first():
    start = np.datetime64("2024-05-17T12:00:00.250", "ms")
    stamps = start + np.array([0, 100, 200, 300], dtype="timedelta64[ms]")
    recording = read_recording(polars.DataFrame({**frame_columns(), "time": stamps}))
    assert_good(recording)


def test_reading_and_smoothing_a_csv_imports_neither_polars_nor_scipy_nor_jax(tmp_path):
    # They take longer to import than a recording takes to read, and the command line must start at once.
    (tmp_path / "run.csv").write_text(GOOD)
    program = (
        "import sys, shadowfit.recordings as r; "
        "run = r.read_recording('run.csv'); r.lowpass(run.time, run.channel('theta')); "
        "print([name for name in ('polars', 'scipy', 'jax') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Names and units


@pytest.mark.parametrize("heading", ["time", "t", "t_s", "time [s]", "time_s", "Time (s)", "TIME", "timestamp"])
def test_names_of_the_time(read, heading):
    assert_good(read(GOOD.replace("time", heading)))


@pytest.mark.parametrize(
    ("heading", "factor"), [("time [ms]", 1e-3), ("Time (ms)", 1e-3), ("t_ms", 1e-3), ("t_us", 1e-6)]
)
def test_times_are_converted_to_seconds(heading, factor):
    time = np.array([0.0, 1.0, 2.5])
    recording = read_recording({heading: time / factor, "x": time})
    np.testing.assert_allclose(recording.time, time, rtol=1e-15)


def test_time_may_be_named(read):
    content = GOOD.replace("time", "clock [ms]").replace("0.", "")
    recording = read(content, time="clock")
    np.testing.assert_allclose(recording.time, [0.0, 1e-3, 2e-3, 3e-3])
    with pytest.raises(UnknownNameError, match=r"no column 'clokc'; did you mean 'clock \[ms\]'"):
        read(content, time="clokc")


@pytest.mark.parametrize("column", ["alpha_deg", "alpha"])
def test_channels_may_be_renamed_with_or_without_the_unit(column):
    table = {"t_s": [0.0, 1.0, 2.0], "alpha_deg": [0.0, 90.0, 180.0], "theta_rad": [1.0, 2.0, 3.0]}
    recording = read_recording(table, channels={"theta2": column, "theta1": "theta"})
    assert sorted(recording.channels) == ["theta1", "theta2"]
    np.testing.assert_allclose(recording.channel("theta2"), [0.0, np.pi / 2, np.pi])
    assert recording.columns == {"theta2": "alpha_deg", "theta1": "theta_rad"}


def test_names_may_be_swapped_and_displaced():
    table = {"t": [0.0, 1.0, 2.0], "theta_rad": [1.0, 2.0, 3.0], "alpha_rad": [4.0, 5.0, 6.0], "u": [7.0, 8.0, 9.0]}
    swapped = read_recording(table, channels={"theta": "alpha", "alpha": "theta"})
    assert (swapped.channel("theta")[0], swapped.channel("alpha")[0]) == (4.0, 1.0)
    displaced = read_recording(table, channels={"theta": "alpha", "u": "alpha"})
    assert {key: values[0] for key, values in displaced.channels.items()} == {"theta": 4.0, "u": 4.0, "theta_rad": 1.0}
    assert displaced.warnings[0] == "column 'u' was left out: another column was given the name 'u'"


def test_columns_that_differ_in_the_unit_only_keep_their_headings():
    table = {"t": [0.0, 1.0, 2.0], "x_m": [0.0, 1.0, 2.0], "x_mm": [0.0, 1e3, 2e3]}
    recording = read_recording(table)
    assert sorted(recording.channels) == ["x_m", "x_mm"]
    np.testing.assert_allclose(recording.channel("x_mm"), recording.channel("x_m"), rtol=1e-15)
    assert "column 'x_m' keeps its whole heading as name, as there is also x_mm" in recording.warnings
    np.testing.assert_array_equal(read_recording(table, channels={"x": "x_m"}).channel("x"), [0.0, 1.0, 2.0])
    with pytest.raises(UnknownNameError, match="'x' may mean 'x_m' and 'x_mm'; write the whole heading"):
        read_recording(table, channels={"position": "x"})


def test_a_column_of_words_is_left_out(read):
    content = "time,phase,x\n0,ramp,1\n1,ramp,2\n2,,3\n"
    recording = read(content)
    assert list(recording.channels) == ["x"]
    assert recording.warnings[0] == "column 'phase' holds words and was left out"
    with pytest.raises(RecordingError, match="column 'phase' is used for channel 'mode' but holds words"):
        read(content, channels={"mode": "phase"})


def test_an_unknown_unit_is_reported(read):
    recording = read(GOOD.replace("theta_deg", "theta [gon]"))
    assert "column 'theta [gon]': 'gon' is not a known unit; values are taken as written" in recording.warnings


@given(
    st.sampled_from([("deg", np.pi / 180), ("mm", 1e-3), ("rpm", np.pi / 30), ("mNm", 1e-3), ("V", 1.0)]),
    st.sampled_from(["{} [{}]", "{} ({})", "{}_{}"]),
    st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=20),
)
def test_values_are_multiplied_by_the_factor_of_their_unit(unit, form, values):
    heading = form.format("channel", unit[0])
    columns = {"time": np.arange(len(values)) / 100, heading: values}
    recording = read_recording(columns, channels=ChannelTable({}, keep_repeats=True))
    np.testing.assert_allclose(recording.channel("channel"), np.array(values) * unit[1], rtol=1e-15)


@given(st.lists(st.floats(-1e90, 1e90) | st.just(np.nan), min_size=3, max_size=30))
def test_numbers_written_with_all_digits_come_back_exactly(values):
    lines = [f"{k},{value!r}" for k, value in enumerate(values)]
    columns = read_delimited(("time,x\n" + "\n".join(lines)).encode(), "run.csv")
    np.testing.assert_array_equal(columns["x"], values)


# Bad files


def test_time_within_a_structure(read):
    """The only column of times may be that of a structure or group, as in `log.time`."""
    recording = read("log.q,log.Time [ms]\n1,0\n2,10\n3,20\n")
    np.testing.assert_allclose(recording.time, [0.0, 0.01, 0.02])
    assert list(recording.channels) == ["log.q"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("  \n\n ", "the file is empty"),
        (",,\n,,\n", "every cell is empty"),
        ("time,theta\n", "there are headings but no samples below them"),
        ("time,theta\n0,1\n1,2\n", "2 samples, at least 3 are needed"),
        ("0,1\n1,2\n2,3\n", "line 1: there is no line of headings; the first line names the columns"),
        ("# only\n# comments\n", "line 1: there is no line of headings"),
        (b"time,theta\n0,\x001\n", "this is a binary file, not text; export the recording as CSV"),
        (GOOD.encode("utf-16"), "encoded as UTF-16; save it as UTF-8"),
        ("time,theta [°]\n0,1\n".encode("latin-1"), "line 1: byte 0xb0 is not UTF-8 text"),
        ("time,theta\n0,1\n1,2,3\n2,3\n", "line 3: 3 cells, but 2 headings; every line needs one cell"),
        ("time,theta\n0,1\n\n1\n2,3\n", "line 4: 1 cells, but 2 headings"),
        ("time,theta\n0,1\n1,abc\n2,3\n", "line 3, column 'theta': 'abc' is not a number; leave missing"),
        ("time,theta\n0,1\n1,1_0\n2,3\n", "line 3, column 'theta': '1_0' is not a number"),
        ("time;theta\n0;1\n1;2,5\n2;3\n", "line 3, column 'theta': '2,5' is not a number; use a decimal point"),
        ("time;theta\n0,0;1\n0,1;2\n0,2;3\n", "column 'time' is used for the time but holds words; .* decimal point"),
        ("time,theta\n0,1\n1,inf\n2,3\n", "'theta' is inf in row 2"),
        ("time,theta\n0,1\n,2\n2,3\n", "the time in row 2 is nan"),
        ("time,theta,theta\n0,1,1\n1,2,2\n2,3,3\n", "line 1: columns 2 and 3 are both called 'theta'"),
        ("time,,theta\n0,1,1\n1,2,2\n2,3,3\n", "line 1: column 2 has no heading; give it a name or delete it"),
        ("tiem,theta\n0,1\n1,2\n2,3\n", "no column of times among 'tiem', 'theta'; call it 'time'"),
        ("time theta\n0 1\n1 2\n2 3\n", "no column of times among 'time theta'.* separated by comma, semicolon or tab"),
        (
            "a.time,b.time,theta\n0,0,1\n1,1,2\n2,2,3\n",
            r"several columns may be the times: 'a\.time', 'b\.time'; say which",
        ),
        ("time [deg],theta\n0,1\n1,2\n2,3\n", r"the times in column 'time \[deg\]' are in rad, not in s"),
        ("time\n0\n1\n2\n", "there are no channels besides time"),
        ('time,theta\n0,"1\n1,2\n2,3\n', "line 4: .*; check the quotation marks"),
        ("time,theta\n0,1\n0,2\n2,3\n", "rows 1 and 2 have the same time 0 s; keep one of them"),
        ("time,theta\n0,1\n2,2\n1,3\n", "time goes back from 2 s in row 2 to 1 s in row 3; sort the rows"),
    ],
)
def test_bad_text_files(read, content, message):
    with pytest.raises(RecordingError, match=message) as caught:
        read(content)
    assert "run.csv" in str(caught.value)


def test_missing_files_folders_and_unknown_formats(tmp_path):
    (tmp_path / "swing_01.csv").write_text(GOOD)
    (tmp_path / "swing.xlsx").write_text("PK")
    (tmp_path / "folder.csv").mkdir()
    for path, message in [
        (tmp_path / "swing_1.csv", "there is no such file; did you mean 'swing_01.csv'"),
        (tmp_path / "nowhere" / "a.csv", "there is no such file$"),
        (tmp_path / "folder.csv", "is a folder and no bag .*; name a file in it"),
        (tmp_path / "swing.xlsx", "the ending '.xlsx' tells no known format; known are CSV"),
        (tmp_path / ("a" * 300 + ".csv"), "cannot be read"),
    ]:
        with pytest.raises(RecordingError, match=message):
            read_recording(path)


def test_bad_archives_and_parquet_files(tmp_path, read):
    with pytest.raises(RecordingError, match=r"is not an NPZ archive; write it with numpy.savez"):
        read(GOOD, "run.npz")
    with pytest.raises(RecordingError, match="is not a readable Parquet file"):
        read(GOOD, "run.parquet")
    np.savez(tmp_path / "objects.npz", time=np.array([{}, {}, {}]))
    with pytest.raises(RecordingError, match="is damaged, or holds objects other than numbers"):
        read_recording(tmp_path / "objects.npz")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (42, "read from a path, a frame or a mapping of names to arrays, not from int"),
        ({"time": [0, 1, 2], "x": [[1], [2, 3], [4]]}, "a column is no array"),
        ({"time": [0, 1, 2], "x": [1, 2j, 3]}, "column 'x': values of type complex128"),
        ({"time": [0, 1, 2], "x": ["1", "two", "3"]}, "column 'x', row 2: 'two' is not a number"),
        (PandasLike({" x": [1.0], "x": [1.0]}), "columns 1 and 2 are both called 'x'"),
    ],
)
def test_bad_frames_and_mappings(source, message):
    with pytest.raises(RecordingError, match=message):
        read_recording(source)


def test_channels_of_missing_columns(read):
    with pytest.raises(UnknownNameError, match=r"run\.csv: there is no column 'thata'; did you mean 'theta_deg'"):
        read(GOOD, channels={"angle": "thata"})
    with pytest.raises(RecordingError, match="channel 'g' has 2 samples, but there are 3 times"):
        read_recording({"time": [0, 1, 2], "x": [1, 2, 3], "gain": [1, 2]}, channels={"g": "gain"})


# Damage


@st.composite
def damaged(draw, content):
    """Content with bytes cut out, put in or replaced."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        stop = draw(st.integers(start, min(len(content), start + 8)))
        content = (
            content[:start]
            + draw(st.binary(max_size=4) | st.sampled_from([b",", b"\n", b'"', b"1e308"]))
            + content[stop:]
        )
    return content


def reads_or_refuses(path, content):
    path.write_bytes(content)
    refusal = ""
    try:
        recording = read_recording(path)
    except RecordingError as error:
        refusal = str(error)
    if refusal:
        assert path.name in refusal
        return
    assert (np.diff(recording.time) > 0).all()
    assert all(len(values) == len(recording) for values in recording.channels.values())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged")


@given(content=damaged(GOOD.encode()) | st.binary(max_size=60))
def test_damaged_csv_files_are_read_or_refused(folder, content):
    reads_or_refuses(folder / "run.csv", content)


@given(content=st.text(alphabet='time,;\t\n\r"#[]()_.-+e019x ', max_size=80))
def test_any_text_is_read_or_refused(folder, content):
    reads_or_refuses(folder / "text.csv", content.encode())


@pytest.fixture(scope="module")
def archive_bytes():
    buffer = io.BytesIO()
    np.savez(buffer, **{key: np.array(values, dtype=float) for key, values in frame_columns().items()})
    return buffer.getvalue()


@pytest.fixture(scope="module")
def parquet_bytes():
    buffer = io.BytesIO()
    polars.DataFrame(frame_columns()).write_parquet(buffer)
    return buffer.getvalue()


@given(data=st.data())
def test_damaged_archives_are_read_or_refused(folder, archive_bytes, data):
    reads_or_refuses(folder / "run.npz", data.draw(damaged(archive_bytes)))


def test_an_archive_that_promises_more_than_it_holds_is_damaged(folder, archive_bytes):
    """A stored array of 942 MB in a file of a kilobyte is a damaged size, and no question of memory."""
    sizes = b"\xa0\x00\x001e308"
    at = archive_bytes.rindex(b"\xa0\x00\x00\x00\xa0\x00\x00\x00")
    path = folder / "promises.npz"
    path.write_bytes(archive_bytes[:at] + sizes + archive_bytes[at + 8 :])
    with pytest.raises(RecordingError, match=r"promises.npz: is damaged"):
        read_recording(path)


# Each is read in a process of its own, which takes as long as fifty archives.
@pytest.mark.slow
@settings(max_examples=10)
@given(data=st.data())
def test_damaged_parquet_files_are_read_or_refused(folder, parquet_bytes, data):
    reads_or_refuses(folder / "run.parquet", data.draw(damaged(parquet_bytes)))
