"""Mechanisms as stacked arrays: what is grouped with what, where everything goes, and that nothing gets mixed up."""

from typing import Any

import jax
import numpy as np
import pytest

from dynamics.scenes import flat
from shadowfit.dynamics import assemble, rows
from shadowfit.dynamics.elements import assembled
from shadowfit.dynamics.kinematics import gap_jacobian, gap_values
from shadowfit.dynamics.state import with_world
from shadowfit.dynamics.velocity_problem import complementary_count
from shadowfit.geometry import Pose
from shadowfit.mechanism import (
    AxisLaw,
    Body,
    Box,
    Coulomb,
    Input,
    JointLimit,
    Mechanism,
    Sphere,
    Spring,
    Stribeck,
    TorqueMotor,
    ball,
    distance,
    hinge,
    slider,
    touch,
)
from shadowfit.mechanism.leaves import number
from shadowfit.pytrees import field


class Power(AxisLaw):
    """``τ = −k x^n`` with a static power: two of them with different powers must not share one group."""

    stiffness: Any = number("N m")
    power: int = field(static=True, default=1)
    input: str | None = field(static=True, default=None)

    def torque(self, position: jax.Array, speed: jax.Array, command: jax.Array) -> jax.Array:
        del speed, command
        return -self.stiffness * position**self.power


def zoo() -> Mechanism:
    body = Body(1.0, (1, 1, 1), com=(0.1, 0.2, 0.3))
    names = [f"b{i}" for i in range(8)]
    return Mechanism(
        dict.fromkeys(names, body),
        {
            "h1": hinge("world", "b0", laws={"motor": TorqueMotor(2.0, input="v")}),
            "s1": slider("world", "b1", viscous=0.5),
            "h2": hinge("b0", "b2", friction=Coulomb(dry=0.1)),
            "h3": hinge(
                "b2", "b3", laws={"a": Power(3.0, 1), "b": Power(5.0, 3), "motor": TorqueMotor(7.0, input="u")}
            ),
            "b1_": ball("world", "b4"),
            "h4": hinge("b3", "b5", friction=Stribeck(dry=0.2)),
            "d1": distance("world", "b6", 0.5),
            "d2": distance("world", "b7", 0.7),
        },
        contacts={
            "stop": JointLimit("h1", upper=1.0),
            "floor": touch(Box((1, 1, 1)), "b1"),
            "ground": touch(Sphere(1.0), "b4"),
        },
        inputs={"u": Input(), "v": Input()},
    )


def test_joints_are_grouped_by_type_and_friction() -> None:
    mechanism = zoo()
    elements = assembled(mechanism)
    names = [[mechanism.joints.names[j] for j in group.joints] for group in elements.groups]
    assert names == [["h1", "h3"], ["s1"], ["h2"], ["b1_"], ["h4"], ["d1", "d2"]]
    for joint, (place, member) in enumerate(elements.joint_places):
        assert elements.groups[place].joints[member] == joint


def test_numbers_go_where_their_joint_goes() -> None:
    elements = assembled(zoo())
    np.testing.assert_array_equal(elements.groups[5].kind.length, [0.5, 0.7])
    np.testing.assert_array_equal(elements.groups[1].viscous, [0.5])
    hinges = elements.groups[0]
    assert hinges.a.body_indices == (8, 2)  # the world is one behind the last body
    assert hinges.b.body_indices == (0, 3)
    # Levers go from the centre of mass to the point of attachment; the world has its centre at the origin.
    np.testing.assert_allclose(hinges.a.levers, [[0, 0, 0], [-0.1, -0.2, -0.3]])


@pytest.mark.parametrize("x", [0.5, 2.0])
def test_laws_of_a_group_act_on_their_own_joints_with_their_own_inputs(x: float) -> None:
    """The motor of h1 hears v, that of h3 hears u; the two springs of h3 differ in a static option."""
    hinges = assembled(zoo()).groups[0]
    torque = rows.axis_torque(hinges, np.array([x, x]), np.zeros(2), np.array([10.0, 100.0]))
    np.testing.assert_allclose(torque, [2.0 * 100.0, 7.0 * 10.0 - 3.0 * x - 5.0 * x**3], rtol=1e-14)


def test_two_laws_of_one_kind_on_one_joint_add_up() -> None:
    laws = {"first": Spring(2.0), "second": Spring(3.0, rest=1.0)}
    mechanism = Mechanism({"b": Body(1.0, (1, 1, 1))}, {"h": hinge("world", "b", laws=laws)})
    torque = rows.axis_torque(assembled(mechanism).groups[0], np.array([0.5]), np.zeros(1), np.zeros(0))
    np.testing.assert_allclose(torque, [-2.0 * 0.5 + 3.0 * 0.5], rtol=1e-14)


def test_rows_of_complementarity_are_counted() -> None:
    """Seven for each hinge with friction (negative parts and two slacks), two for stops, six for each point."""
    assert complementary_count(assembled(zoo())) == 2 * 7 + 2 + 8 * 6 + 6


def random_pose(bodies: int) -> Pose:
    rng = np.random.default_rng(5)
    e = rng.normal(size=(bodies, 4))
    return Pose(rng.normal(size=(bodies, 3)), e / np.linalg.norm(e, axis=1, keepdims=True))


def test_geometry_of_all_groups_at_once_is_that_of_each() -> None:
    elements = assembled(zoo())
    pose, _ = with_world(random_pose(8), np.zeros((8, 6)))
    together = jax.jit(lambda p: rows.geometries(elements.groups, p))(pose)
    alone = jax.jit(lambda p: tuple(rows.geometry(group, p) for group in elements.groups))(pose)
    np.testing.assert_allclose(flat(together), flat(alone), rtol=0, atol=1e-14)


def test_the_gaps_jacobian_is_their_derivative() -> None:
    """Over all bodies, by increments of their poses."""
    elements, pose = assembled(zoo()), random_pose(8)
    expected = jax.jit(jax.jacfwd(lambda d: gap_values(elements, pose.plus(d.reshape(8, 6)))))(np.zeros(48))
    np.testing.assert_allclose(jax.jit(gap_jacobian)(elements, pose), expected, rtol=0, atol=1e-13)


def test_assembling_is_differentiable() -> None:
    """Numbers flow through: the lever of a hinge by the centre of mass of its body."""
    mechanism = zoo()

    def lever(x: jax.Array) -> jax.Array:
        return assemble(mechanism.write({"b0.com.x": x})).groups[0].b.levers[0, 0]

    assert float(jax.jit(jax.grad(lever))(0.1)) == -1.0


def test_numbers_are_assembled_by_numpy_as_traces_are_by_jax() -> None:
    found, traced = assembled(zoo()), jax.jit(assemble)(zoo())
    assert jax.tree.structure(found) == jax.tree.structure(traced)
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(traced), strict=True):
        assert type(mine) is np.ndarray
        np.testing.assert_allclose(mine, theirs, rtol=1e-14, atol=1e-15)
