"""Errors that are white but for a few unknown functions: how large are these, and which of them are there?

Rows r of a linear problem with parameters p, their derivatives T, are taken to be

    r = −T δp − Σ_g Z_g c_g + e,      c_g ~ N(0, s_g²),   e ~ N(0, σ²),

with groups g of columns Z_g (a joint's missing force as a function of its speed, say) whose sizes s_g are unknown. With
the parameters integrated out and ``θ_g = s_g²/σ²``, Θ their diagonal over all columns, the likelihood is

    −2 log L = ν log σ̂² + log det(1 + Θ½ M Θ½),      σ̂² = (y − bᵀ K b)/ν,     K = (M + Θ⁻¹)⁻¹,

with ``M = Zᵀ(1 − P)Z``, ``b = Zᵀ(1 − P)r``, ``y = rᵀ(1 − P)r`` and P the projection on T: restricted maximum likelihood
of variance components. Groups are taken in one after another, the one that gains most first, as long as −2 log L falls
by more than chance would make it. What is not there has the size zero.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

# −2 log L must fall by this for a group to be taken in: by chance, in one of a thousand groups that are not there.
EVIDENCE = 11.0
# Values of log10 θ that are tried, relative to where a group's columns are as large as the errors; then finer ones.
# (Further up, products of columns that hardly differ are rounding.)
COARSE, FINE = np.arange(-4.0, 9.5, 1.0), np.array([-0.6, -0.3, 0.0, 0.3, 0.6])
# Groups whose sizes are looked for at a time: those that would gain most.
MOST = 3
# Part of the errors that rounding leaves where functions explain them entirely.
ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True)
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


@dataclasses.dataclass(frozen=True)
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


def triangle(tables: Iterable[Float[np.ndarray, "n a"]]) -> Float[np.ndarray, "a a"]:
    """R of the rows of several tables, one below the other: orthogonal turns keep what products of columns lose."""
    stacked = np.zeros((0, 0))
    for table in tables:
        stacked = np.asarray(np.linalg.qr(np.concatenate([stacked, table]) if stacked.size else table, mode="r"))
    return stacked


def projected(
    triangle: Float[np.ndarray, "a a"],
    parameters: int,
    degrees: float,
    groups: tuple[tuple[int, ...], ...],
) -> Rows:
    """Rows without the parameters, from the triangle of [T, Z, r]; groups are numbered within Z."""
    columns = triangle[parameters:, parameters:-1]
    rest = triangle[parameters:, -1]
    return Rows(columns.T @ columns, columns.T @ rest, float(rest @ rest), degrees, groups)


def chosen(rows: Rows) -> Sizes:
    """The sizes of the groups that the rows ask for."""
    ratio, gain = np.zeros(len(rows.groups)), np.zeros(len(rows.groups))
    best = without = _deviance(rows, ratio)
    while True:
        tried = [(*_scanned(rows, ratio, g), g) for g in _promising(rows, ratio)]
        if not tried:
            break
        value, size, g = min(tried)
        if not best - value > EVIDENCE:
            break
        ratio[g], gain[g], best = size, best - value, value
        for other in np.flatnonzero(ratio > 0.0).tolist():
            best, ratio[other] = _around(rows, ratio, other, ratio[other])
    return Sizes(ratio, gain, _variance(rows, ratio), without - best)


def _promising(rows: Rows, ratio: Float[np.ndarray, " g"]) -> list[int]:
    """Groups that would gain most, without a prior; none that would not gain enough."""
    columns, root, matrix = _scaled(rows, ratio)
    across = root[:, None] * rows.squares[columns]
    inner = np.linalg.solve(matrix, np.column_stack([across, root * rows.products[columns]]))
    squares, products = rows.squares - across.T @ inner[:, :-1], rows.products - across.T @ inner[:, -1]
    variance, gains = _variance(rows, ratio), []
    for g in np.flatnonzero(ratio == 0.0).tolist():
        group = list(rows.groups[g])
        size = np.sqrt(np.maximum(np.diagonal(squares)[group], np.finfo(float).tiny))
        values, vectors = np.linalg.eigh(squares[np.ix_(group, group)] / np.outer(size, size))
        along = vectors.T @ (products[group] / size)
        seen = values > ROUNDING
        part = float(np.sum(along[seen] ** 2 / values[seen])) / (rows.degrees * variance)
        gains.append((-rows.degrees * np.log1p(-min(part, 1.0 - ROUNDING)), g))
    return [g for gain, g in sorted(gains, reverse=True)[:MOST] if gain > EVIDENCE]


def _scanned(rows: Rows, ratio: Float[np.ndarray, " g"], g: int) -> tuple[float, float]:
    """Least −2 log L over the size of one group, and the size."""
    scale = np.mean(np.diagonal(rows.squares)[list(rows.groups[g])])
    if not scale > 0.0:
        return np.inf, 0.0
    coarse = min(_with(rows, ratio, g, 10.0**exponent / scale) for exponent in COARSE)
    return _around(rows, ratio, g, coarse[1])


def _around(rows: Rows, ratio: Float[np.ndarray, " g"], g: int, size: float) -> tuple[float, float]:
    """The same among sizes near one."""
    return min(_with(rows, ratio, g, size * 10.0**exponent) for exponent in FINE)


def _with(rows: Rows, ratio: Float[np.ndarray, " g"], g: int, size: float) -> tuple[float, float]:
    here = ratio.copy()
    here[g] = size
    return _deviance(rows, here), size


def _scaled(rows: Rows, ratio: Float[np.ndarray, " g"]) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Columns of the groups that are there, Θ½, and 1 + Θ½ M Θ½ among them."""
    there = [g for g in range(len(rows.groups)) if ratio[g] > 0.0]
    columns = [c for g in there for c in rows.groups[g]]
    root = np.sqrt(np.repeat([ratio[g] for g in there], [len(rows.groups[g]) for g in there]))
    return columns, root, np.eye(len(columns)) + root[:, None] * rows.squares[np.ix_(columns, columns)] * root


def _variance(rows: Rows, ratio: Float[np.ndarray, " g"]) -> float:
    """σ²."""
    columns, root, matrix = _scaled(rows, ratio)
    right = root * rows.products[columns]
    return _left(rows, float(right @ np.linalg.solve(matrix, right)) if columns else 0.0)


def _left(rows: Rows, explained: float) -> float:
    return max(rows.energy - explained, ROUNDING * rows.energy) / rows.degrees


def _deviance(rows: Rows, ratio: Float[np.ndarray, " g"]) -> float:
    columns, root, matrix = _scaled(rows, ratio)
    try:
        factor = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:  # rounding of columns that hardly differ, at sizes that no data ask for
        return np.inf
    explained = float(np.sum(np.linalg.solve(factor, root * rows.products[columns]) ** 2)) if columns else 0.0
    return float(rows.degrees * np.log(_left(rows, explained)) + 2.0 * np.sum(np.log(np.diagonal(factor))))
