"""What unexplained forces look like: functions of the state, slow changes, or neither.

A force f that a model lacks is split by how well it can be told beforehand:

* **a function of the state**: f(q, q̇) as a sum of smooth functions of the joint's own speed and position, fitted to
  all parts of the recordings but one and compared with that one (ten parts). Friction of another kind, a spring, a
  cable or an eccentric gear look so, and an element of the model could say it (`shadowfit advise`);
* **slow**: of what is left, what the two halves of a twentieth of a recording have in common. Temperature, wear and
  drifts of a torque sensor look so;
* **neither**: noise, and functions of what is not looked at (load, the speed of other joints).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.uncertainty import state_functions
from shadowfit.evaluation.axis_forces import AxisForce
from shadowfit.records import record

# Parts of all steps, each of which is told by the others.
PARTS = 10
# A slow force has changed little within this part of a recording.
SLOW = 1 / 20
# Penalty on the coefficients of unit functions, relative to the number of steps: functions that hardly differ share.
RIDGE = 1e-4
# Fewer steps tell nothing.
LEAST_STEPS = 10 * PARTS


@record(frozen=True)
class ErrorKinds:
    """Parts of the variance of an unexplained force, 0 to 1."""

    state: float
    """What a smooth function of the joint's own speed and position tells beforehand."""
    slow: float
    """What changes slowly."""

    @property
    def neither(self) -> float:
        """The rest."""
        return max(0.0, 1.0 - self.state - self.slow)


def error_kinds(recordings: Sequence[AxisForce]) -> ErrorKinds | None:
    """The kinds of a joint's unexplained force in all recordings; None where there is too little of it."""
    force = np.concatenate([recording.force for recording in recordings])
    energy = float(np.mean(force**2))
    if len(force) < LEAST_STEPS or not energy > 0.0:
        return None
    position, speed = (
        np.concatenate([getattr(recording, key) for recording in recordings]) for key in ("position", "speed")
    )
    explained = _cross_predicted(_functions(position, speed), force)
    left = force - explained
    state = 1.0 - float(np.mean(left**2)) / energy
    if state <= 0.0:
        state, left = 0.0, force
    ends = np.cumsum([len(recording.force) for recording in recordings])[:-1]
    slow = _shared_by_halves(np.split(left, ends)) / energy
    return ErrorKinds(state, min(max(slow, 0.0), 1.0 - state))


def _functions(position: Float[np.ndarray, " n"], speed: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n f"]:
    """Smooth functions of position and speed, each of unit size."""
    plain = np.stack([np.ones_like(speed), speed, position - position.mean(), np.sign(speed)], axis=1)
    size = np.sqrt(np.mean(plain**2, axis=0))
    smooth = (*state_functions.of_speed([position], [speed]), *state_functions.of_position([position]))
    return np.concatenate([plain / np.where(size > 0.0, size, 1.0), *smooth], axis=1)


def _cross_predicted(functions: Float[np.ndarray, "n f"], force: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The force in each part of the steps, by the functions as fitted to the others."""
    parts = np.array_split(np.arange(len(force)), PARTS)
    squares = [functions[part].T @ functions[part] for part in parts]
    products = [functions[part].T @ force[part] for part in parts]
    ridge = RIDGE * len(force) * np.eye(functions.shape[1])
    predicted = np.zeros_like(force)
    for part, square, product in zip(parts, squares, products, strict=True):
        others = np.sum(squares, axis=0) - square + ridge
        predicted[part] = functions[part] @ np.linalg.solve(others, np.sum(products, axis=0) - product)
    return predicted


def _shared_by_halves(series: Sequence[Float[np.ndarray, " n"]]) -> float:
    """Mean product of the means of two neighbouring halves: the variance of what both have in common."""
    products, counts = [], []
    for values in series:
        width = max(int(0.5 * SLOW * len(values)), 1)
        halves = values[: len(values) // (2 * width) * 2 * width].reshape(-1, 2, width).mean(axis=2)
        products.append(float(np.sum(halves[:, 0] * halves[:, 1])))
        counts.append(len(halves))
    return sum(products) / max(sum(counts), 1)
