"""Memory of large arrays is used again, and not before nobody looks at it."""

import numpy as np
import pytest

from shadowfit.kernels import recycled as module
from shadowfit.kernels.recycled import recycled


@pytest.fixture(autouse=True)
def empty_pool(monkeypatch):
    monkeypatch.setattr(module, "_pool", module._Pool())


def address(array):
    return array.__array_interface__["data"][0]


def test_memory_is_used_again():
    array = recycled(7, 11)
    assert array.shape == (7, 11)
    assert array.dtype == float
    array[...] = 3.0
    place = address(array)
    del array
    assert address(recycled(11, 7)) == place


def test_not_while_a_view_is_left():
    array = recycled(7, 11)
    array[...] = 3.0
    view = array[2:, ::2].T
    del array
    other = recycled(7, 11)
    other[...] = 4.0
    np.testing.assert_array_equal(view, 3.0)


def test_memory_is_given_back_beyond_a_limit(monkeypatch):
    monkeypatch.setattr(module, "MOST", 8 * 100)
    kept = [recycled(40), recycled(50)]
    kept.clear()
    assert module._pool._bytes == 8 * 90
    large = recycled(60)
    del large
    assert module._pool._bytes == 8 * 60
    large = recycled(101)
    del large
    assert module._pool._bytes <= 8 * 100
