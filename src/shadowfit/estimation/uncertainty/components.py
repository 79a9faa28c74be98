"""Errors that are white but for a few unknown functions: how large are these, and which of them are there?

Rows r of a linear problem with parameters p, their derivatives T, are taken to be

    r = −T δp − Σ_g Z_g c_g + e,      c_g ~ N(0, s_g²),   e ~ N(0, σ²),

with groups g of columns Z_g (a joint's missing force as a function of its speed, say) whose sizes s_g are unknown. With
the parameters integrated out and ``θ_g = s_g²/σ²``, Θ their diagonal over all columns, the likelihood is

    −2 log L = ν log σ̂² + log det(1 + Θ½ M Θ½),      σ̂² = (y − bᵀ K b)/ν,     K = (M + Θ⁻¹)⁻¹,

with ``M = Zᵀ(1 − P)Z``, ``b = Zᵀ(1 − P)r``, ``y = rᵀ(1 − P)r`` and P the projection on T: restricted maximum likelihood
of variance components. Groups are taken in one after another, the one that gains most first, as long as they may well
be there. Both is averaged, that it is there and that it is not: its variance counts with the probability of the former
(:func:`probability`), so that little noise in the data changes little. What is not there has the size zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.linear import substitution
from shadowfit.records import record

# Odds, before looking at the data, that a group is there; and those after, below which it is left out.
ODDS, NEGLIGIBLE = 0.004, 0.05
# By how much −2 log L falls then.
EVIDENCE = 2.0 * math.log(NEGLIGIBLE / ODDS)
# Values of log10 θ that are tried, relative to where a group's columns are as large as the errors; then finer ones.
# (Further up, products of columns that hardly differ are rounding.)
COARSE, FINE = np.arange(-4.0, 9.5, 1.0), np.array([-0.6, -0.3, 0.0, 0.3, 0.6])
# Groups whose sizes are looked for at a time: those that would gain most.
MOST = 3
# Sum of the eigenvalues up to which a Cholesky factor keeps half of the digits.
WELL_TOLD = 1e8
# Part of the errors that rounding leaves where functions explain them entirely.
ROUNDING = 1e-9


@record(frozen=True)
class Rows:
    """Products of the rows of a linear problem, parameters projected out."""

    squares: Float[np.ndarray, "c c"]
    """M."""
    products: Float[np.ndarray, " c"]
    """b."""
    energy: float
    """y."""
    degrees: float
    """ν: degrees of freedom of the rows without the parameters."""
    groups: tuple[tuple[int, ...], ...]
    """Columns of each group."""


@record(frozen=True)
class Sizes:
    """Groups that are there."""

    ratio: Float[np.ndarray, " g"]
    """θ of each group; zero where it is not there."""
    gain: Float[np.ndarray, " g"]
    """Fall of −2 log L when the group was taken in."""
    variance: float
    """σ²: what is left of the errors."""
    fall: float
    """Of −2 log L, by all of them."""

    @property
    def present(self) -> tuple[int, ...]:
        """Numbers of the groups that are there."""
        return tuple(np.flatnonzero(self.ratio > 0.0).tolist())


def probability(gain: float) -> float:
    """That a group is there by which −2 log L falls by so much."""
    return 1.0 / (1.0 + math.exp(-0.5 * gain) / ODDS)


def projected(
    tables: Iterable[tuple[Float[np.ndarray, "n p"], Float[np.ndarray, "n c+1"]]],
    degrees: float,
    groups: tuple[tuple[int, ...], ...],
) -> Rows:
    """Rows without the parameters, from tables of T and of [Z, r] one below the other; groups are numbered within Z.

    The part along T is taken off by orthogonal turns, which keep what products of columns lose, table by table; what
    of it tables do not share is left to the end.
    """
    inner, ends = 0.0, []
    for by_parameters, others in tables:
        left, *end = _across(by_parameters, others)
        inner = inner + left.T @ left
        ends.append(end)
    left = _across(*(np.concatenate(parts) for parts in zip(*ends, strict=True)))[0]
    products = inner + left.T @ left
    return Rows(products[:-1, :-1], products[:-1, -1], float(products[-1, -1]), degrees, groups)


def _across(
    by_parameters: Float[np.ndarray, "n p"], others: Float[np.ndarray, "n c"]
) -> tuple[Float[np.ndarray, "n c"], Float[np.ndarray, "q p"], Float[np.ndarray, "q c"]]:
    """What parameters leave of some columns, and the parameters' and the columns' parts along the former."""
    basis, triangle = np.linalg.qr(by_parameters)
    along = basis.T @ others
    return others - basis @ along, triangle, along


def most_fall(rows: Rows) -> float:
    """By how much −2 log L could fall at most: by all columns without a prior, whose determinant is not counted."""
    return float(
        -rows.degrees * np.log1p(-min(_explainable(rows.squares, rows.products) / rows.energy, 1.0 - ROUNDING))
    )


def _explainable(squares: Float[np.ndarray, "c c"], products: Float[np.ndarray, " c"]) -> float:
    """``bᵀ M⁻¹ b``, without directions that are rounding."""
    size = np.sqrt(np.maximum(np.diagonal(squares), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(squares / np.outer(size, size))
    seen = values > ROUNDING
    return float(np.sum((vectors.T @ (products / size))[seen] ** 2 / values[seen]))


def chosen(rows: Rows) -> Sizes:
    """The sizes of the groups that the rows ask for."""
    ratio, gain = np.zeros(len(rows.groups)), np.zeros(len(rows.groups))
    best = without = _beside(rows, ratio).deviance
    while True:
        beside = _beside(rows, ratio)
        tried = [(*beside.scanned(g), g) for g in _promising(beside, ratio)]
        if not tried:
            break
        value, size, g = min(tried)
        if not best - value > EVIDENCE:
            break
        ratio[g], gain[g], best = size, best - value, value
        for other in np.flatnonzero(ratio > 0.0).tolist():
            others = np.where(np.arange(len(ratio)) == other, 0.0, ratio)
            best, ratio[other] = _beside(rows, others).least(other, ratio[other] * 10.0**FINE)
    return Sizes(ratio, gain, _beside(rows, ratio).variance, without - best)


@record(frozen=True)
class _Beside:
    """Products of rows as white errors and the groups that are there leave them."""

    rows: Rows
    there: list[int]
    """Columns of the groups that are there."""
    half: _HalfInverse
    """R with ``RᵀR = (M + Θ⁻¹)⁻¹`` on these columns."""
    along: Float[np.ndarray, " k"]
    """``R b``."""
    determinant: float
    """``log det(1 + Θ½ M Θ½)``."""

    @property
    def explained(self) -> float:
        """``bᵀ K b`` by the groups that are there."""
        return float(self.along @ self.along)

    @property
    def variance(self) -> float:
        """σ²."""
        return float(_left(self.rows, np.array(self.explained)))

    @property
    def deviance(self) -> float:
        return float(self.rows.degrees * np.log(self.variance) + self.determinant)

    def left_of(self, g: int) -> tuple[Float[np.ndarray, "w w"], Float[np.ndarray, " w"]]:
        """``M − M K M`` and ``b − M K b`` of the columns of a group."""
        group = list(self.rows.groups[g])
        across = self.half.of(self.rows.squares[np.ix_(self.there, group)])
        squares = self.rows.squares[np.ix_(group, group)] - across.T @ across
        return squares, self.rows.products[group] - across.T @ self.along

    def scanned(self, g: int) -> tuple[float, float]:
        """Least −2 log L over the size of one more group, and the size."""
        scale = np.mean(np.diagonal(self.rows.squares)[list(self.rows.groups[g])])
        if not scale > 0.0:
            return np.inf, 0.0
        return self.least(g, self.least(g, 10.0**COARSE / scale)[1] * 10.0**FINE)

    def least(self, g: int, sizes: Float[np.ndarray, " k"]) -> tuple[float, float]:
        """The same among some sizes: in the principal axes of the group's columns each counts by itself."""
        squares, products = self.left_of(g)
        values, vectors = np.linalg.eigh(squares)
        values, along = np.maximum(values, 0.0), vectors.T @ products
        grown = 1.0 + sizes[:, None] * values
        explained = self.explained + np.sum(sizes[:, None] * along**2 / grown, axis=1)
        deviance = self.rows.degrees * np.log(_left(self.rows, explained)) + np.sum(np.log(grown), axis=1)
        best = int(np.argmin(deviance))
        return float(deviance[best]) + self.determinant, float(sizes[best])


def _beside(rows: Rows, ratio: Float[np.ndarray, " g"]) -> _Beside:
    """The rows beside groups of given sizes."""
    there = np.flatnonzero(ratio > 0.0).tolist()
    columns = [c for g in there for c in rows.groups[g]]
    root = np.sqrt(np.repeat(ratio[there], [len(rows.groups[g]) for g in there]))
    half, determinant = _half_inverse(root[:, None] * rows.squares[np.ix_(columns, columns)] * root, root)
    return _Beside(rows, columns, half, half.of(rows.products[columns, None])[:, 0], determinant)


@record(frozen=True)
class _HalfInverse:
    """``R Θ½`` with ``RᵀR = (1 + A)⁻¹``, as a Cholesky factor or in principal axes."""

    root: Float[np.ndarray, " k"]
    """Θ½."""
    upper: Float[np.ndarray, "k k"] | None
    """U with ``UᵀU = 1 + A``, so that ``R = U⁻ᵀ``;"""
    axes: Float[np.ndarray, "k k"] | None = None
    """or R itself."""

    def of(self, columns: Float[np.ndarray, "k c"]) -> Float[np.ndarray, "k c"]:
        """``R Θ½`` times some columns."""
        scaled = self.root[:, None] * columns
        if self.axes is not None:
            return self.axes @ scaled
        assert self.upper is not None
        size, count = scaled.shape
        substitution.library("forward", 1, size, size, count, self.upper, self.upper, scaled)
        return scaled


def _half_inverse(inner: Float[np.ndarray, "k k"], root: Float[np.ndarray, " k"]) -> tuple[_HalfInverse, float]:
    """That of A, and the logarithm of the determinant of ``1 + A``."""
    if np.trace(inner) < WELL_TOLD:
        lower = np.linalg.cholesky(inner + np.eye(len(inner)))
        determinant = 2.0 * float(np.sum(np.log(np.diagonal(lower))))
        return _HalfInverse(root, np.ascontiguousarray(lower.T)), determinant
    # Columns that hardly differ make this nearly singular: in its principal axes rounding does no harm.
    values, vectors = np.linalg.eigh(inner)
    values = np.maximum(values, 0.0)
    return _HalfInverse(root, None, vectors.T / np.sqrt(1.0 + values)[:, None]), float(np.sum(np.log1p(values)))


def _promising(beside: _Beside, ratio: Float[np.ndarray, " g"]) -> list[int]:
    """Groups that would gain most, without a prior; none that would not gain enough."""
    rows, gains = beside.rows, []
    for g in np.flatnonzero(ratio == 0.0).tolist():
        part = _explainable(*beside.left_of(g)) / (rows.degrees * beside.variance)
        gains.append((-rows.degrees * np.log1p(-min(part, 1.0 - ROUNDING)), g))
    return [g for gain, g in sorted(gains, reverse=True)[:MOST] if gain > EVIDENCE]


def _left(rows: Rows, explained: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """σ² where some of the errors are explained."""
    return np.maximum(rows.energy - explained, ROUNDING * rows.energy) / rows.degrees
