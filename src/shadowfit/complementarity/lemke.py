"""Lemke's complementary pivoting for linear complementarity problems.

    H z + q + d z₀ = w,   0 ≤ z ⟂ w ≥ 0,   z₀ ≥ 0

With a *cover* ``d > 0`` and ``z₀`` large enough, ``z = 0`` satisfies this. From there variables are exchanged, one
pair at a time, so that complementarity holds throughout, until ``z₀`` is zero and the problem without it is solved,
or until the variable that enters can grow without bound (a *secondary ray*). For the copositive matrices of
contact and friction a ray means that there is no solution. Ties are broken lexicographically, so that no
set of variables comes back [Cottle, Pang, Stone, The Linear Complementarity Problem, sections 4.4 and 4.9;
Murty, Linear Complementarity, Linear and Nonlinear Programming, chapter 2].

Shapes are fixed and all loops are `while_loop`: under ``vmap`` a branch is computed for everybody, whereas a loop
runs only as long as somebody needs it.
"""

from __future__ import annotations

from typing import NamedTuple

from shadowfit.arrays import Array, Bool, Float, Int
from shadowfit.complementarity.status import Status
from shadowfit.lazy_jax import jax, jnp, lax
from shadowfit.trees import map_leaves

PIVOT_TOLERANCE = 1e-11
"""Smallest pivot, relative to the largest entry of its row or column, whichever is smaller; below, it may be a
rounding error. At 1e-12 some problems without a solution were pivoted into one of size 1e12."""
TIE_TOLERANCE = 1e-12
"""Basic variables are tied if they reach zero together to within this fraction of the largest of them and of the
rounding errors of the step. At 1e-14 some ill-conditioned, degenerate problems with a solution ended on a ray."""


class Ending(NamedTuple):
    """Where the pivoting stopped."""

    active: Bool[Array, " n"]
    """Indices of basic ``z``; unless it stopped early, ``w = 0`` on them is a regular system for these ``z``."""
    status: Int[Array, ""]
    """A `Status`; `SOLVED` says that ``z₀`` became zero, not that the solution was verified."""
    pivots: Int[Array, ""]
    """Number of exchanges."""


class _Tableau(NamedTuple):
    """Basic variables as affine functions of the others: ``x_basic = table[:, :-1] x_others + table[:, -1]``.

    Variables are numbered ``w_i: i``, ``z_i: n + i``, ``z₀: 2n``.
    """

    table: Float[Array, "n n+2"]
    basic: Int[Array, " n"]
    others: Int[Array, " n+1"]


class _Progress(NamedTuple):
    """State of the pivoting loop."""

    tableau: _Tableau
    column: Int[Array, ""]
    """Column of the variable that enters next."""
    status: Int[Array, ""]
    """`ITERATION_LIMIT` while there is something left to do."""
    pivots: Int[Array, ""]


def find_active_set(H: Float[Array, "n n"], q: Float[Array, " n"], max_pivots: int | Int[Array, ""]) -> Ending:
    """Run Lemke's method from ``z = 0`` for ``H z + q = w``, ``0 ≤ z ⟂ w ≥ 0``, with n ≥ 1.

    The tolerances expect entries of ``H`` near 1, see `scaling.equilibrate`; the size of ``q`` does not matter.
    """
    n = q.shape[0]
    size = jnp.max(jnp.abs(q))
    tableau = _tableau(H, q / jnp.where(size > 0, size, 1.0))
    status = jnp.where(jnp.all(q >= 0), Status.SOLVED, Status.ITERATION_LIMIT).astype(jnp.int32)
    start = _Progress(tableau, jnp.asarray(n), status, jnp.zeros((), jnp.int32))

    def unfinished(state: _Progress) -> Bool[Array, ""]:
        return (state.status == Status.ITERATION_LIMIT) & (state.pivots < max_pivots)

    end = lax.while_loop(unfinished, _exchange, start)
    active = jnp.any(end.tableau.basic == tableau.others[:n, None], axis=1)
    return Ending(active, end.status, end.pivots)


def _tableau(H: Float[Array, "n n"], q: Float[Array, " n"]) -> _Tableau:
    """``w`` in terms of ``z`` and ``z₀``, with a cover of ones."""
    n = q.shape[0]
    variables = jnp.arange(2 * n + 1, dtype=jnp.int32)
    table = jnp.concatenate([H, jnp.ones((n, 1), H.dtype), q[:, None]], axis=1)
    return _Tableau(table, variables[:n], variables[n:])


def _exchange(state: _Progress) -> _Progress:
    """Exchange the entering variable with a basic one, whose complement enters next.

    First ``z₀`` enters and makes all rows non-negative; afterwards the entering variable grows until a basic one
    reaches zero.
    """
    tableau = state.tableau
    n = tableau.table.shape[0]
    first = state.pivots == 0
    reached, bounded = _ratio_test(tableau, state.column)
    row = jnp.where(first, _most_negative(tableau), reached)
    bounded = first | bounded
    leaving = tableau.basic[row]
    exchanged = _pivot(tableau, row, state.column)
    exchanged = map_leaves(lambda new, old: jnp.where(bounded, new, old), exchanged, tableau)
    status = jnp.where(leaving == 2 * n, Status.SOLVED, Status.ITERATION_LIMIT)
    status = jnp.where(bounded, status, Status.RAY).astype(jnp.int32)
    return _Progress(exchanged, _column_of(exchanged, _complement(leaving, n)), status, state.pivots + bounded)


def _most_negative(tableau: _Tableau) -> Int[Array, ""]:
    """Row with the smallest constant; of equal ones the last, which is smallest lexicographically."""
    constant = tableau.table[:, -1]
    return constant.shape[0] - 1 - jnp.argmin(constant[::-1])


def _complement(variable: Int[Array, ""], n: int) -> Int[Array, ""]:
    """``z_i`` for ``w_i`` and the other way round."""
    return (variable + n) % (2 * n)


def _column_of(tableau: _Tableau, variable: Int[Array, ""]) -> Int[Array, ""]:
    """Column of a variable that is not basic."""
    return jnp.argmax(tableau.others == variable)


def _pivot(tableau: _Tableau, row: Int[Array, ""], column: Int[Array, ""]) -> _Tableau:
    """Exchange the basic variable of a row with the variable of a column."""
    table, basic, others = tableau
    in_row = jnp.arange(table.shape[0]) == row
    in_column = jnp.arange(table.shape[1]) == column
    entering = jnp.where(in_column, 1.0, -table[row]) / table[row, column]  # the row, solved for it
    substituted = jnp.where(in_column, 0.0, table) + table[:, column][:, None] * entering
    return _Tableau(
        jnp.where(in_row[:, None], entering, substituted),
        jnp.where(in_row, others[column], basic),
        jnp.where(in_column[:-1], basic[row], others),
    )


def _ratio_test(tableau: _Tableau, column: Int[Array, ""]) -> tuple[Int[Array, ""], Bool[Array, ""]]:
    """Row of the basic variable that is first to reach zero as the column's grows, and whether any does."""
    table, basic, _ = tableau
    n = table.shape[0]
    slope = table[:, column]
    size = jnp.abs(table[:, :-1])
    slope_size = jnp.minimum(jnp.max(size, axis=1), jnp.max(size[:, column]))
    falling = slope < -PIVOT_TOLERANCE * slope_size
    value = jnp.maximum(table[:, -1], 0.0)
    step = jnp.min(jnp.where(falling, value / jnp.where(falling, -slope, 1.0), jnp.inf))
    left = value + step * slope
    tied = falling & (left <= TIE_TOLERANCE * (jnp.max(value) + step * slope_size))
    artificial = tied & (basic == 2 * n)  # z₀ leaves as soon as it can: that is the solution
    tied = jnp.where(jnp.any(artificial), artificial, tied)
    tied = _lexicographic(tableau, jnp.where(falling, -slope, 1.0), tied)
    return jnp.argmax(jnp.where(tied, -slope, -jnp.inf)), jnp.any(falling)


def _lexicographic(tableau: _Tableau, speed: Float[Array, " n"], tied: Bool[Array, " n"]) -> Bool[Array, " n"]:
    """Of tied rows, those that reach zero first when ``ε^k`` is added to ``q_k`` for a vanishing ε.

    The coefficient of ``ε^k`` in the rows is that of ``−w_k`` if ``w_k`` is not basic, and otherwise 1 in the
    row of ``w_k``. The speed is that at which a row's variable falls.
    """
    n = speed.shape[0]

    def undecided(state: tuple[Array, Array]) -> Bool[Array, ""]:
        tied, k = state
        return (jnp.sum(tied) > 1) & (k < n)

    def compare(state: tuple[Array, jax.Array]) -> tuple[Array, jax.Array]:
        tied, k = state
        in_column = tableau.others == k
        from_column = -tableau.table[:, jnp.argmax(in_column)]
        from_row = (tableau.basic == k).astype(speed.dtype)
        ratio = jnp.where(jnp.any(in_column), from_column, from_row) / speed
        ratio = jnp.where(tied, ratio, jnp.inf)
        smallest = jnp.min(ratio)
        return tied & (ratio <= smallest + TIE_TOLERANCE * jnp.maximum(jnp.abs(smallest), 1.0)), k + 1

    return lax.while_loop(undecided, compare, (tied, jnp.zeros((), jnp.int32)))[0]
