"""One SPOOK step against systems written out densely: the saddle point without friction, the paper's MLCP with it."""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from dynamics.scenes import with_joints
from shadowfit.complementarity import Status, solve_lcp
from shadowfit.dynamics import State, assemble, place, rows, spook
from shadowfit.dynamics.elements import assembled
from shadowfit.dynamics.kinematics import gap_jacobian, gap_values
from shadowfit.dynamics.state import with_world
from shadowfit.dynamics.velocity_problem import VelocitySolution, complementary_count
from shadowfit.geometry import Pose
from shadowfit.mechanism import Coulomb, Mechanism, Stribeck
from shadowfit.models import builtin

H = 5e-3


@jax.jit
def step(mechanism: Mechanism, state: State, command: np.ndarray) -> tuple[State, VelocitySolution]:
    elements = assemble(mechanism)
    guess = jnp.zeros(complementary_count(elements), bool)
    return spook.step(elements, state, command, jnp.asarray(H), guess)


plus = jax.jit(Pose.plus)


@jax.jit
def geometry(mechanism: Mechanism, state: State) -> tuple[jax.Array, jax.Array, tuple[rows.Geometry, ...]]:
    """Gaps, their Jacobian, and the joints' geometry."""
    elements = assemble(mechanism)
    whole, _ = with_world(state.pose, state.velocity)
    found = tuple(rows.geometry(group, whole) for group in elements.groups)
    return gap_values(elements, state.pose), gap_jacobian(elements, state.pose), found


def disturbed(mechanism: Mechanism, positions: dict[str, float], speeds: dict[str, float], seed: int) -> State:
    """A state with open gaps and velocities off the constraints, so that every term of the rows counts."""
    rng = np.random.default_rng(seed)
    state = place(mechanism, positions, speeds)
    bodies = len(mechanism.bodies)
    pose = plus(state.pose, 1e-3 * rng.normal(size=(bodies, 6)))
    return State(pose, state.velocity + 0.05 * rng.normal(size=(bodies, 6)))


class Dense(NamedTuple):
    """Everything of a step in full matrices, from the definitions."""

    mass: np.ndarray
    momentum: np.ndarray
    """M v + h (f + f_g)"""
    gap: np.ndarray
    gap_rows: np.ndarray
    sigma: np.ndarray
    upsilon: np.ndarray
    axes: np.ndarray
    velocity: np.ndarray


def dense(mechanism: Mechanism, state: State) -> Dense:
    bodies = len(mechanism.bodies)
    turn = Rotation.from_quat(np.roll(state.pose.orientation, -1, axis=1)).as_matrix()
    velocity = np.asarray(state.velocity)
    mass, force = np.zeros((6 * bodies, 6 * bodies)), np.zeros((bodies, 6))
    gravity = np.asarray(mechanism.gravity.vector())
    for i, body in enumerate(mechanism.bodies.values):
        inertia = turn[i] @ np.array(body.inertia.rows()) @ turn[i].T
        block = slice(6 * i, 6 * i + 6)
        mass[block, block] = np.block([[float(body.mass) * np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), inertia]])
        spin = velocity[i, 3:]
        force[i] = np.concatenate([float(body.mass) * gravity, -np.cross(spin, inertia @ spin)])
    gap, gap_rows, geometries = jax.tree.map(np.asarray, geometry(mechanism, state))
    axes, sigma, upsilon = [], [], []
    for group, here in zip(assembled(mechanism).groups, geometries, strict=True):
        for member in range(group.size):
            row = np.zeros((bodies + 1, 6))
            row[group.a.body_indices[member]] += here.axis_a[member]
            row[group.b.body_indices[member]] += here.axis_b[member]
            axes.append(row[:bodies].ravel())
            relaxed = 1.0 / (1.0 + 4.0 * float(np.asarray(group.damping)[member]) / H)
            upsilon += [relaxed] * group.gap_rows
            sigma += list(4.0 / H**2 * np.asarray(group.compliance)[member] * relaxed)
    return Dense(
        mass,
        mass @ velocity.ravel() + H * force.ravel(),
        gap,
        gap_rows,
        np.array(sigma),
        np.array(upsilon),
        np.array(axes),
        velocity.ravel(),
    )


def gap_bias(system: Dense) -> np.ndarray:
    """(4/h) Υ g − Υ G v."""
    return system.upsilon * (4.0 / H * system.gap - system.gap_rows @ system.velocity)


def axis_rows(mechanism: Mechanism, system: Dense, command: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Viscous friction and motor as the paper writes them: rows, Σ and right-hand sides of Ḡ v₊ + Σ λ = r."""
    found, sigma, right = [], [], []
    for joint, axis in zip(mechanism.joints.values, system.axes, strict=True):
        if float(joint.viscous) > 0.0:
            found.append(axis)
            sigma.append(1.0 / (float(joint.viscous) * H))
            right.append(0.0)
        for motor in joint.laws.values:
            found.append(axis)
            sigma.append(1.0 / float(motor.shaft_inertia))
            right.append(axis @ system.velocity + H * float(motor.gain) * command / float(motor.shaft_inertia))
    return np.array(found).reshape(-1, system.mass.shape[0]), np.array(sigma), np.array(right)


STATES = {
    "furuta": (builtin.furuta, {"hinge1": 0.4, "hinge2": 2.0}, {"hinge1": 3.0, "hinge2": -5.0}),
    "chain": (lambda friction: builtin.chain(3), {"hinge1": 0.4, "hinge2": 2.0, "hinge3": -1.0}, {"hinge3": 4.0}),
}


@pytest.mark.parametrize("name", STATES)
def test_without_friction_the_step_solves_the_saddle_point_system(name: str) -> None:
    build, positions, speeds = STATES[name]
    mechanism = build(friction=False)
    state = disturbed(mechanism, positions, speeds, 1)
    system, command = dense(mechanism, state), 0.7
    extra, extra_sigma, extra_right = axis_rows(mechanism, system, command)
    a = np.concatenate([system.gap_rows, extra])
    sigma = np.concatenate([system.sigma, extra_sigma])
    matrix = np.block([[system.mass, -a.T], [a, np.diag(sigma)]])
    right = np.concatenate([system.momentum, -gap_bias(system), extra_right])
    expected = np.linalg.solve(matrix, right)
    new, solution = step(mechanism, state, np.full(len(mechanism.inputs), command))
    np.testing.assert_allclose(new.velocity.ravel(), expected[: system.mass.shape[0]], rtol=1e-9, atol=1e-11)
    gaps = np.concatenate([np.asarray(group)[:, :5].ravel() for group in solution.equality])
    np.testing.assert_allclose(gaps, expected[system.mass.shape[0] :][: len(gaps)], rtol=1e-7, atol=1e-12)
    along = np.concatenate([np.asarray(group)[:, 5] for group in solution.equality])
    owner = np.array([np.argmax([np.array_equal(row, axis) for axis in system.axes]) for row in extra])
    laws = expected[system.mass.shape[0] + len(gaps) :]
    np.testing.assert_allclose(along, [laws[owner == i].sum() for i in range(len(along))], rtol=1e-8, atol=1e-13)
    moved = plus(state.pose, H * np.asarray(new.velocity))
    np.testing.assert_allclose(new.pose.position, moved.position, rtol=0, atol=1e-15)
    np.testing.assert_allclose(new.pose.orientation, moved.orientation, rtol=0, atol=1e-15)


def test_redundant_constraints_have_one_velocity() -> None:
    """The four-bar's loop is closed six times over in its plane: the step still solves the (regular) system."""
    mechanism = builtin.fourbar()
    state = disturbed(mechanism, {"ground_crank": -1.0}, {"ground_crank": 3.0}, 2)
    system = dense(mechanism, state)
    rank = np.linalg.matrix_rank(system.gap_rows, tol=1e-8)
    assert rank < len(system.gap)
    matrix = np.block([[system.mass, -system.gap_rows.T], [system.gap_rows, np.diag(system.sigma)]])
    expected = np.linalg.solve(matrix, np.concatenate([system.momentum, -gap_bias(system)]))
    new, _ = step(mechanism, state, np.zeros(0))
    np.testing.assert_allclose(new.velocity.ravel(), expected[: system.mass.shape[0]], rtol=1e-8, atol=1e-10)


def literal_lcp(mechanism: Mechanism, state: State, command: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, Dense]:
    """The paper's mixed LCP with the velocity and the axis rows eliminated: H, q, and v₊ = v_free + response z.

    For every hinge 13 unknowns: ten multipliers of ±g ≥ 0, two of the axis in both directions, and σ with

        U (λ₊ + λ₋) + h·level − λ_t₊ − λ_t₋ + Δ σ ≥ 0,   Δ = 0.
    """
    system = dense(mechanism, state)
    extra, extra_sigma, extra_right = axis_rows(mechanism, system, command)
    saddle = np.block([[system.mass, -extra.T], [extra, np.diag(extra_sigma)]])
    inverse = np.linalg.inv(saddle)
    size = len(system.mass)
    free = (inverse @ np.concatenate([system.momentum, extra_right]))[:size]
    respond = inverse[:size, :size]
    inverse_mass = np.linalg.inv(system.mass)
    jacobian, self_terms, offsets = [], [], []
    for i, joint in enumerate(mechanism.joints.values):
        span = slice(5 * i, 5 * i + 5)
        g, axis = system.gap_rows[span], system.axes[i]
        jacobian.append(np.concatenate([g, -g, axis[None], -axis[None], np.zeros((1, size))]))
        block = np.zeros((13, 13))
        block[range(10), range(10)] = np.tile(system.sigma[span], 2)
        block[[10, 11], [10, 11]] = float(joint.friction.stick_time) / H * (axis @ inverse_mass @ axis)
        block[[10, 11], 12] = 1.0
        coefficient, level = (float(x) for x in joint.friction.limit(axis @ system.velocity))
        radius = float(joint.friction.dry_radius)
        block[12, :10] = np.tile(coefficient * np.array([radius, radius, radius, 1.0, 1.0]), 2)
        block[12, [10, 11]] = -1.0
        self_terms.append(block)
        bias = gap_bias(system)[span]
        offsets.append(np.concatenate([bias, -bias, [0.0, 0.0, H * level]]))
    b = np.concatenate(jacobian)
    count = len(b)
    diagonal = np.zeros((count, count))
    for i, block in enumerate(self_terms):
        diagonal[13 * i : 13 * i + 13, 13 * i : 13 * i + 13] = block
    response = respond @ b.T
    return diagonal + b @ response, np.concatenate(offsets) + b @ free, np.stack([free, *response.T]), system


def by_enumeration(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """The first active set whose solution satisfies all signs; Σ > 0 makes ± pairs exclusive."""
    pairs = [[(), (i,), (5 + i,)] for i in range(5)] + [[(), (10,), (11,)], [(), (12,)]]
    scale = np.abs(vector).max()
    for choice in itertools.product(*pairs):
        active = [i for part in choice for i in part]
        z = np.zeros(len(vector))
        try:
            z[active] = np.linalg.solve(matrix[np.ix_(active, active)], -vector[active])
        except np.linalg.LinAlgError:
            continue
        w = matrix @ z + vector
        w[active] = 0.0
        if z.min() >= 0.0 and w.min() >= -1e-12 * scale:
            return z
    raise AssertionError("no active set solves the problem")


FRICTION = {
    "dry": Coulomb(dry=0.02, dry_radius=0.03),
    "level": Coulomb(coulomb=0.02),
    "both": Coulomb(dry=0.05, coulomb=0.01, dry_radius=0.2),
    "stribeck": Stribeck(dry=0.01, stribeck=0.03, coulomb=0.002, stribeck_coulomb=0.01, stribeck_rate=0.5),
}


def with_friction(mechanism: Mechanism, law: Coulomb | Stribeck) -> Mechanism:
    joints = {
        name: type(joint)(**{f: getattr(joint, f) for f in joint.__dataclass_fields__} | {"friction": law})
        for name, joint in mechanism.joints.items()
    }
    parts = {kind: dict(getattr(mechanism, kind).items()) for kind in ("bodies", "sensors", "inputs")}
    return Mechanism(parts["bodies"], joints, sensors=parts["sensors"], inputs=parts["inputs"], name=mechanism.name)


@pytest.mark.parametrize("law", FRICTION)
@pytest.mark.parametrize("speed", [0.0, 0.02, -3.0])
def test_one_hinge_steps_as_in_the_papers_mlcp(law: str, speed: float) -> None:
    """Thirteen rows, all active sets tried: sticking, about to slip, and sliding."""
    mechanism = with_joints(with_friction(builtin.pendulum(), FRICTION[law]), viscous=2e-3)
    state = disturbed(mechanism, {"hinge": 0.02}, {"hinge": speed}, 3)
    state = state if speed else State(state.pose, jnp.zeros_like(state.velocity))
    matrix, vector, motion, _ = literal_lcp(mechanism, state, 0.0)
    z = by_enumeration(matrix, vector)
    new, solution = step(mechanism, state, np.zeros(0))
    assert int(solution.status) == Status.SOLVED
    np.testing.assert_allclose(new.velocity.ravel(), motion[0] + z @ motion[1:], rtol=1e-8, atol=1e-10)
    multipliers = np.asarray(solution.equality[0][0])
    np.testing.assert_allclose(multipliers[:5], z[:5] - z[5:10], rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(multipliers[-1], z[10] - z[11], rtol=1e-6, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("speeds", [(0.0, 0.0), (0.01, -0.01), (2.0, -4.0)])
def test_two_hinges_step_as_in_the_papers_mlcp(speeds: tuple[float, float]) -> None:
    """Twenty-six rows with motor and viscous friction, by Lemke's method."""
    mechanism = with_friction(builtin.furuta(), FRICTION["both"])
    state = disturbed(mechanism, {"hinge2": 0.5}, dict(zip(("hinge1", "hinge2"), speeds, strict=True)), 4)
    matrix, vector, motion, _ = literal_lcp(mechanism, state, 0.3)
    found = solve_lcp(jnp.asarray(matrix), jnp.asarray(vector))
    assert int(found.status) == Status.SOLVED
    new, solution = step(mechanism, state, np.array([0.3]))
    assert int(solution.status) == Status.SOLVED
    np.testing.assert_allclose(new.velocity.ravel(), motion[0] + np.asarray(found.z) @ motion[1:], rtol=1e-7, atol=1e-9)


def test_no_friction_is_the_limit_of_little_friction() -> None:
    """μ = 0 is an ordinary value: the step with frictional rows equals the step without them."""
    smooth, rough = builtin.furuta(friction=False), with_joints(builtin.furuta(), dry=0.0, coulomb=0.0)
    state = disturbed(smooth, {"hinge2": 0.5}, {"hinge1": 2.0}, 5)
    expected, _ = step(smooth, state, np.array([0.3]))
    found, solution = step(rough, state, np.array([0.3]))
    assert int(solution.status) == Status.SOLVED
    np.testing.assert_allclose(found.velocity, expected.velocity, rtol=0, atol=1e-11)
