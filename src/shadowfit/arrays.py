"""What an annotation means by an array, and by its kind and shape: ``Float[Array, "step body 3"]``.

Functions of the physics are traced by JAX and called with NumPy's arrays as well: JAX takes these wherever it takes its
own, and functions that only index and add give NumPy's back, without the time that making one of JAX's would take.

Shapes are for readers, type checkers and the tests, which check them at every call (jaxtyping). A running program does
not look at them, and does not load what could.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from shadowfit.lazy_jax import is_array

if TYPE_CHECKING:
    import jax
    from jax.typing import ArrayLike
    from jaxtyping import Bool, Float, Int, Shaped, UInt8

    Array: TypeAlias = jax.Array | np.ndarray
else:

    class _Either(type):
        """Asks for JAX's arrays only where JAX is loaded: there are none without it."""

        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, np.ndarray) or is_array(value)

    class Array(metaclass=_Either):
        """An array of JAX or of NumPy."""

    class _OfShape:
        """An annotation that stands for the kind of array in it."""

        def __class_getitem__(cls, described: tuple[Any, str]) -> Any:
            return described[0]

    ArrayLike = Array | np.generic | float
    Bool = Float = Int = Shaped = UInt8 = _OfShape

__all__ = ["Array", "ArrayLike", "Bool", "Float", "Int", "Shaped", "UInt8"]
