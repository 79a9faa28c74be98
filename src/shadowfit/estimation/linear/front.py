"""Sparse normal equations of a trajectory: the states are eliminated in time order, the parameters remain.

A recording has nodes k = 0 … N−1 (the states, b unknowns each) and p parameters. Step k couples the W nodes
k … k+W−1 and the parameters, so N = n + W − 1 for n steps. With the weighted rows ``J`` and residuals ``r`` of all
steps and a diagonal damping ``D``, a step of the least squares method minimises

    ‖J δ + r‖² + δᵀ D δ,     (JᵀJ + D) δ = −Jᵀ r.

W − 1 consecutive nodes form a *block* of B = (W−1) b unknowns. A step then couples no more than two neighbouring
blocks, whatever W is, and the normal matrix is block tridiagonal with a border, the *tail*: p parameters and the
gradient, t = p + 1 columns. Block row j consists of its pivot ``A_j`` and of ``C_j`` to its right (next block, then
tail). Elimination hands a Schur complement ``S`` on the next block and the tail from block to block,

    A_j + D_j − S[next] = U_jᵀ U_j,     P_j = U_j⁻ᵀ (C_j − (0, S[tail])),     S ← P_j[next]ᵀ P_j,

and ``corner − Σ P_j[tail]ᵀ P_j[tail]`` is left for the parameters: their quadratic model, minimised over all states.
Its solution is carried back in time by ``U_j δ_j = −P_j (δ_{j+1}, δ_parameters, 1)``.

Work is sorted by how often it happens: `assemble` once per linearisation (its rows may come from a generator, so
that the Jacobian is never held as a whole), `factorise` once per damping, `Factor.states` once per parameter step.

These, the model's change, and what other right-hand sides become, are loops of machine code (:mod:`elimination`,
:mod:`substitution`): a call of BLAS for 24 rows takes longer to begin than to compute, and even for 400 it is no
faster.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from shadowfit.arrays import Array, ArrayLike, Float, Int
from shadowfit.errors import ShadowfitError
from shadowfit.estimation.linear import substitution
from shadowfit.estimation.linear.elimination import library
from shadowfit.kernels.recycled import recycled
from shadowfit.pytrees import PyTree
from shadowfit.records import record

PIVOT_ROUNDING = 8.0
"""Rounding errors of a pivot, of which a few tens of products are subtracted, in units of its diagonal entry's."""
NARROW = 8
"""Unknowns of a node below which zeros of its block are not worth leaving out."""


class ChunkError(ShadowfitError):
    """Rows that do not fit their window or the number of nodes."""


class Rows(PyTree):
    """Linearised residuals of consecutive steps, multiplied by the square roots of their weights.

    A missing residual is a row of zeros. Steps beyond the end of the recording may hold anything.
    """

    states: Float[Array, "steps m window b"]
    """∂r/∂(node k … node k+W−1)."""
    parameters: Float[Array, "steps m p"]
    """∂r/∂parameters."""
    residual: Float[Array, "steps m"]
    """r."""


@record(frozen=True)
class RowTable:
    """Rows of consecutive steps with everything side by side, ``[states | parameters | residual]``.

    Step k involves the nodes k + first … k + first + window − 1, which may be fewer than W.
    """

    wide: Float[np.ndarray, "steps m window*b+t"]
    window: int
    node_size: int
    """b."""
    first: int = 0
    blank: bool = False
    """Whether all derivatives by parameters are known to be zero."""

    @property
    def rows(self) -> Rows:
        """The three parts, as views."""
        steps, m, _ = self.wide.shape
        width = self.window * self.node_size
        states = self.wide[:, :, :width].reshape(steps, m, self.window, self.node_size)
        return Rows(states, self.wide[:, :, width:-1], self.wide[:, :, -1])

    def between(self, begin: int, end: int) -> RowTable:
        """Rows of some of the steps."""
        return dataclasses.replace(self, wide=self.wide[begin:end])


def joined(tables: Sequence[RowTable]) -> RowTable:
    """Rows of steps that follow each other, in one table."""
    return dataclasses.replace(tables[0], wide=np.concatenate([table.wide for table in tables]))


def table(rows: Rows) -> RowTable:
    """Rows of steps, all parts in one array."""
    steps, m, window, size = rows.states.shape
    parts = (np.reshape(rows.states, (steps, m, window * size)), rows.parameters, np.asarray(rows.residual)[..., None])
    return RowTable(np.concatenate(parts, axis=2), window, size)


def merge(tables: Sequence[RowTable], window: int) -> Rows:
    """All rows of the same steps together, zero where they do not involve a node of the window."""
    parts = []
    for one in tables:
        rows = one.rows
        states = np.zeros((*rows.residual.shape, window, one.node_size))
        states[:, :, one.first : one.first + one.window] = rows.states
        parts.append((states, rows.parameters, rows.residual))
    return Rows(*(np.concatenate(each, axis=1) for each in zip(*parts, strict=True)))


@record(frozen=True)
class Normal:
    """Undamped normal equations of one recording, block rows from the diagonal on."""

    pivot: Float[np.ndarray, "blocks B B"]
    """A_j, of which the upper triangle counts; one on the diagonal for nodes that only fill up the last block, which
    stay exactly zero."""
    after: Float[np.ndarray, "blocks B B+t"]
    """C_j: columns of the next block and of the parameters; the last column is the gradient ``Jᵀr``."""
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

    @property
    def block(self) -> int:
        """B."""
        return self.pivot.shape[-1]

    def diagonal(self) -> Float[np.ndarray, "N b"]:
        """Diagonal of ``JᵀJ`` of the nodes."""
        return _of_nodes(np.diagonal(self.pivot, axis1=1, axis2=2), self.nodes, self.node_size)

    def gradient(self) -> Float[np.ndarray, "N b"]:
        """``Jᵀr`` of the nodes."""
        return _of_nodes(self.after[:, :, -1], self.nodes, self.node_size)

    def parameter_diagonal(self) -> Float[np.ndarray, " p"]:
        """Diagonal of ``JᵀJ`` of the parameters."""
        return np.diagonal(self.corner)[:-1]

    def parameter_gradient(self) -> Float[np.ndarray, " p"]:
        """``Jᵀr`` of the parameters."""
        return self.corner[:-1, -1]

    def change(self, states: Float[np.ndarray, "N b"], parameters: Float[ArrayLike, " p"]) -> float:
        """``‖Jδ + r‖² − ‖r‖²`` for a step, as ``2 gᵀδ + δᵀJᵀJδ``: no large numbers cancel."""
        tail = np.append(parameters, 1.0)
        blocks, block, _ = self.pivot.shape
        step = _by_blocks(states, blocks, block)
        rest = np.concatenate([np.zeros(block), tail])
        inner = library("change", blocks, block, len(tail), self.pivot, self.after, step, rest)
        return float(inner + tail @ self.corner @ tail - self.corner[-1, -1])


@record(frozen=True)
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
        return bool(self.margin > PIVOT_ROUNDING * np.finfo(self.matrix.dtype).eps and np.isfinite(self.value))

    def __add__(self, other: Reduced) -> Reduced:
        """Of the recordings of both, with the same parameters."""
        return Reduced(
            self.matrix + other.matrix,
            self.gradient + other.gradient,
            self.value + other.value,
            min(self.margin, other.margin),
        )


@record(frozen=True)
class Factor:
    """The eliminated states of one recording: a value to keep, for several right-hand sides and for covariances."""

    upper: Float[np.ndarray, "blocks B B"]
    """U_j; what is below the diagonal does not count."""
    right: Float[np.ndarray, "blocks B B+t"]
    """P_j: columns of the next block, of the parameters and of the gradient."""
    corner: Float[np.ndarray, "t t"]
    """What elimination left of the parameters and the gradient."""
    margin: float
    """Smallest squared pivot divided by its diagonal entry before elimination; 0 if a pivot was not positive."""
    nodes: int
    """N."""
    node_size: int
    """b."""

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self.upper)

    @property
    def block(self) -> int:
        """B."""
        return self.upper.shape[-1]

    @property
    def to_next(self) -> Float[np.ndarray, "blocks B B"]:
        """``P_j[next]ᵀ``: a row for each unknown of the next block."""
        return np.swapaxes(self.right[:, :, : self.block], 1, 2)

    def reduced(self) -> Reduced:
        """The system that is left for the parameters."""
        return Reduced(self.corner[:-1, :-1], self.corner[:-1, -1], float(self.corner[-1, -1]), self.margin)

    def log_determinant(self) -> float:
        """log det of the damped normal matrix of the states."""
        return 2.0 * float(np.sum(np.log(np.diagonal(self.upper, axis1=1, axis2=2))))

    def states(self, parameters: Float[ArrayLike, " p"]) -> Float[np.ndarray, "N b"]:
        """Best step of the states for a given step of the parameters."""
        tail = np.append(parameters, 1.0)
        rest, step = np.concatenate([np.zeros(self.block), tail]), np.empty((self.blocks, self.block))
        library("substitute", self.blocks, self.block, len(tail), self.upper, self.right, rest, step)
        return _of_nodes(step, self.nodes, self.node_size)

    def sensitivities(self) -> Float[np.ndarray, "N b p"]:
        """Change of the best states with the parameters, ``−H_xx⁻¹ H_xp``.

        With them ``J_p + J_x ∂x/∂p`` are the rows of the problem in which the states follow the parameters.
        """
        t = len(self.corner)
        return self._follow(np.eye(t - 1, t))

    def _follow(self, tail: Float[np.ndarray, "columns t"]) -> Float[np.ndarray, "N b columns"]:
        """Steps of the states for steps of the parameters and multiples of the gradient."""
        return self.onwards(np.matmul(self.right[:, :, self.block :], -tail.T))

    def halfway(self, right: Float[np.ndarray, "N b columns"]) -> Float[np.ndarray, "blocks B columns"]:
        """``U⁻ᵀ G`` of all blocks for columns G, whose squares are the diagonal of ``GᵀH_xx⁻¹G``.

        Forwards in time, ``U_jᵀ y_j = x_j − P_{j−1}[next]ᵀ y_{j−1}``.
        """
        columns = right.shape[-1]
        filled = _by_blocks(right.reshape(self.nodes, self.node_size * columns), self.blocks, self.block * columns)
        return self._substituted("forward", filled.reshape(self.blocks, self.block, columns))

    def onwards(self, halfway: Float[np.ndarray, "blocks B columns"]) -> Float[np.ndarray, "N b columns"]:
        """``H_xx⁻¹ G`` from ``U⁻ᵀ G``, which is overwritten.

        Backwards in time, ``U_j y_j = x_j − P_j[next] y_{j+1}``.
        """
        return _of_nodes(self._substituted("backward", halfway), self.nodes, self.node_size)

    def _substituted(self, way: str, values: Float[np.ndarray, "blocks B columns"]) -> np.ndarray:
        """The solution in place of the right-hand sides."""
        stride, columns = self.right.shape[2], values.shape[2]
        substitution.library(way, self.blocks, self.block, stride, columns, self.upper, self.right, values)
        return values

    def covariances(self, parameter_covariance: Float[ArrayLike, "p p"]) -> Float[np.ndarray, "N b b"]:
        """Marginal covariance of every node; the factor must be undamped.

        ``parameter_covariance`` has zero rows for parameters that are held fixed. Only the entries of the inverse
        on the pattern of the factor are formed, backwards in time (Takahashi's recursion): block j follows its
        successors, ``U_j δ_j = −P_j (δ_{j+1}, δ_parameters) + white noise``. With Σ the covariance of those,

            Σ_jj = U_j⁻¹ (1 + P_j Σ P_jᵀ) U_j⁻ᵀ,     Σ_j,parameters = −U_j⁻¹ (P_j Σ)[parameters].
        """
        joint = np.zeros((self.right.shape[2] - 1,) * 2)  # of the next block and the parameters
        joint[self.block :, self.block :] = parameter_covariance
        follows, own = self.backwards(len(joint))
        blocks = np.empty_like(self.upper)
        for j in range(self.blocks - 1, -1, -1):
            with_later = follows[j] @ joint
            blocks[j] = joint[: self.block, : self.block] = own[j] + with_later @ follows[j].T
            across = with_later[:, self.block :]
            joint[: self.block, self.block :], joint[self.block :, : self.block] = -across, -across.T
        group = self.block // self.node_size
        nodes = np.einsum("kgigj->kgij", blocks.reshape(-1, group, self.node_size, group, self.node_size))
        return nodes.reshape(-1, self.node_size, self.node_size)[: self.nodes]

    def backwards(self, width: int) -> tuple[Float[np.ndarray, "blocks B width"], Float[np.ndarray, "blocks B B"]]:
        """How each block follows what comes behind it, of which there are ``width`` columns: ``U_j⁻¹ P_j``.

        And its covariance where that is known, ``U_j⁻¹ U_j⁻ᵀ``.
        """
        panel, unit = self.right[:, :, :width], np.broadcast_to(np.eye(self.block), self.upper.shape)
        solved = np.concatenate([panel, unit], axis=2)
        # Each block by itself: nothing is handed on to the one before.
        alone, columns = np.zeros_like(self.upper), solved.shape[2]
        substitution.library("backward", self.blocks, self.block, self.block, columns, self.upper, alone, solved)
        inverse = solved[:, :, width:]
        return solved[:, :, :width], np.matmul(inverse, np.swapaxes(inverse, 1, 2))


def prepare() -> None:
    """Have the code of the elimination made, or read, in the background."""
    library.prepare()
    substitution.library.prepare()


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
    """Normal equations of one recording, added up from its rows in any order, by several threads at a time.

    A block belongs to the rows that hold its first step, which add to it as they come; what others add to it, at the
    borders, is kept aside. All sums are taken in the same order, so that the same rows give the same digits.
    """

    def __init__(self, nodes: int, window: int, size: int, parameters: int) -> None:
        if window < 2:
            raise ChunkError(f"rows with a window of {window} node; a window has at least 2")
        self.steps = nodes - window + 1
        self._group = window - 1
        self._normal = _empty(nodes, self._group, size, parameters + 1)
        self._borders: list[_Border] = []

    def add(self, tables: Sequence[RowTable], step: int) -> list[Float[np.ndarray, " m"]]:
        """Add the rows of the steps from the given one on; those behind the last step are left out.

        All rows of a step are given at once. Gives the sums of squares of each table's residuals.
        """
        live = max(min([self.steps - step, *(len(rows.wide) for rows in tables)]), 0)
        border = _Border.around(self._normal, self._group, step, step + live)
        squares = []
        for number, rows in enumerate(tables):
            wide = np.ascontiguousarray(rows.wide[:live], dtype=float)
            squares.append(np.zeros(wide.shape[1]))
            self._add_steps(wide, rows, step, border, squares[-1], clear=number == 0)
        self._borders.append(border)
        return squares

    def _add_steps(
        self, wide: np.ndarray, rows: RowTable, step: int, border: _Border, squares: np.ndarray, clear: bool
    ) -> None:
        normal, t = self._normal, len(self._normal.corner)
        # Many sensors see no parameter: products of zeros are most of what they would take.
        blank = t - 1 if rows.blank or not (np.any(wide[:1, :, -t:-1]) or np.any(wide[:, :, -t:-1])) else 0
        sizes = (*wide.shape[:2], rows.window, rows.node_size, step, rows.first, self._group, t, blank)
        places = (normal.pivot, normal.after, border.pivot, border.after, border.corner)
        library("add_steps", wide, *sizes, border.low, border.high, int(clear), *places, squares)

    def normal(self, start: Rows | None = None) -> Normal:
        """The sum of all that was added, and of rows of the first states."""
        for border in sorted(self._borders, key=lambda one: one.step):
            border.add_to(self._normal)
        self._borders.clear()
        if start is not None:
            _add_start(self._normal, start)
        return dataclasses.replace(self._normal, corner=_symmetric(self._normal.corner))


@record(frozen=True)
class _Border:
    """What rows of some steps add to the block before their own, to the one behind, and to the parameters."""

    step: int
    low: int
    """First block of their own."""
    high: int
    """The block behind."""
    pivot: Float[np.ndarray, "2 B B"]
    after: Float[np.ndarray, "2 B B+t"]
    corner: Float[np.ndarray, "t t"]

    @staticmethod
    def around(normal: Normal, group: int, begin: int, end: int) -> _Border:
        """Nothing yet, for steps from ``begin`` to ``end``."""
        _, block, width = normal.after.shape
        low, high = -(-begin // group), -(-end // group)
        zeros = np.zeros((2, block, block)), np.zeros((2, block, width)), np.zeros_like(normal.corner)
        return _Border(begin, low, high, *zeros)

    def add_to(self, normal: Normal) -> None:
        for j, pivot, after in zip((self.low - 1, self.high), self.pivot, self.after, strict=True):
            if 0 <= j < len(normal.pivot):
                normal.pivot[j] += pivot
                normal.after[j] += after
        normal.corner[...] += self.corner


def _empty(nodes: int, group: int, size: int, t: int) -> Normal:
    """Normal equations without rows; ``group`` nodes form a block.

    Blocks that hold the first step of some rows are not cleared yet: this is done where they are added to.
    """
    owned = -(-(nodes - group) // group)
    blocks, block = -(-nodes // group), group * size
    pivot, after = recycled(blocks, block, block), recycled(blocks, block, block + t)
    pivot[owned:], after[owned:] = 0.0, 0.0
    padding = np.arange(block) >= block - (blocks * group - nodes) * size
    pivot[-1, padding, padding] = 1.0
    return Normal(pivot, after, np.zeros((t, t)), nodes, size)


def _add_start(normal: Normal, start: Rows) -> None:
    """Add rows of the first W − 1 nodes."""
    block = normal.pivot.shape[-1]
    states = np.reshape(start.states, (len(start.residual), block))
    tail = np.column_stack([start.parameters, start.residual])
    normal.pivot[0] += states.T @ states
    normal.after[0, :, block:] += states.T @ tail
    normal.corner[...] += tail.T @ tail


def factorise(normal: Normal, damping: Float[np.ndarray, "N b"] | None = None) -> Factor:
    """Eliminate the nodes of a recording; ``damping`` is added to their diagonal (none: zero)."""
    blocks, block, _ = normal.pivot.shape
    added = np.zeros((blocks, block)) if damping is None else _by_blocks(damping, blocks, block)
    upper, right, corner = recycled(*normal.pivot.shape), recycled(*normal.after.shape), normal.corner.copy()
    grain = normal.node_size if normal.node_size >= NARROW else block
    margin = library(
        "eliminate", blocks, block, len(corner), grain, normal.pivot, normal.after, added, upper, right, corner
    )
    left = _symmetric(corner) if margin > 0.0 else np.full_like(corner, np.nan)
    return Factor(upper, right, left, margin, normal.nodes, normal.node_size)


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


def _symmetric(upper: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """The symmetric matrix with an upper triangle."""
    return np.triu(upper) + np.triu(upper, 1).T


def _by_blocks(values: Float[np.ndarray, "N x"], blocks: int, block: int) -> Float[np.ndarray, "blocks block"]:
    """Values of the nodes as those of the blocks, zero for nodes that fill up the last one."""
    filled = np.zeros(blocks * block)
    filled[: values.size] = values.ravel()
    return filled.reshape(blocks, block)


def _of_nodes(values: Float[np.ndarray, "blocks B *rest"], nodes: int, size: int) -> Float[np.ndarray, "N b *rest"]:
    """Values of the blocks as those of the nodes."""
    blocks, block, *rest = values.shape
    return values.reshape(blocks * block // size, size, *rest)[:nodes]
