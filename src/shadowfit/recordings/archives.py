"""Files that hold named arrays in a tree: MATLAB's `.mat` (5 and 7.3) and HDF5. Called apart: files crash libraries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from shadowfit.errors import RecordingError, ShadowfitError
from shadowfit.memory import require_for_file
from shadowfit.recordings.extras import need

# A table wider than this is no set of channels.
WIDEST = 64
# Of all numbers, that are in memory at the same time on their way out of a file.
COPIES = 3.0


def read_matlab(path: Path) -> Mapping[str, Any]:
    """Arrays of a `.mat` file; fields of structures are `name.field`, cells and columns of tables `name[1]`, …"""
    import scipy.io  # noqa: PLC0415  (only such files need it)

    try:
        content = scipy.io.loadmat(path, simplify_cells=True)
    except NotImplementedError:  # version 7.3 is HDF5
        return _from_hdf5(path, matlab=True)
    except Exception as error:  # what a damaged file raises depends on the damaged byte
        raise RecordingError(f"{path}: is not a readable MATLAB file ({error}); save it again in MATLAB") from error
    tree = {name: value for name, value in content.items() if not name.startswith("__")}
    arrays = dict(_flat(tree))
    objects = [str(value["s0"].item()) for value in tree.values() if isinstance(value, scipy.io.matlab.MatlabOpaque)]
    if objects and not arrays:
        raise _objects_alone(path, objects)
    return dict(_split(arrays, first=1))


def _objects_alone(path: Path, names: Iterable[str]) -> RecordingError:
    """An error for a file that has nothing but tables and the like, whose format is MATLAB's own."""
    return RecordingError(
        f"{path}: holds MATLAB objects (a table, timetable or timeseries: {', '.join(names)}), which only MATLAB can "
        "read; save columns as arrays, e.g. those of a table T by s = table2struct(T, 'ToScalar', true); save run.mat s"
    )


def read_hdf5(path: Path) -> Mapping[str, Any]:
    """Arrays of an HDF5 file; groups are `group.name`, columns of tables `name[0]`, `name[1]`, …"""
    return _from_hdf5(path, matlab=False)


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Arrays of numbers or words by their path; those of cells, and of arrays of structures, counted from 1."""
    for name, value in tree.items():
        cells = isinstance(value, list) or (isinstance(value, np.ndarray) and value.dtype == object)
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        elif cells and len(value) <= WIDEST:
            yield from _flat(
                {f"{name}[{i}]": cell for i, cell in enumerate(np.ravel(_as_cells(value), "F"), 1)}, prefix
            )
        elif not cells:
            array = np.asarray(value)
            if array.dtype.kind in "fiubU":
                yield prefix + name, array


def _as_cells(values: Any) -> np.ndarray:
    """An array of objects, whatever is in them."""
    if isinstance(values, np.ndarray):
        return values
    cells = np.empty(len(values), dtype=object)
    cells[:] = values
    return cells


def _split(arrays: Mapping[str, np.ndarray], first: int) -> Iterator[tuple[str, np.ndarray]]:
    """Tables as columns, along the axis that is as long as most vectors are."""
    length = _length(array.shape for array in arrays.values())
    for name, array in arrays.items():
        columns = _columns(array.shape, length)
        if columns is None:
            yield name, array
        for index, column in enumerate(columns or ()):
            yield (name if len(columns or ()) == 1 else f"{name}[{index + first}]"), array[column]


def _length(shapes: Iterator[tuple[int, ...]]) -> int:
    """The number of samples: the longest axis that most arrays share."""
    longest = [max(shape) for shape in shapes if shape and max(shape) > 1]
    return max(set(longest), key=lambda n: (longest.count(n), n)) if longest else 0


def _columns(shape: tuple[int, ...], length: int) -> list[tuple[Any, ...]] | None:
    """Indices of a table's columns, None where an array is no table of that many samples."""
    if len(shape) != 2 or length not in shape or min(shape) > WIDEST:
        return None
    along = 0 if shape[0] == length else 1
    everything = slice(None)
    return [(everything, i) if along == 0 else (i, everything) for i in range(shape[1 - along])]


def _from_hdf5(path: Path, matlab: bool) -> Mapping[str, Any]:
    h5py = need("h5py", "hdf5", str(path))
    shapes: dict[str, tuple[int, ...]] = {}
    fields: dict[str, tuple[str, str]] = {}
    objects: list[str] = []

    def note(name: str, part: Any) -> None:
        if not isinstance(part, h5py.Dataset) or name.startswith("#"):
            return
        _check_inside(path, name, part)
        if matlab and "MATLAB_object_decode" in part.attrs:
            objects.append(name)
        elif matlab and part.attrs.get("MATLAB_class") in (b"char", "char"):
            return
        elif part.dtype.kind in "fiub":
            shapes[name] = part.shape
        elif part.dtype.names is not None:
            # A table of records, as PyTables and pandas write it: a column for each field of numbers.
            for field in part.dtype.names:
                if part.dtype[field].base.kind in "fiub" and part.ndim == 1:
                    shapes[f"{name}/{field}"] = (*part.shape, *part.dtype[field].shape)
                    fields[f"{name}/{field}"] = (name, field)

    try:
        with h5py.File(path) as file:
            file.visititems(note)
            if objects and not shapes:
                raise _objects_alone(path, objects)
            return _chosen_arrays(file, shapes, fields, first=1 if matlab else 0, path=path)
    except ShadowfitError:
        raise
    except Exception as error:  # what a damaged file raises depends on the damaged byte
        raise RecordingError(f"{path}: is not a readable HDF5 file ({error}); write it again") from error


def _check_inside(path: Path, name: str, part: Any) -> None:
    """Raise if the numbers of a dataset are not in the file itself: they would be read from wherever it says."""
    if part.is_virtual or part.external:
        raise RecordingError(
            f"{path}: {name!r} lies in other files (external storage or a virtual dataset), which are not read; "
            "copy all data into one file"
        )


def _chosen_arrays(
    file: Any,
    shapes: Mapping[str, tuple[int, ...]],
    fields: Mapping[str, tuple[str, str]],
    *,
    first: int,
    path: Path,
) -> dict[str, np.ndarray]:
    """Vectors, and columns of tables; what is neither (images, settings) may be large: it is not even read."""
    length = _length(iter(shapes.values()))
    places = {name: [...] if len(shape) == 1 else _columns(shape, length) or () for name, shape in shapes.items()}
    numbers = sum(max(shapes[name], default=0) * len(indices) for name, indices in places.items())
    require_for_file(COPIES * np.dtype(float).itemsize * numbers, str(path), path.stat().st_size)
    arrays = {}
    for name, indices in places.items():
        of, field = fields.get(name, (name, None))
        dotted = name.replace("/", ".")
        for number, index in enumerate(indices):
            key = dotted if len(indices) == 1 else f"{dotted}[{number + first}]"
            arrays[key] = np.asarray(file[of][index] if field is None else file[of][field][index])
    return arrays
