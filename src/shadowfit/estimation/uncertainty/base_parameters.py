"""Base parameters: the combinations of parameters that the motion determines, with error bars; and what it never sees.

The data see parameters through the columns of the linearised rows, states projected out. Columns that depend on each
other belong to parameters of which only a combination is known. The classical numerical method (Gautier, Numerical
calculation of the base inertial parameters of robots, 1991) picks independent columns by pivoting, here on the
information A in units of the parameters' typical sizes, and regroups the others: with I the chosen and D the dependent
ones,

    β = θ_I + K θ_D,        K = A_II⁻¹ A_ID,        cov β = A_II⁻¹ V A_II⁻¹,

V the variance of ``Tᵀe`` on the chosen columns by white errors and those that are not (A_II where all are white and the
weights are those of the noise).

A column is independent if the data tell its parameter to better than its own size (:mod:`identifiability`) beside those
chosen before it. Masses are chosen last, as is usual: they are then added to moments of the bodies before them.

Torques are linear in a body's mass, first moments ``m c`` and moments of inertia about its *frame's origin*, and it is
in these that combinations hold whatever the values are. Where all ten numbers of a body are free they take the place of
centre of mass and inertia about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from shadowfit.arrays import Bool, Float
from shadowfit.estimation.uncertainty.evidence import Evidence, Kind
from shadowfit.estimation.uncertainty.identifiability import THRESHOLD
from shadowfit.mechanism.second_moments import ENTRIES
from shadowfit.records import record

# How much less a mass is worth as a pivot.
MASSES_LAST = 1e-4
# Coefficients below this, in units of the typical sizes, are rounding; so is what changes a combination by less than
# this part of its error bar.
ROUNDING, NEGLIGIBLE = 1e-6, 0.01
# Information that is left of a column after others are taken off, relative to what there was: below it is rounding.
LEFT = 1e-9
# Terms with a smaller share than this are left out of the words.
MENTIONED = 0.01

COM = ("com.x", "com.y", "com.z")


@record(frozen=True)
class BaseParameter:
    """One combination ``Σ coefficient · parameter`` that the data determine."""

    coefficients: Mapping[str, float]
    """Of each parameter; the first has one, and gives the combination its unit."""
    shares: Mapping[str, float]
    """The same in units of the typical sizes: how much each matters."""
    value: float
    std: float
    unit: str

    @property
    def name(self) -> str:
        """The parameter that the combination is named after."""
        return next(iter(self.coefficients))

    @property
    def mentioned(self) -> tuple[str, ...]:
        """Parameters whose share matters."""
        return tuple(name for name, share in self.shares.items() if abs(share) >= MENTIONED)

    def text(self) -> str:
        """The sum in words, without small terms."""
        parts: list[str] = []
        for name in self.mentioned:
            factor = self.coefficients[name]
            number = "" if f"{abs(factor):.3g}" == "1" else f"{abs(factor):.3g}·"
            sign = ("+ " if factor > 0.0 else "− ") if parts else ("" if factor > 0.0 else "−")
            parts.append(f"{sign}{number}{name}")
        return " ".join(parts)


@record(frozen=True)
class BaseParameters:
    """What the motion determines of the free parameters."""

    combinations: tuple[BaseParameter, ...]
    unseen: tuple[str, ...]
    """Parameters that the data say nothing about, alone or with others."""

    @property
    def grouped(self) -> tuple[BaseParameter, ...]:
        """Combinations of more than one parameter."""
        return tuple(one for one in self.combinations if len(one.mentioned) > 1)


def base_parameters(
    evidence: Evidence, values: Float[np.ndarray, " p"], units: Sequence[str], kind: Kind = "robust"
) -> BaseParameters:
    """Base parameters of the data alone, priors left out; parameters on a bound are held there."""
    free = ~evidence.at_bound
    square = evidence.reference**2
    # Errors are as large as their levels at least, and what is not white is beside them.
    kinds: tuple[Kind, ...] = ("gauss-newton", "robust") if kind == "robust" else (kind,)
    added = (evidence.latent.variance if kind == "robust" else 0.0) - evidence.prior * square
    variances = [(evidence.meat(each, free)[0] + added) / square**2 for each in kinds]
    linear = linear_parameters(evidence, values, units)
    back = linear.jacobian_inverse
    data = np.nan_to_num(evidence.data / square)
    information, *meats = (_symmetric(back.T @ np.nan_to_num(table) @ back) for table in (data, *variances))
    before = np.diagonal(np.abs(back).T @ np.abs(data) @ np.abs(back)) * linear.scale**2
    return _grouped(linear, information, meats, free, np.maximum(LEFT * before, THRESHOLD**-2))


@record(frozen=True)
class LinearParameters:
    """Parameters in which torques are linear, where they can be had: names, values, sizes, and how they change."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Float[np.ndarray, " p"]
    scale: Float[np.ndarray, " p"]
    jacobian_inverse: Float[np.ndarray, "p p"]
    """Derivative of the given parameters by these."""


def linear_parameters(evidence: Evidence, values: Float[np.ndarray, " p"], units: Sequence[str]) -> LinearParameters:
    """Mass, ``m c`` and moments about the frame's origin for every body with all ten free; the others as they are."""
    names, kinds = list(evidence.labels), list(units)
    linear, sizes, jacobian = values.copy(), evidence.scale.copy(), np.eye(len(values))
    places = {label: i for i, label in enumerate(evidence.labels) if not evidence.at_bound[i]}
    for mass in [label for label in places if label.endswith(".mass")]:
        body = mass.removesuffix(".mass")
        ten = [f"{body}.{rest}" for rest in ("mass", *COM, *(f"inertia.{entry}" for entry in ENTRIES))]
        if not all(name in places for name in ten):
            continue
        at = np.array([places[name] for name in ten])
        new, slopes = _about_origin(values[at])
        linear[at], jacobian[np.ix_(at, at)] = new, slopes
        # A body's own sizes, also for numbers that are zero.
        gyration = np.sqrt(max(np.sum(new[4:7]), 0.0) / (2.0 * new[0]))
        sizes[at] = np.concatenate([[new[0]], np.full(3, new[0] * gyration), np.full(6, new[0] * gyration**2)])
        for place, rest in zip(at[1:], (*COM, *ENTRIES), strict=True):
            names[place] = f"{body}.mass·{rest}" if rest in COM else f"{body}.moment.{rest}"
            kinds[place] = "kg m" if rest in COM else "kg m²"
    return LinearParameters(tuple(names), tuple(kinds), linear, sizes, np.linalg.inv(jacobian))


def _about_origin(ten: Float[np.ndarray, "10"]) -> tuple[Float[np.ndarray, "10"], Float[np.ndarray, "10 10"]]:
    """``(m, m c, J + m (|c|² 1 − c cᵀ))`` of ``(m, c, J)``, and its derivative."""
    mass, centre = ten[0], ten[1:4]
    steiner = _entries(centre @ centre * np.eye(3) - np.outer(centre, centre))
    slopes = np.eye(10)
    slopes[1:4, 0], slopes[1:4, 1:4] = centre, mass * np.eye(3)
    slopes[4:, 0] = steiner
    for axis, unit in enumerate(np.eye(3)):
        outer = np.outer(centre, unit) + np.outer(unit, centre)
        slopes[4:, 1 + axis] = mass * _entries(2.0 * centre[axis] * np.eye(3) - outer)
    return np.concatenate([[mass], mass * centre, ten[4:] + mass * steiner]), slopes


def _entries(matrix: Float[np.ndarray, "3 3"]) -> Float[np.ndarray, "6"]:
    return np.array([matrix["xyz".index(name[0]), "xyz".index(name[1])] for name in ENTRIES])


def _grouped(
    linear: LinearParameters,
    information: Float[np.ndarray, "p p"],
    meats: Sequence[Float[np.ndarray, "p p"]],
    free: Bool[np.ndarray, " p"],
    least: Float[np.ndarray, " p"],
) -> BaseParameters:
    """Choose independent parameters, with at least some information each, and regroup the others."""
    scaled = information * np.outer(linear.scale, linear.scale)
    worth = np.array([MASSES_LAST if name.endswith(".mass") else 1.0 for name in linear.names])
    alone = np.diagonal(scaled) >= least
    chosen = np.array(pivots(scaled, worth, np.where(free & alone, least, np.inf)), dtype=int)
    others = np.flatnonzero(free & alone & ~np.isin(np.arange(len(free)), chosen))
    block = scaled[np.ix_(chosen, chosen)]
    inverse = np.linalg.pinv(block, hermitian=True) if len(chosen) else block
    regroup = inverse @ scaled[np.ix_(chosen, others)]
    units = np.outer(linear.scale, linear.scale)
    spreads = [np.diagonal(inverse @ (meat * units)[np.ix_(chosen, chosen)] @ inverse) for meat in meats]
    stds = np.sqrt(np.max(spreads, axis=0, initial=0.0))
    listed = []
    for row, i in enumerate(chosen.tolist()):
        std = float(stds[row])
        small = max(ROUNDING, NEGLIGIBLE * std)
        terms = [(i, 1.0)]
        terms += [(j, k) for j, k in zip(others.tolist(), regroup[row].tolist(), strict=True) if abs(k) > small]
        shares = {linear.names[j]: float(k) for j, k in terms}
        factors = {linear.names[j]: float(k * linear.scale[i] / linear.scale[j]) for j, k in terms}
        value = sum(k * linear.scale[i] / linear.scale[j] * linear.values[j] for j, k in terms)
        listed.append(BaseParameter(factors, shares, float(value), std * float(linear.scale[i]), linear.units[i]))
    order = np.argsort(chosen)
    unseen = [linear.names[i] for i in np.flatnonzero(free & ~alone)]
    return BaseParameters(tuple(listed[i] for i in order), tuple(unseen))


def pivots(
    scaled: Float[np.ndarray, "p p"], worth: Float[np.ndarray, " p"], least: Float[np.ndarray, " p"]
) -> list[int]:
    """Independent columns, the best told first: what is left of each beside those chosen is its own information."""
    left = scaled.copy()
    chosen: list[int] = []
    enough = np.diagonal(left) >= least
    while enough.any():
        best = int(np.argmax(np.where(enough, np.diagonal(left) * worth, -np.inf)))
        chosen.append(best)
        left = left - np.outer(left[:, best], left[best]) / left[best, best]
        enough = (np.diagonal(left) >= least) & ~np.isin(np.arange(len(left)), chosen)
    return chosen


def _symmetric(matrix: Float[np.ndarray, "p p"]) -> Float[np.ndarray, "p p"]:
    return 0.5 * (matrix + matrix.T)
