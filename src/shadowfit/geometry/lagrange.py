"""Weights of the polynomial through equally spaced values."""

from __future__ import annotations

import functools
import operator
from typing import TypeVar

import numpy as np

from shadowfit.arrays import Array

Places = TypeVar("Places", Array, np.ndarray)


def lagrange(at: Places, count: int) -> list[Places]:
    """Weights ``ℓ_i`` of the values at 0 … count − 1 in the polynomial through them, at given places."""
    return [functools.reduce(operator.mul, [(at - j) / (i - j) for j in range(count) if j != i]) for i in range(count)]
