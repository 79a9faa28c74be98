"""Columns of numbers as a CSV file: headings in the first row, twelve digits a number, empty cells for missing ones."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from shadowfit.errors import RecordingError
from shadowfit.files import read_text
from shadowfit.models.atomic import write_text
from shadowfit.recordings import Recording


def write_csv(path: str | os.PathLike[str], table: Mapping[str, Any]) -> None:
    """Write columns of equal length, heading → values, shape (n,)."""
    rows = zip(*(np.asarray(column, float).tolist() for column in table.values()), strict=True)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(table)
    line = ",".join(["%.12g"] * len(table)) + "\n"
    text.writelines((line % row).replace("nan", "") for row in rows)
    write_text(path, text.getvalue())


def write_recording(path: str | os.PathLike[str], recording: Recording) -> None:
    """Write a recording so that ``read_recording`` reads the same, units in the headings."""
    units = {name: f" [{unit}]" for name, unit in recording.units.items()}
    columns = {f"{name}{units.get(name, '')}": values for name, values in recording.channels.items()}
    write_csv(path, {"time [s]": recording.time, **columns})


def read_csv(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Columns of a file that :func:`write_csv` wrote; empty cells are NaN."""
    try:
        headings, *rows = csv.reader(io.StringIO(read_text(path)))
        values = np.array([[float(cell or "nan") for cell in row] for row in rows]).reshape(len(rows), len(headings))
    except (OSError, ValueError) as error:
        raise RecordingError(f"{path} is not a readable table of numbers ({error})") from error
    return dict(zip(headings, values.T, strict=True))
