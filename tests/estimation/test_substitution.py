"""Machine code of sums over rows and of rows' states equals products of arrays."""

import numpy as np
import pytest

from shadowfit.estimation.linear.projection import Chunks
from shadowfit.estimation.linear.substitution import library


@pytest.mark.parametrize("columns", [1, 3, 6, 13])
def test_sums_of_rows(columns):
    rng = np.random.default_rng(0)
    rows, which, weights = rng.normal(size=(50, columns)), rng.integers(0, 50, (20, 6)), rng.normal(size=(20, 6))
    sums = np.empty((20, columns))
    library("gather", 20, 6, columns, which, weights, rows, sums)
    np.testing.assert_allclose(sums, np.einsum("nk,nkc->nc", weights, rows[which]), rtol=0.0, atol=1e-13)


@pytest.mark.parametrize("part", [slice(0, 7), slice(2, 5), slice(6, 7)])
def test_states_meet_and_leave_some_columns_of_a_table(part):
    """``J_xᵀ e`` and ``e − J_x x`` where errors lie, beside columns that stay as they are."""
    steps, rows, window, size = 9, 3, 3, 2
    rng = np.random.default_rng(1)
    states, table = rng.normal(size=(steps, rows, window * size)), rng.normal(size=(steps, rows, 7))
    chunks = Chunks(((0, states[:5].copy()), (5, states[5:].copy())), size)
    errors, count = table[..., part], table[..., part].shape[2]
    dense = np.zeros((steps, rows, steps + window - 1, size))
    for k in range(steps):
        dense[k, :, k : k + window] = states[k].reshape(rows, window, size)
    met = chunks.met(errors, steps + window - 1)
    np.testing.assert_allclose(met, np.einsum("kmnb,kmc->nbc", dense, errors), rtol=0.0, atol=1e-12)
    nodes, before = rng.normal(size=(steps + window - 1, size, count)), table.copy()
    chunks.take_off(errors, nodes)
    before[..., part] -= np.einsum("kmnb,nbc->kmc", dense, nodes)
    np.testing.assert_allclose(table, before, rtol=0.0, atol=1e-12)
