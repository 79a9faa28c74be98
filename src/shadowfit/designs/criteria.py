"""How good information is: expected error bars, and one number to be made small.

Parameters are counted in their typical sizes (their values), so that a standard deviation is a relative error bar. What
no motion can tell is left out: directions v of the parameters in which all motions together leave more than a hundred
typical sizes open, or in which all that they tell comes from the discretisation. (Equations of motion that do not
depend on how a mass is divided may do so after they are discretised, by some part of (ωh)². The information I(h) of
such a direction falls with h⁴: it is told by ``I(h/2) v = λ I(h) v`` with λ nearer to 1/16 than to 1.) With V the other
directions,

    C = V (Vᵀ I V)⁻¹ Vᵀ

is the covariance of what can be told, and parameters that v has no part in have the error bars of the fit. The criteria
are logarithms, so that a change of 0.01 is one per cent of an error bar:

    worst   max_i log √C_ii          the worst relative error bar
    D       −log det(Vᵀ I V)/2r      the geometric mean of the error bars along the principal axes
    A       log √(mean_i C_ii)       the root mean square of the relative error bars
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from shadowfit.arrays import Bool, Float
from shadowfit.designs.errors import DesignError
from shadowfit.errors import UnknownNameError, nearest
from shadowfit.estimation.uncertainty.identifiability import Finding, findings
from shadowfit.records import record

Criterion = Literal["worst", "D", "A"]

# A direction whose standard deviation exceeds this many typical sizes, with all motions together, cannot be told.
HOPELESS = 100.0
# λ below which a direction is told by the discretisation alone.
DISCRETE = 0.4
# Parts of an unknown direction below this are rounding.
UNRELATED = 1e-3
# Information, in typical sizes, that a single motion is taken to have in any direction: its error bars stay finite.
FLOOR = 1e-8


@record(frozen=True)
class Identifiable:
    """What motions can tell, and what of it is wished."""

    labels: tuple[str, ...]
    scale: Float[np.ndarray, " p"]
    """Typical sizes."""
    directions: Float[np.ndarray, "p r"]
    """V, in typical sizes."""
    counted: Bool[np.ndarray, " p"]
    """Parameters that no unknown direction has a part in."""
    unknown: tuple[Finding, ...]
    """What no motion can tell."""
    given: Float[np.ndarray, "p p"]
    """Information from earlier recordings."""

    def _projected(self, information: Float[np.ndarray, "*n p p"]) -> Float[np.ndarray, "*n r r"]:
        scaled = (information + self.given) * np.outer(self.scale, self.scale)
        return self.directions.T @ scaled @ self.directions + FLOOR * np.eye(self.directions.shape[1])

    def relative(self, information: Float[np.ndarray, "*n p p"]) -> Float[np.ndarray, "*n p"]:
        """Relative error bars; NaN for parameters that are not counted."""
        inverse = np.linalg.inv(self._projected(information))
        variance = np.einsum("pr,...rs,ps->...p", self.directions, inverse, self.directions)
        return np.where(self.counted, np.sqrt(np.maximum(variance, 0.0)), np.nan)

    def objectives(self, information: Float[np.ndarray, "*n p p"], criterion: Criterion) -> Float[np.ndarray, "*n k"]:
        """Numbers whose largest is to be made small."""
        if criterion == "D":
            rank = self.directions.shape[1]
            return -0.5 / rank * np.linalg.slogdet(self._projected(information))[1][..., None]
        bars = self.relative(information)[..., self.counted]
        if criterion == "A":
            return 0.5 * np.log(np.mean(bars**2, axis=-1))[..., None]
        return np.log(bars)


def identifiable(
    labels: Sequence[str],
    scale: Float[np.ndarray, " p"],
    together: tuple[Float[np.ndarray, "p p"], Float[np.ndarray, "p p"]],
    given: Float[np.ndarray, "p p"],
) -> Identifiable:
    """What can be told, from the information of many motions together and of earlier recordings.

    ``together`` is that of the motions at a time-step, and at half of it.

    Raises:
        DesignError: nothing can.
    """
    hopeless = _hopeless(*((information + given) * np.outer(scale, scale) for information in together))
    directions, _ = np.linalg.qr(hopeless, mode="complete") if hopeless.shape[1] else (np.eye(len(scale)), None)
    parts = np.max(np.abs(directions[:, : hopeless.shape[1]]), axis=1, initial=0.0)
    kept = directions[:, hopeless.shape[1] :]
    # Information that has nothing in the hopeless directions, and enough in all others, says the same in words.
    unknown = findings((kept @ kept.T) / UNRELATED**2 / np.outer(scale, scale), scale, labels)
    counted = parts < UNRELATED
    if not counted.any():
        raise DesignError(
            "no motion within the limits tells any of the wished parameters alone; free fewer of them, or widen the "
            f"limits. {'; '.join(in_words(finding) for finding in unknown)}"
        )
    return Identifiable(tuple(labels), scale, kept, counted, unknown, given)


def _hopeless(rough: Float[np.ndarray, "p p"], fine: Float[np.ndarray, "p p"]) -> Float[np.ndarray, "p k"]:
    """Directions that nothing tells, or the discretisation alone; in typical sizes."""
    values, vectors = np.linalg.eigh(rough)
    known = values > HOPELESS**-2
    # In these units the information at the time-step is one in every direction that is known.
    basis = vectors[:, known] / np.sqrt(values[known])
    ratios, mixed = np.linalg.eigh(basis.T @ fine @ basis)
    artefacts = basis @ mixed[:, ratios < DISCRETE]
    artefacts /= np.linalg.norm(artefacts, axis=0, keepdims=True)
    return np.hstack([vectors[:, ~known], artefacts])


def in_words(finding: Finding) -> str:
    """What no motion can tell."""
    if len(finding.names) == 1:
        return f"{finding.names[0]} cannot be told"
    return finding.text


def check_criterion(name: str) -> Criterion:
    """The criterion, if there is one of this name."""
    for known in get_args(Criterion):
        if name == known:
            return known
    raise UnknownNameError(f"there is no criterion {name!r}{nearest(name, get_args(Criterion))}")
