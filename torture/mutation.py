"""Damage to bytes: what disks, networks, editors and spreadsheets do to files."""

from __future__ import annotations

import numpy as np

# Words that programs write into tables and model files, and numbers at the limits of what can be written.
WORDS = (
    *(
        b"nan",
        b"inf",
        b"-inf",
        b"1e999",
        b"-1e308",
        b"9e99",
        b"1e-320",
        b"0",
        b"-0",
        b"1,5",
        b"NULL",
        b"#REF!",
        b"true",
    ),
    *(b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n\n", b'"', b"'''", b"[", b"]]", b"=", b"#", b";", b"\t", b"e"),
    *(b"1_000", b"0x10", b"\xc2\xb5", b"[[", b"{", b"..", b"time", b"\xf0\x9f\x98\x80", b"a" * 3000, b"1" * 400),
)


def mutated(content: bytes, random: np.random.Generator) -> bytes:
    """The content with a damage, or some more."""
    for _ in range(int(random.geometric(0.6))):
        content = _DAMAGES[int(random.integers(len(_DAMAGES)))](content, random)
    return content


def _place(content: bytes, random: np.random.Generator) -> int:
    return int(random.integers(len(content) + 1))


def _flip(content: bytes, random: np.random.Generator) -> bytes:
    if not content:
        return content
    at = int(random.integers(len(content)))
    return content[:at] + bytes([content[at] ^ (1 << int(random.integers(8)))]) + content[at + 1 :]


def _cut(content: bytes, random: np.random.Generator) -> bytes:
    return content[: _place(content, random)]


def _remove(content: bytes, random: np.random.Generator) -> bytes:
    at = _place(content, random)
    return content[:at] + content[at + int(random.integers(1, 60)) :]


def _repeat(content: bytes, random: np.random.Generator) -> bytes:
    at = _place(content, random)
    return content[:at] + content[at : at + int(random.integers(1, 200))] + content[at:]


def _word(content: bytes, random: np.random.Generator) -> bytes:
    at = _place(content, random)
    return content[:at] + WORDS[int(random.integers(len(WORDS)))] + content[at + int(random.integers(0, 6)) :]


def _lines(content: bytes, random: np.random.Generator) -> bytes:
    lines = content.split(b"\n")
    one, other = (int(random.integers(len(lines))) for _ in range(2))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def _cell(content: bytes, random: np.random.Generator) -> bytes:
    """Another word in place of one between commas, equal signs or blanks."""
    for mark in (b",", b"= ", b" "):
        parts = content.split(mark)
        if len(parts) > 2:
            at = int(random.integers(len(parts)))
            tail = parts[at].partition(b"\n")
            parts[at] = WORDS[int(random.integers(len(WORDS)))] + tail[1] + tail[2]
            return mark.join(parts)
    return content


_DAMAGES = (_flip, _cut, _remove, _repeat, _word, _word, _lines, _cell, _cell)
