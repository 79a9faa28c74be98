"""Functions written loop by loop do what they say, and are found again in the cache."""

import numpy as np
import pytest

from shadowfit.kernels import store
from shadowfit.kernels.assembly import Signature
from shadowfit.kernels.loops import Function, Library, number

SCALED = Signature("scaled", "*a *out count factor")
TOTAL = Signature("total", "*a count", gives=True)
FUNCTIONS = [SCALED, TOTAL]


def write(module):
    """``out = factor a`` in pieces of four, two and one, and ``Σ a``."""
    f = Function(module, SCALED)
    factor = f.as_number(f.factor)

    def piece(i, width):
        f.store(f.apply("mul", f.load(f.at(f.a, i), width), f.spread(factor, width)), f.at(f.out, i))

    f.tiles(0, f.count, (4, 2, 1), piece)
    f.give()
    g = Function(module, TOTAL)
    with g.loop(0, g.count, 1, [number(0.0)]) as loop:
        loop.carried = [g.apply("add", loop.carried[0], g.load(g.at(g.a, loop.index)))]
    g.give(loop.carried[0])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(store.FOLDER_VARIABLE, str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("count", [0, 1, 3, 4, 11])
def test_loops_and_tiles(folder, count):
    library = Library("test", write, FUNCTIONS)
    given, found = np.arange(12.0), np.full(12, -1.0)
    library("scaled", given, found, count, 3)
    np.testing.assert_array_equal(found[:count], 3.0 * given[:count])
    np.testing.assert_array_equal(found[count:], -1.0)
    assert library("total", given, count) == given[:count].sum()


def test_code_is_kept(folder):
    library = Library("test", write, FUNCTIONS)
    library.prepare().result()
    assert len(list(folder.iterdir())) == 1

    def never():
        raise AssertionError("written again")

    again = Library("test", never, FUNCTIONS)
    assert again("total", np.ones(5), 5) == 5.0
