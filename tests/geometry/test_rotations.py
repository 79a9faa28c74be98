"""Group laws of quaternions and rotation vectors, at random, near zero and near the half turn; derivatives there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from shadowfit.geometry import rotations

# Angles around which series, exact formulas and the choice of the sign meet.
ANGLES = (0.0, 1e-12, 1e-8, 1e-4, 0.9e-3, 1.1e-3, 0.1, 1.0, 2.0, 3.0, np.pi - 1e-3, np.pi - 1e-6)
RNG = np.random.default_rng(3)


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector, axis=-1, keepdims=True)


AXES = unit(RNG.normal(size=(4, 3)))
VECTORS = np.array([angle * axis for angle in ANGLES for axis in AXES])
QUATERNIONS = unit(RNG.normal(size=(len(VECTORS), 4)))

components = st.floats(-1.0, 1.0, allow_subnormal=False)
rotation_vectors = st.tuples(components, components, components).map(lambda v: 1.7 * np.array(v))


log_exp = jax.jit(lambda vector: rotations.log(rotations.exp(vector)))
plus, minus = jax.jit(rotations.plus), jax.jit(rotations.minus)


def quaternion(vector: np.ndarray) -> np.ndarray:
    return np.roll(Rotation.from_rotvec(vector).as_quat(), 1)


def scipy_rotation(quaternion: np.ndarray) -> Rotation:
    return Rotation.from_quat(np.roll(quaternion, -1, axis=-1))


def derivatives(function, *arguments: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Derivatives by the first argument at all its values: forward mode, reverse mode, central differences."""
    step = 1e-5
    of_many = jax.jit(jax.vmap(function))
    first, *rest = arguments
    moved = [
        (of_many(first + d, *rest) - of_many(first - d, *rest)) / (2 * step) for d in step * np.eye(first.shape[-1])
    ]
    forward, reverse = (jax.jit(jax.vmap(mode(function)))(*arguments) for mode in (jax.jacfwd, jax.jacrev))
    return forward, reverse, np.stack(moved, axis=-1)


def test_exp_is_the_rotation_of_an_independent_library() -> None:
    expected = Rotation.from_rotvec(VECTORS).as_matrix()
    np.testing.assert_allclose(rotations.matrix(rotations.exp(VECTORS)), expected, rtol=0, atol=1e-15)


def test_matrix_of_a_product_is_the_product_of_matrices() -> None:
    a, b = QUATERNIONS, QUATERNIONS[::-1]
    both = rotations.matrix(rotations.multiply(a, b))
    np.testing.assert_allclose(both, rotations.matrix(a) @ rotations.matrix(b), rtol=0, atol=1e-14)


def test_rotate_is_multiplication_by_the_matrix() -> None:
    vectors = RNG.normal(size=(len(QUATERNIONS), 3))
    expected = scipy_rotation(QUATERNIONS).apply(vectors)
    np.testing.assert_allclose(rotations.rotate(QUATERNIONS, vectors), expected, rtol=0, atol=1e-14)


def test_conjugate_is_the_inverse() -> None:
    one = rotations.multiply(QUATERNIONS, rotations.conjugate(QUATERNIONS))
    np.testing.assert_allclose(one, np.tile([1.0, 0, 0, 0], (len(QUATERNIONS), 1)), rtol=0, atol=1e-15)


@given(rotation_vectors)
def test_log_undoes_exp(vector: np.ndarray) -> None:
    np.testing.assert_allclose(log_exp(vector), vector, rtol=1e-13, atol=1e-15)


def test_log_undoes_exp_at_special_angles() -> None:
    np.testing.assert_allclose(rotations.log(rotations.exp(VECTORS)), VECTORS, rtol=1e-13, atol=1e-15)


def test_log_takes_the_short_way() -> None:
    """e and -e are one rotation; its vector is never longer than half a turn."""
    vectors = rotations.log(QUATERNIONS)
    assert np.linalg.norm(vectors, axis=1).max() <= np.pi
    np.testing.assert_array_equal(rotations.log(-QUATERNIONS), vectors)
    np.testing.assert_allclose(vectors, scipy_rotation(QUATERNIONS).as_rotvec(), rtol=0, atol=1e-13)


@given(rotation_vectors, rotation_vectors)
def test_minus_undoes_plus(start: np.ndarray, vector: np.ndarray) -> None:
    e = quaternion(start)
    np.testing.assert_allclose(minus(plus(e, vector), e), vector, rtol=1e-12, atol=1e-14)


@given(rotation_vectors, rotation_vectors)
def test_plus_undoes_minus(first: np.ndarray, second: np.ndarray) -> None:
    a, b = quaternion(first), quaternion(second)
    back = np.asarray(plus(b, minus(a, b)))
    np.testing.assert_allclose(back * np.sign(back @ a), a, rtol=0, atol=1e-13)


def test_increments_are_in_the_world_frame() -> None:
    """A turn about the world's z axis takes a body's point along z cross r, however the body is turned."""
    vector, point = np.array([0.0, 0.0, 1e-6]), np.array([1.0, 2.0, 3.0])
    before, after = (rotations.rotate(e, point) for e in (QUATERNIONS[0], rotations.plus(QUATERNIONS[0], vector)))
    np.testing.assert_allclose(after - before, np.cross(vector, before), rtol=0, atol=1e-11)


def test_derivative_of_exp_is_finite_and_right() -> None:
    forward, reverse, differences = derivatives(rotations.exp, VECTORS)
    np.testing.assert_allclose(forward, differences, rtol=0, atol=1e-10)
    np.testing.assert_allclose(reverse, forward, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(forward[0], np.vstack([np.zeros(3), 0.5 * np.eye(3)]))  # at zero


@pytest.mark.parametrize("moved", ["first", "second"])
def test_derivative_of_minus_is_finite_and_right(moved: str) -> None:
    """Along the manifold, from equal rotations to just before the half turn, where the vector turns round."""
    before_half_turn = np.linalg.norm(VECTORS, axis=1) < np.pi - 1e-4
    vectors = VECTORS[before_half_turn]
    e = np.tile(quaternion(AXES[1]), (len(vectors), 1))
    other = plus(e, vectors)

    def function(d: np.ndarray, a: np.ndarray, b: np.ndarray) -> jax.Array:
        return (
            rotations.minus(rotations.plus(a, d), b) if moved == "first" else rotations.minus(a, rotations.plus(b, d))
        )

    forward, reverse, differences = derivatives(function, np.zeros_like(vectors), other, e)
    np.testing.assert_allclose(forward, differences, rtol=0, atol=1e-8)
    np.testing.assert_allclose(reverse, forward, rtol=0, atol=1e-12)


def test_second_derivatives_at_zero_are_finite() -> None:
    """log(exp ψ) = ψ, so all second derivatives vanish; NaN would come from a hidden 0/0."""
    second = jax.jit(jax.jacfwd(jax.jacrev(log_exp)))(np.zeros(3))
    np.testing.assert_allclose(second, np.zeros((3, 3, 3)), rtol=0, atol=1e-12)


def test_half_turn_has_a_finite_derivative() -> None:
    e = jnp.array([0.0, 1.0, 0.0, 0.0])
    assert np.all(np.isfinite(jax.jit(jax.jacfwd(rotations.log))(e)))
    np.testing.assert_allclose(rotations.log(e), [np.pi, 0.0, 0.0], rtol=1e-15)


def test_left_jacobian_is_the_derivative_of_exp_on_the_manifold() -> None:
    """exp(ψ + dψ) ⊟ exp(ψ) = J(ψ) dψ."""
    _, _, differences = derivatives(
        lambda d, v: rotations.minus(rotations.exp(v + d), rotations.exp(v)), np.zeros_like(VECTORS), VECTORS
    )
    jacobian, inverse = rotations.left_jacobian(VECTORS), rotations.left_jacobian_inverse(VECTORS)
    np.testing.assert_allclose(jacobian, differences, rtol=0, atol=1e-9)
    np.testing.assert_allclose(inverse @ jacobian, np.tile(np.eye(3), (len(VECTORS), 1, 1)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("function", [rotations.left_jacobian, rotations.left_jacobian_inverse])
def test_derivatives_of_the_jacobians_are_finite_and_right(function) -> None:
    forward, reverse, differences = derivatives(function, VECTORS)
    np.testing.assert_allclose(forward, differences, rtol=0, atol=1e-8)
    np.testing.assert_allclose(reverse, forward, rtol=0, atol=1e-12)


def test_series_and_exact_formulas_meet() -> None:
    """Across the switch the functions move by no more than their slope allows."""
    edge = np.sqrt(rotations.SMALL_SQUARED_ANGLE)
    sides = edge * (1 + np.array([[-1e-9], [1e-9]])) * AXES[0]
    for function in (rotations.exp, rotations.left_jacobian, rotations.left_jacobian_inverse):
        below, above = jax.jit(function)(sides)
        assert np.abs(below - above).max() < 2e-9 * edge + 1e-15


def test_cross_matrix() -> None:
    a, b = RNG.normal(size=(2, 5, 3))
    product = np.einsum("nij,nj->ni", rotations.cross_matrix(a), b)
    np.testing.assert_allclose(product, np.cross(a, b), rtol=0, atol=1e-15)


def test_batches_of_any_shape() -> None:
    e = QUATERNIONS[:12].reshape(3, 4, 4)
    log = jax.jit(rotations.log)
    np.testing.assert_allclose(log(e).reshape(12, 3), log(QUATERNIONS[:12]), rtol=0, atol=1e-15)
    for function, shape in ((rotations.matrix, (3, 4, 3, 3)), (rotations.conjugate, (3, 4, 4))):
        assert jax.eval_shape(function, e).shape == shape
    assert jax.eval_shape(rotations.left_jacobian, e[..., 1:]).shape == (3, 4, 3, 3)


def test_normalise() -> None:
    np.testing.assert_allclose(rotations.normalise(3.0 * QUATERNIONS), QUATERNIONS, rtol=1e-15)


@pytest.mark.parametrize("axis", [(1.0, 0, 0), (0, 0, 2.0), (0.3, -0.2, 0.9), (-1.0, 0, 0)])
def test_from_axes_puts_x_on_the_axis(axis: tuple[float, float, float]) -> None:
    frame = np.asarray(rotations.matrix(rotations.from_axes(np.array(axis))))
    np.testing.assert_allclose(frame[:, 0], unit(np.array(axis)), rtol=0, atol=1e-15)
    np.testing.assert_allclose(frame.T @ frame, np.eye(3), rtol=0, atol=1e-14)
    assert np.linalg.det(frame) == pytest.approx(1.0)


def test_from_axes_keeps_y_near_the_one_given() -> None:
    frame = np.asarray(rotations.matrix(rotations.from_axes(np.array([1.0, 0, 0]), np.array([0.5, 0.0, 2.0]))))
    np.testing.assert_allclose(frame[:, 1], [0.0, 0.0, 1.0], rtol=0, atol=1e-15)


def test_matrices_by_numpy_are_those_by_jax():
    for one in QUATERNIONS:
        np.testing.assert_allclose(rotations.to_matrix(one), scipy_rotation(one).as_matrix(), rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        *((getattr(rotations, name), (QUATERNIONS,)) for name in ("conjugate", "normalise", "log", "matrix")),
        *((getattr(rotations, name), (VECTORS,)) for name in ("exp", "cross_matrix")),
        *((getattr(rotations, name), (VECTORS,)) for name in ("left_jacobian", "left_jacobian_inverse")),
        *((getattr(rotations, name), (QUATERNIONS, QUATERNIONS[::-1])) for name in ("multiply", "minus")),
        *((getattr(rotations, name), (QUATERNIONS, VECTORS)) for name in ("plus", "plus_local", "rotate")),
    ],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_numbers_in_numbers_out(function, arguments):
    """NumPy's arrays are computed by NumPy, as JAX does it to rounding."""
    found = function(*arguments)
    assert type(found) is np.ndarray
    traced = jax.jit(function)(*map(jnp.asarray, arguments))
    assert isinstance(traced, jax.Array)
    np.testing.assert_allclose(found, traced, rtol=0.0, atol=1e-14)
