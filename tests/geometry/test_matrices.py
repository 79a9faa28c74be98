"""The closed-form inverse of 3×3 matrices."""

import jax.numpy as jnp
import numpy as np

from shadowfit.geometry import matrices


def test_the_inverse_is_that_of_linear_algebra_for_any_batch_shape():
    rng = np.random.default_rng(0)
    batch = rng.standard_normal((4, 5, 3, 3))
    np.testing.assert_allclose(matrices.inverse(jnp.asarray(batch)), np.linalg.inv(batch), rtol=1e-9)


def test_a_singular_matrix_gives_no_finite_inverse():
    assert not np.any(np.isfinite(matrices.inverse(jnp.zeros((3, 3)))))
