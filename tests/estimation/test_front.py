"""Sparse elimination of the states equals full matrices: steps, reduced systems, sensitivities, covariances.

Also covered: several recordings with shared and own parameters, padding, chunk sizes, other right-hand sides,
and broken-down pivots.
"""

import numpy as np
import pytest

from estimation.dense import dense_factorise, dense_rows
from shadowfit.estimation.linear import front
from shadowfit.estimation.linear.box_step import parameter_covariance

TOLERANCE = 1e-10

# window W, unknowns per node b, parameters p, steps n, chunk size. Chunks end with the last node (W = 2), end in
# padding (W = 3), and the last one may hold no step at all (W = 4: 18 steps fill three chunks, 21 nodes do not).
# Chunks of 5 and 7 steps end inside of a block. From 8 unknowns per node on, zeros of the blocks are left out.
CASES = [(2, 3, 4, 9, 5), (3, 2, 3, 11, 4), (4, 2, 0, 18, 6), (4, 9, 5, 17, 7), (3, 12, 13, 23, 5)]


def random_chunks(rng, window, size, p, steps, chunk, filler=np.nan):
    """Rows with a well-conditioned normal matrix; steps that only pad the last chunk hold ``filler``."""
    nodes = steps + window - 1
    m = size + 3
    count = -(-nodes // chunk)
    states = np.full((count * chunk, m, window, size), filler)
    parameters = np.full((count * chunk, m, p), filler)
    residual = np.full((count * chunk, m), filler)
    states[:steps] = rng.normal(size=(steps, m, window, size))
    # Node k dominates step k; nodes after the last step would be seen by few rows only.
    states[:steps, :size, 0] += 3.0 * np.eye(size)
    states[steps - 1, :, 1:] *= 3.0
    parameters[:steps] = rng.normal(size=(steps, m, p))
    residual[:steps] = rng.normal(size=(steps, m))
    states[0, 1], parameters[0, 1], residual[0, 1] = 0.0, 0.0, 0.0  # a missing residual
    return [
        front.Rows(*(np.asarray(part[i * chunk : (i + 1) * chunk]) for part in (states, parameters, residual)))
        for i in range(count)
    ], nodes


def random_damping(rng, chunks, nodes):
    return rng.uniform(0.5, 2.0, size=(nodes, chunks[0].states.shape[-1]))


def assert_close(actual, expected):
    """Agreement relative to the largest entry."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    scale = np.max(np.abs(expected), initial=0.0)
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=TOLERANCE * (scale or 1.0))


@pytest.fixture(params=CASES, ids=lambda case: "W{}-b{}-p{}-n{}-C{}".format(*case))
def problem(request):
    rng = np.random.default_rng(request.param)
    chunks, nodes = random_chunks(rng, *request.param)
    return rng, chunks, nodes


def test_normal_equations_equal_dense(problem):
    rng, chunks, nodes = problem
    normal, rows = front.assemble(iter(chunks), nodes), dense_rows(chunks, nodes)
    size = rows.node_size
    assert_close(normal.cost, rows.residual @ rows.residual)
    assert_close(normal.diagonal(), (rows.states**2).sum(0).reshape(nodes, size))
    assert_close(normal.gradient(), (rows.states.T @ rows.residual).reshape(nodes, size))
    assert_close(normal.parameter_diagonal(), (rows.parameters**2).sum(0))
    assert_close(normal.parameter_gradient(), rows.parameters.T @ rows.residual)

    step = rng.normal(size=(nodes, size))
    parameters = rng.normal(size=rows.parameters.shape[1])
    moved = rows.residual + rows.parameters @ parameters + rows.states @ step.ravel()
    assert_close(normal.change(step, parameters), moved @ moved - rows.residual @ rows.residual)


@pytest.mark.parametrize("damped", [True, False])
def test_step_equals_dense(problem, damped):
    rng, chunks, nodes = problem
    damping = random_damping(rng, chunks, nodes) if damped else None
    factor = front.factorise(front.assemble(chunks, nodes), damping)
    dense = dense_factorise(dense_rows(chunks, nodes), damping)
    reduced, expected = factor.reduced(), dense.reduced()
    assert reduced.ok
    assert_close(reduced.matrix, expected.matrix)
    assert_close(reduced.gradient, expected.gradient)
    assert_close(reduced.value, expected.value)

    step = rng.normal(size=len(reduced.gradient))
    assert_close(factor.states(step), dense.states(step))
    assert_close(factor.sensitivities(), dense.sensitivities())


def test_step_minimises_the_damped_model(problem):
    """The whole step solves the normal equations of states and parameters at once."""
    rng, chunks, nodes = problem
    damping = random_damping(rng, chunks, nodes)
    factor = front.factorise(front.assemble(chunks, nodes), damping)
    reduced, rows = factor.reduced(), dense_rows(chunks, nodes)
    parameters = np.linalg.solve(reduced.matrix, -reduced.gradient)
    states = factor.states(parameters).ravel()

    jacobian = np.hstack([rows.states, rows.parameters])
    weight = np.concatenate([damping.ravel(), np.zeros(len(parameters))])
    expected = -np.linalg.solve(jacobian.T @ jacobian + np.diag(weight), jacobian.T @ rows.residual)
    assert_close(np.concatenate([states, parameters]), expected)


def test_covariances_equal_the_inverse(problem):
    _, chunks, nodes = problem
    factor, rows = front.factorise(front.assemble(chunks, nodes)), dense_rows(chunks, nodes)
    size, p = rows.node_size, rows.parameters.shape[1]
    jacobian = np.hstack([rows.states, rows.parameters])
    inverse = np.linalg.inv(jacobian.T @ jacobian)
    covariance = parameter_covariance(factor.reduced().matrix)
    assert_close(covariance, inverse[nodes * size :, nodes * size :])
    blocks = [inverse[k * size : (k + 1) * size, k * size : (k + 1) * size] for k in range(nodes)]
    assert_close(factor.covariances(covariance), blocks)

    fixed = np.arange(p) % 2 == 0
    conditional = parameter_covariance(factor.reduced().matrix, ~fixed)
    dense = dense_factorise(rows).covariances(conditional)
    assert_close(factor.covariances(conditional), dense)


def test_other_right_hand_sides(problem):
    rng, chunks, nodes = problem
    damping = random_damping(rng, chunks, nodes)
    factor = front.factorise(front.assemble(chunks, nodes), damping)
    dense = dense_factorise(dense_rows(chunks, nodes), damping)
    right = rng.normal(size=(nodes, damping.shape[1], 3))
    halfway = factor.halfway(right)
    sizes = np.sum(halfway**2, axis=(0, 1))
    solved = factor.onwards(halfway)
    columns = right.reshape(-1, 3)
    expected = dense.inverse @ columns
    assert_close(solved, expected.reshape(right.shape))
    assert_close(sizes, np.diagonal(columns.T @ expected))
    assert_close(factor.log_determinant(), -np.linalg.slogdet(dense.inverse)[1])


def test_rows_of_the_start(problem):
    rng, chunks, nodes = problem
    _, _, window, size = chunks[0].states.shape
    p = chunks[0].parameters.shape[-1]
    start = front.Rows(
        np.asarray(rng.normal(size=(4, window - 1, size))),
        np.asarray(rng.normal(size=(4, p))),
        np.asarray(rng.normal(size=4)),
    )
    factor = front.factorise(front.assemble(chunks, nodes, start))
    dense = dense_factorise(dense_rows(chunks, nodes, start))
    assert_close(factor.reduced().matrix, dense.reduced().matrix)
    assert_close(factor.reduced().gradient, dense.reduced().gradient)
    assert_close(factor.reduced().value, dense.reduced().value)
    step = rng.normal(size=p)
    assert_close(factor.states(step), dense.states(step))


def test_recordings_share_parameters():
    """Three recordings, parameters shared, own and used twice, against one dense system of everything."""
    rng = np.random.default_rng(5)
    indices = [np.array([0, 2, 4]), np.array([3, 0, 5]), np.array([1, 4, 1])]
    lengths = [6, 9, 4]
    recordings = [random_chunks(rng, 3, 2, 3, steps, 4) for steps in lengths]
    factors = [front.factorise(front.assemble(chunks, nodes)) for chunks, nodes in recordings]
    joined = front.join([factor.reduced() for factor in factors], indices, 6)
    step = np.linalg.solve(joined.matrix, -joined.gradient)

    parts = [dense_rows(chunks, nodes) for chunks, nodes in recordings]
    total = sum(part.states.shape[1] for part in parts)
    jacobian = np.zeros((sum(len(part.residual) for part in parts), total + 6))
    row = column = 0
    for part, index in zip(parts, indices, strict=True):
        rows = slice(row, row + len(part.residual))
        jacobian[rows, column : column + part.states.shape[1]] = part.states
        for local, place in enumerate(index):
            jacobian[rows, total + place] += part.parameters[:, local]
        row, column = row + len(part.residual), column + part.states.shape[1]
    residual = np.concatenate([part.residual for part in parts])
    expected = -np.linalg.lstsq(jacobian, residual)[0]
    states = [
        factor.states(step[index]).ravel()
        for factor, index, (_, nodes) in zip(factors, indices, recordings, strict=True)
    ]
    assert_close(np.concatenate([*states, step]), expected)
    left = jacobian @ expected + residual
    assert_close(joined.value + step @ joined.gradient, left @ left)


def test_sixteen_bodies_in_one_chunk():
    rng = np.random.default_rng(6)
    chunks, nodes = random_chunks(rng, 3, 96, 20, 4, 6)
    damping = random_damping(rng, chunks, nodes)
    factor = front.factorise(front.assemble(chunks, nodes), damping)
    dense = dense_factorise(dense_rows(chunks, nodes), damping)
    assert_close(factor.reduced().matrix, dense.reduced().matrix)
    step = rng.normal(size=20)
    assert_close(factor.states(step), dense.states(step))


@pytest.mark.parametrize("node", [0, 4, 10], ids=["first", "middle", "last"])
def test_pivot_that_is_not_positive_is_reported(node):
    chunks, nodes = random_chunks(np.random.default_rng(7), 3, 2, 3, 9, 4)
    damping = np.zeros((nodes, 2))
    damping[node, 1] = -1e9
    reduced = front.factorise(front.assemble(chunks, nodes), damping).reduced()
    assert not reduced.ok
    assert reduced.margin == 0.0


def changed(chunks, component, value):
    """The same rows with other derivatives by one component of the states."""
    states = [np.array(chunk.states) for chunk in chunks]
    for own in states:
        component(own)[...] = value(own)
    return [front.Rows(own, c.parameters, c.residual) for own, c in zip(states, chunks, strict=True)]


def test_unobserved_state_is_reported():
    """A state that no row sees, and one that is seen only together with the next node."""
    rng = np.random.default_rng(8)
    chunks, nodes = random_chunks(rng, 2, 3, 4, 9, 5)
    unseen = changed(chunks, lambda own: own[:, :, :, 1], lambda own: 0.0)
    assert not front.factorise(front.assemble(unseen, nodes)).reduced().ok

    differences = changed(chunks, lambda own: own[:, :, 1, 1], lambda own: -own[:, :, 0, 1])
    assert not front.factorise(front.assemble(differences, nodes)).reduced().ok
    assert front.factorise(front.assemble(chunks, nodes)).reduced().margin > 1e-3


def test_order_of_chunks_does_not_matter(problem):
    """To the last digit: threads finish in any order."""
    _, chunks, nodes = problem
    _, _, window, size = chunks[0].states.shape
    p, chunk = chunks[0].parameters.shape[-1], len(chunks[0].residual)
    expected = front.assemble(chunks, nodes)
    assembly = front.Assembly(nodes, window, size, p)
    for i in reversed(range(len(chunks))):
        assembly.add([front.table(chunks[i])], i * chunk)
    found = assembly.normal()
    for name in ("pivot", "after", "corner"):
        np.testing.assert_array_equal(np.triu(getattr(found, name)), np.triu(getattr(expected, name)))


@pytest.mark.parametrize("first", [0, 1, 2])
def test_rows_of_a_part_of_the_window(first):
    """Rows that involve some nodes of a step's window, next to rows that involve all of them."""
    rng = np.random.default_rng(10)
    (chunk,), nodes = random_chunks(rng, 4, 3, 2, 11, 14, filler=0.0)
    narrow = front.RowTable(rng.normal(size=(14, 2, 2 * 3 + 3)), 2, 3, first)
    assembly = front.Assembly(nodes, 4, 3, 2)
    whole, part = assembly.add([front.table(chunk), narrow], 0)
    found = front.factorise(assembly.normal())
    merged = front.merge([front.table(chunk), narrow], 4)
    expected = dense_factorise(dense_rows([merged], nodes))
    assert_close(found.reduced().matrix, expected.reduced().matrix)
    assert_close(found.reduced().value, expected.reduced().value)
    step = rng.normal(size=2)
    assert_close(found.states(step), expected.states(step))
    assert_close(whole, np.sum(chunk.residual[:11] ** 2, axis=0))
    assert_close(part, np.sum(narrow.wide[:11, :, -1] ** 2, axis=0))


def test_numbers_that_are_not_finite_are_reported():
    chunks, nodes = random_chunks(np.random.default_rng(11), 3, 2, 3, 9, 4)
    for value in (np.nan, np.inf, 1e200):
        states = np.array(chunks[1].states)
        states[1, 0, 0, 0] = value
        wild = [chunks[0], front.Rows(states, chunks[1].parameters, chunks[1].residual), *chunks[2:]]
        with np.errstate(over="ignore", invalid="ignore"):
            assert not front.factorise(front.assemble(wild, nodes)).reduced().ok


def test_rows_must_fit():
    chunks, nodes = random_chunks(np.random.default_rng(9), 3, 2, 3, 8, 3)
    with pytest.raises(front.ChunkError, match="6 steps, too few for 10 nodes"):
        front.assemble(chunks[:2], nodes)
    with pytest.raises(front.ChunkError, match="0 steps"):
        front.assemble([], nodes)
    single, nodes = random_chunks(np.random.default_rng(9), 1, 2, 3, 8, 4)
    with pytest.raises(front.ChunkError, match="window of 1 node"):
        front.assemble(single, nodes)
