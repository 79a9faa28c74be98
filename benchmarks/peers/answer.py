"""What a method returns."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Answer:
    """Estimates of the unknowns, their standard deviations where the method gives any, and its own verdict."""

    values: Mapping[str, float]
    std: Mapping[str, float] | None
    converged: bool
    note: str
    """Iterations and the like, for the record."""
