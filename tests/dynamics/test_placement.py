"""States from joint positions and speeds: along trees and loops, for free bodies, and what is refused."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from shadowfit.dynamics import State, place
from shadowfit.dynamics.elements import assembled
from shadowfit.dynamics.kinematics import StateView, moved_geometries
from shadowfit.dynamics.placement import closed
from shadowfit.errors import MechanismError, UnknownNameError
from shadowfit.mechanism import Body, Mechanism, ball, hinge, lock, slider
from shadowfit.models import builtin, read_model

CHAIN = {"hinge1": 0.4, "hinge2": -2.0, "hinge3": 3.0, "hinge4": 0.7}


@jax.jit
def motion(mechanism: Mechanism, state: State) -> dict[str, tuple[jax.Array, jax.Array]]:
    """Position and speed of each joint with an axis."""
    view = StateView(mechanism, state)
    return {name: (view.joint_position(name), view.joint_speed(name)) for name in mechanism.joints}


def violation(mechanism: Mechanism, state: State) -> tuple[float, float]:
    """Largest gap, and largest speed of opening."""
    elements = assembled(mechanism)
    _, geometries = moved_geometries(elements, state.pose, np.zeros_like(state.velocity))
    moving = np.concatenate([np.asarray(state.velocity), np.zeros((1, 6))])
    gaps, rates = [0.0], [0.0]
    for group, geometry in zip(elements.groups, geometries, strict=True):
        gaps.append(np.abs(geometry.gap).max(initial=0.0))
        rate = np.einsum("nmi,ni->nm", geometry.gap_a, moving[group.a.bodies])
        rate += np.einsum("nmi,ni->nm", geometry.gap_b, moving[group.b.bodies])
        rates.append(np.abs(rate).max(initial=0.0))
    return max(gaps), max(rates)


def test_a_tree_has_the_positions_and_speeds_asked_for() -> None:
    mechanism = builtin.chain(4)
    speeds = {"hinge1": 1.0, "hinge4": -2.0}
    state = place(mechanism, CHAIN, speeds)
    assert max(violation(mechanism, state)) < 1e-12
    for name, (position, speed) in motion(mechanism, state).items():
        assert float(position) == pytest.approx(CHAIN[name], abs=1e-13)
        assert float(speed) == pytest.approx(speeds.get(name, 0.0), abs=1e-12)


def test_the_paper_model_hangs_at_zero() -> None:
    """The arm along x, the pendulum below its end; angle 2 positive lifts it towards +y."""
    mechanism = builtin.furuta()
    np.testing.assert_allclose(place(mechanism).pose.position, [[0.128, 0, 0], [0.376, 0, -0.092]], atol=1e-15)
    lifted = place(mechanism, {"hinge2": np.pi / 2}).pose.position[1]
    np.testing.assert_allclose(lifted, [0.376, 0.092, 0.0], atol=1e-15)


def test_joints_may_be_given_from_child_to_parent() -> None:
    """A joint whose parent is the moving body places it as well."""
    rod = Body(1.0, (1, 1, 1))
    forward = Mechanism({"rod": rod}, {"pin": hinge("world", "rod", axis=(0, 1, 0), child_point=(0.3, 0, 0))})
    backward = Mechanism({"rod": rod}, {"pin": hinge("rod", "world", axis=(0, 1, 0), parent_point=(0.3, 0, 0))})
    first, second = place(forward, {"pin": 0.7}), place(backward, {"pin": -0.7})
    np.testing.assert_allclose(second.pose.position, first.pose.position, atol=1e-15)
    np.testing.assert_allclose(second.pose.orientation, first.pose.orientation, atol=1e-15)


@pytest.mark.parametrize("crank", [-1.0, 0.3, 2.0])
def test_a_loop_is_closed_around_the_position_asked_for(crank: float) -> None:
    mechanism = builtin.fourbar()
    state = place(mechanism, {"ground_crank": crank}, {"ground_crank": 3.0})
    assert max(violation(mechanism, state)) < 1e-9
    found = motion(mechanism, state)
    np.testing.assert_allclose(found["ground_crank"], [crank, 3.0], rtol=0.0, atol=1e-9)
    assert abs(float(found["ground_rocker"][1])) > 0.1  # the loop drives it


def test_free_bodies_go_where_they_are_told() -> None:
    body = Body(1.0, (1, 1, 1))
    mechanism = Mechanism(
        {"free": body, "tail": body}, {"pin": hinge("free", "tail", axis=(0, 0, 1), parent_point=(1, 0, 0))}
    )
    pose = ((1.0, 2.0, 3.0), (0.0, 0.0, 0.0, 2.0))  # half a turn about z, of any length
    state = place(mechanism, {"pin": 0.5}, {"pin": 1.0}, poses={"free": pose})
    assert max(violation(mechanism, state)) < 1e-12
    np.testing.assert_allclose(state.pose.position, [[1, 2, 3], [0, 2, 3]], atol=1e-14)
    assert float(motion(mechanism, state)["pin"][1]) == pytest.approx(1.0, abs=1e-12)
    flying = place(mechanism, velocities={"free": (1, 0, 0, 0, 0, 2.0), "tail": (1, 2.0, 0, 0, 0, 2.0)})
    np.testing.assert_allclose(flying.velocity[0], [1, 0, 0, 0, 0, 2.0], atol=1e-12)  # already consistent


def test_joints_without_an_axis_are_closed() -> None:
    body = Body(1.0, (1, 1, 1))
    mechanism = Mechanism(
        {"a": body, "b": body, "c": body},
        {
            "ball": ball("world", "a", parent_point=(0, 0, 1), child_point=(0.2, 0, 0)),
            "lock": lock("a", "b", child_point=(0, 0.5, 0), zero_rotation=(0.5, 0.5, 0.5, 0.5)),
            "rail": slider("b", "c", axis=(1, 1, 0)),
        },
    )
    assert violation(mechanism, place(mechanism, {"rail": 0.4}))[0] < 1e-15


def test_nothing_moves_unless_asked_to() -> None:
    assert np.all(np.asarray(place(builtin.furuta(), {"hinge2": 1.0}).velocity) == 0.0)


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "unknown joint": (
        lambda: place(builtin.furuta(), {"hinge3": 1.0}),
        UnknownNameError,
        "no joint 'hinge3'; did you mean",
    ),
    "unknown speed": (lambda: place(builtin.furuta(), {}, {"arm": 1.0}), UnknownNameError, "no joint 'arm'"),
    "nan": (lambda: place(builtin.furuta(), {"hinge2": np.nan}), MechanismError, "'hinge2': .* finite number, not nan"),
    "vector": (lambda: place(builtin.furuta(), {"hinge2": [1, 2]}), MechanismError, "'hinge2': .* finite number"),
    "tied body": (
        lambda: place(builtin.furuta(), poses={"arm": ((0, 0, 0), (1, 0, 0, 0))}),
        MechanismError,
        "body 'arm' is placed by its joints",
    ),
    "tied velocity": (
        lambda: place(builtin.furuta(), velocities={"arm": np.zeros(6)}),
        MechanismError,
        "body 'arm' is placed by its joints",
    ),
    "unknown body": (
        lambda: place(builtin.incline(), poses={"bax": ((0, 0, 0), (1, 0, 0, 0))}),
        UnknownNameError,
        "no part 'bax'; did you mean 'box'",
    ),
    "short position": (
        lambda: place(builtin.incline(), poses={"box": ((0, 0), (1, 0, 0, 0))}),
        MechanismError,
        "position of 'box' must be 3 finite numbers",
    ),
    "no rotation": (
        lambda: place(builtin.incline(), poses={"box": ((0, 0, 0), (0, 0, 0, 0))}),
        MechanismError,
        "orientation of 'box' is zero",
    ),
    "nan velocity": (
        lambda: place(builtin.incline(), velocities={"box": (0, 0, np.nan, 0, 0, 0)}),
        MechanismError,
        "velocity of 'box' must be 6 finite numbers",
    ),
    "loop that cannot close": (
        lambda: place(builtin.fourbar(coupler=0.05), {"ground_crank": 3.0}),
        MechanismError,
        "cannot all be closed at these positions .* remain, .* in joint",
    ),
    "loop asked for too much": (
        lambda: place(builtin.fourbar(), {"ground_crank": -1.0, "ground_rocker": 1.0}),
        MechanismError,
        "cannot all be closed at these positions",
    ),
    "speeds that contradict": (
        lambda: place(builtin.fourbar(), {"ground_crank": -1.0}, {"ground_crank": 1.0, "ground_rocker": 9.0}),
        MechanismError,
        "cannot all move at these speeds .* degrees of freedom",
    ),
    "position of a ball": (
        lambda: place(Mechanism({"a": Body(1.0, (1, 1, 1))}, {"b": ball("world", "a")}), {"b": 1.0}),
        MechanismError,
        "joint 'b' has no free axis",
    ),
}


@pytest.mark.parametrize(("attempt", "error", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_named(attempt: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        attempt()


@pytest.mark.parametrize("name", ["furuta", "fourbar"])
def test_a_noisy_state_is_put_back_on_the_constraints(name: str) -> None:
    mechanism = read_model(name)
    exact = place(mechanism, {mechanism.joints.names[0]: 0.4}, {mechanism.joints.names[0]: 1.5})
    noise = 1e-3 * np.random.default_rng(1).normal(size=(2, len(mechanism.bodies), 6))
    noisy = State(exact.pose.plus(noise[0]), exact.velocity + noise[1])
    assert max(violation(mechanism, noisy)) > 1e-4
    state = closed(mechanism, noisy)
    assert max(violation(mechanism, state)) < 1e-8
    assert np.max(np.abs(state.pose.minus(noisy.pose))) < 0.02
    assert np.max(np.abs(state.velocity - noisy.velocity)) < 0.02


def test_a_tree_put_back_on_the_constraints_keeps_its_joint_positions_and_speeds() -> None:
    mechanism = read_model("furuta")
    noise = 1e-3 * np.random.default_rng(2).normal(size=(2, 2, 6))
    exact = place(mechanism, {"hinge1": 0.4, "hinge2": 2.0}, {"hinge1": 1.5})
    noisy = State(exact.pose.plus(noise[0]), exact.velocity + noise[1])
    before, after = motion(mechanism, noisy), motion(mechanism, closed(mechanism, noisy))
    for name in mechanism.joints:
        assert float(after[name][0]) == pytest.approx(float(before[name][0]), abs=1e-9)
        # The free axis turns with the bodies, hence not to the last digit.
        assert float(after[name][1]) == pytest.approx(float(before[name][1]), abs=1e-2)
