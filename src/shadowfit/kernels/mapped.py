"""Functions of a few small arrays, mapped over rows by compiled code."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from shadowfit.kernels.batched import OverTime, over_time
from shadowfit.kernels.fingerprint import named
from shadowfit.lazy_jax import jax


def mapped(function: Callable[..., jax.Array | np.ndarray]) -> Callable[..., np.ndarray]:
    """The function over the first axis of all its arguments; it must depend on nothing else.

    For what is called with arrays of any length, or only once: nothing is compiled anew, and the code is kept.
    """

    def one(_: list, __: list, varying: list) -> jax.Array | np.ndarray:
        return function(*varying)

    @functools.cache
    def made(shapes: tuple[tuple[int, ...], ...]) -> OverTime:
        return over_time(one, [], [], [np.empty(shape) for shape in shapes], named(function))

    @functools.wraps(function)
    def over_rows(*arrays: np.ndarray) -> np.ndarray:
        rows = [np.asarray(array) for array in arrays]
        if not len(rows[0]):
            shapes = [jax.ShapeDtypeStruct(row.shape[1:], float) for row in rows]
            return np.zeros((0, *jax.eval_shape(function, *shapes).shape))
        return made(tuple(row.shape[1:] for row in rows))([], [], rows)[0]

    return over_rows
