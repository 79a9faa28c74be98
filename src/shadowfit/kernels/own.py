"""Whether this package's source tells all that a function depends on, so that its code can be found again by name."""

from __future__ import annotations

import dataclasses
from typing import Any


def is_own(part: Any) -> bool:
    """Whether all parts of a mechanism are of this package, so that its source tells what they do."""
    if isinstance(part, list | tuple):
        return all(is_own(x) for x in part)
    if dataclasses.is_dataclass(part):
        inside = type(part).__module__.split(".")[0] == __name__.split(".")[0]
        return inside and all(is_own(getattr(part, field.name)) for field in dataclasses.fields(part))
    return not callable(part)
