"""Text tables: a line of headings, then a line of numbers per sample, separated by comma, semicolon or tab.

Every defect is reported with its line. Lines before the headings that start with `#` are skipped, unless the
last of them holds the headings (as `numpy.savetxt` writes them).
"""

from __future__ import annotations

import csv
import io
from functools import partial

import numpy as np
from numpy.typing import NDArray

from shadowfit.errors import RecordingError
from shadowfit.recordings.cells import is_number, numbers
from shadowfit.recordings.headings import check_headings

Line = tuple[int, list[str]]  # number of the line in the file, and its cells


def read_delimited(content: bytes, where: str) -> dict[str, NDArray[np.float64] | None]:
    """Columns of a text table by heading; None for a column of words.

    Args:
        content: the file's bytes.
        where: the file's name, for messages.
    """
    lines = _lines(_decode(content, where), where)
    (line, headings), rows = _split_headings(lines, where)
    check_headings(headings, f"{where}, line {line}")
    for number, cells in rows:
        if len(cells) != len(headings):
            raise RecordingError(
                f"{where}, line {number}: {len(cells)} cells, but {len(headings)} headings; every line needs "
                "one cell per heading (a missing sample is an empty cell)"
            )
    columns = zip(*(cells for _, cells in rows), strict=True)
    return {
        heading: numbers(cells, partial(_place, where, heading, rows))
        for heading, cells in zip(headings, columns, strict=True)
    }


def _place(where: str, heading: str, rows: list[Line], row: int) -> str:
    return f"{where}, line {rows[row][0]}, column {heading!r}"


def _decode(content: bytes, where: str) -> str:
    if not content.strip():
        raise RecordingError(f"{where}: the file is empty; it needs a line of headings and one line per sample")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise RecordingError(f"{where}: the text is encoded as UTF-16; save it as UTF-8")
    if b"\0" in content:
        raise RecordingError(f"{where}: this is a binary file, not text; export the recording as CSV")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise RecordingError(
            f"{where}, line {line}: byte {content[error.start]:#04x} is not UTF-8 text; save the file as UTF-8"
        ) from error


def _lines(text: str, where: str) -> list[Line]:
    """The file's lines, without empty ones."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    lines = []
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if any(stripped):
                lines.append((reader.line_num, stripped))
    except csv.Error as error:
        raise RecordingError(f"{where}, line {reader.line_num}: {error}; check the quotation marks") from error
    if not lines:
        raise RecordingError(f"{where}: every cell is empty; a line of headings and one line per sample are needed")
    return lines


def _delimiter(text: str) -> str:
    # The comma comes last: files with semicolons or tabs may hold commas within numbers or headings.
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), text)
    return next((delimiter for delimiter in "\t;," if delimiter in first), ",")


def _split_headings(lines: list[Line], where: str) -> tuple[Line, list[Line]]:
    """The line of headings and the lines of samples."""
    first = next((i for i, (_, cells) in enumerate(lines) if not cells[0].startswith("#")), len(lines))
    if first < len(lines) and all(is_number(cell) for cell in lines[first][1]):
        first -= 1  # numbers at once: the last comment, if there is one, holds the headings
    if not 0 <= first < len(lines):
        raise RecordingError(
            f"{where}, line {lines[0][0]}: there is no line of headings; the first line names the columns, "
            "such as time [s],theta [rad],u [V]"
        )
    (line, headings), rows = lines[first], lines[first + 1 :]
    headings = [headings[0].lstrip("# "), *headings[1:]]
    if not headings[-1] and all(len(cells) == len(headings) and not cells[-1] for _, cells in rows):
        # Some programs end every line with a delimiter.
        headings, rows = headings[:-1], [(number, cells[:-1]) for number, cells in rows]
    if not rows:
        raise RecordingError(f"{where}: there are headings but no samples below them")
    return (line, headings), rows
