"""Which numbers of a result go back into a user's own file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from shadowfit.evaluation.store import SavedResult
from shadowfit.mechanism import Mechanism


@dataclasses.dataclass(frozen=True)
class Calibrated:
    """Numbers of the calibrated model that differ from a file's, and those that are left as they were."""

    values: Mapping[str, Any]
    unidentified: tuple[str, ...]
    """Free parameters that the recordings do not tell."""
    separate: tuple[str, ...]
    """Parameters with a value for each recording, of which none is the machine's."""


def calibrated(result: SavedResult, before: Mechanism, *, everything: bool = False) -> Calibrated:
    """What a result changes in a model; with ``everything``, also what was not identified."""
    after = result.mechanism()
    own = before.leaves()
    rows = result.summary["parameters"]
    separate = {name.partition("@")[0] for name in rows if "@" in name}
    doubtful = {name for name, row in rows.items() if not row["identifiable"]}
    values, left = {}, []
    for name, leaf in after.leaves().items():
        changed = name not in own or not np.array_equal(after.get(name), before.get(name))
        if not everything and any(row == name or row.startswith(f"{name}.") for row in doubtful):
            left.append(name)
        elif changed and leaf.tunable and name not in separate and (name in own or name in rows):
            values[name] = after.get(name)
    return Calibrated(values, tuple(left), tuple(sorted(separate)))
