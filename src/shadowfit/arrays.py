"""What an annotation means by an array.

Functions of the physics are traced by JAX and called with NumPy's arrays as well: JAX takes these wherever it takes its
own, and functions that only index and add give NumPy's back, without the time that making one of JAX's would take.
"""

from typing import TypeAlias

import jax
import numpy as np

Array: TypeAlias = jax.Array | np.ndarray
