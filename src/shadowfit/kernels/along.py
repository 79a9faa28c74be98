"""A function of a mechanism and a configuration, evaluated along many configurations by compiled code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shadowfit.kernels.batched import OverTime, over_time
from shadowfit.kernels.fingerprint import named
from shadowfit.kernels.own import is_own
from shadowfit.trees import flatten, unflatten

_made: dict[Any, OverTime] = {}
"""Code of this process."""


def along(
    function: Callable[..., Sequence[Any]], parts: Any, varying: Sequence[np.ndarray], *static: Any
) -> list[np.ndarray]:
    """``function(parts, *arrays of one configuration, *static)`` over the first axis of the arrays.

    The function returns a list of arrays. It depends on nothing else: ``parts`` are numbers (a mechanism, its
    elements), and ``static`` is told apart by its text.
    """
    leaves, structure = flatten(parts)
    numbers = [np.asarray(leaf) for leaf in leaves]
    arrays = [np.asarray(x, dtype=float) for x in varying]
    flat = np.concatenate([x.ravel() for x in numbers] or [np.zeros(0)])
    kind = (
        function,
        repr(static),
        structure,
        tuple(x.shape for x in numbers),
        tuple(x.shape[1:] for x in arrays),
        # Settings that shape the code.
        (flat == 0.0).tobytes(),
        (flat == 1.0).tobytes(),
    )
    if kind not in _made:

        def one(settings: list[Any], _: list[Any], given: list[Any]) -> Sequence[Any]:
            return function(unflatten(structure, settings), *given, *static)

        key = (named(function), static, structure) if is_own(parts) else None
        _made[kind] = over_time(one, numbers, [], [np.empty(x.shape[1:]) for x in arrays], key)
    return _made[kind](numbers, [], arrays)
