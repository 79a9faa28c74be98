"""Linear complementarity problems (LCP), by active sets with Lemke's method to fall back on.

    H z + q = w,   0 ≤ z ⟂ w ≥ 0

``H`` need be neither symmetric nor definite. A solution is known once its *active set* is: on it ``w = 0`` is a
linear system for ``z``, off it ``z = 0``. The search goes from cheap to sure:

1. the caller's guess of the active set (in a simulation that of the step before), then a few Newton steps on
   ``min(z, w) = 0``, each of which drops active indices with ``z < 0`` and adds passive ones with ``w < 0``;
2. Lemke's method, which finds a solution or reports a ray;
3. the active set found is solved for once more with the original matrix, which removes the rounding errors of
   the pivoting. Only a verified solution is called solved.

Loops end at once when there is nothing to do: in a batch nobody pays for Lemke's method if all guesses work.

**Derivatives** hold the active set α fixed. With ``C`` the matrix ``H`` restricted to active rows and columns
and the identity elsewhere, and ``1_α ⊙`` zeroing the passive entries,

    C ż = −1_α ⊙ (q̇ + Ḣ z),   ẇ = (1 − 1_α) ⊙ (q̇ + Ḣ z + H ż)

which is the paper's ``[−H_α  I_β] ẏ = q̇ + Ḣ z``, ``ż = 1_α ⊙ ẏ``, solved for ż first. It is linear in the
tangents and can be transposed, hence serves both modes. The search itself is never differentiated.
"""

from __future__ import annotations

from typing import NamedTuple

from shadowfit.arrays import Array, Bool, Float, Int
from shadowfit.complementarity import dense, lemke, scaling
from shadowfit.complementarity.status import Status
from shadowfit.errors import ShadowfitError
from shadowfit.lazy_jax import at_first_call, jnp, lax, with_jvp
from shadowfit.pytrees import PyTree
from shadowfit.trees import map_leaves

SOLVED_TOLERANCE = 1e-9
"""Largest `violation` of a solution that is called solved."""
ACCEPT_TOLERANCE = 1e-12
"""Largest `violation` at which the search stops early. Stable solves reach 1e-15; what lies between the two
tolerances is ill-conditioned, and gets its chance with Lemke's method before the best point found is taken."""
CANCELLATION = 1e3
"""How much larger than ``q`` the terms of ``H z`` may be before the violation is measured against ``q``. Without this,
a huge ``z`` that rounding errors made out of a singular matrix would pass for a solution."""
NEWTON_STEPS = 4
"""Changes of the active set before Lemke's method takes over."""


class LcpShapeError(ShadowfitError):
    """Matrices and vectors of a complementarity problem whose shapes do not fit together."""


class LcpSolution(PyTree):
    """Result of `solve_lcp`."""

    z: Float[Array, " n"]
    """Unknowns; the best found if the status is not `Status.SOLVED`."""
    w: Float[Array, " n"]
    """Slacks ``H z + q``; exactly zero on the active set of a solution."""
    active: Bool[Array, " n"]
    """The active set: the guess for the next, similar problem. Off it ``z = 0``."""
    status: Int[Array, ""]
    """A value of `Status`."""
    pivots: Int[Array, ""]
    """Exchanges made by Lemke's method; 0 if guess and Newton steps sufficed."""


def solve_lcp(
    H: Float[Array, "n n"],
    q: Float[Array, " n"],
    guess: Bool[Array, " n"] | None = None,
    max_pivots: int | Int[Array, ""] | None = None,
) -> LcpSolution:
    """Find ``z`` with ``H z + q = w``, ``0 ≤ z ⟂ w ≥ 0``; differentiable in ``H`` and ``q``.

    Args:
        H: matrix of the problem.
        q: slacks at ``z = 0``.
        guess: the active set expected; empty if not given.
        max_pivots: limit for Lemke's method, ``20 (n + 1)`` if not given.
    """
    n = q.shape[0] if q.ndim == 1 else -1
    if H.shape != (n, n) or (guess is not None and guess.shape != (n,)):
        given = f"H {H.shape}, q {q.shape}, guess {None if guess is None else guess.shape}"
        raise LcpShapeError(f"shapes do not fit: {given}; expected (n, n), (n,) and (n,)")
    if n == 0:
        solved = jnp.full((), Status.SOLVED, jnp.int32)
        return LcpSolution(q, q, jnp.zeros(0, bool), solved, jnp.zeros((), jnp.int32))
    guess = jnp.zeros(n, bool) if guess is None else guess
    max_pivots = 20 * (n + 1) if max_pivots is None else max_pivots
    solution = _search(lax.stop_gradient(H), lax.stop_gradient(q), guess, max_pivots)
    z, w = _implicit(H, q, solution.z, solution.w, solution.active)
    return LcpSolution(z, w, solution.active, solution.status, solution.pivots)


def violation(H: Float[Array, "n n"], q: Float[Array, " n"], z: Float[Array, " n"]) -> Float[Array, ""]:
    """How far ``z ≥ 0`` is from a solution; infinite if anything is NaN.

        max_i e_i / max_i s_i,   e_i = |w_i| where z_i > 0 and max(−w_i, 0) elsewhere,   s_i = |q_i| + Σ_j |H_ij| z_j

    with each row in the units of `scaling.equilibrate`, since rows may be velocities, impulses or pure numbers.
    The scale is not taken larger than `CANCELLATION` times the largest |q_i|.
    """
    rows, columns = scaling.equilibrate(H)
    return _violation(rows[:, None] * H * columns, rows * q, z / columns, z > 0)


def _violation(
    H: Float[Array, "n n"], q: Float[Array, " n"], z: Float[Array, " n"], active: Bool[Array, " n"]
) -> Float[Array, ""]:
    """`violation` of a problem that is in its own units already, with ``w = 0`` required on the active set.

    The latter matters for derivatives: otherwise an active index with ``z < 0`` would pass once z is set to zero.
    """
    w = _times(H, z) + q
    offset = jnp.abs(q)
    scale = jnp.minimum(jnp.max(_times(jnp.abs(H), z) + offset), CANCELLATION * jnp.max(offset))
    excess = jnp.max(jnp.where(active, jnp.abs(w), jnp.maximum(-w, 0.0)))
    relative = excess / jnp.where(scale > 0, scale, 1.0)
    return jnp.where(jnp.isfinite(relative), relative, jnp.inf)


def _times(matrix: Float[Array, "n n"], vector: Float[Array, " n"]) -> Float[Array, " n"]:
    """Product of a small matrix and a vector, which the compiler can merge with what is around it (unlike ``@``)."""
    return jnp.sum(matrix * vector, axis=1)


class _Candidate(NamedTuple):
    """A point of the search, the active set it was solved for, and how good it is."""

    z: Float[Array, " n"]
    active: Bool[Array, " n"]
    violation: Float[Array, ""]


class _Search(NamedTuple):
    """State of the search, which has two rounds: from the guess, and from the set that Lemke's method finds."""

    best: _Candidate
    round: Int[Array, ""]
    ending: Int[Array, ""]
    pivots: Int[Array, ""]


def _search(
    H: Float[Array, "n n"], q: Float[Array, " n"], guess: Bool[Array, " n"], max_pivots: int | Int[Array, ""]
) -> LcpSolution:
    """Guess and Newton steps, Lemke's method if they fail, verification; all in equilibrated units."""
    rows, columns = scaling.equilibrate(H)
    H, q = rows[:, None] * H * columns, rows * q

    def unfinished(state: _Search) -> Bool[Array, ""]:
        return (state.round < 2) & (state.best.violation > ACCEPT_TOLERANCE)

    def next_round(state: _Search) -> _Search:
        # The limit depends on the round so that the compiler cannot move the pivoting out of this loop.
        end = lemke.find_active_set(H, q, jnp.where(state.round == 0, 0, max_pivots))
        candidate = _newton(H, q, jnp.where(state.round == 0, guess, end.active))
        return _Search(_better(candidate, state.best), state.round + 1, end.status, end.pivots)

    zero = jnp.zeros((), jnp.int32)
    best, _, ending, pivots = lax.while_loop(unfinished, next_round, _Search(_nowhere(q), zero, zero, zero))

    solved = best.violation <= SOLVED_TOLERANCE
    unverified = (ending == Status.SOLVED) | ~jnp.isfinite(best.violation)
    failure = jnp.where(unverified, Status.INACCURATE, ending)
    status = jnp.where(solved, Status.SOLVED, failure).astype(jnp.int32)
    w = _times(H, best.z) + q
    w = jnp.where(solved, jnp.where(best.active, 0.0, jnp.maximum(w, 0.0)), w)
    return LcpSolution(columns * best.z, w / rows, best.active, status, pivots)


def _nowhere(q: Float[Array, " n"]) -> _Candidate:
    """Worse than any point."""
    return _Candidate(jnp.zeros_like(q), jnp.zeros(q.shape, bool), jnp.full((), jnp.inf, q.dtype))


def _better(first: _Candidate, second: _Candidate) -> _Candidate:
    """The candidate with the smaller violation; the first one if they are equal."""
    return map_leaves(lambda a, b: jnp.where(second.violation < first.violation, b, a), first, second)


class _Iterate(NamedTuple):
    """State of the Newton steps."""

    point: _Candidate
    repaired: Bool[Array, " n"]
    """Active set to solve for next."""
    solves: Int[Array, ""]


def _newton(H: Float[Array, "n n"], q: Float[Array, " n"], active: Bool[Array, " n"]) -> _Candidate:
    """Solve for the active set; while that is no solution, repair the set and try again, a few times."""

    def unfinished(state: _Iterate) -> Bool[Array, ""]:
        changed = jnp.any(state.repaired != state.point.active) | (state.solves == 0)
        return changed & (state.solves <= NEWTON_STEPS) & (state.point.violation > ACCEPT_TOLERANCE)

    def improve(state: _Iterate) -> _Iterate:
        active = state.repaired
        z = _on_active_set(H, active, -q)
        repaired = jnp.where(active, z > 0, _times(H, z) + q < 0)
        feasible = jnp.maximum(z, 0.0)
        point = _Candidate(feasible, active, _violation(H, q, feasible, active))
        return _Iterate(point, repaired, state.solves + 1)

    return lax.while_loop(unfinished, improve, _Iterate(_nowhere(q), active, jnp.zeros((), jnp.int32))).point


def _on_active_set(H: Float[Array, "n n"], active: Bool[Array, " n"], rhs: Float[Array, " n"]) -> Float[Array, " n"]:
    """``x`` with ``H x = rhs`` on active rows and ``x = 0`` on passive ones; linear in rhs."""
    restricted = jnp.where(active[:, None] & active, H, jnp.diag(jnp.where(active, 0.0, 1.0)))
    return dense.factor(restricted).solve(jnp.where(active, rhs, 0.0))


@at_first_call(lambda function: with_jvp(function, _implicit_jvp))
def _implicit(
    H: Float[Array, "n n"],
    q: Float[Array, " n"],
    z: Float[Array, " n"],
    w: Float[Array, " n"],
    active: Bool[Array, " n"],
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """``z`` and ``w`` unchanged; their derivatives are those of the solution for a fixed active set."""
    del H, q, active
    return z, w


def _implicit_jvp(
    primals: tuple[Array, ...], tangents: tuple[Array, ...]
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    H, q, z, w, active = primals
    H_dot, q_dot, *_ = tangents
    z, w = _implicit(H, q, z, w, active)
    at_fixed_z = q_dot + H_dot @ z
    z_dot = _on_active_set(H, active, -at_fixed_z)
    w_dot = jnp.where(active, 0.0, at_fixed_z + H @ z_dot)
    return (z, w), (z_dot, w_dot)
