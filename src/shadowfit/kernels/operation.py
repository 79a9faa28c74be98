"""Functions that kernels write out in their own way, as primitives of JAX with a row in the table.

    @operation(unroll=rule)
    def small_solve(matrix, rhs, *, definite=False): ...

Everywhere but in a kernel, it is the JAX function below the decorator: under ``jit``, ``vmap`` and forward-mode
derivatives. In a kernel, ``rule`` says what becomes of its arrays; derivatives by `slopes` follow from its scalars.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from shadowfit.kernels.arrays import Rule
from shadowfit.kernels.row import Row, register
from shadowfit.lazy_jax import ad, at_first_call, batching, core, jax, jnp, mlir


def operation(unroll: Rule) -> Callable[[Callable[..., jax.Array]], Callable[..., jax.Array]]:
    """A function of arrays, and settings by name, that returns an array."""

    def decorated(function: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
        given = inspect.signature(function).parameters.values()
        defaults = {x.name: x.default for x in given if x.kind is x.KEYWORD_ONLY and x.default is not x.empty}
        register(function.__name__, Row(unroll))
        bind = at_first_call(lambda function: _primitive(function).bind)(function)

        @functools.wraps(function)
        def call(*arrays: Any, **settings: Any) -> jax.Array:
            return bind(*(jnp.asarray(x) for x in arrays), **{**defaults, **settings})

        return call

    return decorated


def _primitive(function: Callable[..., jax.Array]) -> core.Primitive:
    """The function as a primitive, with what JAX wants to know of one."""
    primitive = core.Primitive(function.__name__)

    @functools.cache
    def compiled(settings: tuple[tuple[str, Any], ...]) -> Callable[..., jax.Array]:
        return jax.jit(functools.partial(function, **dict(settings)))

    def shape(*arrays: Any, **settings: Any) -> Any:
        result = jax.eval_shape(functools.partial(function, **settings), *arrays)
        return jax.core.ShapedArray(result.shape, result.dtype)

    def derivative(primals: Any, tangents: Any, **settings: Any) -> Any:
        moving = [ad.instantiate_zeros(tangent) for tangent in tangents]
        return jax.jvp(functools.partial(function, **settings), primals, tuple(moving))

    def batched(arrays: Any, axes: Any, **settings: Any) -> Any:
        return jax.vmap(functools.partial(function, **settings), in_axes=axes)(*arrays), 0

    primitive.def_impl(lambda *arrays, **settings: compiled(tuple(sorted(settings.items())))(*arrays))
    primitive.def_abstract_eval(shape)
    ad.primitive_jvps[primitive] = derivative
    batching.primitive_batchers[primitive] = batched
    mlir.register_lowering(primitive, mlir.lower_fun(function, multiple_results=False))
    return primitive
