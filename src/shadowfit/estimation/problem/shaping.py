"""Rows of each time step brought to one level, where errors are those of a few directions (:mod:`axis_noise`)."""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Float
from shadowfit.records import record


@record(frozen=True)
class Shaping:
    """N of some steps, ``(1 − U Uᵀ) + U diag(σ₀/s) R⁻¹ Uᵀ``."""

    matrix: Float[np.ndarray, "steps r r"]

    @classmethod
    def of(
        cls,
        weight: Float[np.ndarray, "r r"],
        answers: Float[np.ndarray, "steps r j"],
        levels: Float[np.ndarray, " j"],
    ) -> Shaping:
        """For the weight W of all directions alike, what unit impulses leave, and one over their levels ``σ₀/s``."""
        directions, size = np.linalg.qr(weight @ answers)
        within = levels[:, None] * np.linalg.inv(size)
        return cls(np.eye(len(weight)) + directions @ (within - np.eye(len(levels))) @ directions.mT)

    @property
    def log_volume(self) -> float:
        """``Σ log|det N|``."""
        return float(np.sum(np.linalg.slogdet(self.matrix)[1]))

    def between(self, begin: int, end: int) -> Shaping:
        """That of some steps."""
        return Shaping(self.matrix[begin:end])

    def times(self, rows: Float[np.ndarray, "steps k*r c"]) -> Float[np.ndarray, "steps k*r c"]:
        """Rows of one level; a step may have several residuals, one below another."""
        return (self.matrix[:, None] @ self._parts(rows)).reshape(rows.shape)

    def undone(self, rows: Float[np.ndarray, "steps k*r c"]) -> Float[np.ndarray, "steps k*r c"]:
        """Rows as they were before `times`."""
        return np.linalg.solve(self.matrix[:, None], self._parts(rows)).reshape(rows.shape)

    def _parts(self, rows: Float[np.ndarray, "steps k*r c"]) -> Float[np.ndarray, "steps k r c"]:
        return rows.reshape(len(rows), -1, self.matrix.shape[1], rows.shape[2])
