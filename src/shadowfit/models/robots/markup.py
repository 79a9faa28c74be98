"""XML whose every attribute knows its line and its bytes, for messages and for replacing a value in place.

Read with the standard library's expat, which runs nothing and is not allowed to expand entities of a file's own.
"""

from __future__ import annotations

import re
import xml.parsers.expat as expat
from collections.abc import Iterable, Iterator

import numpy as np

from shadowfit.errors import nearest
from shadowfit.magnitudes import is_usable
from shadowfit.models.errors import ModelFileError
from shadowfit.records import record

# A start tag is scanned again for the places of its attributes; expat has made sure that it is well formed.
_ATTRIBUTE = re.compile(rb"""\s+([^\s=<>/"']+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_TAG_NAME = re.compile(rb"<[^\s/>]+")

# What expat says in words that do not help: what to do.
HINTS = {
    expat.errors.XML_ERROR_MISPLACED_XML_PI: "<?xml ...?> must be the very first in a file; delete what is before it",
    expat.errors.XML_ERROR_NO_ELEMENTS: "there is nothing in the file, or its end is missing",
    expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT: "something follows behind the end of the robot; delete it",
}


@record(frozen=True)
class Attribute:
    """The value of an attribute, the bytes between its quotes, and those of the whole with the space before it."""

    text: str
    start: int
    stop: int
    whole: tuple[int, int]


@record(frozen=True)
class Element:
    """An element of an XML file: its tag, attributes and children, and where it stands."""

    tag: str
    attributes: dict[str, Attribute]
    children: list[Element]
    source: str
    line: int
    name_stop: int
    """One past the last byte of the tag's name: where an attribute can be added."""
    start: int
    """First byte, the opening bracket."""

    def error(self, message: str) -> ModelFileError:
        """An error at this element."""
        return ModelFileError(message, self.source, self.line)

    def all(self, tag: str) -> list[Element]:
        """Children with a tag."""
        return [child for child in self.children if child.tag == tag]

    def one(self, tag: str) -> Element | None:
        """The only child with a tag, if there is one."""
        elements = self.all(tag)
        if len(elements) > 1:
            raise elements[1].error(f"a second <{tag}> in this <{self.tag}>; one of them must go")
        return elements[0] if elements else None

    def walk(self) -> Iterator[Element]:
        """The element and all inside it, in the order of the file."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting.extend(reversed(element.children))

    def text(self, name: str) -> str:
        """An attribute that must be there and say something."""
        if name not in self.attributes:
            raise self.error(f"<{self.tag}> has no {name!r}")
        value = self.attributes[name].text.strip()
        if not value:
            raise self.error(f"{name!r} of <{self.tag}> is empty")
        return value

    def choice(self, name: str, choices: Iterable[str]) -> str:
        """An attribute that is one of several words."""
        value = self.text(name)
        if value not in choices:
            raise self.error(f"{name!r} of <{self.tag}> is {value!r}, which is not possible{nearest(value, choices)}")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """A finite number; ``default`` where it is not stated."""
        if name not in self.attributes and default is not None:
            return default
        return float(self.numbers(name, 1)[0])

    def numbers(self, name: str, count: int, default: Iterable[float] | None = None) -> np.ndarray:
        """``count`` finite numbers; ``default`` where they are not stated."""
        if name not in self.attributes and default is not None:
            return np.array([*default], float)
        words = self.text(name).split()
        try:
            # Python reads 1_000 as a number; other programs do not.
            values = np.array([float(word.replace("_", "?")) for word in words])
        except ValueError:
            values = np.array([])
        if len(values) != count or not is_usable(values):
            wanted = "a finite number" if count == 1 else f"{count} finite numbers with spaces between them"
            raise self.error(f"{name!r} of <{self.tag}> must be {wanted}, not {' '.join(words)[:40]!r}")
        return values


def parse_markup(content: bytes, source: str) -> Element:
    """The root element of an XML file.

    Raises:
        ModelFileError: the file is not well-formed XML, or brings entities of its own.
    """
    if content[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in content[:4]:
        raise ModelFileError("written in UTF-16; save the file as UTF-8", source)
    parser = expat.ParserCreate()
    roots: list[Element] = []
    open_elements: list[Element] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        at = parser.CurrentByteIndex
        name_stop = _end_of_name(content, at)
        places = _places(content, name_stop)
        # In other encodings than UTF-8 a name may be spelt in other bytes; nothing that is read has such a name.
        known = {name: Attribute(text, *places[name]) for name, text in attributes.items() if name in places}
        element = Element(tag, known, [], source, parser.CurrentLineNumber, name_stop, at)
        (open_elements[-1].children if open_elements else roots).append(element)
        open_elements.append(element)

    def refuse(*_: object) -> None:
        raise ModelFileError(
            "the file declares XML entities, which are not read; write out what they stand for",
            source,
            parser.CurrentLineNumber,
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: open_elements.pop()
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except LookupError as error:
        raise ModelFileError(
            f"{error} in its first line; save the file as UTF-8 and say so there", source, 1
        ) from error
    except expat.ExpatError as error:
        what = HINTS.get(expat.ErrorString(error.code) or "") or expat.ErrorString(error.code)
        raise ModelFileError(f"not valid XML: {what}", source, error.lineno) from error
    return roots[0]


def _end_of_name(content: bytes, at: int) -> int:
    match = _TAG_NAME.match(content, at)
    assert match is not None, "expat and the scanner disagree on where an element starts"
    return match.end()


def _places(content: bytes, at: int) -> dict[str, tuple[int, int, tuple[int, int]]]:
    """The bytes of each attribute (see :class:`Attribute`) in the start tag whose name ends at ``at``."""
    places: dict[str, tuple[int, int, tuple[int, int]]] = {}
    while match := _ATTRIBUTE.match(content, at):
        group = 2 if match[2] is not None else 3
        places[match[1].decode("utf-8", "replace")] = (*match.span(group), match.span())
        at = match.end()
    return places
