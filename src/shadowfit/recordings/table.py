"""Tables: columns by heading, from files and frames of any kind, before names and units are settled.

Each reader either returns a table or raises a `RecordingError` that names the file and the place.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowfit.apart import LostError, apart
from shadowfit.errors import RecordingError, nearest
from shadowfit.files import check_regular, is_allowed, read_bytes
from shadowfit.memory import NotEnoughMemoryError, require_for_file
from shadowfit.recordings.archives import COPIES, read_hdf5, read_matlab
from shadowfit.recordings.bags import Progress, is_bag, read_bag
from shadowfit.recordings.cells import numbers
from shadowfit.recordings.delimited import read_delimited
from shadowfit.recordings.headings import check_headings
from shadowfit.records import record

FORMATS = (
    "CSV (.csv, .tsv, .txt), NumPy (.npz), Parquet (.parquet), HDF5 (.h5, .hdf5), MATLAB (.mat) "
    "and bags of ROS (.bag, .db3, .mcap, or a folder with metadata.yaml)"
)


@record(frozen=True)
class RawTable:
    """Columns by heading, not yet interpreted."""

    columns: Mapping[str, NDArray[np.float64] | None]
    """Heading → numbers, shape (n,); None for a column of words."""
    source: str
    """Path of the file or kind of the table, for messages."""
    name: str
    """The file's name without its ending."""
    notes: tuple[str, ...] = ()
    """What was left out."""


BAG_TIME = "time [s]"


def load_table(source: Any, topics: Sequence[str] = (), progress: Progress | None = None) -> RawTable:
    """A table from a path, from a pandas or Polars frame, or from a mapping of headings to arrays.

    ``topics`` and ``progress`` are for bags (:mod:`bags`).
    """
    if isinstance(source, str | os.PathLike):
        return _from_file(Path(source), topics, progress)
    if isinstance(source, Mapping):
        arrays = {str(key).strip(): values for key, values in source.items()}
        return _from_arrays(arrays, "mapping", "recording")
    if hasattr(source, "collect"):  # a Polars LazyFrame is a promise of a frame
        source = source.collect()
    if hasattr(source, "columns") and hasattr(source, "__getitem__"):
        return _from_frame(source, f"{type(source).__module__.split('.')[0]} frame", "recording")
    raise RecordingError(
        f"a recording is read from a path, a frame or a mapping of names to arrays, not from {type(source).__name__}"
    )


def _from_file(path: Path, topics: Sequence[str], progress: Progress | None) -> RawTable:
    readers: dict[str, Callable[[Path], RawTable]] = {
        **dict.fromkeys((".csv", ".tsv", ".txt"), _from_text),
        ".npz": _from_npz,
        **dict.fromkeys((".parquet", ".pq"), _from_parquet),
        ".mat": lambda path: _from_arrays(_apart(read_matlab, path), str(path), path.stem),
        **dict.fromkeys((".h5", ".hdf5"), lambda path: _from_arrays(_apart(read_hdf5, path), str(path), path.stem)),
    }
    ending = path.suffix.lower()
    try:
        if is_bag(path):
            return _from_bag(path, topics, progress)
        if topics:
            raise RecordingError(f"{path}: only bags have topics")
        if path.is_dir():
            raise RecordingError(f"{path} is a folder and no bag (it has no metadata.yaml); name a file in it")
        if not path.exists():
            raise RecordingError(f"{path}: there is no such file{_files_beside(path)}")
        if ending not in readers:
            raise RecordingError(f"{path}: the ending {ending!r} tells no known format; known are {FORMATS}")
        return readers[ending](path)
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read ({error.strerror or error})") from error


def _files_beside(path: Path) -> str:
    """The end of a message: files in the same folder whose names are near."""
    folder = path.parent
    names = sorted(file.name for file in folder.iterdir()) if folder.is_dir() else []
    return nearest(path.name, names) if names else ""


def _apart(read: Callable[..., Any], path: Path, *more: Any, progress: Progress | None = None) -> Any:
    """What a reader that needs another's library makes of a file, in a process of its own."""
    files = [file for file in path.iterdir() if not file.is_dir()] if path.is_dir() else [path]
    size = sum(check_regular(file) for file in files)
    for file in files:
        if path.is_dir() and not is_allowed(path, file):
            raise RecordingError(f"{file}: leads out of the folder of its bag; copy it there")
    try:
        return apart(read, path, *more, size=size, progress=progress)
    except LostError as error:
        raise RecordingError(f"{path}: {error}") from error


def _from_bag(path: Path, topics: Sequence[str], progress: Progress | None) -> RawTable:
    bag = _apart(read_bag, path, tuple(topics), progress=progress)
    # Under the name that no signal of a bag has: theirs are those of joints and topics.
    columns = {BAG_TIME: bag.series.time, **bag.series.columns}
    return RawTable(columns, str(path), path.stem, bag.notes)


def _from_text(path: Path) -> RawTable:
    columns = read_delimited(read_bytes(path), str(path))
    return RawTable(columns, str(path), path.stem)


def _from_npz(path: Path) -> RawTable:
    whole = read_bytes(path)
    content = io.BytesIO(whole)
    if not zipfile.is_zipfile(content):
        raise RecordingError(f"{path}: is not an NPZ archive; write it with numpy.savez(path, time=..., theta=...)")
    try:
        with np.load(content, allow_pickle=False) as archive:
            members = archive.zip.infolist()
            # What is stored as it is takes its size in the file: a larger one was never written.
            if any(one.compress_type == zipfile.ZIP_STORED and one.file_size > len(whole) for one in members):
                raise ValueError("the size of an array is not what the archive holds")
            unpacked = sum(member.file_size for member in members)
            require_for_file(COPIES * unpacked, str(path), len(whole))
            arrays = {key: archive[key] for key in archive.files}
    except NotEnoughMemoryError:
        raise
    except Exception as error:  # what a damaged archive raises depends on the damaged byte
        raise RecordingError(
            f"{path}: is damaged, or holds objects other than numbers ({error}); write it again with numpy.savez"
        ) from error
    return _from_arrays(arrays, str(path), path.stem)


def _from_parquet(path: Path) -> RawTable:
    return _from_frame(_Columns(_apart(read_parquet, path)), str(path), path.stem)


def read_parquet(path: Path) -> dict[str, NDArray[Any]]:
    """Columns of a Parquet file. Called apart: damaged files can make Polars end its process."""
    import polars  # noqa: PLC0415

    content = read_bytes(path)
    try:
        promised = polars.scan_parquet(io.BytesIO(content))
        numbers = promised.select(polars.len()).collect().item() * len(promised.collect_schema())
        require_for_file(COPIES * np.dtype(float).itemsize * numbers, str(path), len(content))
        frame = polars.read_parquet(io.BytesIO(content))
        return {heading: np.asarray(frame[heading]) for heading in frame.columns}
    except NotEnoughMemoryError:
        raise
    except BaseException as error:  # Polars has panics that are no exceptions
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise RecordingError(f"{path}: is not a readable Parquet file ({reason}); write it again") from error


class _Columns(dict[str, Any]):
    """Columns by heading, as frames have them."""

    @property
    def columns(self) -> list[str]:
        return list(self)


def _from_frame(frame: Any, source: str, name: str) -> RawTable:
    """From anything with `columns` and `frame[heading]`: pandas, Polars, and what looks like them."""
    headings = [str(heading).strip() for heading in frame.columns]
    check_headings(headings, source)
    arrays = {heading: frame[key] for heading, key in zip(headings, frame.columns, strict=True)}
    return _from_arrays(arrays, source, name)


def _from_arrays(arrays: Mapping[str, Any], source: str, name: str) -> RawTable:
    """Vectors become columns; other arrays are left out, silently if they are single numbers: settings beside data."""
    try:
        columns = {key: np.asarray(values) for key, values in arrays.items()}
    except ValueError as error:
        raise RecordingError(f"{source}: a column is no array ({error})") from error
    notes = tuple(
        f"array {key!r} has {array.ndim} dimensions instead of one and was left out"
        for key, array in columns.items()
        if array.ndim > 1
    )
    vectors = {key: array for key, array in columns.items() if array.ndim == 1}
    numeric = {key: _column(array, f"{source}, column {key!r}") for key, array in vectors.items()}
    return RawTable(numeric, source, name, notes)


def _column(array: NDArray[Any], where: str) -> NDArray[np.float64] | None:
    """Numbers of a column; dates and durations in seconds (dates from the first one on); None for words."""
    if array.dtype.kind in "fiub":
        return array.astype(np.float64)
    if array.dtype.kind == "M":
        array = array - array[:1]
    if array.dtype.kind == "m":
        return np.asarray(array / np.timedelta64(1, "s"), dtype=np.float64)
    if array.dtype.kind in "OUT":
        return numbers([str(cell) for cell in array], lambda row: f"{where}, row {row + 1}")
    raise RecordingError(f"{where}: values of type {array.dtype} cannot be read as real numbers")
