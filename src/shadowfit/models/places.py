"""Where things stand in a TOML text: the line and the characters of every key and value.

The standard library reads TOML but forgets the places, which error messages need (the line) and so does replacing a
number without touching anything else (the characters). This scanner runs on text that has been read without error, so
it only has to follow strings, comments and brackets.
"""

from __future__ import annotations

import bisect
import dataclasses
import re
import tomllib
from collections.abc import Callable, Iterator

from shadowfit.files import parse_toml
from shadowfit.models.errors import ModelFileError
from shadowfit.records import record

Path = tuple[str | int, ...]

_BLANK = re.compile(r"[ \t\r\n]*(?:#[^\n]*[ \t\r\n]*)*")  # between statements and array elements
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|'
    r"'''.*?'{3,5}|"
    r'"(?:[^"\\]|\\.)*"|'
    r"'[^']*'",
    re.DOTALL,
)
_BARE_VALUE = re.compile(r"[^,\]}#\r\n]*[^,\]}#\s]")
_KEY = re.compile(r"""(?:[A-Za-z0-9_\-. \t]|"(?:[^"\\]|\\.)*"|'[^']*')+""")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_\-]+(?:\.[A-Za-z0-9_\-]+)*")
_EQUALS = re.compile(r"=[ \t]*")
_PROBLEM = re.compile(r"^(?P<what>.*) \(at (?:line (?P<line>\d+), column \d+|end of document)\)$", re.DOTALL)


@record(frozen=True)
class Place:
    """A key with its value, or a table's header."""

    line: int
    """Line of the key, from 1."""
    key: int
    """First character of the key (of the element in an array)."""
    start: int
    """First character of the value; of a header, its opening bracket."""
    stop: int
    """One past the last character of the value or header."""
    header: Path | None
    """Table in whose section a statement stands, or which a header opens; None inside inline tables and arrays."""


def parse(text: str, source: str) -> tuple[dict, dict[Path, Place]]:
    """The values of a TOML text and the place of each one, by its path such as ``("bodies", "arm", "com", 0)``."""
    try:
        values = parse_toml(text)
        return values, dict(_scan(text))
    except tomllib.TOMLDecodeError as error:
        match = _PROBLEM.match(str(error))
        what = match["what"] if match else str(error)
        line = int(match["line"]) if match and match["line"] else text.rstrip().count("\n") + 1
        raise ModelFileError(f"not valid TOML: {what[:1].lower()}{what[1:]}", source, line) from error
    except (RecursionError, ValueError) as error:  # brackets thousands deep; a number with thousands of digits
        raise ModelFileError(f"not readable as TOML: {error}", source) from error


def _scan(text: str) -> Iterator[tuple[Path, Place]]:
    header: Path = ()
    line_of = _line_counter(text)
    at = _end(_BLANK, text, 0)
    while at < len(text):
        line = line_of(at)
        if text[at] == "[":
            opening = 2 if text.startswith("[[", at) else 1
            close = _end(_KEY, text, at + opening)
            header = _key_path(text[at + opening : close])
            stop = close + opening
            yield header, Place(line, at, at, stop, header)
        else:
            path, start = _key_at(text, at)
            for inner, place in _value(text, start, (*header, *path), line_of):
                is_here = inner == (*header, *path)
                yield inner, dataclasses.replace(place, line=line, key=at, header=header) if is_here else place
                stop = place.stop
        at = _end(_BLANK, text, stop)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Where the pattern ends that must begin at a character."""
    match = pattern.match(text, at)
    assert match is not None, f"the scanner lost its way in valid TOML at character {at}"
    return match.end()


def _key_at(text: str, at: int) -> tuple[Path, int]:
    """Path of the key that starts at a character, and the first character of its value."""
    stop = _end(_KEY, text, at)
    return _key_path(text[at:stop]), _end(_EQUALS, text, stop)


def _key_path(text: str) -> Path:
    if _PLAIN_KEY.fullmatch(plain := text.strip()):
        return tuple(plain.split("."))
    path: list[str] = []
    inside: object = tomllib.loads(f"{text} = 0")
    while isinstance(inside, dict):
        ((name, inside),) = inside.items()
        path.append(name)
    return tuple(path)


def _line_counter(text: str) -> Callable[[int], int]:
    """The line of a character, from 1."""
    ends = [match.start() for match in re.finditer("\n", text)]
    return lambda at: bisect.bisect_left(ends, at) + 1


def _value(text: str, at: int, path: Path, line_of: Callable[[int], int]) -> Iterator[tuple[Path, Place]]:
    """Places of the value that starts at a character: those inside it first, its own last."""
    key = at
    if text[at] in "[{":
        closing = "]" if text[at] == "[" else "}"
        index, stop = 0, _end(_BLANK, text, at + 1)
        while text[stop] != closing:
            inner_key, line = stop, line_of(stop)
            name: Path = (index,)
            if closing == "}":
                name, stop = _key_at(text, stop)
            for inner, place in _value(text, stop, (*path, *name), line_of):
                is_here = inner == (*path, *name)
                yield inner, dataclasses.replace(place, line=line, key=inner_key) if is_here else place
                stop = place.stop
            index, stop = index + 1, _end(_BLANK, text, stop)
            if text[stop] == ",":
                stop = _end(_BLANK, text, stop + 1)
        stop += 1
    else:
        stop = _end(_STRING if text[at] in "\"'" else _BARE_VALUE, text, at)
    yield path, Place(line_of(key), key, at, stop, None)
