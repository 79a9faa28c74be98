"""Functions that are traced once: the same numbers and derivatives, and one trace however often they are called."""

import jax
import jax.numpy as jnp
import numpy as np

from shadowfit.geometry.traced_once import traced_once


def counted():
    traces = []

    @traced_once
    def curve(x):
        traces.append(type(x))
        return jnp.sin(x) * x

    return curve, traces


def test_many_calls_of_a_kind_are_one_trace():
    curve, traces = counted()
    program = jax.make_jaxpr(lambda x: curve(curve(curve(x))))(np.ones(3))
    assert len(traces) == 1
    assert [equation.primitive.name for equation in program.eqns] == ["jit"] * 3


def test_outside_of_traces_nothing_is_compiled():
    curve, traces = counted()
    x = np.array([0.3, 1.2])
    np.testing.assert_allclose(curve(x), np.sin(x) * x, rtol=1e-6)
    assert traces == [np.ndarray]


def test_derivatives_are_those_of_the_function():
    curve, _ = counted()
    value, slope = jax.jvp(curve, (0.7,), (1.0,))
    np.testing.assert_allclose([value, slope], [0.7 * np.sin(0.7), np.sin(0.7) + 0.7 * np.cos(0.7)], rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(curve)(jnp.array([0.1, 0.7]))[1], value, rtol=1e-6)
