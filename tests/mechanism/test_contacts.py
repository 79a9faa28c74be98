"""Contact shapes: gaps and touching points of spheres and boxes against a tilted plane."""

import jax
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from shadowfit.geometry import rotations
from shadowfit.mechanism import Box, ContactShape, Sphere, touch
from shadowfit.mechanism.joint_types import Frame

RNG = np.random.default_rng(11)
NORMAL = np.array([0.6, 0.0, 0.8])
PLANE = Frame(np.array([0.1, -0.2, 0.3]), rotations.matrix(rotations.from_axes(NORMAL)))
BODY = Frame(np.array([1.0, 0.5, 2.0]), Rotation.from_rotvec(RNG.normal(size=3)).as_matrix())


def height(point: np.ndarray) -> np.ndarray:
    return (np.asarray(point) - PLANE.point) @ NORMAL


def test_a_sphere_touches_with_its_lowest_point() -> None:
    gap, points = Sphere(0.25).points(PLANE, BODY)
    assert gap.shape == (1,)
    assert float(gap[0]) == pytest.approx(height(BODY.point) - 0.25, rel=1e-14)
    assert float(height(points[0])) == pytest.approx(float(gap[0]), rel=1e-14)
    np.testing.assert_allclose(np.cross(points[0] - BODY.point, NORMAL), 0.0, atol=1e-15)


def test_a_box_touches_with_its_corners() -> None:
    half = np.array([0.1, 0.2, 0.3])
    gap, points = Box(half).points(PLANE, BODY)
    np.testing.assert_allclose(gap, height(points), rtol=1e-13)
    local = (np.asarray(points) - BODY.point) @ BODY.axes
    np.testing.assert_allclose(np.abs(local), np.tile(half, (8, 1)), rtol=1e-13)
    assert len({tuple(np.sign(corner)) for corner in local}) == 8


def test_gaps_are_differentiable() -> None:
    def smallest(shift: np.ndarray) -> jax.Array:
        gap, _ = Box((0.1, 0.2, 0.3)).points(PLANE, Frame(BODY.point + shift, BODY.axes))
        return gap

    np.testing.assert_allclose(jax.jacfwd(smallest)(np.zeros(3)), np.tile(NORMAL, (8, 1)), rtol=1e-14)


def test_touch_turns_the_planes_x_axis_to_the_normal() -> None:
    contact = touch(Sphere(0.1), "ball", normal=5.0 * NORMAL, plane_point=(1, 2, 3), friction=0.4)
    np.testing.assert_allclose(rotations.matrix(contact.plane_rotation)[:, 0], NORMAL, rtol=0, atol=1e-15)
    assert (contact.plane, float(contact.friction)) == ("world", 0.4)


class Feet(ContactShape):
    """A shape from outside, which does not say how many points it has."""

    def points(self, plane: Frame, body: Frame) -> tuple[jax.Array, jax.Array]:
        feet = body.point + 0.1 * body.axes
        return (feet - plane.point) @ plane.axes[:, 0], feet


@pytest.mark.parametrize("shape", [Sphere(0.25), Box((0.1, 0.2, 0.3)), Feet()], ids=lambda shape: type(shape).__name__)
def test_shapes_have_as_many_points_as_they_say_or_as_are_found(shape: ContactShape) -> None:
    gap, points = shape.points(PLANE, BODY)
    assert gap.shape == (shape.count(),)
    assert points.shape == (shape.count(), 3)
