"""Steps that start where the last one ended, with rounds until they settle: machine code, XLA and Python agree."""

import jax.numpy as jnp
import numpy as np
import pytest

from shadowfit.kernels import SlowerWarning, processors, sequence
from shadowfit.kernels.sequence import Layout, Sequence, sequence_by_xla

H = [np.asarray(0.1)]
LAYOUT = Layout([np.zeros(2)], [np.zeros(2)], [np.zeros(())])
TIMES = 50


def implicit_euler(settings, constants, varying):
    """``x' = u − a x³`` by Newton's iteration for the new x."""
    (factor,), (h,) = settings, constants
    x, trial, push = varying
    change = (trial - x - h * (push - factor * trial**3)) / (1.0 + 3.0 * h * factor * trial**2)
    new = trial - change
    again = jnp.where(jnp.max(jnp.abs(change)) > 1e-13, 1.0, 0.0)
    return [new, new, again, new, x + factor]


def stepped(factor, start, pushes):
    """The same in Python, by bisection."""
    found = [np.asarray(start)]
    for push in pushes:
        low, high = np.full(2, -50.0), np.full(2, 50.0)
        for _ in range(80):
            middle = 0.5 * (low + high)
            below = middle - found[-1] - H[0] * (push - factor * middle**3) < 0.0
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        found.append(middle)
    return np.array(found[1:])


@pytest.fixture(scope="module")
def pushes():
    return np.random.default_rng(0).normal(size=(9, TIMES))


@pytest.fixture(scope="module")
def starts():
    return np.random.default_rng(1).normal(size=(9, 2))


def test_steps_follow_each_other(starts, pushes):
    run = Sequence(implicit_euler, LAYOUT, None)
    arguments = ([np.asarray(2.0)], H, [starts[0], starts[0]], [pushes[0]])
    new, old = run(*arguments)
    np.testing.assert_allclose(new, stepped(2.0, starts[0], pushes[0]), atol=1e-12)
    np.testing.assert_array_equal(old[1:], new[:-1] + 2.0)
    for ours, theirs in zip((new, old), sequence_by_xla(implicit_euler, LAYOUT)(*arguments), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13)


@pytest.mark.usefixtures("careful_code")
@pytest.mark.parametrize("count", [2, 4, 9])
def test_a_batch_is_its_members_whatever_fills_the_lanes(starts, pushes, count):
    run = Sequence(implicit_euler, LAYOUT, None)
    start, given = [starts[:count], starts[:count]], [pushes[:count]]
    together = run([np.asarray(1.0)], H, start, given)[0]
    assert together.shape == (count, TIMES, 2)
    for i in range(count):
        alone = run([np.asarray(1.0)], H, [starts[i], starts[i]], [pushes[i]])[0]
        np.testing.assert_array_equal(together[i], alone)


def test_groups_run_in_as_many_threads_as_the_environment_says(starts, pushes, monkeypatch):
    run, counts = Sequence(implicit_euler, LAYOUT, None), []
    pool = processors.pool
    monkeypatch.setattr(processors, "pool", lambda *which: (counts.append(which[1]), pool(*which))[1])
    monkeypatch.setattr(sequence, "LONG", 1)
    found = []
    for said in ("1", "3", "2"):
        monkeypatch.setenv(processors.VARIABLE, said)
        found.append(run([np.asarray(1.0)], H, [starts, starts], [pushes])[0])
    # A single thread needs no pool.
    assert counts == [3, 2]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_memory_that_held_other_numbers_leaves_no_trace(starts, pushes):
    """Results lie in memory that is used again, and what is known to be zero is not written by the code."""

    def with_zeros(settings, constants, varying):
        return [*implicit_euler(settings, constants, varying), jnp.zeros(3)]

    run = Sequence(with_zeros, LAYOUT, None)
    arguments = ([np.asarray(2.0)], H, [starts, starts], [pushes])
    first = [x.copy() for x in run(*arguments)]
    spoiled = run(*arguments)
    for array in spoiled:
        array[...] = np.nan
    del array, spoiled
    for one, other in zip(first, run(*arguments), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.any(first[-1])


def test_other_numbers_need_no_other_code(starts, pushes):
    run = Sequence(implicit_euler, LAYOUT, None)
    codes = [run.code([np.asarray(factor)], H, 1) for factor in (2.0, 3.0, 0.0)]
    assert codes[0] is codes[1]
    assert codes[2] is not codes[0]
    new = run([np.asarray(0.0)], H, [starts[0], starts[0]], [pushes[0]])[0]
    np.testing.assert_allclose(new, starts[0] + np.cumsum(H[0] * pushes[0])[:, None], atol=1e-12)


def test_what_cannot_be_written_out_is_left_to_xla(starts, pushes):
    small = Sequence(implicit_euler, LAYOUT, None, largest=10)
    with pytest.warns(SlowerWarning, match="more than 10 operations"):
        assert small.code([np.asarray(2.0)], H, 1) is None
    for axis in (0, slice(3)):
        arguments = ([np.asarray(2.0)], H, [starts[axis], starts[axis]], [pushes[axis]])
        ours, theirs = small(*arguments)[0], Sequence(implicit_euler, LAYOUT, None)(*arguments)[0]
        np.testing.assert_allclose(ours, theirs, rtol=1e-13)
