"""Sparse normal equations of a trajectory: the states are eliminated in time order, the parameters remain.

A recording has nodes k = 0 … N−1 (the states, b unknowns each) and p parameters. Step k couples the W nodes
k … k+W−1 and the parameters, so N = n + W − 1 for n steps. With the weighted rows ``J`` and residuals ``r`` of all
steps and a diagonal damping ``D``, a step of the least squares method minimises

    ‖J δ + r‖² + δᵀ D δ,     (JᵀJ + D) δ = −Jᵀ r.

W − 1 consecutive nodes form a *block* of B = (W−1) b unknowns. A step then couples no more than two neighbouring
blocks, whatever W is, and the normal matrix is block tridiagonal with a border, the *tail*: p parameters and the
gradient, t = p + 1 rows. Block column j consists of its pivot ``A_j`` and of ``C_j`` below (next block, then tail).
Elimination hands a Schur complement ``S`` on the next block and the tail from block to block,

    A_j + D_j − S[next] = L_j L_jᵀ,     P_j = (C_j − (0, S[tail])) L_j⁻ᵀ,     S ← P_j P_j[next]ᵀ,

and ``corner − Σ P_j[tail] P_j[tail]ᵀ`` is left for the parameters: their quadratic model, minimised over all states.
Its solution is carried back in time by ``L_jᵀ δ_j = −P_jᵀ (δ_{j+1}, δ_parameters, 1)``.

Work is sorted by how often it happens: `assemble` once per linearisation (its rows may come from a generator, so
that the Jacobian is never held as a whole), `factorise` once per damping, `Factor.states` once per parameter step.
Time is cut into chunks of one size, each a call of the same compiled function, so that a recording of another
length compiles nothing. The nodes that fill up the last chunk obey ``1·δ = 0`` and stay exactly zero.

Measured with n = 1000, b = 12, p = 13, m = 14, W = 3 in chunks of 252 on two busy cores: assembly 4–7 ms, elimination
5–7 ms, back-substitution 1.5–2 ms, covariances 8 ms; compiling the first three takes 0.9 s. Their sum grows from 15 µs
per step to 21 µs at n = 30 000, where the factor no longer fits the cache. Tried and dropped: single nodes with a front
that moves along (8 µs a node; blocks take 5, also because the tail's corner is summed after the loop), blocks twice as
large, an unrolled loop, outer products written out instead of a matrix product, ``JᵀJ`` inside the loop, and two parts
of the recording side by side, which gains nothing because the time goes into arithmetic, not into calls.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, ArrayLike, Float, Int

from shadowfit.errors import ShadowfitError

ByChunks = tuple[Array, ...]
"""One array per chunk, its first axis the nodes of the chunk; padding included."""


class ChunkError(ShadowfitError):
    """Chunks of rows that do not fit their window or the number of nodes."""


class Rows(eqx.Module):
    """Linearised residuals of one chunk of steps, multiplied by the square roots of their weights.

    A missing residual is a row of zeros. Steps beyond the end of the recording may hold anything.
    """

    states: Float[Array, "steps m window b"]
    """∂r/∂(node k … node k+W−1)."""
    parameters: Float[Array, "steps m p"]
    """∂r/∂parameters."""
    residual: Float[Array, "steps m"]
    """r."""


class NormalChunk(eqx.Module):
    """Block columns of ``JᵀJ`` for the nodes of one chunk, from the diagonal down."""

    pivot: Float[Array, "blocks B B"]
    """A_j."""
    below: Float[Array, "blocks B+t B"]
    """C_j: rows of the next block and of the parameters; the last row is the gradient ``Jᵀr``."""
    node_size: int = eqx.field(static=True)
    """b."""


class Normal(eqx.Module):
    """Undamped normal equations of one recording."""

    chunks: tuple[NormalChunk, ...]
    corner: Float[Array, "t t"]
    """``[J_pᵀJ_p, J_pᵀr; rᵀJ_p, rᵀr]``."""
    nodes: int = eqx.field(static=True)
    """N; what the chunks hold beyond is padding."""

    @property
    def cost(self) -> float:
        """``‖r‖²``."""
        return float(self.corner[-1, -1])

    def diagonals(self) -> ByChunks:
        """Diagonal of ``JᵀJ`` of the nodes, (steps, b) by chunks; one for padding."""
        return tuple(_diagonal(chunk) for chunk in self.chunks)

    def gradients(self) -> ByChunks:
        """``Jᵀr`` of the nodes, (steps, b) by chunks."""
        return tuple(_gradient(chunk) for chunk in self.chunks)

    def parameter_diagonal(self) -> Float[np.ndarray, " p"]:
        """Diagonal of ``JᵀJ`` of the parameters."""
        return np.diagonal(self.corner)[:-1]

    def parameter_gradient(self) -> Float[np.ndarray, " p"]:
        """``Jᵀr`` of the parameters."""
        return np.asarray(self.corner)[:-1, -1]

    def change(self, states: Sequence[Array], parameters: Float[ArrayLike, " p"]) -> float:
        """``‖Jδ + r‖² − ‖r‖²`` for a step (states by chunks), as ``2 gᵀδ + δᵀJᵀJδ``: no large numbers cancel."""
        tail = np.append(parameters, 1.0)
        corner = np.asarray(self.corner)
        total = tail @ corner @ tail - corner[-1, -1]
        following = _zeros(self.chunks[0].pivot.shape[-1])
        for chunk, step in zip(reversed(self.chunks), reversed(states), strict=True):
            part, following = _change_chunk(chunk, step, following, tail)
            total += float(part)
        return total


class ChunkFactor(eqx.Module):
    """Eliminated blocks of one chunk."""

    lower: Float[Array, "blocks B B"]
    """L_j."""
    panel: Float[Array, "blocks B+t B"]
    """P_j: rows of the next block, of the parameters and of the gradient."""
    margin: Float[Array, ""]
    """Smallest squared pivot divided by its diagonal entry before elimination; 0 if a pivot was not positive."""
    node_size: int = eqx.field(static=True)
    """b."""


@dataclasses.dataclass(frozen=True)
class Reduced:
    """Quadratic model of the parameters, minimised over the states: ``value + 2 gᵀδ + δᵀHδ``."""

    matrix: Float[np.ndarray, "p p"]
    """H."""
    gradient: Float[np.ndarray, " p"]
    """g."""
    value: float
    """Model cost left by the best step of the states alone (δ = 0), damping included."""
    margin: float
    """Smallest pivot of the states relative to its diagonal entry: near 0 if a state is hardly observed."""

    @property
    def ok(self) -> bool:
        """Whether every pivot of the states exceeds the rounding error of its own computation."""
        return bool(self.margin > np.finfo(self.matrix.dtype).eps and np.isfinite(self.value))


class Factor(eqx.Module):
    """The eliminated states of one recording: a value to keep, for several right-hand sides and for covariances."""

    chunks: tuple[ChunkFactor, ...]
    corner: Float[Array, "t t"]
    """What elimination left of the parameters and the gradient."""
    nodes: int = eqx.field(static=True)
    """N."""

    def reduced(self) -> Reduced:
        """The system that is left for the parameters."""
        corner = np.asarray(self.corner)
        margin = min(float(chunk.margin) for chunk in self.chunks)
        return Reduced(corner[:-1, :-1], corner[:-1, -1], float(corner[-1, -1]), margin)

    def states(self, parameters: Float[ArrayLike, " p"]) -> ByChunks:
        """Best step of the states, (steps, b) by chunks, for a given step of the parameters."""
        return self._carry_back(np.append(parameters, 1.0))

    def sensitivities(self) -> ByChunks:
        """Change of the best states with the parameters, ``−H_xx⁻¹ H_xp``, (steps, b, p) by chunks.

        With them ``J_p + J_x ∂x/∂p`` are the rows of the problem in which the states follow the parameters.
        """
        t = self.corner.shape[0]
        return self._carry_back(np.eye(t, t - 1))

    def _carry_back(self, tail: Float[np.ndarray, "t *columns"]) -> ByChunks:
        following = _zeros(self.chunks[0].lower.shape[-1], *tail.shape[1:])
        solved = []
        for chunk in reversed(self.chunks):
            nodes, following = _back_substitute_chunk(chunk, following, tail)
            solved.append(nodes)
        return tuple(reversed(solved))

    def with_gradient(self, states: Sequence[Array], parameters: Float[ArrayLike, " p"]) -> Factor:
        """The same matrix with another gradient (states by chunks); the reduced value counts from zero."""
        following = _zeros(self.chunks[0].lower.shape[-1])
        tail = np.append(parameters, 0.0)
        chunks = []
        for chunk, gradient in zip(self.chunks, states, strict=True):
            substituted, following, used = _forward_substitute_chunk(chunk, gradient, following)
            chunks.append(substituted)
            tail = tail - np.asarray(used)
        corner = np.array(self.corner)
        corner[-1], corner[:, -1] = tail, tail
        return Factor(tuple(chunks), jnp.asarray(corner), self.nodes)

    def covariances(self, parameter_covariance: Float[ArrayLike, "p p"]) -> ByChunks:
        """Marginal covariance of every node, (steps, b, b) by chunks; the factor must be undamped.

        ``parameter_covariance`` has zero rows for parameters that are held fixed. Only the entries of the inverse
        on the pattern of the factor are formed, backwards in time (Takahashi's recursion): block j follows its
        successors, ``L_jᵀ δ_j = −P_jᵀ (δ_{j+1}, δ_parameters) + white noise``. With Σ the covariance of those,

            Σ_jj = L_j⁻ᵀ (1 + P_jᵀ Σ P_j) L_j⁻¹,     Σ_j,parameters = −L_j⁻ᵀ (P_jᵀ Σ)[parameters].
        """
        block, p = self.chunks[0].lower.shape[-1], self.corner.shape[0] - 1
        following = _zeros(block + p, block)
        found = []
        for chunk in reversed(self.chunks):
            nodes, following = _covariance_chunk(chunk, following, parameter_covariance)
            found.append(nodes)
        return tuple(reversed(found))


def assemble(chunks: Iterable[Rows], nodes: int, start: Rows | None = None) -> Normal:
    """Normal equations of one recording from its rows.

    Args:
        chunks: rows of steps 0, 1, … in chunks of one size, a multiple of W − 1. Node k belongs to the chunk of
            step k, so that the chunks together must have at least ``nodes`` steps, the last ones unused.
        nodes: N = n + W − 1 for n steps.
        start: further rows that involve only the first W − 1 nodes and the parameters (no axis of steps).
    """
    assembled: list[NormalChunk] = []
    carried: tuple[Array, Array] | None = None if start is None else _start_front(start)
    done = 0
    for rows in chunks:
        steps, _, window, size = rows.states.shape
        if window < 2 or steps % (window - 1):
            raise ChunkError(
                f"chunk {len(assembled)} has {steps} steps with a window of {window} nodes; "
                "allowed are windows of 2 or more and multiples of the window less one"
            )
        if carried is None:
            block, t = (window - 1) * size, rows.parameters.shape[-1] + 1
            carried = _zeros(block + t, block), _zeros(t, t)
        chunk, *carried = _assemble_chunk(rows, nodes - done, *carried)
        assembled.append(chunk)
        done += steps
    if carried is None or done < nodes:
        raise ChunkError(f"the chunks have {done} steps for {nodes} nodes; allowed are no fewer steps than nodes")
    return Normal(tuple(assembled), carried[1], nodes)


def factorise(normal: Normal, damping: Sequence[Float[ArrayLike, "steps b"]] | None = None) -> Factor:
    """Eliminate the nodes of a recording; ``damping`` is added to their diagonal, by chunks (none: zero)."""
    first = normal.chunks[0]
    if damping is None:
        blocks, block, _ = first.pivot.shape
        damping = [_zeros(blocks * block // first.node_size, first.node_size)] * len(normal.chunks)
    front, corner = _zeros(*first.below.shape[1:]), normal.corner
    chunks = []
    for chunk, diagonal in zip(normal.chunks, damping, strict=True):
        eliminated, front, corner = _eliminate_chunk(chunk, diagonal, front, corner)
        chunks.append(eliminated)
    return Factor(tuple(chunks), corner, normal.nodes)


def join(parts: Sequence[Reduced], indices: Sequence[Int[ArrayLike, " p"]], size: int) -> Reduced:
    """Sum of the reduced systems of several recordings.

    ``indices[i][j]`` is the place of parameter j of recording i among the ``size`` parameters of the whole problem.
    """
    matrix, gradient = np.zeros((size, size)), np.zeros(size)
    for part, index in zip(parts, indices, strict=True):
        places = np.asarray(index, dtype=int)
        np.add.at(matrix, np.ix_(places, places), part.matrix)
        np.add.at(gradient, places, part.gradient)
    return Reduced(matrix, gradient, sum(part.value for part in parts), min(part.margin for part in parts))


def unchunk(chunks: Sequence[Array], nodes: int) -> np.ndarray:
    """The nodes of a recording as one array on the host, without the padding of the last chunk."""
    return np.concatenate([np.asarray(chunk) for chunk in chunks])[:nodes]


def _zeros(*shape: int) -> Array:
    """Zeros made on the host: nothing is compiled for a new shape."""
    return jnp.asarray(np.zeros(shape))


@jax.jit
def _diagonal(chunk: NormalChunk) -> Float[Array, "steps b"]:
    return jnp.diagonal(chunk.pivot, axis1=1, axis2=2).reshape(-1, chunk.node_size)


@jax.jit
def _gradient(chunk: NormalChunk) -> Float[Array, "steps b"]:
    return chunk.below[:, -1].reshape(-1, chunk.node_size)


@jax.jit
def _start_front(start: Rows) -> tuple[Float[Array, "B+t B"], Float[Array, "t t"]]:
    """What rows of the first W − 1 nodes contribute to their block, as if steps before had."""
    block = start.states.reshape(start.residual.shape[0], -1)
    tail = jnp.concatenate([start.parameters, start.residual[:, None]], axis=1)
    return jnp.concatenate([block.T @ block, tail.T @ block]), tail.T @ tail


@jax.jit
def _assemble_chunk(
    rows: Rows, live: Int[Array, ""], front: Float[Array, "B+t B"], corner: Float[Array, "t t"]
) -> tuple[NormalChunk, Float[Array, "B+t B"], Float[Array, "t t"]]:
    """Block columns of one chunk.

    ``live`` counts the nodes of the recording from the first of this chunk on. ``front`` is what the steps before
    contribute to the first block; the same for the chunk after is returned. ``corner`` is summed up.
    """
    steps, m, window, size = rows.states.shape
    group = window - 1
    blocks, block = steps // group, group * size
    # Steps beyond the recording are replaced, not multiplied by zero: they may be NaN.
    is_step = jnp.arange(steps) < live - group
    states = jnp.where(is_step[:, None, None, None], rows.states, 0.0).reshape(blocks, group, m, window, size)
    tail = jnp.concatenate([rows.parameters, rows.residual[..., None]], axis=-1)
    tail = jnp.where(is_step[:, None, None], tail, 0.0)

    # Step i of a group covers nodes i … i+W−1 among the 2(W−1) nodes of two blocks.
    placed = [
        jnp.pad(states[:, i], ((0, 0), (0, 0), (i, group - 1 - i), (0, 0))).reshape(blocks, m, 2 * block)
        for i in range(group)
    ]
    wide = jnp.concatenate([jnp.concatenate(placed, axis=1), tail.reshape(blocks, group * m, -1)], axis=-1)
    # wide: (blocks, group·m, 2B + t). Batched products of small matrices are fast only if the transpose is laid
    # out in memory, which the barrier enforces.
    transposed = lax.optimization_barrier(jnp.swapaxes(wide, 1, 2))
    products = transposed @ wide[:, :, : 2 * block]
    on_own, on_next = products[:, :, :block], products[:, block:, block:]
    from_before = jnp.concatenate([front[None], on_next[:-1]])

    is_padding = jnp.repeat(jnp.arange(steps) >= live, size).reshape(blocks, block)
    pivot = on_own[:, :block] + from_before[:, :block] + jnp.eye(block) * is_padding[:, :, None]
    below = on_own[:, block:].at[:, block:].add(from_before[:, block:])
    flat = tail.reshape(steps * m, -1)
    return NormalChunk(pivot, below, size), on_next[-1], corner + flat.T @ flat


@jax.jit
def _change_chunk(
    chunk: NormalChunk,
    states: Float[Array, "steps b"],
    following: Float[Array, " B"],
    tail: Float[Array, " t"],
) -> tuple[Float[Array, ""], Float[Array, " B"]]:
    """Share of one chunk in ``2 gᵀδ + δᵀJᵀJδ``, and its first block's step; ``following`` is the next chunk's."""
    step = states.reshape(chunk.pivot.shape[:2])
    after = jnp.concatenate([step[1:], following[None]])
    rest = jnp.concatenate([after, jnp.broadcast_to(tail, (len(step), len(tail)))], axis=1)
    own = jnp.einsum("ki,kij,kj->", step, chunk.pivot, step)
    return own + 2.0 * jnp.einsum("ki,kij,kj->", rest, chunk.below, step), step[0]


@jax.jit
def _eliminate_chunk(
    chunk: NormalChunk,
    damping: Float[Array, "steps b"],
    front: Float[Array, "B+t B"],
    corner: Float[Array, "t t"],
) -> tuple[ChunkFactor, Float[Array, "B+t B"], Float[Array, "t t"]]:
    """Eliminate the blocks of one chunk; ``front`` is the Schur complement S from the chunk before."""
    blocks, block, _ = chunk.pivot.shape
    pivots = chunk.pivot + jnp.eye(block) * damping.reshape(blocks, 1, block)

    def eliminate(
        front: Float[Array, "B+t B"], columns: tuple[Array, Array]
    ) -> tuple[Float[Array, "B+t B"], tuple[Array, Array]]:
        pivot, below = columns
        lower = lax.linalg.cholesky(pivot - front[:block], symmetrize_input=False)
        remaining = below - jnp.pad(front[block:], ((block, 0), (0, 0)))
        panel = lax.linalg.triangular_solve(lower, remaining, lower=True, transpose_a=True)
        return panel @ panel[:block].T, (lower, panel)

    front, (lower, panel) = lax.scan(eliminate, front, (pivots, chunk.below))
    tail = panel[:, block:]
    ratio = jnp.diagonal(lower, axis1=1, axis2=2) ** 2 / jnp.diagonal(pivots, axis1=1, axis2=2)
    margin = jnp.where(jnp.isfinite(ratio), ratio, 0.0).min()
    return (
        ChunkFactor(lower, panel, margin, chunk.node_size),
        front,
        corner - jnp.einsum("kti,kui->tu", tail, tail),
    )


@jax.jit
def _back_substitute_chunk(
    chunk: ChunkFactor, following: Float[Array, "B *columns"], tail: Float[Array, "t *columns"]
) -> tuple[Float[Array, "steps b *columns"], Float[Array, "B *columns"]]:
    """Steps of the nodes of a chunk, and of its first block, given that of the first block after."""
    blocks, block, _ = chunk.lower.shape
    known = jnp.tensordot(chunk.panel[:, block:], tail, axes=(1, 0))

    def substitute(following: Array, row: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        lower, to_next, known = row
        step = -_solve_transposed(lower, to_next.T @ following + known)
        return step, step

    rows = (chunk.lower, chunk.panel[:, :block], known)
    first, steps = lax.scan(substitute, following, rows, reverse=True)
    nodes = blocks * block // chunk.node_size
    return steps.reshape(nodes, chunk.node_size, *tail.shape[1:]), first


@jax.jit
def _forward_substitute_chunk(
    chunk: ChunkFactor, gradient: Float[Array, "steps b"], following: Float[Array, " B"]
) -> tuple[ChunkFactor, Float[Array, " B"], Float[Array, " t"]]:
    """Replace the gradient row of the panels; also returned: what the next block and the tail must subtract."""
    blocks, block, _ = chunk.lower.shape

    def substitute(used: Array, row: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        lower, to_next, gradient = row
        solved = _solve(lower, gradient - used)
        return to_next @ solved, solved

    rows = (chunk.lower, chunk.panel[:, :block], gradient.reshape(blocks, block))
    following, solved = lax.scan(substitute, following, rows)
    panel = chunk.panel.at[:, -1].set(solved)
    used = jnp.einsum("kti,ki->t", panel[:, block:], solved)
    return ChunkFactor(chunk.lower, panel, chunk.margin, chunk.node_size), following, used


@jax.jit
def _covariance_chunk(
    chunk: ChunkFactor, following: Float[Array, "B+p B"], parameters: Float[Array, "p p"]
) -> tuple[Float[Array, "steps b b"], Float[Array, "B+p B"]]:
    """Covariances of the nodes of a chunk; ``following`` is that of the next block with itself and the parameters."""
    blocks, block, _ = chunk.lower.shape

    def follow(following: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        lower, panel = row
        of_parameters = jnp.concatenate([following[block:].T, parameters])
        carried = panel.T @ jnp.concatenate([following, of_parameters], axis=1)
        # Solved one block and one matrix after the other. All blocks in one batch would be no faster, and two batched
        # calls of a library routine at a time can wait for each other's threads for ever on a machine with few cores.
        middle = carried @ panel + jnp.eye(block)
        solved = _solve_transposed(lower, jnp.concatenate([middle, carried[:, block:]], axis=1))
        own = _solve_transposed(lower, solved[:, :block].T)
        return jnp.concatenate([own, -solved[:, block:].T]), own

    first, own = lax.scan(follow, following, (chunk.lower, chunk.panel[:, :-1]), reverse=True)
    group = block // chunk.node_size
    nodes = jnp.einsum("kgigj->kgij", own.reshape(blocks, group, chunk.node_size, group, chunk.node_size))
    return nodes.reshape(blocks * group, chunk.node_size, chunk.node_size), first


def _solve(lower: Float[Array, "*k B B"], right: Array) -> Array:
    """``L⁻¹ x``."""
    return jax.scipy.linalg.solve_triangular(lower, right, lower=True)


def _solve_transposed(lower: Float[Array, "*k B B"], right: Array) -> Array:
    """``L⁻ᵀ x``."""
    return jax.scipy.linalg.solve_triangular(lower, right, trans="T", lower=True)
