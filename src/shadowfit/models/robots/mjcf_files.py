"""The files that an MJCF names. MuJoCo opens them by itself, so they are looked at before.

Includes and attached models are read as XML, and everything else is a mesh, a texture or a height field. What of a
path is the name and what the folder, compilers of several files may say; all that could be meant is looked at.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from shadowfit.files import check_regular, is_allowed, read_bytes
from shadowfit.magnitudes import is_usable
from shadowfit.memory import require_for_file
from shadowfit.models.robots.markup import Element, parse_markup
from shadowfit.records import record

PARTS = ("include", "model")
# Memory that MuJoCo takes for a body, a geom or a node of a flexible body [bytes]; measured, 13 to 17 kB.
EACH = 2e4
FOLDERS = ("assetdir", "meshdir", "texturedir")


@record(frozen=True)
class NamedFiles:
    """What the files that an MJCF names come to."""

    size: int
    """Of all together [bytes]."""
    outside: bool
    """Whether a mesh, a texture or a height field lies where the file must not lead."""


def named_files(root: Element, path: Path, size: int) -> NamedFiles:
    """The files that are named in an MJCF of some size, and in what it includes.

    Raises:
        ModelFileError: an include or an attached model lies outside of the folder; a file is a pipe or a device; a
            number is none.
    """
    elements = list(_elements(root, path))
    copies = sum(_copies(one) for one, _ in elements if one.tag in ("mujoco", "mujocoinclude"))
    require_for_file(EACH * copies, str(path), size)
    folders = {""} | {
        one.attributes[name].text
        for one, _ in elements
        if one.tag == "compiler"
        for name in FOLDERS
        if name in one.attributes
    }
    _check_numbers([one for one, _ in elements])
    seen: dict[Path, int] = {}
    outside = False
    for element, beside in elements:
        for name in _names(element):
            for folder in folders:
                for base in {path.parent, beside}:
                    place = base / folder / name
                    if place in seen or not os.path.lexists(place):
                        continue
                    allowed = is_allowed(path.parent, place)
                    seen[place] = _size(element, place) if allowed else 0
                    outside |= not allowed and element.tag not in PARTS
    return NamedFiles(size + sum(seen.values()), outside)


def _elements(root: Element, path: Path) -> Iterator[tuple[Element, Path]]:
    """All elements of a file and of those that it includes or attaches, each with the folder of its file."""
    read = {path.resolve()}
    waiting = [(root, path.parent)]
    while waiting:
        top, beside = waiting.pop()
        for element in top.walk():
            yield element, beside
            for place in {base / name for base in (path.parent, beside) for name in _parts(element)}:
                if not os.path.lexists(place) or place.resolve() in read:
                    continue
                if not is_allowed(path.parent, place):
                    raise element.error(f"{place} lies outside of {path.parent} and is not read; copy it there")
                _size(element, place)
                read.add(place.resolve())
                waiting.append((parse_markup(read_bytes(place), str(place)), place.parent))


def _copies(root: Element) -> float:
    """How many elements there are once all that is to be repeated has been."""
    total, waiting = 0.0, [(root, 1.0)]
    while waiting:
        element, times = waiting.pop()
        total += times * _repeated(element) if element.tag == "flexcomp" else times
        inside = times * _repeated(element) if element.tag == "replicate" else times
        waiting.extend((child, inside) for child in element.children)
    return total


def _repeated(element: Element) -> float:
    counts = element.attributes.get("count")
    try:
        return float(np.prod([max(float(word), 1.0) for word in counts.text.split()])) if counts is not None else 1.0
    except ValueError:
        return 1.0  # which MuJoCo refuses


def _names(element: Element) -> list[str]:
    """``file``, and of a texture ``fileup``, ``fileleft``, ..."""
    return [value.text for name, value in element.attributes.items() if name.startswith("file") and value.text]


def _parts(element: Element) -> list[str]:
    return _names(element) if element.tag in PARTS else []


def _size(element: Element, place: Path) -> int:
    try:
        return check_regular(place)
    except OSError as error:
        raise element.error(f"{place} cannot be read: {error.strerror}") from error


def _check_numbers(elements: list[Element]) -> None:
    """Raise at a number that is none (to MuJoCo it means that nothing is stated) or that no machine has.

    Names of parts may be anything, and ranges have no end.
    """
    names = {value.text for one in elements for key, value in one.attributes.items() if key in ("name", "class")}
    for element in elements:
        for key, value in element.attributes.items():
            wrong = next((word for word in value.text.split() if _is_wrong(word)), None)
            if wrong is not None and value.text not in names and not ("range" in key and "inf" in wrong.lower()):
                raise element.error(f"{key!r} of <{element.tag}> has {wrong[:40]}, which is no number of a machine")


def _is_wrong(word: str) -> bool:
    try:
        return not is_usable(float(word))
    except ValueError:
        return False
