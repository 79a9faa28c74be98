"""What a measured torque is made of, before a fit: is its sign right, and its unit?

Along the motion that the sensors show a joint's drive has to give

    τ = k Q + b q̇ + c sign q̇ + J q̈,      Q = Q_inertia − Q_gravity with the start values,

with friction b, c and a rotor J that robot files seldom have. None of the four is negative: friction takes energy out
of the motion whatever the start values are. So a torque with the wrong sign is told even where friction is most of it,
and a wrist whose centre of mass is on the other side than in the file (k < 0) is not taken for one. How large the
torque should be is told by its weight and inertia alone, where these are not a small part of it.
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Float
from shadowfit.evaluation.arrow_of_time import left_over
from shadowfit.records import record

# Part of a force that has to be explained.
POOR = 0.6
# Measured torques over the model's: start values of friction and inertia do not make more of it.
MISJUDGED = 5.0
# Part of the torque that Q has to explain beside friction: a light wrist's start values say nothing of a unit.
CARRIED = 0.2


@record(frozen=True)
class TorqueBalance:
    """A joint's measured torque beside the one that its motion needs."""

    explained: float
    """Part of the torque, or of what the motion needs, that the other and friction explain."""
    factor: float | None
    """Needed over measured torque, friction aside: one for a machine that is as its model says. None: not told."""
    by_inertia: bool
    """Whether another inertia of the axis itself, such as a rotor's, would explain a factor far from one as well."""
    opposite: bool
    """Whether the torque makes sense with the other sign only."""


NO_TORQUE = TorqueBalance(0.0, None, False, False)


def torque_balance(
    needed: Float[np.ndarray, " n"], driven: Float[np.ndarray, " n"], speed: Float[np.ndarray, " n"]
) -> TorqueBalance:
    """Of the needed and the measured torque [N m, N] and the joint's speed [rad/s, m/s], at even times."""
    # Ends of the motion are continued, not measured.
    inner = slice(2, -2)
    need, torque = needed[inner], driven[inner]
    if not need.any() or not torque.any():
        return NO_TORQUE
    losses = np.stack([speed, np.sign(speed), np.gradient(speed)], axis=1)[inner]
    all_columns, total = np.column_stack([need, losses]), float(torque @ torque)
    as_recorded, turned = (left_over(all_columns, sign * torque) ** 2 / total for sign in (1.0, -1.0))
    opposite = turned < min(0.5 * as_recorded, 1.0 - POOR)
    # A rotor is no part of this: in its place an inertia of the link may be wrong.
    rubbing, carrying = (
        left_over(one, -torque if opposite else torque) ** 2 for one in (losses[:, :2], all_columns[:, :3])
    )
    part, factor, by_inertia = _factor(need, torque, losses)
    tells = rubbing - carrying > CARRIED * total and factor is not None and (factor < 0.0) == opposite
    return TorqueBalance(max(part, 1.0 - min(as_recorded, turned)), factor if tells else None, by_inertia, opposite)


def _factor(
    need: Float[np.ndarray, " n"], torque: Float[np.ndarray, " n"], losses: Float[np.ndarray, "n 3"]
) -> tuple[float, float | None, bool]:
    """Least squares of what the motion needs on torque and friction, ``Q = k τ − b q̇ − c sign q̇``.

    Part explained, k where the torque explains the greater part of what friction leaves, and whether a rotor would do
    as well as a k far from one.
    """
    columns = np.column_stack([torque, losses])
    scale = np.linalg.norm(columns, axis=0)
    columns, total = columns / np.where(scale > 0.0, scale, 1.0), float(need @ need)

    def explained(*chosen: int) -> tuple[float, np.ndarray]:
        table = columns[:, list(chosen)]
        solution = np.linalg.lstsq(table, need, rcond=None)[0]
        return 1.0 - float(np.sum((need - table @ solution) ** 2)) / total, solution

    whole, solution = explained(0, 1, 2)
    friction, turning = explained(1, 2)[0], explained(1, 2, 3)[0]
    belongs = whole > POOR and whole - friction > 0.5 * (1.0 - friction)
    most, beside = explained(0, 1, 2, 3)
    far = abs(np.log(abs(beside[0] / scale[0]))) > np.log(MISJUDGED)
    by_inertia = not (most - turning > 0.5 * (1.0 - turning) and far)
    return whole, float(solution[0] / scale[0]) if belongs else None, bool(by_inertia)
