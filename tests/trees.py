"""Trees of numbers compared."""

import jax
import numpy as np


def same_trees(a, b):
    """Whether two trees have the same structure and the same numbers."""
    same = jax.tree.structure(a) == jax.tree.structure(b)
    return same and all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))
