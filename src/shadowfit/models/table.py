"""A table of a model file that knows where it stands, so that every mistake is reported with its line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from shadowfit.errors import ShadowfitError, nearest
from shadowfit.models.errors import ModelFileError
from shadowfit.models.places import Path, Place
from shadowfit.records import record


@record(frozen=True)
class Table:
    """The values of a TOML table, its path from the top of the file, and the places of everything in the file."""

    values: Mapping[str, Any]
    path: Path
    places: Mapping[Path, Place]
    source: str

    def __contains__(self, key: object) -> bool:
        return key in self.values

    def __getitem__(self, key: str) -> Any:
        """A value that must be there."""
        if key not in self.values:
            raise self.error(f"{self.name(key)} is missing")
        return self.values[key]

    def name(self, *keys: str) -> str:
        """Dotted name of the table or of something in it, for messages."""
        return ".".join(str(part) for part in (*self.path, *keys))

    def line(self, *keys: str) -> int | None:
        """Line of the table or of something in it; of the nearest thing around it where that is not written."""
        path = (*self.path, *keys)
        for end in range(len(path), 0, -1):
            inside = [place.line for key, place in self.places.items() if key[:end] == path[:end]]
            if inside:
                return min(inside)
        return None

    def error(self, message: str, *keys: str) -> ModelFileError:
        """An error at the table or at something in it."""
        return ModelFileError(message, self.source, self.line(*keys))

    @contextlib.contextmanager
    def blamed(self, *keys: str) -> Iterator[None]:
        """Errors raised inside are reported at the table or at something in it."""
        try:
            yield
        except ModelFileError:
            raise
        except ShadowfitError as error:
            raise self.error(str(error), *keys) from error

    def allow(self, keys: Iterable[str], hints: Mapping[str, str] | None = None) -> None:
        """Raise at the first key that is not allowed; ``hints`` say when some of the others would be."""
        keys = tuple(keys)
        for key in self.values:
            if key not in keys:
                hint = f"; {hints[key]}" if hints and key in hints else nearest(key, keys)
                raise self.error(f"{self.name(key)} is not a key of this table{hint}", key)

    def table(self, key: str) -> Table:
        """The table under a key."""
        value = self[key]
        if not isinstance(value, dict):
            raise self.error(f"{self.name(key)} must be a table, {self._example(key)}, not {shown(value)}", key)
        return Table(value, (*self.path, key), self.places, self.source)

    def _example(self, key: str) -> str:
        return f"[{self.name(key)}]" if not self.path else f"[{self.name(key)}] or {key} = {{ ... }}"

    def tables(self, key: str) -> dict[str, Table]:
        """The tables under a key, by name; none where the key is not there."""
        group = self.table(key) if key in self else None
        return {name: group.table(name) for name in group.values} if group is not None else {}

    def text(self, key: str, choices: Iterable[str] | None = None) -> str:
        """A string, one of ``choices`` if these are given."""
        value = self[key]
        if not isinstance(value, str):
            raise self.error(f"{self.name(key)} must be a text in quotes, not {shown(value)}", key)
        if choices is not None and value not in choices:
            raise self.error(f"{self.name(key)} is {value!r}, which is not possible{nearest(value, choices)}", key)
        return value

    def flag(self, key: str) -> bool:
        """True or false."""
        value = self[key]
        if not isinstance(value, bool):
            raise self.error(f"{self.name(key)} must be true or false, not {shown(value)}", key)
        return value


def shown(value: Any) -> str:
    """A value as it may stand in a message: short."""
    kinds = {dict: "a table", list: "an array", bool: f"{value}".lower()}
    text = kinds.get(type(value)) or repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
