"""New attribute values in the bytes of an XML file: everything else stays as it is."""

from __future__ import annotations

import numpy as np

from shadowfit.models.robots.markup import Element
from shadowfit.models.writer import number_text


class Editor:
    """Collects edits of a file by the places of its elements, and applies them all at once."""

    def __init__(self, content: bytes):
        self._content = content
        self._edits: list[tuple[int, int, bytes]] = []

    def put(self, element: Element, name: str, values: object) -> None:
        """Give an attribute new numbers; it is added where the element does not state it."""
        text = numbers_text(values)
        if name in element.attributes:
            place = element.attributes[name]
            self._edits.append((place.start, place.stop, text.encode()))
        else:
            self._edits.append((element.name_stop, element.name_stop, f' {name}="{text}"'.encode()))

    def remove(self, element: Element, name: str) -> None:
        """Take an attribute away, if it is there; lines stay as they are."""
        if name not in element.attributes:
            return
        start, stop = element.attributes[name].whole
        space = len(self._content[start:stop]) - len(self._content[start:stop].lstrip())
        if b"\n" in self._content[start : start + space]:
            start += space
            following = self._content[stop:]
            stop += len(following) - len(following.lstrip(b" \t"))
        self._edits.append((start, stop, b""))

    def replace(self, element: Element, name: str, other: str, values: object) -> None:
        """Put another attribute in the place of one that is there."""
        start, stop = element.attributes[name].whole
        space = len(self._content[start:stop]) - len(self._content[start:stop].lstrip())
        self._edits.append((start + space, stop, f'{other}="{numbers_text(values)}"'.encode()))

    def add_child(self, parent: Element, tag: str, values: dict[str, object]) -> None:
        """Add an element before the first child of its parent, on a line of its own if that one has one."""
        at = parent.children[0].start
        line = self._content.rfind(b"\n", 0, at) + 1
        before = self._content[line:at]
        separator = b"\n" + before if line and not before.strip() else b""
        attributes = "".join(f' {name}="{numbers_text(value)}"' for name, value in values.items())
        self._edits.append((at, at, f"<{tag}{attributes}/>".encode() + separator))

    def result(self) -> bytes:
        """The content with all edits."""
        content = self._content
        # From the end, so that the places before stay right. At one place what is there goes first, then what is added
        # comes in, last to first.
        order = sorted(enumerate(self._edits), key=lambda item: (item[1][0], item[1][1] > item[1][0], item[0]))
        for _, (start, stop, new) in reversed(order):
            content = content[:start] + new + content[stop:]
        return content


def numbers_text(values: object) -> str:
    """Numbers with all their digits, separated by spaces."""
    return " ".join(number_text(value) for value in np.atleast_1d(np.asarray(values, float)))
