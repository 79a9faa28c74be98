"""Joint coordinates: poses and velocities that follow from them are those of the joints themselves."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quick import quick
from shadowfit.dynamics import assemble, place
from shadowfit.dynamics.kinematics import StateView, gap_values
from shadowfit.dynamics.motion_view import MotionView
from shadowfit.dynamics.state import State
from shadowfit.dynamics.tree import forward_kinematics, motions, tree_of
from shadowfit.geometry import Pose
from shadowfit.mechanism import Mechanism, ball, distance, hinge, lock, slider
from shadowfit.mechanism.body import Body
from shadowfit.models import builtin

BODY = Body(0.5, (1e-3, 2e-3, 1.5e-3), com=(0.02, -0.01, 0.03))


def branched() -> Mechanism:
    """A floating body that carries a slider, a ball joint, a hinge told from its child's side, and a lock."""
    joints = {
        "rail": slider("hull", "cart", axis=(0.0, 1.0, 1.0), parent_point=(0.1, 0.0, 0.2), child_point=(0.0, 0.1, 0.0)),
        "hip": ball("cart", "leg", axis=(1.0, 2.0, 0.0), parent_point=(0.0, 0.0, -0.1), child_point=(0.0, 0.0, 0.2)),
        "back": hinge("fin", "hull", axis=(0.0, 0.0, 1.0), parent_point=(0.1, 0.0, 0.0), child_point=(-0.2, 0.0, 0.1)),
        "weld": lock("leg", "foot", parent_point=(0.0, 0.0, -0.2), zero_rotation=(0.8, 0.0, 0.6, 0.0)),
    }
    return Mechanism(dict.fromkeys(("hull", "leg", "cart", "fin", "foot"), BODY), joints, name="branched")


MECHANISMS = {
    "branched": branched,
    "furuta": builtin.furuta,
    "cartpole": builtin.cartpole,
    "chain": lambda: builtin.chain(3),
}


@dataclasses.dataclass(frozen=True)
class Scene:
    """Motions that are nothing in particular, and what follows from them."""

    motion: Pose
    again: Pose
    """Motions found from the poses."""
    gaps: jax.Array
    twists: jax.Array
    slopes: jax.Array
    """Derivatives of the poses."""
    seen: tuple[jax.Array, jax.Array]
    """Positions and speeds of the joints, by coordinates and by poses."""


@pytest.fixture(scope="module", params=quick(MECHANISMS, "furuta", "cartpole"))
def scene(request):
    mechanism = MECHANISMS[request.param]()
    tree = tree_of(mechanism)
    rng = np.random.default_rng(3)
    count = len(mechanism.bodies)
    steps = (rng.uniform(-1.2, 1.2, tree.size) @ tree.selection()).reshape(count, 6)
    rates = rng.standard_normal(tree.size)
    axes = [name for name, joint in mechanism.joints.items() if joint.kind.axis_kind is not None]

    @jax.jit
    def everything():
        still = Pose(jnp.zeros((count, 3)), jnp.tile(jnp.array([1.0, 0.0, 0.0, 0.0]), (count, 1)))
        motion = still.plus(jnp.asarray(steps))
        here = forward_kinematics(tree, mechanism, motion)

        def moved(step):
            there = motion.plus((step @ tree.selection()).reshape(count, 6))
            return forward_kinematics(tree, mechanism, there).pose.minus(here.pose)

        velocity = (rates @ tree.selection()).reshape(count, 6)
        views = (
            MotionView(tree, mechanism, State(motion, velocity)),
            StateView(mechanism, State(here.pose, here.twists @ rates)),
        )
        return (
            motion,
            motions(tree, mechanism, here.pose),
            gap_values(assemble(mechanism), here.pose),
            here.twists,
            jax.jacfwd(moved)(jnp.zeros(tree.size)),
            tuple(jnp.array([[v.joint_position(n), v.joint_speed(n)] for n in axes]) for v in views),
        )

    return Scene(*everything())


def same(a: Pose, b: Pose) -> None:
    np.testing.assert_allclose(a.position, b.position, atol=1e-12)
    np.testing.assert_allclose(np.abs(np.sum(np.asarray(a.orientation) * np.asarray(b.orientation), axis=-1)), 1.0)


def test_no_joint_is_violated(scene):
    np.testing.assert_allclose(scene.gaps, 0.0, atol=1e-14)


def test_motions_are_found_again(scene):
    same(scene.again, scene.motion)


def test_twists_are_the_derivatives_of_the_poses(scene):
    np.testing.assert_allclose(scene.twists, scene.slopes, atol=1e-12)


def test_joints_stand_and_move_as_their_coordinates_say(scene):
    np.testing.assert_allclose(*scene.seen, atol=1e-12)


def test_positions_of_joints_place_bodies_as_the_simulator_does():
    mechanism = builtin.furuta()
    tree = tree_of(mechanism)
    expected = place(mechanism, {"hinge1": 0.4, "hinge2": 2.0}).pose
    again = jax.jit(lambda pose: forward_kinematics(tree, mechanism, motions(tree, mechanism, pose)).pose)(expected)
    same(again, expected)


def test_joints_that_are_left_over_close_loops():
    fourbar = builtin.fourbar()
    assert [fourbar.joints.names[i] for i in tree_of(fourbar).loops] == ["coupler_rocker"]
    # What has no coordinates of its own holds a body that floats.
    held = tree_of(Mechanism({"bob": BODY}, {"rod": distance("world", "bob", 0.5)}))
    assert (held.size, held.loops) == (6, (0,))
