"""Small functions that a program calls many times, traced for the first of them alone."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from shadowfit.lazy_jax import is_traced, jax

P = ParamSpec("P")
R = TypeVar("R")


def traced_once(function: Callable[P, R]) -> Callable[P, R]:
    """The function, as one operation in what JAX traces: its own operations are found once for each kind of arguments.

    A product of quaternions is a dozen operations, and tracing is most of what the caller does to make a program of a
    step. Outside of traces nothing changes: no program is compiled for a few numbers.
    """

    @functools.cache
    def whole() -> Callable[P, R]:
        return jax.jit(function)

    @functools.wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        traced = any(map(is_traced, arguments))
        return whole()(*arguments, **named) if traced else function(*arguments, **named)

    return call
