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

import functools
import threading
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.linear import front, substitution
from shadowfit.estimation.linear.box_step import positive_definite
from shadowfit.estimation.linear.threads import in_threads, one_thread
from shadowfit.kernels.recycled import recycled
from shadowfit.records import record

# Multiples of the diagonal that are tried, in turn, where the normal matrix of the states is singular. Leverages are
# off by about the rounding error divided by it, 1e-4 for the first. (Samples behind the last step see some directions
# of the last node and mix others, the turn of a pole against its cart: that is such a case.) Damping where it is not
# needed would take the projection several passes more at a large κ, and count in determinants.
RIDGES = (0.0, 1e-12, 1e-11, 1e-10, 1e-9)
# The projection is settled when the next correction changes no parameter's information by more than this.
SETTLED = 1e-10
# The factor leaves the same information, with an error of first order in that of S. If both agree to this, the next
# correction, of second order, would be below what is settled, and is not looked for.
AGREEMENT = 3e-6
# Corrections before it is taken as it is.
PASSES = 6
# Errors that states follow at a time: what they do to all nodes is held several times.
BESIDE = 64
# Added to the diagonal of what the past knows of the states, relative to what its last steps contribute: directions
# that nothing has seen yet count as unknown.
UNKNOWN_YET = 1e-13

Result = TypeVar("Result")


class EachChunk(Protocol):
    """Runs ``work(first step, rows)`` on the rows of each chunk of a recording, in threads; results in order."""

    def __call__(self, work: Callable[[int, front.Rows], Result]) -> Iterable[Result]:
        """Rows are made anew each time: all of them would take several times the memory of what is kept of them."""
        ...


@record(frozen=True)
class Leverages:
    """Shares of the residuals that the states take up; parameters not counted."""

    each: Float[np.ndarray, "n m"]
    """Of each residual, between 0 and 1."""
    total: Float[np.ndarray, "m m"]
    """``Σ_k J_x,k H_xx⁻¹ J_x,kᵀ`` over the steps."""


@record(frozen=True)
class Projection:
    """Rows of one recording without its states, in the scaling of the rows (a residual of weight one has std σ₀)."""

    rows: Float[np.ndarray, "n m p"]
    """T of each step; zero where there is no residual."""
    residual: Float[np.ndarray, "n m"]
    """r."""
    start_rows: Float[np.ndarray, "s p"]
    """T of the rows of the first states."""
    start_residual: Float[np.ndarray, " s"]
    ridge: float
    """Multiple of the diagonal in the factor; zero where the states are all observed."""
    settled: bool
    """Whether the corrections have ended."""
    find_leverages: Callable[[], Leverages]
    find_scores: Callable[[Projection], Float[np.ndarray, "blocks p"]]
    find_follower: Callable[[], Follower]

    def left_of(self, errors: Float[np.ndarray, "n m c"]) -> Float[np.ndarray, "n m c"]:
        """Residuals that errors leave when the states have followed them: ``(1 − J_x H_xx⁻¹ J_xᵀ) e``, c cases."""
        return self.follower().left_of(errors)

    def follower(self) -> Follower:
        """What finds that for errors again and again; it holds the states' rows, and should not be kept."""
        with one_thread():
            return self.find_follower()

    @property
    def information(self) -> Float[np.ndarray, "p p"]:
        """``TᵀT``."""
        flat = self.flat()
        return flat.T @ flat

    @property
    def gradient(self) -> Float[np.ndarray, " p"]:
        """``Tᵀr``."""
        steps, count, parameters = self.rows.shape
        inner = self.rows.reshape(steps * count, parameters).T @ self.residual.ravel()
        return inner + self.start_rows.T @ self.start_residual

    def flat(self) -> Float[np.ndarray, "rows p"]:
        """All rows of T, those of the first states last."""
        steps, count, parameters = self.rows.shape  # there may be no parameters
        return np.concatenate([self.rows.reshape(steps * count, parameters), self.start_rows])

    @functools.cached_property
    def leverages(self) -> Leverages:
        """What the states take up; found when first needed, as it costs more than all the rest."""
        with one_thread():
            return self.find_leverages()

    @property
    def step_scores(self) -> Float[np.ndarray, "n p"]:
        """``T_kᵀ r_k`` of each step, that of the first states with the first one."""
        scores = np.matmul(self.residual[:, None], self.rows)[:, 0]
        scores[:1] += self.start_residual @ self.start_rows
        return scores

    @functools.cached_property
    def scores(self) -> Float[np.ndarray, "blocks p"]:
        """Contribution of each block of steps to ``Tᵀr``, by its innovations; found when first needed."""
        with one_thread():
            return self.find_scores(self)


def factorise(normal: front.Normal, at_rest: Float[np.ndarray, "N b"]) -> tuple[front.Factor, float]:
    """The undamped factor, or the one with the least damping that has one; and the multiple of the diagonal used.

    ``at_rest`` is the damping of unknowns that no row depends on.
    """
    diagonal = normal.diagonal()
    for ridge in RIDGES:
        factor = front.factorise(normal, at_rest + ridge * diagonal)
        reduced = factor.reduced()
        if reduced.ok and np.all(np.isfinite(reduced.matrix)):
            break
    return factor, ridge


def project(
    each_chunk: EachChunk, start: front.Rows, factor: front.Factor, steps: int, ridge: float = 0.0
) -> Projection:
    """Project the states out of the rows of one recording.

    Args:
        each_chunk: gives the rows of all steps. All of them are held at a time, which takes about as much memory as
            the factor.
        start: rows of the first states.
        factor: of the normal matrix of these rows, undamped or nearly so.
        steps: n; rows behind are padding.
        ridge: multiple of the diagonal in the factor.
    """
    first_states, first_table, first_residual = _flat(start)
    window = factor.block // factor.node_size + 1
    held = list(each_chunk(lambda begin, rows: (begin, *_live(rows, begin, steps))))
    table, residual = (np.concatenate([part[i] for part in held]) for i in (2, 3))
    chunks = Chunks(tuple((begin, np.ascontiguousarray(states)) for begin, states, *_ in held), factor.node_size)
    del held
    follow = factor.sensitivities()
    for number in range(PASSES):
        projected = recycled(*table.shape)
        projected[...] = table
        chunks.take_off(projected, -follow)
        first = first_table + first_states @ follow[: window - 1].reshape(first_states.shape[1], follow.shape[-1])
        information = np.einsum("kmp,kmp->p", projected, projected) + np.einsum("mp,mp->p", first, first)
        if np.all(np.abs(np.diagonal(factor.corner)[:-1] - information) <= AGREEMENT * information):
            settled = True
            break
        left = chunks.met(projected, factor.nodes)
        left[: window - 1] += (first_states.T @ first).reshape(left[: window - 1].shape)
        halfway = factor.halfway(left)
        effect = np.einsum("kic,kic->c", halfway, halfway)
        settled = bool(np.all(effect <= SETTLED * information))
        if settled or number + 1 == PASSES:
            break
        follow = follow - factor.onwards(halfway)
    # Derivatives by the states are kept where they are no more than those by the parameters, else made anew.
    states = functools.partial(_states, each_chunk, steps, factor.node_size)
    if window * factor.node_size <= table.shape[-1]:
        states = functools.partial(_same, chunks)
    return Projection(
        projected,
        residual,
        first,
        first_residual,
        ridge,
        settled,
        functools.partial(leverages, states, factor),
        functools.partial(innovation_scores, states, factor),
        functools.partial(follower, states, factor),
    )


@record(frozen=True)
class Chunks:
    """Derivatives of the rows of a recording by its states."""

    parts: tuple[tuple[int, Float[np.ndarray, "k m W*b"]], ...]
    """First step of each chunk, and the rows of its steps."""
    node_size: int

    @property
    def _window(self) -> int:
        return self.parts[0][1].shape[2] // self.node_size

    def take_off(self, errors: Float[np.ndarray, "n m c"], nodes: Float[np.ndarray, "N b c"]) -> None:
        """``e ← e − J_x x``; errors may be some columns of a wider table."""
        nodes = np.ascontiguousarray(nodes)

        def take(chunk: tuple[int, np.ndarray]) -> None:
            begin, states = chunk
            here = errors[begin : begin + len(states)]
            substitution.library("follow", *self._sizes(states, here), states, here, nodes[begin:])

        for _ in in_threads(take, self.parts):
            pass

    def met(self, errors: Float[np.ndarray, "n m c"], nodes: int) -> Float[np.ndarray, "N b c"]:
        """``J_xᵀ e`` of so many nodes; errors may be some columns of a wider table."""
        total = np.zeros((nodes, self.node_size, errors.shape[2]))

        def meet(chunk: tuple[int, np.ndarray]) -> tuple[int, np.ndarray]:
            begin, states = chunk
            here, part = (
                errors[begin : begin + len(states)],
                np.zeros((len(states) + self._window - 1, *total.shape[1:])),
            )
            substitution.library("meet", *self._sizes(states, here), states, here, part)
            return begin, part

        for begin, part in in_threads(meet, self.parts):
            total[begin : begin + len(part)] += part
        return total

    def _sizes(self, states: Float[np.ndarray, "k m W*b"], errors: Float[np.ndarray, "k m c"]) -> tuple[int, ...]:
        """Of a chunk, as machine code is told of them; errors of a step lie in rows that follow each other."""
        count, rows, columns = errors.shape
        by_step, by_row, by_column = (distance // errors.itemsize for distance in errors.strides)
        stride = by_row if rows > 1 else by_step
        assert columns == 1 or by_column == 1, "columns beside each other"
        assert count == 1 or by_step == rows * stride, "rows one after another"
        return count, rows, self._window, self.node_size, columns, stride


def _states(each_chunk: EachChunk, steps: int, node_size: int) -> Chunks:
    """Derivatives by the states, made anew."""
    parts = each_chunk(lambda begin, rows: (begin, np.ascontiguousarray(_live(rows, begin, steps)[0])))
    return Chunks(tuple(parts), node_size)


def _same(chunks: Chunks) -> Chunks:
    return chunks


def leverages(find_states: Callable[[], Chunks], factor: front.Factor) -> Leverages:
    """Shares of the residuals of a recording that its states take up."""
    window = factor.block // factor.node_size + 1
    knowledge = _knowledge(factor)

    def work(chunk: tuple[int, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        begin, states = chunk
        taken = np.matmul(states, _windows_of(knowledge, begin, len(states), window, factor.node_size))
        # Row by row, the sum over the steps is one product.
        total = np.tensordot(taken, states, axes=([0, 2], [0, 2]))
        return np.einsum("kmx,kmx->km", taken, states), total

    each, totals = zip(*in_threads(work, find_states().parts), strict=True)
    return Leverages(np.concatenate(each), np.sum(totals, axis=0))


@record(frozen=True)
class Follower:
    """States of a recording that follow errors of its rows."""

    chunks: Chunks
    factor: front.Factor

    def left_of(self, errors: Float[np.ndarray, "n m c"]) -> Float[np.ndarray, "n m c"]:
        """What the states leave of errors of the rows."""
        left = errors.copy()
        self.take_off(left)
        return left

    def take_off(self, errors: Float[np.ndarray, "n m c"]) -> Float[np.ndarray, " c"]:
        """Subtract from errors of the rows what the states take up, and tell the sums of squares of that."""
        parts = [errors[..., begin : begin + BESIDE] for begin in range(0, errors.shape[2], BESIDE)]
        with one_thread():
            return np.concatenate([np.zeros(0), *(self._take_off(part) for part in parts)])

    def _take_off(self, errors: Float[np.ndarray, "n m c"]) -> Float[np.ndarray, " c"]:
        halfway = self.factor.halfway(self.chunks.met(errors, self.factor.nodes))
        # ‖J_x x‖² = xᵀH_xx x with H_xx = UᵀU and x = U⁻¹ times what is halfway.
        squares = np.asarray(np.einsum("kic,kic->c", halfway, halfway))
        self.chunks.take_off(errors, self.factor.onwards(halfway))
        return squares


def follower(find_states: Callable[[], Chunks], factor: front.Factor) -> Follower:
    """The states of a recording, to follow errors of its rows."""
    return Follower(find_states(), factor)


def innovation_scores(
    find_states: Callable[[], Chunks], factor: front.Factor, projected: Projection
) -> Float[np.ndarray, "blocks p"]:
    """What each block of steps contributes to ``Tᵀr``, with the states that it knows of."""
    steps, group = len(projected.residual), factor.block // factor.node_size
    pending = _Pending(factor)

    def work(chunk: tuple[int, np.ndarray]) -> None:
        begin, states = chunk
        here = slice(begin, begin + len(states))
        pending.add(begin, states, projected.rows[here], projected.residual[here])

    for _ in in_threads(work, find_states().parts):
        pass
    smooth = np.matmul(projected.residual[:, None], projected.rows)[:, 0]
    ends = np.append(np.arange(group, steps, group), steps)
    sums = np.cumsum(smooth, axis=0)[ends - 1] + projected.start_rows.T @ projected.start_residual
    # What the last steps leave pending is nothing.
    sums[:-1] -= pending.contributions()[: len(ends) - 1]
    return np.diff(sums, axis=0, prepend=0.0)


def _live(rows: front.Rows, begin: int, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The parts of the rows from a step on, without those behind the last one."""
    states, table, residual = _flat(rows)
    live = max(steps - begin, 0)
    return states[:live], table[:live], residual[:live]


def _flat(rows: front.Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States' rows with the window's nodes side by side, parameters' rows, residuals."""
    states = np.asarray(rows.states)
    side_by_side = states.reshape(*states.shape[:-2], states.shape[-2] * states.shape[-1])
    return side_by_side, np.asarray(rows.parameters), np.asarray(rows.residual)


def _knowledge(factor: front.Factor) -> Float[np.ndarray, "blocks 2*B 2*B"]:
    """Joint covariance of each block of states and the next one, parameters fixed.

    ``Σ_jj = U⁻¹U⁻ᵀ + W Σ' Wᵀ`` and ``Σ_j,j+1 = −W Σ'`` with ``W = U⁻¹P`` and Σ' of the next block, backwards in time.
    """
    block = factor.block
    follows, own = factor.backwards(block)
    marginal, across = np.empty_like(own), np.empty_like(own)
    following = np.zeros((block, block))
    for j in range(factor.blocks - 1, -1, -1):
        np.matmul(follows[j], following, out=across[j])
        following = np.add(own[j], across[j] @ follows[j].T, out=marginal[j])
    joint = np.zeros((factor.blocks, 2 * block, 2 * block))
    joint[:, :block, :block], joint[:-1, block:, block:] = marginal, marginal[1:]
    joint[:, :block, block:], joint[:, block:, :block] = -across, -np.swapaxes(across, 1, 2)
    return joint


def _windows_of(
    joint: Float[np.ndarray, "blocks 2*B 2*B"], first: int, count: int, window: int, size: int
) -> Float[np.ndarray, "steps W*b W*b"]:
    """Covariance of the nodes of each step's window; ``first`` is the number of the first step."""
    group = window - 1
    windows = np.empty((count, window * size, window * size))
    for i in range(group):
        begin = (i - first) % group
        places = windows[begin::group]
        j, nodes = (first + begin) // group, slice(i * size, (i + window) * size)
        places[...] = joint[j : j + len(places), nodes, nodes]
    return windows


class _Pending:
    """What the past leaves for the next block of states, ``c_Tᵀ N⁻¹ c_r``, added up from the rows."""

    def __init__(self, factor: front.Factor) -> None:
        blocks, block = factor.blocks, factor.block
        self.factor = factor
        self.past = np.zeros((blocks, block, block))
        self.by_table = np.zeros((blocks, block, len(factor.corner) - 1))
        self.by_residual = np.zeros((blocks, block))
        self._lock = threading.Lock()

    def add(self, first: int, states: np.ndarray, table: np.ndarray, residual: np.ndarray) -> None:
        """Rows of some steps, of which ``first`` is the number of the first one; several threads may add."""
        size, block = self.factor.node_size, self.factor.block
        group = block // size
        for i in range(group):
            begin = (i - first) % group
            # Steps that begin with node i of a block see i + 1 nodes of the next one.
            ahead = states[begin::group, :, (group - i) * size :]
            transposed = np.swapaxes(ahead, 1, 2)
            j, seen = (first + begin) // group, (i + 1) * size
            here = slice(j, j + len(ahead))
            past, by_table = np.matmul(transposed, ahead), np.matmul(transposed, table[begin::group])
            by_residual = np.matmul(transposed, residual[begin::group, :, None])[..., 0]
            with self._lock:
                self.past[here, :seen, :seen] += past
                self.by_table[here, :seen] += by_table
                self.by_residual[here, :seen] += by_residual

    def contributions(self) -> Float[np.ndarray, "blocks p"]:
        """``c_Tᵀ N⁻¹ c_r`` after each block; nothing where the past does not know the states."""
        to_next = self.factor.to_next
        known = self.past - np.matmul(to_next, np.swapaxes(to_next, 1, 2))
        floor = UNKNOWN_YET * np.diagonal(self.past, axis1=1, axis2=2)
        # Nothing at all reaches the nodes behind the end.
        np.einsum("kii->ki", known)[...] += np.where(floor > 0.0, floor, 1.0)
        good = np.full(len(known), positive_definite(known))
        if not good.all():
            good = np.array([positive_definite(matrix) for matrix in known])
        shares = np.zeros((len(known), self.by_table.shape[-1]))
        solved = np.linalg.solve(known[good], self.by_residual[good, :, None])
        shares[good] = np.matmul(np.swapaxes(solved, 1, 2), self.by_table[good])[:, 0]
        return np.nan_to_num(shares)
