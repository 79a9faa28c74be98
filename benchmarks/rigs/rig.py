"""A machine with recordings: what is fitted, what is left for simulations, and which fits should agree."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from shadowfit.mechanism import Mechanism
from shadowfit.recordings import Recording


@dataclasses.dataclass(frozen=True)
class Rig:
    """A model, what is free, and recordings by their names."""

    says: str
    mechanism: Callable[[], Mechanism]
    read: Callable[[str], Recording]
    free: tuple[str, ...]
    fitted: tuple[str, ...]
    held_out: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str, str], ...] = ()
    """Kind and two recordings whose fits should agree."""
    truth: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """True values of those that stand for nothing else."""
    needs_data: bool = False
