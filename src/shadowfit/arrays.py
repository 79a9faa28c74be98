"""What an annotation means by an array.

Functions of the physics are traced by JAX and called with NumPy's arrays as well: JAX takes these wherever it takes its
own, and functions that only index and add give NumPy's back, without the time that making one of JAX's would take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from shadowfit.lazy_jax import is_array

if TYPE_CHECKING:
    import jax
    from jax.typing import ArrayLike

    Array: TypeAlias = jax.Array | np.ndarray
else:

    class _Either(type):
        """Asks for JAX's arrays only where JAX is loaded: there are none without it."""

        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, np.ndarray) or is_array(value)

    class Array(metaclass=_Either):
        """An array of JAX or of NumPy."""

    ArrayLike = Array | np.generic | float

__all__ = ["Array", "ArrayLike"]
