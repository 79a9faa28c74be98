"""Block LDLᵀ factorisation of a symmetric positive definite matrix whose blocks lie on a graph.

The matrix ``S`` has one diagonal block per node and one off-diagonal block per edge of a graph. Eliminating
node k subtracts ``S_ik S_kk⁻¹ S_kj`` from every pair (i, j) of its remaining neighbours; a pair that was no edge
before is *fill*. The order decides how much there is: on a tree, and on any chordal graph, the order chosen
here creates none, so that the work grows linearly with the number of nodes.

    S = L D Lᵀ,   D_kk = C_k C_kᵀ (Cholesky),   L_ik = W_kiᵀ C_k⁻¹,   W_ki = C_k⁻¹ S_ki

``C`` and ``W`` are kept, not ``L``: they need one triangular solve fewer per block.

The work is sorted by how often it happens. `plan` looks at the graph, once, on the host; `factor` is called
for every matrix; `Factor.solve` for every right-hand side. Derivatives are those of the solution of
``S x = b``, ``S ẋ = ḃ − Ṡ x``; the factorisation itself is never differentiated.

Up to some twenty rows, calling a dense routine costs about as much as its arithmetic. Nodes are therefore
eliminated in groups: a node joins the group of its parent in the elimination tree while that has no more than
`GROUP_SIZE` rows. Two hinges (twelve rows) are one dense block; a long chain is a chain of such blocks. This
halves the time of factoring and solving, and the number of operations to compile.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.complementarity.small_matrices import cholesky, triangular_solver
from shadowfit.errors import ShadowfitError
from shadowfit.lazy_jax import jnp, lax
from shadowfit.pytrees import PyTree, field
from shadowfit.records import record

GROUP_SIZE = 24
"""Most rows that are eliminated together, unless a single block is larger."""


class BlockStructureError(ShadowfitError):
    """Blocks, sizes or edges that do not describe a symmetric block matrix."""


@record(frozen=True)
class Plan:
    """How a block matrix on a given graph is eliminated. Hashable, hence static under ``jit``."""

    sizes: tuple[int, ...]
    """Rows of each node's diagonal block, in the caller's numbering."""
    edges: tuple[tuple[int, int], ...]
    """Coupled pairs (i, j), i > j."""
    order: tuple[int, ...]
    """Nodes in the order of their elimination."""
    fill: tuple[tuple[int, int], ...]
    """Pairs (i, j), i > j, that the elimination couples although no edge does."""
    groups: tuple[tuple[int, ...], ...]
    """Nodes that are eliminated together, in the order of elimination."""
    later: tuple[tuple[int, ...], ...]
    """For each group, the later groups that are coupled to it when its turn comes."""

    @property
    def size(self) -> int:
        """Rows of the whole matrix."""
        return sum(self.sizes)

    @property
    def group_sizes(self) -> tuple[int, ...]:
        """Rows of each group."""
        return tuple(sum(self.sizes[node] for node in group) for group in self.groups)

    @property
    def permutation(self) -> np.ndarray:
        """The caller's row at each row of the grouped matrix."""
        starts = np.cumsum([0, *self.sizes])
        rows = [np.arange(starts[node], starts[node + 1]) for group in self.groups for node in group]
        return np.concatenate(rows) if rows else np.zeros(0, dtype=int)


def plan(sizes: Sequence[int], edges: Iterable[tuple[int, int]], group_size: int = GROUP_SIZE) -> Plan:
    """Choose the elimination order and record what it couples.

    Args:
        sizes: rows of the diagonal block of each node.
        edges: coupled pairs of nodes, in either direction; repeated pairs count once.
        group_size: most rows that are eliminated together; 0 eliminates every node by itself.
    """
    sizes = tuple(int(size) for size in sizes)
    edges = tuple(sorted({_checked_edge(edge, len(sizes)) for edge in edges}))
    if any(size < 1 for size in sizes):
        raise BlockStructureError(f"block sizes are {sizes}; each must be at least 1")
    order, later_nodes, fill = _eliminate(len(sizes), edges)
    groups, later = _group(sizes, order, later_nodes, group_size)
    return Plan(sizes, edges, order, fill, groups, later)


def _checked_edge(edge: tuple[int, int], nodes: int) -> tuple[int, int]:
    low, high = sorted(int(node) for node in edge)
    if low < 0 or high >= nodes or low == high:
        raise BlockStructureError(f"edge {edge} must join two different nodes out of 0..{nodes - 1}")
    return high, low


def _eliminate(
    nodes: int, edges: Iterable[tuple[int, int]]
) -> tuple[tuple[int, ...], dict[int, set[int]], tuple[tuple[int, int], ...]]:
    """Eliminate the node that creates the least fill, and among those the one with the fewest neighbours.

    A chordal graph always has a node whose neighbours are all coupled already, so this order finds a fill-free
    elimination whenever there is one. Returns the order, each node's neighbours at its turn, and the fill.
    """
    neighbours: dict[int, set[int]] = {node: set() for node in range(nodes)}
    for i, j in edges:
        neighbours[i].add(j)
        neighbours[j].add(i)

    def created(node: int) -> list[tuple[int, int]]:
        pairs = itertools.combinations(sorted(neighbours[node]), 2)
        return [(high, low) for low, high in pairs if high not in neighbours[low]]

    order: list[int] = []
    fill: list[tuple[int, int]] = []
    later: dict[int, set[int]] = {}
    while neighbours:
        node = min(neighbours, key=lambda node: (len(created(node)), len(neighbours[node]), node))
        for i, j in created(node):
            neighbours[i].add(j)
            neighbours[j].add(i)
            fill.append((i, j))
        later[node] = neighbours.pop(node)
        for other in later[node]:
            neighbours[other].remove(node)
        order.append(node)
    return tuple(order), later, tuple(sorted(fill))


def _group(
    sizes: tuple[int, ...], order: tuple[int, ...], later_nodes: dict[int, set[int]], group_size: int
) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
    """Join nodes to their parent's group while it stays small; order the groups by their last node.

    The parent of a node is the first of its later neighbours. All its other later neighbours are also the
    parent's, so that waiting for the parent couples nothing new outside of the group.
    """
    turn = {node: position for position, node in enumerate(order)}
    members: dict[int, list[int]] = {}  # by the group's last node
    last_node: dict[int, int] = {}
    for node in reversed(order):
        last = node
        if later_nodes[node]:
            parent_last = last_node[min(later_nodes[node], key=turn.__getitem__)]
            rows = sizes[node] + sum(sizes[member] for member in members[parent_last])
            if rows <= group_size:
                last = parent_last
        last_node[node] = last
        members.setdefault(last, []).append(node)
    lasts = sorted(members, key=turn.__getitem__)
    number = {last: position for position, last in enumerate(lasts)}
    groups = tuple(tuple(sorted(members[last])) for last in lasts)
    later = tuple(tuple(sorted({number[last_node[node]] for node in later_nodes[last]})) for last in lasts)
    return groups, later


class Factor(PyTree):
    """A factored symmetric positive definite block matrix ``S``; `solve` applies ``S⁻¹``.

    The blocks are kept beside the factor because derivatives are taken with respect to them.
    """

    plan: Plan = field(static=True)
    blocks: dict[tuple[int, int], Float[Array, "_rows _columns"]]
    """The caller's blocks (i, j), i ≥ j."""
    roots: tuple[Float[Array, "_g _g"], ...]
    """``C_k``, lower triangular, of each group."""
    couplings: tuple[Float[Array, "_g _later"], ...]
    """``W_k = C_k⁻¹ [S_ki …]`` over the later groups of each group, side by side."""

    def multiply(self, vector: Float[Array, "n *k"]) -> Float[Array, "n *k"]:
        """``S x``, block by block."""
        parts = _split(vector, self.plan.sizes)
        products = [self.blocks[node, node] @ part for node, part in enumerate(parts)]
        for i, j in self.plan.edges:
            if (i, j) in self.blocks:
                products[i] = products[i] + self.blocks[i, j] @ parts[j]
                products[j] = products[j] + self.blocks[i, j].T @ parts[i]
        return jnp.concatenate(products)

    def solve(self, rhs: Float[Array, "n *k"]) -> Float[Array, "n *k"]:
        """``S⁻¹ rhs`` for one right-hand side ``[n]`` or for several ``[n, k]``."""
        if rhs.ndim not in (1, 2) or rhs.shape[0] != self.plan.size:
            n = self.plan.size
            raise BlockStructureError(f"right-hand side has shape {rhs.shape}; expected ({n},) or ({n}, k)")
        if not self.plan.sizes:
            return rhs
        return lax.custom_linear_solve(self.multiply, rhs, lambda _, b: _substitute(self, b), symmetric=True)


def factor(plan: Plan, blocks: Mapping[tuple[int, int], Float[Array, "rows columns"]]) -> Factor:
    """Factor the matrix with the given blocks.

    Args:
        plan: from `plan`, for the same sizes and edges.
        blocks: block (i, j), i ≥ j, of shape ``sizes[i] × sizes[j]`` in the caller's numbering. Diagonal
            blocks are symmetric. An edge without a block is uncoupled.

    A matrix that is not positive definite gives a factor of NaN.
    """
    _check_blocks(plan, blocks)
    work = _grouped(plan, {key: lax.stop_gradient(block) for key, block in blocks.items()})
    roots: list[Array] = []
    couplings: list[Array] = []
    for group, later in enumerate(plan.later):
        root = cholesky(work[group, group])
        roots.append(root)
        if not later:
            couplings.append(jnp.zeros((root.shape[0], 0), root.dtype))
            continue
        column = jnp.concatenate([work[other, group] for other in later])  # [later, g]
        coupling = triangular_solver(lower=True)(root, column.T)
        couplings.append(coupling)
        _subtract_outer(work, later, coupling, [plan.group_sizes[other] for other in later])
    return Factor(plan, dict(blocks), tuple(roots), tuple(couplings))


def _check_blocks(plan: Plan, blocks: Mapping[tuple[int, int], Array]) -> None:
    allowed = {*plan.edges, *((node, node) for node in range(len(plan.sizes)))}
    for (i, j), block in blocks.items():
        if (i, j) not in allowed:
            raise BlockStructureError(f"block ({i}, {j}) is neither diagonal nor an edge (i > j) of the plan")
        if block.shape != (plan.sizes[i], plan.sizes[j]):
            expected = (plan.sizes[i], plan.sizes[j])
            raise BlockStructureError(f"block ({i}, {j}) has shape {block.shape}; expected {expected}")
    missing = [node for node in range(len(plan.sizes)) if (node, node) not in blocks]
    if missing:
        raise BlockStructureError(f"diagonal blocks of nodes {missing} are missing; every node needs one")


def _grouped(plan: Plan, blocks: Mapping[tuple[int, int], Array]) -> dict[tuple[int, int], Array]:
    """Blocks (I, J) of groups, J eliminated no later than I, put together from the blocks of their nodes."""
    dtype = jnp.result_type(*blocks.values()) if blocks else None

    def block(i: int, j: int) -> Array:
        if (i, j) in blocks:
            return blocks[i, j]
        if (j, i) in blocks:
            return blocks[j, i].T
        return jnp.zeros((plan.sizes[i], plan.sizes[j]), dtype)

    def group_block(rows: tuple[int, ...], columns: tuple[int, ...]) -> Array:
        if len(rows) == len(columns) == 1:
            return block(rows[0], columns[0])
        return jnp.block([[block(i, j) for j in columns] for i in rows])

    pairs = [(row, column) for column, later in enumerate(plan.later) for row in (column, *later)]
    return {(row, column): group_block(plan.groups[row], plan.groups[column]) for row, column in pairs}


def _subtract_outer(
    work: dict[tuple[int, int], Array], later: tuple[int, ...], coupling: Array, sizes: list[int]
) -> None:
    """``S_ij ← S_ij − W_iᵀ W_j`` for all pairs i ≥ j of later groups, in place."""
    product = coupling.T @ coupling
    spans = [slice(stop - size, stop) for size, stop in zip(sizes, itertools.accumulate(sizes), strict=True)]
    for (j, span_j), (i, span_i) in itertools.combinations_with_replacement(zip(later, spans, strict=True), 2):
        work[i, j] = work[i, j] - product[span_i, span_j]


def _substitute(factor: Factor, rhs: Float[Array, "n *k"]) -> Float[Array, "n *k"]:
    """Forward and backward substitution with ``C`` and ``W``."""
    plan = factor.plan
    permutation = plan.permutation
    ordered = bool(np.all(permutation == np.arange(plan.size)))
    columns = rhs.reshape(plan.size, -1)
    parts = _split(columns if ordered else columns[permutation], plan.group_sizes)
    forward, backward = triangular_solver(lower=True), triangular_solver(lower=True, transposed=True)
    for group, later in enumerate(plan.later):
        parts[group] = forward(factor.roots[group], parts[group])
        if later:
            change = factor.couplings[group].T @ parts[group]
            changes = _split(change, [plan.group_sizes[other] for other in later])
            for other, part in zip(later, changes, strict=True):
                parts[other] = parts[other] - part
    for group, later in reversed(list(enumerate(plan.later))):
        part = parts[group]
        if later:
            part = part - factor.couplings[group] @ jnp.concatenate([parts[other] for other in later])
        parts[group] = backward(factor.roots[group], part)
    solution = parts[0] if len(parts) == 1 else jnp.concatenate(parts)
    return (solution if ordered else solution[np.argsort(permutation)]).reshape(rhs.shape)


def _split(vector: Float[Array, "n *k"], sizes: Sequence[int]) -> list[Array]:
    """Consecutive pieces of the given numbers of rows."""
    stops = itertools.accumulate(sizes)
    return [vector[stop - size : stop] for size, stop in zip(sizes, stops, strict=True)]
