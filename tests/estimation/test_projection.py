"""Rows without states: against dense projections, leverages, innovation scores, unobserved states."""

import numpy as np
import pytest

from estimation.dense import dense_rows
from estimation.test_front import assert_close, changed, random_chunks
from shadowfit.estimation.linear import front, projection


def random_start(rng, chunks):
    _, _, window, size = chunks[0].states.shape
    p = chunks[0].parameters.shape[-1]
    return front.Rows(
        np.asarray(rng.normal(size=(4, window - 1, size))),
        np.asarray(rng.normal(size=(4, p))),
        np.asarray(rng.normal(size=4)),
    )


@pytest.fixture(params=[(2, 3, 4, 9, 5), (3, 2, 3, 9, 4), (4, 2, 2, 11, 6)], ids=["pairs", "triples", "fours"])
def problem(request):
    """Window, unknowns of a node, parameters, steps, chunk."""
    rng = np.random.default_rng(request.param)
    chunks, nodes = random_chunks(rng, *request.param)
    start = random_start(rng, chunks)
    return chunks, nodes, start, request.param[3]


def at_minimum(chunks, nodes, start):
    """The same rows with the residuals that are left at the minimum over states and parameters."""
    rows = dense_rows(chunks, nodes, start)
    jacobian = np.hstack([rows.states, rows.parameters])
    left = rows.residual - jacobian @ np.linalg.lstsq(jacobian, rows.residual)[0]
    steps = nodes - chunks[0].states.shape[2] + 1
    m = chunks[0].residual.shape[1]
    table = np.zeros((len(chunks) * len(chunks[0].residual), m))
    table[:steps] = left[: steps * m].reshape(steps, m)
    parts = np.split(table, len(chunks))
    moved = [front.Rows(c.states, c.parameters, np.asarray(part)) for c, part in zip(chunks, parts, strict=True)]
    return moved, front.Rows(start.states, start.parameters, np.asarray(left[steps * m :]))


def projected(chunks, nodes, start, steps):
    normal = front.assemble(chunks, nodes, start)
    factor, ridge = projection.factorise(normal, np.zeros_like(normal.diagonal()))

    def each_chunk(work):
        begins = np.cumsum([0, *(len(chunk.residual) for chunk in chunks)])
        return [work(int(begin), chunk) for begin, chunk in zip(begins, chunks, strict=False)]

    return projection.project(each_chunk, start, factor, steps, ridge)


def test_rows_and_leverages_equal_the_dense_projection(problem):
    chunks, nodes, start, steps = problem
    found, rows = projected(chunks, nodes, start, steps), dense_rows(chunks, nodes, start)
    hat = rows.states @ np.linalg.pinv(rows.states)
    expected = rows.parameters - hat @ rows.parameters
    assert found.settled
    assert found.ridge == 0.0
    assert_close(found.flat(), expected)
    assert_close(found.information, expected.T @ expected)
    assert_close(found.gradient, expected.T @ rows.residual)
    m = found.residual.shape[1]
    assert_close(found.leverages.each.ravel(), np.diagonal(hat)[: steps * m])
    blocks = sum(hat[k * m : (k + 1) * m, k * m : (k + 1) * m] for k in range(steps))
    assert_close(found.leverages.total, blocks)


def test_scores_are_the_differences_of_the_gradients_of_growing_data(problem):
    """Each score is what its steps add to the gradient of the cost that is minimised over the states so far."""
    chunks, nodes, start, steps = problem
    chunks, start = at_minimum(chunks, nodes, start)
    found = projected(chunks, nodes, start, steps)
    group = chunks[0].states.shape[2] - 1
    m = found.residual.shape[1]
    rows = dense_rows(chunks, nodes, start)
    before, expected = np.zeros(found.rows.shape[-1]), []
    first = np.arange(steps * m, len(rows.residual))
    for end in range(group, steps + group, group):
        kept = np.append(np.arange(min(end, steps) * m), first)
        states, parameters, residual = rows.states[kept], rows.parameters[kept], rows.residual[kept]
        gradient = parameters.T @ (residual - states @ np.linalg.lstsq(states, residual)[0])
        expected.append(gradient - before)
        before = gradient
    np.testing.assert_allclose(found.scores, np.array(expected), atol=1e-8)
    np.testing.assert_allclose(found.scores.sum(axis=0), found.gradient, atol=1e-9)


def test_unobserved_direction_leaves_everything_else_as_it_is():
    """A component that rows see only by its differences in time: its common value is unknown, all else is not."""
    rng = np.random.default_rng(8)
    chunks, nodes = random_chunks(rng, 2, 3, 4, 9, 5)
    spinning = changed(chunks, lambda own: own[:, :, 1, 1], lambda own: -own[:, :, 0, 1])
    none = front.Rows(np.zeros((1, 1, 3)), np.zeros((1, 4)), np.zeros(1))
    assert not front.factorise(front.assemble(spinning, nodes)).reduced().ok
    found, rows = projected(spinning, nodes, none, 9), dense_rows(spinning, nodes)
    assert found.ridge > 0.0
    assert found.settled
    hat = rows.states @ np.linalg.pinv(rows.states)
    expected = rows.parameters - hat @ rows.parameters
    np.testing.assert_allclose(found.information, expected.T @ expected, rtol=1e-8)
    np.testing.assert_allclose(found.leverages.each.ravel(), np.diagonal(hat), atol=2e-4)
