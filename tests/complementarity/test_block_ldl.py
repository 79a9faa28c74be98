"""Block LDLᵀ: fill of elimination orders, structured = dense on trees, chains, stars and loops, derivatives, errors."""

import functools
import itertools

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

from shadowfit.complementarity import BlockStructureError, block_ldl

GRAPHS = {
    "chain": [(1, 0), (2, 1), (3, 2), (4, 3)],
    "star": [(1, 0), (2, 0), (3, 0), (4, 0)],
    "loop": [(1, 0), (2, 1), (3, 2), (4, 3), (4, 0)],
    "forest": [(4, 1), (3, 0)],
    "wheel": [(1, 0), (2, 1), (3, 2), (3, 0), (4, 0), (4, 1), (4, 2), (4, 3)],
}
SIZES = (3, 6, 1, 5, 2)


def random_matrix(rng, sizes, edges):
    """A positive definite matrix with the given block pattern, and its blocks."""
    starts = np.cumsum([0, *sizes])
    spans = [slice(start, stop) for start, stop in itertools.pairwise(starts)]
    S = np.zeros((starts[-1], starts[-1]))
    for i, j in [(max(edge), min(edge)) for edge in edges]:
        S[spans[i], spans[j]] = rng.normal(size=(sizes[i], sizes[j]))
    S = S + S.T
    S += np.diag(np.abs(S).sum(axis=1) + rng.uniform(0.1, 1, len(S)))
    for span in spans:
        root = rng.normal(size=(span.stop - span.start,) * 2)
        S[span, span] += root @ root.T
    pairs = {(i, i) for i in range(len(sizes))} | {(max(edge), min(edge)) for edge in edges}
    return S, {(i, j): jnp.array(S[spans[i], spans[j]]) for i, j in pairs}


@given(st.data())
@settings(max_examples=60)
def test_trees_create_no_fill(data):
    nodes = data.draw(st.integers(1, 12))
    names = data.draw(st.permutations(range(nodes)))
    edges = [(names[i], names[data.draw(st.integers(0, i - 1))]) for i in range(1, nodes)]
    plan = block_ldl.plan([6] * nodes, edges)
    assert plan.fill == ()
    assert sorted(plan.order) == list(range(nodes))
    assert sorted(node for group in plan.groups for node in group) == list(range(nodes))


@given(st.data())
@settings(max_examples=40)
def test_chordal_graphs_create_no_fill(data):
    """Each new node is joined to some nodes that are joined among themselves."""
    edges: set[tuple[int, int]] = set()
    for node in range(1, data.draw(st.integers(2, 9))):
        clique: list[int] = []
        for other in data.draw(st.permutations(range(node))):
            if all((max(other, member), min(other, member)) in edges for member in clique) and data.draw(st.booleans()):
                clique.append(other)
        edges |= {(node, other) for other in clique}
    assert block_ldl.plan([1] * 9, edges).fill == ()


def test_a_loop_of_n_nodes_creates_n_minus_three_pairs():
    for nodes in range(3, 9):
        edges = [(i, (i + 1) % nodes) for i in range(nodes)]
        fill = block_ldl.plan([6] * nodes, edges).fill
        assert len(fill) == nodes - 3
        assert not {(j, i) for i, j in fill} & {(min(edge), max(edge)) for edge in edges}


@functools.partial(jax.jit, static_argnums=0)
def solve(plan, blocks, rhs):
    return block_ldl.factor(plan, blocks).solve(rhs)


@pytest.mark.parametrize("group_size", [0, 9])
@pytest.mark.parametrize("graph", GRAPHS)
def test_structured_equals_dense(graph, group_size):
    rng = np.random.default_rng(0)
    S, blocks = random_matrix(rng, SIZES, GRAPHS[graph])
    plan = block_ldl.plan(SIZES, GRAPHS[graph], group_size)
    assert max(plan.group_sizes) <= max(group_size, *SIZES)
    rhs = rng.normal(size=(len(S), 3))
    np.testing.assert_allclose(solve(plan, blocks, rhs), np.linalg.solve(S, rhs), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("seed", range(2))
def test_random_graphs_equal_dense(seed):
    rng = np.random.default_rng(seed)
    edges = [pair for pair in itertools.combinations(range(6), 2) if rng.random() < 0.4]
    sizes = rng.integers(1, 4, size=6)
    S, blocks = random_matrix(rng, sizes, edges)
    plan = block_ldl.plan(sizes, edges, group_size=5)
    rhs = rng.normal(size=len(S))
    np.testing.assert_allclose(solve(plan, blocks, rhs), np.linalg.solve(S, rhs), rtol=1e-9)


def test_factors_multiply_to_the_matrix():
    """``S = R Rᵀ`` in the order of elimination, with the roots and couplings as the block columns of R."""
    rng = np.random.default_rng(1)
    S, blocks = random_matrix(rng, SIZES, GRAPHS["loop"])
    plan = block_ldl.plan(SIZES, GRAPHS["loop"], 0)
    factor = jax.jit(block_ldl.factor, static_argnums=0)(plan, blocks)
    starts = np.cumsum([0, *plan.group_sizes])
    R = np.zeros_like(S)
    for group, later in enumerate(plan.later):
        span = slice(starts[group], starts[group + 1])
        R[span, span] = factor.roots[group]
        rows = [row for other in later for row in range(starts[other], starts[other + 1])]
        R[rows, span] = factor.couplings[group].T
    np.testing.assert_allclose(R @ R.T, S[np.ix_(plan.permutation, plan.permutation)], atol=1e-12)
    vector = rng.normal(size=len(S))
    np.testing.assert_allclose(factor.multiply(vector), S @ vector, atol=1e-12)


def test_missing_off_diagonal_block_is_zero():
    rng = np.random.default_rng(2)
    S, blocks = random_matrix(rng, (2, 3), [])
    plan = block_ldl.plan((2, 3), [(1, 0)], group_size=0)
    np.testing.assert_allclose(solve(plan, blocks, np.ones(5)), np.linalg.solve(S, np.ones(5)), rtol=1e-12)


def test_derivatives_equal_finite_differences():
    """Along a random direction forwards, and against a random weight of the results backwards."""
    rng = np.random.default_rng(3)
    sizes, edges = (2, 1, 2, 1), [(1, 0), (2, 1), (3, 2), (3, 0)]
    plan = block_ldl.plan(sizes, edges, group_size=3)
    assert len(plan.groups) == 2
    _, blocks = random_matrix(rng, sizes, edges)
    _, blocks_dot = random_matrix(rng, sizes, edges)
    rhs, rhs_dot, weight = jnp.array(rng.normal(size=(3, 6, 2)))

    @jax.jit
    def value_and_derivatives(step):
        def along(step):
            moved = jax.tree.map(lambda block, direction: block + step * direction, blocks, blocks_dot)
            return block_ldl.factor(plan, moved).solve(rhs + step * rhs_dot)

        value, tangent = jax.jvp(along, (step,), (1.0,))
        return value, tangent, jax.grad(lambda step: jnp.vdot(weight, along(step)))(step)

    _, tangent, gradient = value_and_derivatives(0.0)
    ahead, behind = (value_and_derivatives(step)[0] for step in (1e-5, -1e-5))
    difference = (ahead - behind) / 2e-5
    np.testing.assert_allclose(tangent, difference, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(gradient, np.vdot(weight, difference), rtol=1e-7)


def test_batches_under_jit():
    """The factor crosses the boundary of a compiled function, with the plan as its static part."""
    rng = np.random.default_rng(4)
    S, blocks = random_matrix(rng, (3, 4, 2), [(1, 0), (2, 1)])
    plan = block_ldl.plan((3, 4, 2), [(1, 0), (2, 1)], group_size=0)
    assert hash(plan) == hash(block_ldl.plan((3, 4, 2), [(0, 1), (1, 2), (2, 1)], group_size=0))
    factors = jnp.array([1.0, 2.0, 5.0])
    stacked = {key: factors[:, None, None] * block for key, block in blocks.items()}
    batch = jax.jit(jax.vmap(lambda blocks: block_ldl.factor(plan, blocks)))(stacked)
    solutions = jax.jit(jax.vmap(lambda factor: factor.solve(jnp.ones(9))))(batch)
    np.testing.assert_allclose(
        factors[:, None] * solutions, np.tile(np.linalg.solve(S, np.ones(9)), (3, 1)), rtol=1e-10
    )


def test_empty_matrix():
    factor = block_ldl.factor(block_ldl.plan([], []), {})
    assert factor.solve(jnp.zeros((0, 2))).shape == (0, 2)


def test_indefinite_matrix_gives_nan():
    plan = block_ldl.plan([2], [])
    assert np.isnan(solve(plan, {(0, 0): np.diag([1.0, -1.0])}, np.ones(2))).any()


@pytest.mark.parametrize(
    ("sizes", "edges", "message"),
    [
        ((2, 2), [(0, 2)], r"edge \(0, 2\) must join two different nodes out of 0\.\.1"),
        ((2, 2), [(1, 1)], r"edge \(1, 1\)"),
        ((2, 0), [], "each must be at least 1"),
    ],
)
def test_wrong_graphs_are_named(sizes, edges, message):
    with pytest.raises(BlockStructureError, match=message):
        block_ldl.plan(sizes, edges)


def test_wrong_blocks_are_named():
    plan = block_ldl.plan((2, 3), [(1, 0)])
    good = {(0, 0): np.eye(2), (1, 1): np.eye(3)}
    with pytest.raises(BlockStructureError, match=r"block \(0, 1\) is neither"):
        solve(plan, {**good, (0, 1): np.zeros((2, 3))}, np.zeros(5))
    with pytest.raises(BlockStructureError, match=r"block \(1, 0\) has shape \(2, 3\); expected \(3, 2\)"):
        solve(plan, {**good, (1, 0): np.zeros((2, 3))}, np.zeros(5))
    with pytest.raises(BlockStructureError, match=r"nodes \[1\] are missing"):
        solve(plan, {(0, 0): np.eye(2)}, np.zeros(5))
    with pytest.raises(BlockStructureError, match=r"shape \(4,\); expected \(5,\) or \(5, k\)"):
        solve(plan, good, np.zeros(4))
