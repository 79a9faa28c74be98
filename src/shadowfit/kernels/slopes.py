"""The Jacobian of a function as one operation of a trace, to be written out where it is compiled.

``jax.jacfwd`` traces the derivatives along all directions with a rule for each operation. In a kernel it is quicker to
trace the function alone and to differentiate its scalars (:mod:`forward`). `slopes` leaves the choice open: unrolled
kernels do the latter, everything else sees ``jacfwd``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shadowfit.arrays import Array, Float
from shadowfit.lazy_jax import at_first_call, batching, core, jax, mlir


def slopes(
    function: Callable[[Float[Array, "n"]], Float[Array, "m"]], at: Float[Array, "n"]
) -> tuple[Float[Array, "m"], Float[Array, "m n"]]:
    """Value and Jacobian of a function."""
    closed = jax.make_jaxpr(function)(at)
    value, table = _apply(*closed.consts, at, jaxpr=closed.jaxpr)
    return value, table


def _by_jacfwd(*given: Array, jaxpr: Any) -> list[Array]:
    *consts, at = given

    def both(at: Array) -> tuple[Array, Array]:
        (value,) = jax.core.eval_jaxpr(jaxpr, consts, at)
        return value, value

    table, value = jax.jacfwd(both, has_aux=True)(at)
    return [value, table]


def _shapes(*given: Any, jaxpr: Any) -> list[Any]:
    (value,) = (variable.aval for variable in jaxpr.outvars)
    return [value, value.update(shape=(*value.shape, *given[-1].shape))]


def _batched(given: Any, axes: Any, **settings: Any) -> tuple[Any, Any]:
    outputs = jax.vmap(lambda *one: _by_jacfwd(*one, **settings), in_axes=axes)(*given)
    return outputs, [0] * len(outputs)


def _primitive(by_jacfwd: Callable[..., list[Array]]) -> core.Primitive:
    """The operation, with what JAX wants to know of it."""
    primitive = core.Primitive("slopes")
    primitive.multiple_results = True
    primitive.def_impl(by_jacfwd)
    primitive.def_abstract_eval(_shapes)
    batching.primitive_batchers[primitive] = _batched
    mlir.register_lowering(primitive, mlir.lower_fun(by_jacfwd, multiple_results=True))
    return primitive


_apply = at_first_call(lambda by_jacfwd: _primitive(by_jacfwd).bind)(_by_jacfwd)

__all__ = ["slopes"]
