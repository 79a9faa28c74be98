"""Mixed linear complementarity problems (MLCP): some unknowns are free, the others complementary.

    [S_AA  S_AB] [λ]   [b_A]   [0]
    [          ] [ ] + [   ] = [ ],    0 ≤ z ⟂ w ≥ 0
    [S_BA  S_BB] [z]   [b_B]   [w]

The free unknowns λ are eliminated with a factorisation of ``S_AA`` that the caller provides. This leaves the LCP

    H z + q = w,   H = S_BB − S_BA S_AA⁻¹ S_AB,   q = b_B − S_BA S_AA⁻¹ b_A

and afterwards ``λ = −S_AA⁻¹ (b_A + S_AB z)``. ``S_BA`` need not be the transpose of ``S_AB``, nor ``S_BB``
symmetric: the row that limits friction has no symmetric partner.

Derivatives follow from those of the LCP and of the linear solve, in forward and in reverse mode.
"""

from __future__ import annotations

from typing import Protocol

from shadowfit.arrays import Array, Bool, Float, Int
from shadowfit.complementarity.lcp import LcpShapeError, solve_lcp
from shadowfit.complementarity.status import Status
from shadowfit.lazy_jax import jnp
from shadowfit.pytrees import PyTree


class LinearSolver(Protocol):
    """A factored matrix, such as `block_ldl.Factor` and `dense.DenseFactor`."""

    def solve(self, rhs: Float[Array, "n *k"]) -> Float[Array, "n *k"]:
        """The inverse times one right-hand side ``[n]`` or several ``[n, k]``."""
        ...


class MlcpSolution(PyTree):
    """Result of `solve_mlcp`."""

    free: Float[Array, " a"]
    """λ."""
    complementary: Float[Array, " b"]
    """z ≥ 0."""
    slack: Float[Array, " b"]
    """w ≥ 0; exactly zero where z > 0."""
    active: Bool[Array, " b"]
    """Indices with ``z > 0``: the guess for the next, similar problem."""
    status: Int[Array, ""]
    """A value of `Status`; never solved if a free unknown is not finite."""
    pivots: Int[Array, ""]
    """Exchanges made by Lemke's method; 0 if the guess was (nearly) right."""


def solve_mlcp(
    equality: LinearSolver,
    S_AB: Float[Array, "a b"],
    S_BA: Float[Array, "b a"],
    S_BB: Float[Array, "b b"],
    b_A: Float[Array, " a"],
    b_B: Float[Array, " b"],
    guess: Bool[Array, " b"] | None = None,
    max_pivots: int | Int[Array, ""] | None = None,
) -> MlcpSolution:
    """Solve the mixed problem at the head of this file; differentiable in all matrices and vectors.

    Args:
        equality: ``S_AA``, factored. A nonsymmetric one goes through `dense.factor`.
        guess: indices of z expected to be positive.
        max_pivots: limit for Lemke's method, see `solve_lcp`.
    """
    a, b = b_A.shape[0], b_B.shape[0]
    if S_AB.shape != (a, b) or S_BA.shape != (b, a) or S_BB.shape != (b, b):
        shapes = f"S_AB {S_AB.shape}, S_BA {S_BA.shape}, S_BB {S_BB.shape}"
        raise LcpShapeError(f"{shapes} do not fit b_A {b_A.shape} and b_B {b_B.shape}")
    # One call for the matrix and the vector: small solves cost by the call.
    eliminated = equality.solve(jnp.concatenate([S_AB, b_A[:, None]], axis=1))  # [a, b+1]
    response, offset = eliminated[:, :b], eliminated[:, b]
    lcp = solve_lcp(S_BB - S_BA @ response, b_B - S_BA @ offset, guess, max_pivots)
    free = -(offset + response @ lcp.z)
    status = jnp.where(jnp.all(jnp.isfinite(free)), lcp.status, Status.INACCURATE).astype(lcp.status.dtype)
    return MlcpSolution(free, lcp.z, lcp.w, lcp.active, status, lcp.pivots)
