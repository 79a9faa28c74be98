"""Kernels compute what JAX computes, for every kind of operation; kept code is found again; limits are respected."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shadowfit.complementarity.small_solve import small_solve
from shadowfit.kernels import (
    Kernel,
    SlowerWarning,
    TooLargeError,
    UnsupportedError,
    by_xla,
    codegen,
    kernel,
    over_time,
    parts,
    store,
    windowed,
)

# The function of the same name hides the module.
compiling = importlib.import_module("shadowfit.kernels.kernel")

TIMES = 7


def of_everything(settings, constants, varying):
    """Operations of all kinds that kernels know, with indices, loops, choices and derivatives."""
    matrix, vector = varying
    scale, zero_one = constants[0], settings[0]
    turned = jnp.einsum("ij,kj->ik", matrix, matrix) + scale * jnp.diag(zero_one)
    solved = small_solve(turned + 5.0 * jnp.eye(3), jnp.stack([vector, jnp.flip(vector)], axis=1))
    clipped = jnp.clip(vector, -0.3, 0.4) + jnp.where(vector > 0.1, jnp.sin(vector), jnp.cos(vector))
    looped = jax.lax.fori_loop(0, 4, lambda i, x: x.at[i % 3].add(0.1 * x[(i + 1) % 3]), vector)
    slope = jax.jacfwd(lambda x: jnp.sqrt(1.0 + x @ matrix @ x) + jnp.arctan2(x[0], x[1]))(vector)
    powers = jnp.exp(vector) ** 3 + jnp.abs(vector) ** 1.5 + jnp.sign(vector) + jnp.round(4.0 * vector)
    chosen = jnp.where((vector > 0.0) & ~(vector > 0.5) | (vector < -1.0), jnp.tanh(vector), -vector)
    limits = jnp.stack([jnp.max(vector), jnp.min(vector), jnp.sum(vector**2), jnp.prod(jnp.array([2.0, 3.0]))])
    return [solved, clipped, looped, slope, powers, chosen, limits, jnp.pad(vector[1:], (1, 1)), jnp.zeros(2)]


@pytest.fixture
def arguments():
    rng = np.random.default_rng(0)
    settings, constants = [np.array([0.0, 1.0, 0.7])], [np.asarray(0.3)]
    return settings, constants, [rng.standard_normal((TIMES, 3, 3)), rng.standard_normal((TIMES, 3))]


def made(arguments, function=of_everything, **options):
    settings, constants, varying = arguments
    return kernel(function, settings, constants, [x[0] for x in varying], options.pop("key", None), **options)


def test_a_kernel_equals_the_function_it_was_traced_from(arguments):
    found = made(arguments)(*arguments)
    expected = by_xla(of_everything)(*arguments)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def test_a_program_in_many_parts_computes_the_same(arguments, monkeypatch):
    whole = made(arguments, key="whole")(*arguments)
    monkeypatch.setattr(parts, "PART", 7)
    for ours, theirs in zip(made(arguments, key="in parts")(*arguments), whole, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-14, atol=1e-15)  # products and sums are fused differently


def test_constants_may_change_and_settings_of_zero_or_one_may_not(arguments):
    _, constants, varying = arguments
    compiled = made(arguments)
    changed = ([np.array([0.0, 1.0, 0.9])], [np.asarray(-2.0)], varying)
    for ours, theirs in zip(compiled(*changed), by_xla(of_everything)(*changed), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="shapes the code"):
        compiled([np.array([0.5, 1.0, 0.9])], constants, varying)


@pytest.mark.parametrize("times", [1, 3, 4, 5, 9])
def test_any_number_of_times(times):
    varying = [np.arange(2.0 * times).reshape(times, 2)]
    compiled = kernel(lambda s, c, v: [v[0] * c[0]], [], [np.asarray(2.0)], [varying[0][0]], None)
    np.testing.assert_array_equal(compiled([], [np.asarray(3.0)], varying)[0], 3.0 * varying[0])


def test_what_is_carried_goes_from_time_to_time():
    def oscillator(_, constants, varying):
        place, speed, push = varying
        speed = speed + constants[0] * (push - jnp.sin(place))
        return [place + constants[0] * speed, speed]

    start, pushes = [np.array([0.3, -0.2]), np.zeros(2)], [np.random.default_rng(1).standard_normal((20, 2))]
    step = [np.asarray(0.1)]
    compiled = kernel(oscillator, [], step, [*start, pushes[0][0]], None, carried=2)
    expected = by_xla(oscillator, carried=2)([], step, pushes, start)
    for ours, theirs in zip(compiled([], step, pushes, start), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13)


def test_code_is_kept_for_later_runs_and_damaged_files_are_not_used(arguments, tmp_path, monkeypatch):
    monkeypatch.setenv(store.FOLDER_VARIABLE, str(tmp_path))
    key = "of everything, kept"
    first = made(arguments, key=key)(*arguments)
    (kept,) = tmp_path.iterdir()

    def untraceable(settings, constants, varying):
        raise AssertionError("traced again")

    def forget():
        compiling._loaded.clear()

    forget()
    for ours, theirs in zip(made(arguments, untraceable, key=key)(*arguments), first, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    kept.write_bytes(kept.read_bytes()[:100])
    forget()
    with pytest.raises(AssertionError, match="traced again"):
        made(arguments, untraceable, key=key)


def test_code_made_in_haste_here_or_aside_computes_the_same(arguments, tmp_path, monkeypatch):
    monkeypatch.setenv(store.FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setenv(codegen.HASTY, "1")
    hastily = made(arguments, key="of everything")(*arguments)
    monkeypatch.delenv(codegen.HASTY)
    here = made(arguments, key="of everything")(*arguments)
    assert len(list(tmp_path.iterdir())) == 2, "each is kept under a name of its own"
    monkeypatch.setattr(codegen, "LARGE", 0)
    monkeypatch.setattr(codegen, "_compiled_here", lambda text: pytest.fail("not in a process of its own"))
    aside = made(arguments, key="of everything, aside")(*arguments)
    for quick, careful, elsewhere in zip(hastily, here, aside, strict=True):
        np.testing.assert_allclose(quick, careful, rtol=1e-13, atol=1e-15)
        np.testing.assert_array_equal(elsewhere, careful)


def test_nothing_is_kept_where_no_folder_is_wanted(arguments, tmp_path, monkeypatch):
    monkeypatch.setenv(store.FOLDER_VARIABLE, "")
    monkeypatch.chdir(tmp_path)
    assert isinstance(made(arguments, key="not kept"), Kernel)
    assert store.folder() is None
    assert list(tmp_path.iterdir()) == []


def test_what_is_too_large_or_unknown_is_left_to_xla(arguments):
    with pytest.raises(TooLargeError, match="more than 50 operations"):
        made(arguments, largest=50)

    def sorting(settings, constants, varying):
        return [jnp.sort(varying[1])]

    with pytest.raises(UnsupportedError, match="sort"):
        made(arguments, sorting)
    settings, constants, varying = arguments
    with pytest.warns(SlowerWarning, match="the operation 'sort'"):
        left = over_time(sorting, settings, constants, [x[0] for x in varying], None)
    sorted_ones = left(*arguments)
    np.testing.assert_array_equal(sorted_ones[0], np.sort(varying[1], axis=1))


def test_a_function_that_is_too_large_is_said_to_be_slower(arguments):
    settings, constants, varying = arguments
    with pytest.warns(SlowerWarning, match="more than 50 operations; joint coordinates"):
        left = over_time(of_everything, settings, constants, [x[0] for x in varying], None, largest=50)
    assert not isinstance(left, Kernel)


def test_functions_that_hold_other_arrays_have_other_code(arguments, tmp_path, monkeypatch):
    """A law from outside may hold a table of numbers, also inside of functions that it calls."""
    monkeypatch.setenv(store.FOLDER_VARIABLE, str(tmp_path))

    def law(table):
        inside = jax.jit(lambda x: jnp.dot(table, x))
        return lambda settings, constants, varying: [inside(varying[0]) + table[:2]]

    x = np.ones((1, 3))
    for table in (np.array([1.0, 2.0, 3.0]), np.array([5.0, 6.0, 7.0])):
        (found,) = kernel(law(table), [], [], [x[0]], None)([], [], [x])
        np.testing.assert_allclose(found[0], table.sum() + table[:2])


def test_a_number_that_is_not_finite_stays_so():
    varying = [np.array([1.0, np.nan, np.inf])]
    compiled = kernel(lambda s, c, v: [2.0 * v[0], jnp.isfinite(v[0]) * 1.0], [], [], [varying[0][0]], None)
    doubled, finite = compiled([], [], varying)
    np.testing.assert_array_equal(doubled, [2.0, np.nan, np.inf])
    np.testing.assert_array_equal(finite, [1.0, 0.0, 0.0])


@pytest.mark.parametrize("by", [kernel, lambda function, *_: by_xla(function)], ids=["kernel", "xla"])
def test_two_axes_of_time_are_one_after_another(by):
    """What is the same for all times of the second axis need not be repeated."""

    def function(settings, constants, varying):
        window, each = varying
        return [jnp.sum(window, axis=0) * each + constants[0]]

    rng = np.random.default_rng(2)
    steps, within = 5, 3
    values, each = rng.standard_normal((steps + 1, 2)), rng.standard_normal((steps, within, 2))
    made = by(function, [], [np.zeros(())], [np.empty((2, 2)), np.empty(2)], None)
    seen = windowed(values, 2, steps)
    (found,) = made([], [np.asarray(0.3)], [seen[:, None], each], None, None, within)
    expected = (values[:-1] + values[1:])[:, None] * each + 0.3
    np.testing.assert_allclose(found, expected.reshape(steps * within, 2), rtol=1e-14)


def test_windows_are_seen_in_place():
    values = np.arange(12.0).reshape(6, 2)
    seen = windowed(values[1:], 3, 3)
    np.testing.assert_array_equal(seen, np.stack([values[1 + i : 4 + i] for i in range(3)], axis=1))
    assert np.shares_memory(seen, values)
    with pytest.raises(AssertionError, match="windows end"):
        windowed(values, 3, 5)
