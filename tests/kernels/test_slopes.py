"""Derivatives written out in scalars are those of forward-mode differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shadowfit.complementarity.small_solve import small_solve
from shadowfit.kernels import by_xla, kernel, slopes

AT = np.array([0.3, -0.7, 1.2])


def arithmetic(x, y):
    return jnp.stack([x[0] * x[1] - y[0] / x[2], -(x[2] ** 2) + y[1], (x[0] - y[2]) / (1.0 + x[1] ** 2), y[0]])


def functions(x, y):
    near = jnp.stack([jnp.sqrt(x[2]), jnp.sin(x[0]), jnp.cos(x[1]), jnp.tan(x[0]), jnp.exp(x[1]), jnp.log(x[2])])
    more = jnp.stack([jnp.expm1(x[0]), jnp.log1p(x[0]), jnp.tanh(x[1]), jnp.arctan2(x[1], x[2]), jnp.abs(x[1])])
    return jnp.concatenate([near, more, jnp.stack([jnp.arccos(x[0]), x[2] ** y[0], y[2] ** x[1]])])


def branches(x, y):
    turned = jnp.mod(x + 4.0 * y, 2.0)
    return jnp.where(x > y, x**3, jnp.maximum(x, 2.0 * y)) + turned + jnp.round(x) + jnp.floor(y)


def solved(x, y):
    matrix = jnp.array([[2.0, 0.1], [0.1, 1.0]]) + jnp.outer(x[:2], x[:2])
    return small_solve(matrix, jnp.stack([x[2] * y[0], x[1]])[:, None])[:, 0]


def held(x, y):
    return jax.lax.stop_gradient(x * y) * x + y


FUNCTIONS = {f.__name__: f for f in (arithmetic, functions, branches, solved, held)}


def with_slopes(function):
    def run(settings, constants, varying):
        del settings, constants
        value, table = slopes(lambda x: function(x, varying[0]), jnp.asarray(AT))
        return jnp.concatenate([value[:, None], table], axis=1)

    return run


@pytest.mark.parametrize("name", FUNCTIONS)
def test_slopes_are_those_of_forward_mode(name):
    function = FUNCTIONS[name]
    times = np.random.default_rng(0).uniform(0.5, 1.5, (5, 3))
    compiled = kernel(with_slopes(function), [], [], [times[0]], None)
    found = compiled([], [], [times])[0]
    # Differentiation goes around a linear solve in JAX, through it in scalars.
    plain = function if name != "solved" else _solved_by_jax
    for row, own in zip(found, times, strict=True):
        np.testing.assert_allclose(row[:, 0], plain(AT, own), rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(row[:, 1:], jax.jacfwd(lambda x, own=own: plain(x, own))(AT), rtol=1e-12, atol=1e-12)


def _solved_by_jax(x, y):
    x = jnp.asarray(x)
    matrix = jnp.array([[2.0, 0.1], [0.1, 1.0]]) + jnp.outer(x[:2], x[:2])
    return jnp.linalg.solve(matrix, jnp.stack([x[2] * y[0], x[1]]))


def test_the_same_by_xla():
    times = np.random.default_rng(0).uniform(0.5, 1.5, (5, 3))
    run = with_slopes(arithmetic)
    fast, plain = kernel(run, [], [], [times[0]], None)([], [], [times]), by_xla(run)([], [], [times])
    np.testing.assert_allclose(fast[0], plain[0], rtol=1e-14)


def test_variables_may_depend_on_what_varies():
    """The point at which a function is differentiated need not be known when the code is made."""

    def run(settings, constants, varying):
        del settings, constants
        return slopes(lambda x: jnp.stack([x[0] * x[1], jnp.sin(x[0])]), varying[0])[1]

    at = np.array([[0.2, 0.5], [1.0, -2.0]])
    found = kernel(run, [], [], [at[0]], None)([], [], [at])[0]
    for table, (a, b) in zip(found, at, strict=True):
        np.testing.assert_allclose(table, [[b, a], [np.cos(a), 0.0]], rtol=1e-14)
