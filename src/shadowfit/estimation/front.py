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

Everything is a loop over the blocks that calls BLAS and LAPACK in place. Compiled by XLA the same loop was no faster
(15 instead of 10 ms for elimination and back-substitution with n = 1000, b = 12, p = 13), because the time goes into
the routines themselves, and took five seconds to compile.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable, Sequence

import equinox as eqx
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf

from shadowfit.errors import ShadowfitError


class ChunkError(ShadowfitError):
    """Rows that do not fit their window or the number of nodes."""


class Rows(eqx.Module):
    """Linearised residuals of consecutive steps, multiplied by the square roots of their weights.

    A missing residual is a row of zeros. Steps beyond the end of the recording may hold anything.
    """

    states: Float[Array, "steps m window b"]
    """∂r/∂(node k … node k+W−1)."""
    parameters: Float[Array, "steps m p"]
    """∂r/∂parameters."""
    residual: Float[Array, "steps m"]
    """r."""


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of consecutive steps with everything side by side, ``[states | parameters | residual]``.

    Step k involves the nodes k + first … k + first + window − 1, which may be fewer than W.
    """

    wide: Float[np.ndarray, "steps m window*b+t"]
    window: int
    node_size: int
    """b."""
    first: int = 0

    @property
    def rows(self) -> Rows:
        """The three parts, as views."""
        steps, m, _ = self.wide.shape
        width = self.window * self.node_size
        states = self.wide[:, :, :width].reshape(steps, m, self.window, self.node_size)
        return Rows(states, self.wide[:, :, width:-1], self.wide[:, :, -1])


def table(rows: Rows) -> Table:
    """Rows of steps, all parts in one array."""
    steps, m, window, size = rows.states.shape
    parts = (np.reshape(rows.states, (steps, m, window * size)), rows.parameters, np.asarray(rows.residual)[..., None])
    return Table(np.concatenate(parts, axis=2), window, size)


def _joined(tables: Sequence[Table]) -> list[Table]:
    """The same rows with those that involve the same nodes in one table: fewer and larger products."""
    alike: dict[tuple[int, int], list[Table]] = {}
    for one in tables:
        alike.setdefault((one.first, one.window), []).append(one)
    return [
        own[0] if len(own) == 1 else dataclasses.replace(own[0], wide=np.concatenate([x.wide for x in own], axis=1))
        for own in alike.values()
    ]


def merge(tables: Sequence[Table], window: int) -> Rows:
    """All rows of the same steps together, zero where they do not involve a node of the window."""
    parts = []
    for one in tables:
        own = one.rows
        states = np.zeros((*own.residual.shape, window, one.node_size))
        states[:, :, one.first : one.first + one.window] = own.states
        parts.append((states, own.parameters, own.residual))
    return Rows(*(np.concatenate(each, axis=1) for each in zip(*parts, strict=True)))


@dataclasses.dataclass(frozen=True)
class Normal:
    """Undamped normal equations of one recording, block columns from the diagonal down."""

    pivot: Float[np.ndarray, "blocks B B"]
    """A_j; one on the diagonal for nodes that only fill up the last block, which stay exactly zero."""
    below: Float[np.ndarray, "blocks B+t B"]
    """C_j: rows of the next block and of the parameters; the last row is the gradient ``Jᵀr``."""
    corner: Float[np.ndarray, "t t"]
    """``[J_pᵀJ_p, J_pᵀr; rᵀJ_p, rᵀr]``."""
    nodes: int
    """N."""
    node_size: int
    """b."""

    @property
    def cost(self) -> float:
        """``‖r‖²``."""
        return float(self.corner[-1, -1])

    def diagonal(self) -> Float[np.ndarray, "N b"]:
        """Diagonal of ``JᵀJ`` of the nodes."""
        return _of_nodes(np.diagonal(self.pivot, axis1=1, axis2=2), self.nodes, self.node_size)

    def gradient(self) -> Float[np.ndarray, "N b"]:
        """``Jᵀr`` of the nodes."""
        return _of_nodes(self.below[:, -1], self.nodes, self.node_size)

    def parameter_diagonal(self) -> Float[np.ndarray, " p"]:
        """Diagonal of ``JᵀJ`` of the parameters."""
        return np.diagonal(self.corner)[:-1]

    def parameter_gradient(self) -> Float[np.ndarray, " p"]:
        """``Jᵀr`` of the parameters."""
        return self.corner[:-1, -1]

    def change(self, states: Float[np.ndarray, "N b"], parameters: Float[ArrayLike, " p"]) -> float:
        """``‖Jδ + r‖² − ‖r‖²`` for a step, as ``2 gᵀδ + δᵀJᵀJδ``: no large numbers cancel."""
        tail = np.append(parameters, 1.0)
        step = _by_blocks(states, *self.pivot.shape[:2])
        rest = np.empty(self.below.shape[:2])
        rest[:-1, : step.shape[1]], rest[-1, : step.shape[1]], rest[:, step.shape[1] :] = step[1:], 0.0, tail
        along = np.matmul(step[:, None], self.pivot)[:, 0] + 2.0 * np.matmul(rest[:, None], self.below)[:, 0]
        return float(np.vdot(along, step) + tail @ self.corner @ tail - self.corner[-1, -1])


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


@dataclasses.dataclass(frozen=True)
class Factor:
    """The eliminated states of one recording: a value to keep, for several right-hand sides and for covariances."""

    lower: Float[np.ndarray, "blocks B B"]
    """L_j."""
    panel: Float[np.ndarray, "blocks B+t B"]
    """P_j: rows of the next block, of the parameters and of the gradient."""
    corner: Float[np.ndarray, "t t"]
    """What elimination left of the parameters and the gradient."""
    margin: float
    """Smallest squared pivot divided by its diagonal entry before elimination; 0 if a pivot was not positive."""
    nodes: int
    """N."""
    node_size: int
    """b."""

    @property
    def block(self) -> int:
        """B."""
        return self.lower.shape[-1]

    @property
    def to_next(self) -> Float[np.ndarray, "blocks B B"]:
        """Rows of the panels for the next block."""
        return self.panel[:, : self.block]

    def reduced(self) -> Reduced:
        """The system that is left for the parameters."""
        return Reduced(self.corner[:-1, :-1], self.corner[:-1, -1], float(self.corner[-1, -1]), self.margin)

    def log_determinant(self) -> float:
        """log det of the damped normal matrix of the states."""
        return 2.0 * float(np.sum(np.log(np.diagonal(self.lower, axis1=1, axis2=2))))

    def states(self, parameters: Float[ArrayLike, " p"]) -> Float[np.ndarray, "N b"]:
        """Best step of the states for a given step of the parameters."""
        return self._follow(np.append(parameters, 1.0)[None])[..., 0]

    def sensitivities(self) -> Float[np.ndarray, "N b p"]:
        """Change of the best states with the parameters, ``−H_xx⁻¹ H_xp``.

        With them ``J_p + J_x ∂x/∂p`` are the rows of the problem in which the states follow the parameters.
        """
        t = len(self.corner)
        return self._follow(np.eye(t - 1, t))

    def _follow(self, tail: Float[np.ndarray, "columns t"]) -> Float[np.ndarray, "N b columns"]:
        """Steps of the states for steps of the parameters and multiples of the gradient."""
        right = np.matmul(-tail, self.panel[:, self.block :])
        return self._as_columns(self._substitute_back(right))

    def _as_columns(self, rows: Float[np.ndarray, "blocks columns B"]) -> Float[np.ndarray, "N b columns"]:
        return _of_nodes(np.swapaxes(rows, 1, 2), self.nodes, self.node_size)

    def halfway(self, right: Float[np.ndarray, "N b columns"]) -> Float[np.ndarray, "blocks columns B"]:
        """``L⁻¹ G`` of all blocks for columns G, whose squares are the diagonal of ``GᵀH_xx⁻¹G``.

        Forwards in time, ``L_j y_j = x_j − P_{j−1}[next] y_{j−1}``.
        """
        blocks, columns = len(self.lower), right.shape[-1]
        filled = _by_blocks(right.reshape(self.nodes, self.node_size * columns), blocks, self.block * columns)
        rows = np.swapaxes(filled.reshape(blocks, self.block, columns), 1, 2).copy()
        used = np.zeros_like(rows[0])
        for lower, to_next, row in zip(self.lower, self.to_next, rows, strict=True):
            np.subtract(row, used, out=row)
            _solve(lower, row)
            used = row @ to_next.T
        return rows

    def onwards(self, halfway: Float[np.ndarray, "blocks columns B"]) -> Float[np.ndarray, "N b columns"]:
        """``H_xx⁻¹ G`` from ``L⁻¹ G``, which is overwritten."""
        return self._as_columns(self._substitute_back(halfway))

    def _substitute_back(self, right: Float[np.ndarray, "blocks columns B"]) -> Float[np.ndarray, "blocks columns B"]:
        """Solve ``L_jᵀ y_j = x_j − P_j[next]ᵀ y_{j+1}`` in place; each row is one right-hand side."""
        following = np.zeros_like(right[0])
        for lower, to_next, row in zip(self.lower[::-1], self.to_next[::-1], right[::-1], strict=True):
            np.subtract(row, following @ to_next, out=row)
            _solve_transposed(lower, row)
            following = row
        return right

    def covariances(self, parameter_covariance: Float[ArrayLike, "p p"]) -> Float[np.ndarray, "N b b"]:
        """Marginal covariance of every node; the factor must be undamped.

        ``parameter_covariance`` has zero rows for parameters that are held fixed. Only the entries of the inverse
        on the pattern of the factor are formed, backwards in time (Takahashi's recursion): block j follows its
        successors, ``L_jᵀ δ_j = −P_jᵀ (δ_{j+1}, δ_parameters) + white noise``. With Σ the covariance of those,

            Σ_jj = L_j⁻ᵀ (1 + P_jᵀ Σ P_j) L_j⁻¹,     Σ_j,parameters = −L_j⁻ᵀ (P_jᵀ Σ)[parameters].
        """
        joint = np.zeros((self.panel.shape[1] - 1,) * 2)  # of the next block and the parameters
        joint[self.block :, self.block :] = parameter_covariance
        found = np.empty_like(self.lower)
        for j in range(len(self.lower) - 1, -1, -1):
            own, with_later = self.precede(j, joint, self.panel[j, :-1])
            found[j] = joint[: self.block, : self.block] = own
            across = with_later[:, self.block :]
            joint[: self.block, self.block :], joint[self.block :, : self.block] = across, across.T
        group = self.block // self.node_size
        nodes = np.einsum("kgigj->kgij", found.reshape(-1, group, self.node_size, group, self.node_size))
        return nodes.reshape(-1, self.node_size, self.node_size)[: self.nodes]

    def precede(
        self, j: int, later: Float[np.ndarray, "x x"], panel: Float[np.ndarray, "x B"]
    ) -> tuple[Float[np.ndarray, "B B"], Float[np.ndarray, "B x"]]:
        """Covariance of block j, and that with what it follows through the panel, whose own is given."""
        carried = later @ panel
        middle = panel.T @ carried
        middle.flat[:: self.block + 1] += 1.0
        _solve_transposed(self.lower[j], middle)  # middle is symmetric: rows are columns
        own = np.ascontiguousarray(middle.T)
        _solve_transposed(self.lower[j], own)
        _solve_transposed(self.lower[j], carried)
        return own, -carried.T


def assemble(chunks: Iterable[Rows], nodes: int, start: Rows | None = None) -> Normal:
    """Normal equations of one recording from its rows.

    Args:
        chunks: rows of steps 0, 1, … in chunks of any size; steps beyond the last one are left out.
        nodes: N = n + W − 1 for n steps.
        start: further rows that involve only the first W − 1 nodes and the parameters (no axis of steps).
    """
    assembly, done = None, 0
    for rows in chunks:
        if assembly is None:
            assembly = Assembly(nodes, rows.states.shape[2], rows.states.shape[3], rows.parameters.shape[-1])
        assembly.add([table(rows)], done)
        done += len(rows.residual)
    if assembly is None or done < assembly.steps:
        raise ChunkError(f"the rows have {done} steps, too few for {nodes} nodes")
    return assembly.normal(start)


class Assembly:
    """Normal equations of one recording, added up from its rows in any order, by several threads at a time."""

    def __init__(self, nodes: int, window: int, size: int, parameters: int) -> None:
        if window < 2:
            raise ChunkError(f"rows with a window of {window} node; a window has at least 2")
        self.steps = nodes - window + 1
        self._group = window - 1
        self._normal = _empty(nodes, self._group, size, parameters + 1)
        self._corners: list[tuple[int, int, np.ndarray]] = []
        self._lock = threading.Lock()

    def add(self, tables: Sequence[Table], step: int) -> None:
        """Add the rows of the steps from the given one on; those behind the last step are left out."""
        for rows in _joined(tables):
            live = min(len(rows.wide), self.steps - step)
            if live > 0:
                self._add_steps(rows.wide[:live], rows, step)

    def _add_steps(self, wide: Float[np.ndarray, "steps m W*b+t"], rows: Table, step: int) -> None:
        width = rows.window * rows.node_size
        tail = wide[:, :, width:].reshape(wide.shape[0] * wide.shape[1], -1)
        corner = tail.T @ tail
        products = np.matmul(np.swapaxes(wide, 1, 2), wide[:, :, :width])
        with self._lock:
            self._corners.append((step, rows.first, corner))
            for i in range(self._group):
                # Steps whose first node is node i of a block.
                begin = (i - step - rows.first) % self._group
                self._add(products[begin :: self._group], i, (step + rows.first + begin) // self._group, rows.window)

    def _add(self, products: Float[np.ndarray, "blocks W*b+t W*b"], i: int, j: int, window: int) -> None:
        """Add products of steps that begin with node i of the blocks j, j + 1, …

        The first nodes of their window belong to that block, the others to the next.
        """
        size, block = self._normal.node_size, self._normal.pivot.shape[-1]
        own = min(window, self._group - i) * size
        width = window * size
        here, after = slice(j, j + len(products)), slice(j + 1, j + 1 + len(products))
        inside, rest = slice(i * size, i * size + own), slice(0, width - own)
        self._normal.pivot[here, inside, inside] += products[:, :own, :own]
        self._normal.below[here, block:, inside] += products[:, width:, :own]
        if width > own:
            self._normal.below[here, rest, inside] += products[:, own:width, :own]
            self._normal.pivot[after, rest, rest] += products[:, own:width, own:]
            self._normal.below[after, block:, rest] += products[:, width:, own:]

    def normal(self, start: Rows | None = None) -> Normal:
        """The sum of all that was added, and of rows of the first states."""
        # Always in the same order, so that the same rows give the same sum to the last digit.
        for _, _, corner in sorted(self._corners, key=lambda one: one[:2]):
            self._normal.corner[...] += corner
        self._corners.clear()
        if start is not None:
            _add_start(self._normal, start)
        return self._normal


def _empty(nodes: int, group: int, size: int, t: int) -> Normal:
    """Normal equations without rows; ``group`` nodes form a block."""
    blocks, block = -(-nodes // group), group * size
    pivot = np.zeros((blocks, block, block))
    padding = np.arange(block) >= block - (blocks * group - nodes) * size
    pivot[-1, padding, padding] = 1.0
    return Normal(pivot, np.zeros((blocks, block + t, block)), np.zeros((t, t)), nodes, size)


def _add_start(normal: Normal, start: Rows) -> None:
    """Add rows of the first W − 1 nodes."""
    block = normal.pivot.shape[-1]
    states = np.reshape(start.states, (len(start.residual), block))
    tail = np.column_stack([start.parameters, start.residual])
    normal.pivot[0] += states.T @ states
    normal.below[0, block:] += tail.T @ states
    normal.corner[...] += tail.T @ tail


def factorise(normal: Normal, damping: Float[np.ndarray, "N b"] | None = None) -> Factor:
    """Eliminate the nodes of a recording; ``damping`` is added to their diagonal (none: zero)."""
    blocks, block, _ = normal.pivot.shape
    lower, panel = normal.pivot.copy(), normal.below.copy()
    diagonal = np.einsum("kii->ki", lower)  # a view
    if damping is not None:
        diagonal += _by_blocks(damping, blocks, block)
    before = diagonal.copy()
    schur = np.zeros_like(panel[0])
    for pivot, below in zip(lower, panel, strict=True):
        np.subtract(pivot, schur[:block], out=pivot)
        below[block:] -= schur[block:]
        # Transposed, rows are the columns that LAPACK expects: nothing is copied.
        failed = dpotrf(pivot.T, lower=0, clean=1, overwrite_a=1)[1]
        if failed:
            return Factor(lower, panel, np.full_like(normal.corner, np.nan), 0.0, normal.nodes, normal.node_size)
        _solve(pivot, below)
        schur = below @ below[:block].T
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        ratio = diagonal**2 / before
    tail = panel[:, block:]
    corner = normal.corner - np.tensordot(tail, tail, axes=([0, 2], [0, 2]))
    margin = float(np.where(np.isfinite(ratio), ratio, 0.0).min())
    return Factor(lower, panel, corner, margin, normal.nodes, normal.node_size)


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


def _by_blocks(values: Float[np.ndarray, "N x"], blocks: int, block: int) -> Float[np.ndarray, "blocks block"]:
    """Values of the nodes as those of the blocks, zero for nodes that fill up the last one."""
    filled = np.zeros(blocks * block)
    filled[: values.size] = values.ravel()
    return filled.reshape(blocks, block)


def _of_nodes(values: Float[np.ndarray, "blocks B *rest"], nodes: int, size: int) -> Float[np.ndarray, "N b *rest"]:
    """Values of the blocks as those of the nodes."""
    blocks, block, *rest = values.shape
    return values.reshape(blocks * block // size, size, *rest)[:nodes]


def _solve(lower: Float[np.ndarray, "B B"], rows: Float[np.ndarray, "n B"]) -> None:
    """``L⁻¹ x`` of each row x, in place; arrays are contiguous."""
    dtrsm(1.0, lower.T, rows.T, lower=0, trans_a=1, overwrite_b=1)


def _solve_transposed(lower: Float[np.ndarray, "B B"], rows: Float[np.ndarray, "n B"]) -> None:
    """``L⁻ᵀ x`` of each row x, in place; arrays are contiguous."""
    dtrsm(1.0, lower.T, rows.T, lower=0, trans_a=0, overwrite_b=1)
