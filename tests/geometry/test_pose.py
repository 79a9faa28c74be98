"""⊞ and ⊟ on poses of several bodies."""

import jax
import numpy as np

from shadowfit.geometry import Pose, rotations

RNG = np.random.default_rng(7)


plus, minus = jax.jit(Pose.plus), jax.jit(Pose.minus)


def random_pose(*shape: int) -> Pose:
    e = RNG.normal(size=(*shape, 4))
    return Pose(RNG.normal(size=(*shape, 3)), e / np.linalg.norm(e, axis=-1, keepdims=True))


def test_minus_undoes_plus() -> None:
    pose, increment = random_pose(5), RNG.uniform(-1.5, 1.5, size=(5, 6))
    np.testing.assert_allclose(minus(plus(pose, increment), pose), increment, rtol=1e-12, atol=1e-14)


def test_plus_undoes_minus() -> None:
    a, b = random_pose(5), random_pose(5)
    back = plus(b, minus(a, b))
    np.testing.assert_allclose(back.position, a.position, rtol=0, atol=1e-14)
    np.testing.assert_allclose(rotations.matrix(back.orientation), rotations.matrix(a.orientation), rtol=0, atol=1e-14)


def test_zero_is_neutral_and_steps_do_not_lose_unit_length() -> None:
    pose = random_pose(3)
    np.testing.assert_allclose(minus(pose, pose), np.zeros((3, 6)), rtol=0, atol=1e-15)
    increments = 0.01 * RNG.normal(size=(1000, 3, 6))
    pose, _ = jax.jit(lambda start: jax.lax.scan(lambda q, d: (q.plus(d), None), start, increments))(pose)
    np.testing.assert_allclose(np.linalg.norm(pose.orientation, axis=-1), 1.0, rtol=0, atol=1e-12)


def test_derivatives_of_minus_at_equal_poses_are_the_identity() -> None:
    pose = random_pose()
    forward = jax.jit(jax.jacfwd(lambda d: pose.plus(d).minus(pose)))(np.zeros(6))
    backward = jax.jit(jax.jacrev(lambda d: pose.minus(pose.plus(d))))(np.zeros(6))
    np.testing.assert_allclose(forward, np.eye(6), rtol=0, atol=1e-15)
    np.testing.assert_allclose(backward, -np.eye(6), rtol=0, atol=1e-15)


def test_indexing_takes_bodies() -> None:
    pose = random_pose(4, 3)
    one = pose[2, 1]
    np.testing.assert_array_equal(one.position, pose.position[2, 1])
    assert one.orientation.shape == (4,)
