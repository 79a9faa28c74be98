"""Which numbers of a result go back into a user's own file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from shadowfit.evaluation.store import SavedResult
from shadowfit.mechanism import Mechanism
from shadowfit.mechanism.groups import members
from shadowfit.records import record

# Groups of numbers that are the machine's, whoever says them.
PHYSICAL = ("friction", "armature")


@record(frozen=True)
class Calibrated:
    """Numbers of the calibrated model that differ from a file's, and those that are left as they were."""

    values: Mapping[str, Any]
    together: tuple[str, ...]
    """Those of them that the recordings tell in combinations only: right together, and not by themselves."""
    unidentified: tuple[str, ...]
    """Free parameters that the recordings do not tell."""
    separate: tuple[str, ...]
    """Parameters with a value for each recording, of which none is the machine's."""


def calibrated(
    result: SavedResult, before: Mechanism, *, everything: bool = False, own_numbers: bool = False
) -> Calibrated:
    """What a result changes in a model; with ``everything``, also what was not identified.

    With ``own_numbers``, only those of the machine itself: what the fit was to find, and inertial numbers, friction and
    rotors, beside which it was found. How the fit was set up otherwise (a gear that is counted elsewhere, a base that
    was held) is no business of the robot's own file.

    Numbers of a combination that is told (:mod:`estimation.uncertainty.base_parameters`) belong together: with some of
    them as they were in the file it would be another combination, and a body perhaps one that cannot be. So do numbers
    on a bound (a rotor that the data cannot tell from the link it turns): the others were found beside them.
    """
    after = result.mechanism()
    leaves = before.leaves()
    rows = result.summary["parameters"]
    separate = {name.partition("@")[0] for name in rows if "@" in name}
    doubtful = {name for name, row in rows.items() if not row["identifiable"]}
    combined = _combined(result, after) | {name for name, row in rows.items() if row["at_bound"]}
    physical = {name for word in PHYSICAL for name in members(f"*.{word}", after.leaves())}
    values, together, left = {}, [], []
    for name, leaf in after.leaves().items():
        changed = name not in leaves or not np.array_equal(after.get(name), before.get(name))
        doubted = _is_free(name, doubtful)
        if doubted and name not in combined and not everything:
            left.append(name)
        elif own_numbers and not (name in physical or name.split(".")[0] in after.bodies or _is_free(name, rows)):
            continue
        elif changed and leaf.tunable and name not in separate and (name in leaves or name in rows):
            values[name] = after.get(name)
            together += [name] if doubted and name in combined else []
    return Calibrated(values, tuple(together), tuple(left), tuple(sorted(separate)))


def _is_free(name: str, rows: Iterable[str]) -> bool:
    """Whether a number, or a component of it, is among the parameters of some rows."""
    return any(row == name or row.startswith(f"{name}.") for row in rows)


def _combined(result: SavedResult, mechanism: Mechanism) -> set[str]:
    """Numbers in the combinations that a result tells; of bodies all inertial ones, whose moments are made of them."""
    names = [name for name, leaf in mechanism.leaves().items() if leaf.tunable]
    combined = set()
    for one in (result.summary.get("base_parameters") or {}).get("combinations", ()):
        for term in one["coefficients"]:
            part = term.split(".")[0]
            combined |= set(members(f"{part}.inertial", names)) if part in mechanism.bodies else {term}
    return combined
