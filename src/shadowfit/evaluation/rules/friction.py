"""Which numbers are those of friction, and the joints that were left without."""

from __future__ import annotations

from shadowfit.estimation import Estimate

# Names of numbers that take energy out of the motion.
FRICTION = ("viscous", "dry", "coulomb", "drag", "damping")


def is_one_of(name: str, words: tuple[str, ...]) -> bool:
    """Whether a part of a parameter's name behind the first, ``drag`` in ``hinge.drag.coefficient``, is a word."""
    return any(part in words for part in name.partition("@")[0].split(".")[1:])


def joints_without_friction(estimate: Estimate) -> set[str]:
    """Joints of which every free number of friction ended at zero."""
    zero: dict[str, bool] = {}
    for row in estimate.parameters:
        joint = row.name.partition(".")[0]
        if is_one_of(row.name, FRICTION):
            zero[joint] = zero.get(joint, True) and row.at_bound and row.value == 0.0
    return {joint for joint, idle in zero.items() if idle}
