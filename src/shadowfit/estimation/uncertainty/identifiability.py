"""What the data cannot tell: directions of the parameters without information, in words.

In units of the parameters' typical sizes, an eigenvector of the information with eigenvalue below one is a change of
the parameters that the data do not see until it is as large as the parameters themselves: the *threshold* is a standard
deviation of one typical size. Eigenvectors of a subspace mix arbitrarily. Parameters that the data would not tell even
if all others were known (their own diagonal entry is below the threshold) are therefore named alone, and of the rest a
basis with as many zeros as possible is told.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shadowfit.arrays import Float
from shadowfit.records import record

# A direction whose standard deviation exceeds this many typical sizes is not identified.
THRESHOLD = 1.0
# What is left of a direction after parameters without information are taken out, if there is anything left.
LEFT = 0.02
# Components below this fraction of the largest are left out of the words.
MENTIONED = 0.1


@record(frozen=True)
class Finding:
    """One thing that the data cannot tell."""

    names: tuple[str, ...]
    direction: Float[np.ndarray, " k"]
    """Change of these parameters, in their units, that the data do not see."""

    @property
    def text(self) -> str:
        """The finding in words."""
        if len(self.names) == 1:
            return f"{self.names[0]}: no information in these data"
        if len(self.names) == 2:
            a, b = self.names
            factor = -self.direction[0] / self.direction[1]
            sign = "+" if factor >= 0.0 else "−"
            number = "" if f"{abs(factor):.3g}" == "1" else f"{abs(factor):.3g}·"
            return f"{a} and {b}: only the combination {a} {sign} {number}{b} is known"
        moved = ", ".join(f"{name} by {part:.3g}" for name, part in zip(self.names, self.direction, strict=True))
        listed = ", ".join(self.names[:-1]) + f" and {self.names[-1]}"
        return f"{listed}: only combinations are known; a joint change ({moved}) leaves the data as they are"


def weak_directions(information: Float[np.ndarray, "p p"], scale: Float[np.ndarray, " p"]) -> Float[np.ndarray, "p k"]:
    """Eigenvectors, in units of the typical sizes, along which the standard deviation exceeds the threshold."""
    values, vectors = np.linalg.eigh(np.nan_to_num(information) * np.outer(scale, scale))
    return vectors[:, values < THRESHOLD**-2]


def findings(
    information: Float[np.ndarray, "p p"], scale: Float[np.ndarray, " p"], labels: Sequence[str]
) -> tuple[Finding, ...]:
    """Everything that the data cannot tell, for an information matrix (inverse variance) and typical sizes."""
    weak = weak_directions(information, scale)
    alone = np.nan_to_num(np.diagonal(information)) * scale**2 < THRESHOLD**-2
    listed = [Finding((labels[i],), scale[i : i + 1]) for i in np.flatnonzero(alone).tolist()]
    rest = np.where(alone[:, None], 0.0, weak)
    left, sizes, _ = np.linalg.svd(rest, full_matrices=False)
    count = weak.shape[1] - int(alone.sum())
    for direction in _with_zeros(left[:, : max(count, 0)][:, sizes[: max(count, 0)] > LEFT]):
        involved = np.flatnonzero(np.abs(direction) >= MENTIONED * np.abs(direction).max()).tolist()
        listed.append(Finding(tuple(labels[i] for i in involved), (direction * scale)[involved]))
    return tuple(listed)


def _with_zeros(basis: Float[np.ndarray, "p k"]) -> list[Float[np.ndarray, " p"]]:
    """Another basis of the same space, reduced to echelon form with the largest entries as pivots."""
    vectors = [np.array(column) for column in basis.T]
    for i in range(len(vectors)):
        pivot = int(np.argmax(np.abs(vectors[i])))
        vectors[i] = vectors[i] / vectors[i][pivot]
        for j in range(len(vectors)):
            if j != i:
                vectors[j] = vectors[j] - vectors[j][pivot] * vectors[i]
    return vectors
