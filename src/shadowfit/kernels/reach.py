"""Which outputs of a function depend on which inputs, read off its operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shadowfit.kernels.arrays import NodeArray
from shadowfit.kernels.scalars import Scalars
from shadowfit.kernels.unroll import trace, unroll

MOST = 1_000_000
"""Operations that are followed."""


def reach(function: Callable[[np.ndarray], Any], given: np.ndarray) -> list[np.ndarray]:
    """For each array that the function returns, which of the given numbers any of its entries depends on.

    Numbers inside the function count as what they are: a product with a zero depends on nothing. Raises
    `UnsupportedError` where the function cannot be followed.
    """
    scalars = Scalars(MOST)
    inputs = np.array([scalars.input(i) for i in range(given.size)], dtype=np.int64)
    outputs = unroll(scalars, trace(function, given), [NodeArray(inputs.reshape(given.shape))])
    reached = _reached_by_all(scalars)
    masks = []
    for output in outputs:
        bits = 0
        for node in output.ravel().tolist():
            bits |= reached[node]
        masks.append(np.array([bool(bits >> i & 1) for i in range(given.size)], dtype=bool))
    return masks


def _reached_by_all(scalars: Scalars) -> Sequence[int]:
    """For each operation the inputs behind it, as bits; operands come before what uses them."""
    reached: list[int] = []
    for name, *operands in scalars.operations:
        if name == "input":
            reached.append(1 << int(operands[0]))
        elif name == "const":
            reached.append(0)
        else:
            bits = 0
            for operand in operands:
                bits |= reached[int(operand)]
            reached.append(bits)
    return reached
