"""Rows of a recording with the states projected out: the linearised problem in which only parameters are left.

With rows ``J = [J_x, J_p]`` the states follow the parameters by ``S = −H_xx⁻¹ J_xᵀJ_p``, and

    T = J_p + J_x S = (1 − J_x H_xx⁻¹ J_xᵀ) J_p

are the rows of variable projection (the paper's Section 3.7): ``TᵀT`` is the parameters' information and ``Tᵀe`` what
errors ``e`` of the residuals do to it. Everything about uncertainty follows from T and the residuals.

**Accuracy.** S comes from a factor of the normal matrix, whose condition is the square of J's. But ``J_xᵀT = 0`` makes
the information stationary in S: an error δS changes it by ``δSᵀ H_xx δS`` only, and what is left,
``G = J_xᵀT``, tells the correction ``−H_xx⁻¹G`` and its effect ``GᵀH_xx⁻¹G`` before it is made. It is repeated until
that effect is rounding.

**States that nothing observes** (a bead that spins freely) make H_xx singular. It is then factorised with a small
multiple of its diagonal, and the repetition is the proximal point method: it converges to the undamped T, because the
right-hand sides have no part along a direction that no row sees. Nothing of the damping stays in the result.

**Innovation scores.** ``T_kᵀ r_k`` with the final residuals r_k is not what step k told about the parameters: the
states at k have seen the future. With ``V_k(χ)`` the cost of the steps up to k, minimised over the states, the
differences of ``∂V_k/∂χ`` are the contributions of the innovations, which are independent of each other where the
model is right.
Past steps leave the next block of states with the information ``N = [J_xᵀJ_x]_past − P Pᵀ`` (P: panel of the factor)
and, at the estimate, with gradients ``c_T = [J_xᵀT]_past`` and ``c_r = [J_xᵀr]_past``, so that

    ½ ∂V_k/∂χ = Σ_{i ≤ k} T_iᵀ r_i − c_Tᵀ N⁻¹ c_r.

The second part telescopes: over the whole recording nothing is added.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from shadowfit.estimation import front

# Multiples of the diagonal that are tried, in turn, where the normal matrix of the states is singular. Leverages are
# off by about the rounding error divided by it, 1e-4 for the first.
RIDGES = (0.0, 1e-12, 1e-11, 1e-10, 1e-9)
# The projection is settled when the next correction changes no parameter's information by more than this.
SETTLED = 1e-10
# Corrections before it is taken as it is.
PASSES = 6
# Added to the diagonal of what the past knows of the states, relative to what its last steps contribute: directions
# that nothing has seen yet count as unknown.
UNKNOWN_YET = 1e-13


@dataclasses.dataclass(frozen=True)
class Projection:
    """Rows of one recording without its states, in the scaling of the rows (a residual of weight one has std σ₀)."""

    rows: Float[np.ndarray, "n m p"]
    """T of each step; zero where there is no residual."""
    residual: Float[np.ndarray, "n m"]
    """r."""
    start_rows: Float[np.ndarray, "s p"]
    """T of the rows of the first states."""
    start_residual: Float[np.ndarray, " s"]
    leverage: Float[np.ndarray, "n m"]
    """Share of each residual that the states take up, between 0 and 1; parameters not counted."""
    leverage_sum: Float[np.ndarray, "m m"]
    """``Σ_k J_x,k H_xx⁻¹ J_x,kᵀ`` over the steps."""
    scores: Float[np.ndarray, "blocks p"]
    """Contribution of each block of steps to ``Tᵀr``, by its innovations."""
    ridge: float
    """Multiple of the diagonal in the factor; zero where the states are all observed."""
    settled: bool
    """Whether the corrections have ended."""

    @property
    def information(self) -> Float[np.ndarray, "p p"]:
        """``TᵀT``."""
        flat = self.flat()
        return flat.T @ flat

    @property
    def gradient(self) -> Float[np.ndarray, " p"]:
        """``Tᵀr``."""
        return np.einsum("kmp,km->p", self.rows, self.residual) + self.start_rows.T @ self.start_residual

    def flat(self) -> Float[np.ndarray, "rows p"]:
        """All rows of T, those of the first states last."""
        steps, count, parameters = self.rows.shape  # there may be no parameters
        return np.concatenate([self.rows.reshape(steps * count, parameters), self.start_rows])


def factorise(normal: front.Normal, at_rest: Sequence[np.ndarray]) -> tuple[front.Factor, float]:
    """The undamped factor, or the one with the least damping that has one; and the multiple of the diagonal used.

    ``at_rest`` is the damping of unknowns that no row depends on, by chunks.
    """
    diagonals = [np.asarray(diagonal) for diagonal in normal.diagonals()]
    for ridge in RIDGES:
        damping = [still + ridge * diagonal for still, diagonal in zip(at_rest, diagonals, strict=True)]
        factor = front.factorise(normal, damping)
        reduced = factor.reduced()
        if reduced.ok and np.all(np.isfinite(reduced.matrix)):
            break
    return factor, ridge


def project(
    rows: Sequence[front.Rows], start: front.Rows, factor: front.Factor, steps: int, ridge: float = 0.0
) -> Projection:
    """Project the states out of the rows of one recording.

    Args:
        rows: in the factor's chunks. All of them are held at a time, which takes about as much memory as the factor.
        start: rows of the first states.
        factor: of the normal matrix of these rows, undamped or nearly so.
        steps: n; rows behind are padding.
        ridge: multiple of the diagonal in the factor.
    """
    follow = list(factor.sensitivities())
    for number in range(PASSES):
        first, gradient = _project_start(start, follow[0])
        found, gradients = [], []
        for index, chunk in enumerate(rows):
            after = follow[index + 1] if index + 1 < len(follow) else jnp.zeros_like(follow[index])
            part, own, gradient = _project_chunk(chunk, follow[index], after, steps - index * len(follow[0]), gradient)
            found.append(part)
            gradients.append(own)
        correction, effect = _solve(factor, gradients)
        information = sum(np.einsum("kmp,kmp->p", np.asarray(p), np.asarray(p)) for p in found) + np.sum(first**2, 0)
        settled = bool(np.all(effect <= SETTLED * information))
        if settled or number + 1 == PASSES:
            break
        follow = [own - change for own, change in zip(follow, correction, strict=True)]
    table = np.concatenate([np.asarray(part) for part in found])[:steps]
    knowledge = _knowledge(factor)
    leverages, sums, corrections, residuals, smooth = [], np.zeros(()), [], [], []
    for index, chunk in enumerate(rows):
        live = steps - index * len(follow[0])
        part = _innovate_chunk(chunk, found[index], factor.chunks[index], knowledge[index], live)
        leverages.append(np.asarray(part.leverage))
        sums = sums + np.asarray(part.leverage_sum)
        corrections.append(np.asarray(part.pending))
        smooth.append(np.asarray(part.smooth))
        residuals.append(np.asarray(chunk.residual))
    # Blocks behind the end are left out; what the last ones leave pending is nothing.
    blocks = -(-steps // (rows[0].states.shape[2] - 1))
    total = np.cumsum(np.concatenate(smooth), axis=0)[:blocks] - np.concatenate(corrections)[:blocks]
    total = total + np.asarray(first).T @ np.asarray(start.residual)
    total[-1] += np.concatenate(corrections)[blocks - 1]
    return Projection(
        table,
        np.concatenate(residuals)[:steps],
        np.asarray(first),
        np.asarray(start.residual),
        np.concatenate(leverages)[:steps],
        np.asarray(sums),
        np.diff(total, axis=0, prepend=0.0),
        ridge,
        settled,
    )


@jax.jit
def _project_start(start: front.Rows, follow: Float[Array, "steps b p"]) -> tuple[Array, Array]:
    """T of the start's rows, and what they leave in the gradients of the first nodes."""
    window = start.states.shape[1]
    rows = start.parameters + jnp.einsum("mwb,wbp->mp", start.states, follow[:window])
    return rows, jnp.einsum("mwb,mp->wbp", start.states, rows)


@jax.jit
def _project_chunk(
    rows: front.Rows,
    follow: Float[Array, "steps b p"],
    after: Float[Array, "steps b p"],
    live: Array,
    carried: Float[Array, "w-1 b p"],
) -> tuple[Float[Array, "steps m p"], Float[Array, "steps b p"], Float[Array, "w-1 b p"]]:
    """T of one chunk, ``J_xᵀT`` of its nodes, and what its last steps leave to the nodes of the next chunk."""
    steps, _, window, size = rows.states.shape
    is_step = (jnp.arange(steps) < live)[:, None, None]
    extended = jnp.concatenate([follow, after[: window - 1]])
    table = rows.parameters
    for i in range(window):
        table = table + jnp.einsum("kmb,kbp->kmp", rows.states[:, :, i], extended[i : i + steps])
    table = jnp.where(is_step, table, 0.0)
    gradient = jnp.zeros((steps + window - 1, size, table.shape[-1])).at[: window - 1].add(carried)
    for i in range(window):
        part = jnp.einsum("kmb,kmp->kbp", jnp.where(is_step, rows.states[:, :, i], 0.0), table)
        gradient = gradient.at[i : i + steps].add(part)
    return table, gradient[:steps], gradient[steps:]


def _solve(factor: front.Factor, gradients: list[Array]) -> tuple[list[Array], Float[np.ndarray, " p"]]:
    """``H_xx⁻¹G`` by chunks, and the diagonal of ``GᵀH_xx⁻¹G``."""
    block, columns = factor.chunks[0].lower.shape[-1], gradients[0].shape[-1]
    used, halfway, effect = jnp.zeros((block, columns)), [], np.zeros(columns)
    for chunk, gradient in zip(factor.chunks, gradients, strict=True):
        solved, used = _forward_chunk(chunk, gradient, used)
        halfway.append(solved)
        effect = effect + np.sum(np.asarray(solved) ** 2, axis=(0, 1))
    following, found = jnp.zeros((block, columns)), []
    for chunk, solved in zip(reversed(factor.chunks), reversed(halfway), strict=True):
        nodes, following = _backward_chunk(chunk, solved, following)
        found.append(nodes)
    return found[::-1], effect


@jax.jit
def _forward_chunk(chunk: front.ChunkFactor, gradient: Float[Array, "steps b p"], used: Array) -> tuple[Array, Array]:
    blocks, block, _ = chunk.lower.shape

    def substitute(used: Array, row: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        lower, to_next, right = row
        solved = jax.scipy.linalg.solve_triangular(lower, right - used, lower=True)
        return to_next @ solved, solved

    rows = (chunk.lower, chunk.panel[:, :block], gradient.reshape(blocks, block, -1))
    used, solved = lax.scan(substitute, used, rows)
    return solved, used


@jax.jit
def _backward_chunk(chunk: front.ChunkFactor, solved: Array, following: Array) -> tuple[Array, Array]:
    blocks, block, _ = chunk.lower.shape

    def substitute(following: Array, row: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        lower, to_next, solved = row
        step = jax.scipy.linalg.solve_triangular(lower, solved - to_next.T @ following, trans="T", lower=True)
        return step, step

    rows = (chunk.lower, chunk.panel[:, :block], solved)
    first, steps = lax.scan(substitute, following, rows, reverse=True)
    return steps.reshape(blocks * block // chunk.node_size, chunk.node_size, -1), first


def _knowledge(factor: front.Factor) -> list[Array]:
    """Joint covariance of each block of states and the next one, parameters fixed, by chunks: (blocks, 2B, 2B)."""
    block = factor.chunks[0].lower.shape[-1]
    following, found = jnp.zeros((block, block)), []
    for chunk in reversed(factor.chunks):
        joint, following = _knowledge_chunk(chunk, following)
        found.append(joint)
    return found[::-1]


@jax.jit
def _knowledge_chunk(chunk: front.ChunkFactor, following: Float[Array, "B B"]) -> tuple[Array, Array]:
    """``Σ_jj = L⁻ᵀ(1 + PᵀΣ'P)L⁻¹`` and ``Σ_j,j+1 = −L⁻ᵀPᵀΣ'`` with Σ' of the next block, backwards in time."""
    block = chunk.lower.shape[-1]

    def back(following: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        lower, to_next = row
        carried = to_next.T @ following
        middle = jnp.eye(block) + carried @ to_next
        solved = jax.scipy.linalg.solve_triangular(
            lower, jnp.concatenate([middle, carried], axis=1), trans="T", lower=True
        )
        own = jax.scipy.linalg.solve_triangular(lower, solved[:, :block].T, trans="T", lower=True)
        cross = -solved[:, block:]
        return own, jnp.block([[own, cross], [cross.T, following]])

    first, joint = lax.scan(back, following, (chunk.lower, chunk.panel[:, :block]), reverse=True)
    return joint, first


class _Innovations(eqx.Module):
    leverage: Float[Array, "steps m"]
    leverage_sum: Float[Array, "m m"]
    smooth: Float[Array, "blocks p"]
    """Sums of ``Tᵀr`` over the steps of a block."""
    pending: Float[Array, "blocks p"]
    """``c_Tᵀ N⁻¹ c_r`` after each block."""


@jax.jit
def _innovate_chunk(
    rows: front.Rows, table: Float[Array, "steps m p"], chunk: front.ChunkFactor, knowledge: Array, live: Array
) -> _Innovations:
    steps, m, window, size = rows.states.shape
    group = window - 1
    blocks, block = steps // group, group * size
    is_step = jnp.arange(steps) < live
    states = jnp.where(is_step[:, None, None, None], rows.states, 0.0).reshape(blocks, group, m, window, size)
    residual = jnp.where(is_step[:, None], rows.residual, 0.0)
    # Step i of a group covers nodes i … i+W−1 among the 2(W−1) nodes of two blocks.
    placed = jnp.stack(
        [
            jnp.pad(states[:, i], ((0, 0), (0, 0), (i, group - 1 - i), (0, 0))).reshape(blocks, m, 2 * block)
            for i in range(group)
        ],
        axis=1,
    )
    taken = jnp.einsum("jgmx,jxy,jgny->jgmn", placed, knowledge, placed, optimize="optimal")
    leverage = jnp.diagonal(taken, axis1=2, axis2=3).reshape(steps, m)

    own = table.reshape(blocks, group, m, -1)
    seen = residual.reshape(blocks, group, m)
    ahead = placed[..., block:]
    past = jnp.einsum("jgmx,jgmy->jxy", ahead, ahead)
    to_next = chunk.panel[:, :block]
    known = past - jnp.einsum("jxi,jyi->jxy", to_next, to_next)
    floor = UNKNOWN_YET * jnp.diagonal(past, axis1=1, axis2=2)
    # Nothing at all reaches the nodes behind the end.
    known = known + jnp.eye(block) * jnp.where(floor > 0.0, floor, 1.0)[:, :, None]
    by_table, by_residual = jnp.einsum("jgmx,jgmp->jxp", ahead, own), jnp.einsum("jgmx,jgm->jx", ahead, seen)

    def solve(_: None, row: tuple[Array, Array, Array]) -> tuple[None, Array]:
        matrix, left, right = row
        lower = lax.linalg.cholesky(matrix, symmetrize_input=False)
        both = jax.scipy.linalg.solve_triangular(lower, jnp.concatenate([left, right[:, None]], axis=1), lower=True)
        return None, both[:, :-1].T @ both[:, -1]

    _, pending = lax.scan(solve, None, (known, by_table, by_residual))
    return _Innovations(
        leverage, taken.sum(axis=(0, 1)), jnp.einsum("jgmp,jgm->jp", own, seen), jnp.nan_to_num(pending)
    )
