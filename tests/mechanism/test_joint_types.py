"""Joint types: closed-form rows equal differentiated ones, placement closes gaps, speeds are rates of coordinates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shadowfit.geometry import rotations
from shadowfit.mechanism.joint_types import (
    Ball,
    Distance,
    Frame,
    FrameRows,
    Hinge,
    JointType,
    Lock,
    Planar,
    SameAngle,
    Slider,
    differentiate,
)

KINDS = [Hinge(), Slider(), Ball(), Planar(), Lock(), Distance(0.7), SameAngle()]
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
with_axis = pytest.mark.parametrize("kind", KINDS[:2], ids=lambda kind: type(kind).__name__)


def random_frames(seed: int, count: int = 6) -> Frame:
    rng = np.random.default_rng(seed)
    return Frame(rng.normal(size=(count, 3)), rotations.matrix(rotations.exp(rng.normal(size=(count, 3)))))


def moved_by_joint(kind: JointType, a: Frame, position: jax.Array) -> Frame:
    """Frame b where the joint puts it."""
    shift, turn = kind.place(position)
    return Frame(a.point + a.axes @ shift, a.axes @ rotations.matrix(rotations.exp(turn)))


@kinds
def test_rows_in_closed_form_are_the_derivatives(kind: JointType) -> None:
    """At frames that violate the joint badly, so that no term of the derivative can hide behind a closed gap."""
    a, b = random_frames(1), random_frames(2)
    rows = jax.jit(jax.vmap(kind.gap_rows))(a, b)
    expected = jax.jit(jax.vmap(lambda a, b: differentiate(kind.gap, a, b)))(a, b)
    for side in ("a", "b"):
        np.testing.assert_allclose(getattr(rows, side), getattr(expected, side), rtol=0, atol=1e-14)
    assert rows.a.shape[1] == kind.row_count()


def test_the_sliders_axis_is_the_derivative_of_its_position() -> None:
    a, b = random_frames(3), random_frames(4)
    rows = jax.jit(jax.vmap(Slider().axis))(a, b)
    expected = jax.jit(jax.vmap(lambda a, b: JointType.axis(Slider(), a, b)))(a, b)
    np.testing.assert_allclose(rows.a, expected.a, rtol=0, atol=1e-14)
    np.testing.assert_allclose(rows.b, expected.b, rtol=0, atol=1e-14)


@with_axis
def test_the_axis_row_gives_the_rate_of_the_position_when_the_gap_is_closed(kind: JointType) -> None:
    a = random_frames(5)
    positions = np.linspace(-3.0, 3.0, 6)
    b = jax.jit(jax.vmap(lambda a, x: moved_by_joint(kind, a, x)))(a, positions)

    def rate(a: Frame, b: Frame, position: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Speed of the axis by its row, for both frames moving along with a and b moving along the joint too."""
        common = jnp.array([0.3, -0.2, 0.5, 0.7, 0.1, -0.4])
        together = lambda t: a.moved(t * common)  # noqa: E731
        twist_b = jnp.concatenate([common[:3] + jnp.cross(common[3:], b.point - a.point), common[3:]])
        along = jax.jvp(lambda x: moved_by_joint(kind, a, x), (position,), (1.0,))[1]
        spin = along.axes @ b.axes.T
        turning = jnp.stack([spin[2, 1], spin[0, 2], spin[1, 0]])
        twist_b = twist_b + jnp.concatenate([along.point, turning])
        row: FrameRows = kind.axis(together(0.0), b)
        return (row.a @ common + row.b @ twist_b)[0], kind.coordinate(a, b)

    speed, coordinate = jax.jit(jax.vmap(rate))(a, b, positions)
    np.testing.assert_allclose(speed, 1.0, rtol=0, atol=1e-13)
    np.testing.assert_allclose(coordinate, positions, rtol=0, atol=1e-14)


@kinds
def test_placing_closes_the_gap(kind: JointType) -> None:
    a = random_frames(6)
    b = jax.jit(jax.vmap(lambda a: moved_by_joint(kind, a, jnp.asarray(0.4))))(a)
    np.testing.assert_allclose(jax.jit(jax.vmap(kind.gap))(a, b), 0.0, rtol=0, atol=1e-15)


@kinds
def test_a_common_motion_of_both_frames_keeps_the_gap_closed(kind: JointType) -> None:
    """G v = 0 for any rigid motion of the whole: a joint knows only relative poses."""
    a = random_frames(7)
    b = jax.jit(jax.vmap(lambda a: moved_by_joint(kind, a, jnp.asarray(-0.8))))(a)
    v, w = np.array([0.3, -0.5, 0.2]), np.array([1.0, 0.4, -0.7])

    def rate(a: Frame, b: Frame) -> jax.Array:
        rows = kind.gap_rows(a, b)
        twists = [jnp.concatenate([v + jnp.cross(w, frame.point), jnp.asarray(w)]) for frame in (a, b)]
        return rows.a @ twists[0] + rows.b @ twists[1]

    np.testing.assert_allclose(jax.jit(jax.vmap(rate))(a, b), 0.0, rtol=0, atol=1e-14)


@kinds
def test_lengths_come_before_angles(kind: JointType) -> None:
    """The first ``linear_rows`` rows scale with the mechanism's size, the others do not."""
    a, b = random_frames(9, 1), random_frames(10, 1)
    kind_twice = Distance(2 * kind.length) if isinstance(kind, Distance) else kind

    def gap(kind: JointType, size: float) -> np.ndarray:
        frames = (Frame(size * frame.point[0], frame.axes[0]) for frame in (a, b))
        return np.asarray(kind.gap(*frames))

    ratio = gap(kind_twice, 2.0) / gap(kind, 1.0)
    np.testing.assert_allclose(ratio[: kind.linear_rows], 2.0, rtol=1e-14)
    np.testing.assert_allclose(ratio[kind.linear_rows :], 1.0, rtol=1e-14)


def test_hinge_angle_follows_the_right_hand_rule_in_all_quadrants() -> None:
    angles = np.linspace(-np.pi + 1e-6, np.pi, 9)
    a = Frame(np.zeros(3), np.eye(3))
    b = jax.jit(jax.vmap(lambda x: moved_by_joint(Hinge(), a, x)))(angles)
    np.testing.assert_allclose(jax.vmap(lambda b: Hinge().coordinate(a, b))(b), angles, rtol=0, atol=1e-15)
    quarter = moved_by_joint(Hinge(), a, jnp.asarray(np.pi / 2))
    np.testing.assert_allclose(quarter.axes[:, 1], [0.0, 0.0, 1.0], rtol=0, atol=1e-15)  # y turns to z about x


@kinds
def test_types_that_say_how_many_rows_they_have_are_right(kind: JointType) -> None:
    assert kind.gap_count is not None
    a, b = (frames.point[0] for frames in (random_frames(1), random_frames(2)))
    frame = random_frames(3).axes[0]
    assert kind.gap(Frame(a, frame), Frame(b, frame)).shape == (kind.gap_count,)


class Touching(JointType):
    """A type from outside, which does not say it."""

    linear_rows = 1

    def gap(self, a: Frame, b: Frame) -> jax.Array:
        return jnp.sum((a.point - b.point) ** 2)[None]


def test_rows_of_other_types_are_counted_by_tracing() -> None:
    assert Touching().row_count() == 1
