"""One piece of work of the scoreboard: what is run in a process of its own, and kept."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Literal, Self

Form = Literal["quick", "full"]
"""The quick form takes minutes and runs in continuous integration, the full one hours."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A variant of a scenario: a seed, a disturbance, a half of a recording."""

    group: str
    scenario: str
    variant: str
    limit: float = 300.0
    """Longest time [s]."""
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Variables that the process gets."""
    needs_data: bool = False
    """Whether it reads the recordings of ``SHADOWFIT_DATA``."""

    @property
    def name(self) -> str:
        """``group/scenario/variant``."""
        return f"{self.group}/{self.scenario}/{self.variant}"

    def to_json(self) -> str:
        """As the process is told what to run."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The same, read back."""
        return cls(**json.loads(text))


Outcome = Mapping[str, Any]
"""What a case found, as JSON values, without any statistics; ``error`` says why there is nothing."""
