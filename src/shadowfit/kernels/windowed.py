"""Times that follow each other, seen beside each other."""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Shaped


def windowed(values: Shaped[np.ndarray, "n *rest"], length: int, steps: int) -> Shaped[np.ndarray, "steps w *rest"]:
    """For each of some steps, values of as many times from its own on, on a second axis; nothing is copied."""
    between, *others = values.strides
    shape, strides = (steps, length, *values.shape[1:]), (between, between, *others)
    assert steps + length - 1 <= len(values), "windows end where the values do"
    return np.lib.stride_tricks.as_strided(values, shape, strides, writeable=False)
