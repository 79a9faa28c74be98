"""Names of a robot file as names of a mechanism's parts: letters, digits and underscores, each used once."""

from __future__ import annotations

import re
from collections.abc import Iterable

from shadowfit.models.reader import RESERVED


def identifier(name: str) -> str:
    """The name with every other character as an underscore: ``wrist-3`` → ``wrist_3``, ``1`` → ``_1``."""
    plain = re.sub(r"\W", "_", name)
    return plain if plain.isidentifier() else f"_{plain}"


class Names:
    """Gives out names, each one once."""

    def __init__(self) -> None:
        self._taken = set(RESERVED)

    def take(self, wanted: str, ending: str = "") -> str:
        """A name like ``wanted``; with ``ending`` or a number behind it where that is taken."""
        plain = identifier(wanted)
        candidates = [plain, plain + ending] if ending else [plain]
        name = next((candidate for candidate in candidates if candidate not in self._taken), None)
        number = 2
        while name is None:
            candidate = f"{candidates[-1]}_{number}"
            name, number = (None if candidate in self._taken else candidate), number + 1
        self._taken.add(name)
        return name

    def take_all(self, wanted: Iterable[str], ending: str = "") -> dict[str, str]:
        """Names for several, by what was wanted."""
        return {name: self.take(name, ending) for name in wanted}
