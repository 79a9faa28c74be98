"""The references check themselves and each other.

Mass matrices, forces and energies against bodies in space (rotation matrices, differentiated numerically);
energy balance; closed-form pendulum; held inputs; MuJoCo against the reduced equations.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import mujoco
import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from reference.elliptic import period, released_angle, small_angle_frequency
from reference.mujoco_models import furuta_mjcf, simulate_four_bar, simulate_furuta
from reference.reduced_ode import (
    AssemblyError,
    CartPole,
    Chain,
    FourBar,
    Furuta,
    IntegrationError,
    Model,
    Motion,
    Pendulum,
    acceleration,
    double_pendulum,
    solve,
)

X, Y, Z = np.eye(3)

PENDULUM = Pendulum(mass=0.5, length=0.2, inertia=0.003, viscous=0.01, coulomb=0.02, coulomb_speed=0.3)
FURUTA = Furuta(
    arm_inertia=(0.001, 0.0028, 0.0032),
    pendulum_inertia=(0.0011, 0.004, 0.0035),
    viscous=(1e-3, 4e-4),
    tilt=(0.1, -0.2, 0.3),
)
CART_POLE = CartPole(cart_viscous=0.3, pole_viscous=0.02)
THREE_LINKS = Chain(
    masses=(0.4, 0.3, 0.2),
    lengths=(0.25, 0.2, 0.3),
    centres=(0.11, 0.13, 0.1),
    inertias=(0.003, 0.002, 0.001),
    viscous=(0.01, 0.02, 0.03),
)
FOUR_BAR = FourBar()
OTHER_FOUR_BAR = FourBar(branch=-1)

MODELS = pytest.mark.parametrize(
    "model", [PENDULUM, FURUTA, CART_POLE, THREE_LINKS, FOUR_BAR, OTHER_FOUR_BAR], ids=lambda m: type(m).__name__
)
STATES = 5


class Body(NamedTuple):
    """A rigid body in space; all arrays may be complex, for differentiation by complex steps."""

    mass: float
    inertia: ArrayLike
    """Principal moments about the centre of mass, in the body's frame (3,) [kg m^2]"""
    position: NDArray[np.complex128]
    rotation: NDArray[np.complex128]


def turn(axis: ArrayLike, angle: complex) -> NDArray[np.complex128]:
    """Rotation matrix about a unit axis, analytic in the angle."""
    x, y, z = np.asarray(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def pendulum_bodies(model: Pendulum, q: NDArray[np.complex128]) -> list[Body]:
    rotation = turn(Y, q[0])
    return [Body(model.mass, (0.001, model.inertia, 0.001), rotation @ (-model.length * Z), rotation)]


def furuta_bodies(model: Furuta, q: NDArray[np.complex128]) -> list[Body]:
    arm = turn(Z, q[0])
    # Columns: the pendulum's x (down the rod), y (along hinge 2) and z in the frame of the arm, hanging.
    hanging = np.column_stack([-Z, X, -Y])
    pendulum = arm @ turn(X, q[1]) @ hanging
    hinge2 = arm @ ((model.arm_centre + model.arm_reach) * X)
    return [
        Body(model.arm_mass, model.arm_inertia, arm @ (model.arm_centre * X), arm),
        Body(0.0, (0.0, 0.0, model.shaft_inertia), 0 * X, arm),
        Body(model.pendulum_mass, model.pendulum_inertia, hinge2 + pendulum @ (model.pendulum_centre * X), pendulum),
    ]


def cart_pole_bodies(model: CartPole, q: NDArray[np.complex128]) -> list[Body]:
    pole = turn(Y, q[1])
    centre = q[0] * X + pole @ (-model.pole_centre * Z)
    return [
        Body(model.cart_mass, (0.001, 0.001, 0.001), q[0] * X, np.eye(3)),
        Body(model.pole_mass, (0.001, model.pole_inertia, 0.001), centre, pole),
    ]


def chain_bodies(model: Chain, q: NDArray[np.complex128]) -> list[Body]:
    bodies, hinge, rotation = [], 0 * X, np.eye(3)
    for i, angle in enumerate(q):
        rotation = rotation @ turn(Y, angle)
        centre = hinge - model.centres[i] * rotation @ Z
        bodies.append(Body(model.masses[i], (0.001, model.inertias[i], 0.001), centre, rotation))
        hinge = hinge - model.lengths[i] * rotation @ Z
    return bodies


def four_bar_bodies(model: FourBar, q: NDArray[np.complex128]) -> list[Body]:
    """The loop is closed by Newton's method, whose real Jacobian carries the imaginary part over exactly."""
    lengths = np.array([model.crank, model.coupler, model.rocker])
    angles = model.link_angles(q[0].real).astype(complex)
    angles[0] = q[0]
    for _ in range(3):
        x, z = lengths * np.cos(angles), lengths * np.sin(angles)
        gap = np.array([x[0] + x[1] - x[2] - model.ground, z[0] + z[1] - z[2]])
        jacobian = np.array([[-z[1], z[2]], [x[1], -x[2]]]).real
        angles[1:] -= np.linalg.solve(jacobian, gap)
    rotations = [turn(-Y, angle) for angle in angles]
    crank, coupler, rocker = (r @ (length * X) for r, length in zip(rotations, lengths, strict=True))
    centres = [crank / 2, crank + coupler / 2, model.ground * X + rocker / 2]
    rods = [(0.0, m * length**2 / 12, m * length**2 / 12) for m, length in zip(model.masses, lengths, strict=True)]
    return [Body(*parts) for parts in zip(model.masses, rods, centres, rotations, strict=True)]


BODIES: dict[type, Callable[..., list[Body]]] = {
    Pendulum: pendulum_bodies,
    Furuta: furuta_bodies,
    CartPole: cart_pole_bodies,
    Chain: chain_bodies,
    FourBar: four_bar_bodies,
}


def kinetic_energy(model: Model, q: NDArray[np.float64], qd: NDArray[np.float64]) -> float:
    """Sum of m v^2 / 2 + w . J w / 2, with velocities from positions and rotations at q + i step qd."""
    step = 1e-30
    energy = 0.0
    for body in BODIES[type(model)](model, q + 1j * step * qd):
        velocity = body.position.imag / step
        spin = body.rotation.real.T @ (body.rotation.imag / step)  # R^T dR/dt = [w], in the body's frame
        w = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
        energy += 0.5 * body.mass * velocity @ velocity + 0.5 * w @ (np.asarray(body.inertia) * w)
    return energy


def potential_energy(model: Model, q: NDArray[np.float64]) -> float:
    gravity = model.gravity_vector if isinstance(model, Furuta) else -model.gravity * Z
    return -sum(body.mass * gravity @ body.position.real for body in BODIES[type(model)](model, q + 0j))


def mass_matrix(model: Model, q: NDArray[np.float64]) -> NDArray[np.float64]:
    """M from T by polarisation: M_ij = T(e_i + e_j) - T(e_i) - T(e_j)."""
    unit = np.eye(q.size)
    single = np.array([kinetic_energy(model, q, e) for e in unit])
    double = np.array([[kinetic_energy(model, q, e + f) for f in unit] for e in unit])
    return double - single[:, None] - single[None, :]


def slope(function: Callable[[float], ArrayLike]) -> NDArray[np.float64]:
    """Derivative at zero: central differences of fourth order, errors of 1e-11 or so for smooth functions."""
    h = 1e-3
    near, far = (np.asarray(function(k * h)) - np.asarray(function(-k * h)) for k in (1, 2))
    return (8 * near - far) / (12 * h)


def gradient(function: Callable[[NDArray[np.float64]], float], q: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([slope(lambda s, e=e: function(q + s * e)) for e in np.eye(q.size)])


def power(model: Model, qd: NDArray[np.float64], u: float) -> float:
    """What input and friction do to the energy [W], from the models' parameters."""
    match model:
        case Pendulum():
            return (u - model.viscous * qd[0] - model.coulomb * np.tanh(qd[0] / model.coulomb_speed)) * qd[0]
        case Furuta():
            return model.motor_gain * u * qd[0] - np.asarray(model.viscous) @ qd**2
        case CartPole():
            return u * qd[0] - model.cart_viscous * qd[0] ** 2 - model.pole_viscous * qd[1] ** 2
        case Chain():
            return u * qd[0] - np.asarray(model.viscous) @ qd**2
        case _:
            return u * qd[0]


def random_states(model: Model) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    rng = np.random.default_rng(5)
    n = {Pendulum: 1, FourBar: 1, Chain: 3}.get(type(model), 2)
    return [(rng.uniform(-np.pi, np.pi, n), rng.normal(0, 3, n)) for _ in range(STATES)]


@MODELS
def test_mass_matrix_is_that_of_bodies_in_space(model: Model) -> None:
    for q, _ in random_states(model):
        np.testing.assert_allclose(model.mass_matrix(q), mass_matrix(model, q), rtol=1e-12, atol=1e-14)


@MODELS
def test_energy_is_that_of_bodies_in_space(model: Model) -> None:
    for q, qd in random_states(model):
        expected = kinetic_energy(model, q, qd) + potential_energy(model, q)
        assert model.energy(q, qd) == pytest.approx(expected, rel=1e-12, abs=1e-14)


@MODELS
def test_force_satisfies_lagranges_equations(model: Model) -> None:
    """Without input and friction: f = dT/dq - dV/dq - (dM/dt) qd, all three by differences of bodies in space."""
    for q, qd in random_states(model):
        # Friction is odd in qd and all other terms are even.
        frictionless = 0.5 * (model.force(q, qd, 0.0) + model.force(q, -qd, 0.0))
        expected = (
            gradient(lambda q, qd=qd: kinetic_energy(model, q, qd) - potential_energy(model, q), q)
            - slope(lambda s, q=q, qd=qd: mass_matrix(model, q + s * qd)) @ qd
        )
        np.testing.assert_allclose(frictionless, expected, rtol=1e-8, atol=1e-9)


@MODELS
def test_energy_changes_by_the_power_of_input_and_friction(model: Model) -> None:
    for q, qd in random_states(model):
        u = 0.7
        qdd = acceleration(model, q, qd, u)
        change = slope(lambda s, q=q, qd=qd, qdd=qdd: model.energy(q + s * qd, qd + s * qdd))
        assert change == pytest.approx(power(model, qd, u), rel=1e-7, abs=1e-9)


def test_furuta_angles_couple_with_a_plus() -> None:
    furuta = Furuta()
    m_b, radius, l2 = furuta.pendulum_mass, furuta.arm_centre + furuta.arm_reach, furuta.pendulum_centre
    for theta2 in (0.0, 0.4, 2.0):
        coupling = mass_matrix(furuta, np.array([0.3, theta2]))[0, 1]
        assert coupling == pytest.approx(+m_b * radius * l2 * np.cos(theta2), rel=1e-12)


@pytest.mark.parametrize(
    ("model", "q0"),
    [
        (Pendulum(), [2.5]),
        (Furuta(tilt=(0.1, -0.2, 0.0)), [0.0, np.pi - 0.03]),
        (CartPole(), [0.0, 2.5]),
        (double_pendulum(), [2.0, 1.0]),
        (FOUR_BAR, [1.2]),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, list) else "",
)
def test_energy_is_conserved_without_friction(model: Model, q0: list[float]) -> None:
    motion = solve(model, q0, np.zeros(len(q0)), np.linspace(0, 3, 31))
    energies = np.array([model.energy(q, qd) for q, qd in zip(*motion, strict=True)])
    swing = np.ptp([model.energy(q, 0 * q) for q in motion.q])  # exchanged between potential and kinetic
    assert swing > 0.1
    np.testing.assert_allclose(energies, energies[0], rtol=0, atol=1e-10 * swing)


def test_cart_pole_swings_towards_minus_x_for_positive_angles() -> None:
    """Released from +0.5 rad the pole falls towards +x, and the momentum of the whole stays zero."""
    model = CartPole()
    motion = solve(model, [0.0, 0.5], [0.0, 0.0], [0.0, 0.1])
    (xd, thetad), theta = motion.qd[-1], motion.q[-1, 1]
    assert thetad < 0
    assert xd < 0
    pole = xd - model.pole_centre * np.cos(theta) * thetad
    assert model.cart_mass * xd + model.pole_mass * pole == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("amplitude", [0.01, 1.0, 2.5, 3.0])
def test_pendulum_follows_the_elliptic_functions(amplitude: float) -> None:
    pendulum = Pendulum()
    t = np.linspace(0, 2 * period(pendulum, amplitude), 41)
    theta = solve(pendulum, amplitude, 0.0, t).q[:, 0]
    np.testing.assert_allclose(theta, released_angle(pendulum, amplitude, t), rtol=0, atol=1e-9)
    np.testing.assert_allclose(theta[[20, 40]], amplitude, rtol=0, atol=1e-9)


def test_period_has_its_known_series() -> None:
    """T = (2 pi / w) (1 + A^2 / 16 + 11 A^4 / 3072 + ...), and longer than any bound towards upright."""
    pendulum = Pendulum()
    small = 2 * np.pi / small_angle_frequency(pendulum)
    for amplitude in (1e-3, 0.1, 0.3):
        series = small * (1 + amplitude**2 / 16 + 11 * amplitude**4 / 3072)
        assert abs(period(pendulum, amplitude) - series) < small * amplitude**6 / 1000 + 1e-15
    assert period(pendulum, np.pi - 1e-9) > 13 * small


def test_held_input_is_exact_with_breaks() -> None:
    """A pulse on a free hinge (no gravity): straight line, parabola, straight line."""
    free = Pendulum(gravity=0.0)
    inertia = free.inertia + free.mass * free.length**2
    start, stop, torque = 0.3, 0.8, 0.01
    t = np.array([0.0, 0.2, 0.3, 0.5, 0.8, 1.0])
    motion = solve(free, 0.1, 0.0, t, lambda s: torque * (start <= s < stop), breaks=(start, stop))
    driven = np.clip(t - start, 0, stop - start)
    coasting = np.clip(t - stop, 0, None)
    expected = 0.1 + torque / inertia * (driven**2 / 2 + driven * coasting)
    np.testing.assert_allclose(motion.q[:, 0], expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(motion.qd[:, 0], torque / inertia * driven, rtol=0, atol=1e-14)


def test_a_motion_that_cannot_be_integrated_is_an_error() -> None:
    with pytest.raises(IntegrationError, match=r"Pendulum stopped at 0\.\d+ s on the way to 1 s"):
        solve(Pendulum(), 0.0, 0.0, [0.0, 1.0], lambda s: np.nan if s > 0.5 else 0.0)


def test_four_bar_that_cannot_close_is_an_error() -> None:
    with pytest.raises(AssemblyError, match=r"crank angle 3\.14159 rad"):
        FourBar(ground=0.4, crank=0.3).link_angles(np.pi)


def test_four_bar_loop_closes_on_both_branches() -> None:
    for four_bar in (FOUR_BAR, OTHER_FOUR_BAR):
        for theta in np.linspace(-3, 3, 7):
            x = np.exp(1j * four_bar.link_angles(theta))
            gap = four_bar.crank * x[0] + four_bar.coupler * x[1] - four_bar.ground - four_bar.rocker * x[2]
            assert abs(gap) < 1e-15
            # C lies left of the way from B to D on the branch +1.
            way = four_bar.ground - four_bar.crank * x[0]
            assert np.sign((way.conjugate() * x[1]).imag) == four_bar.branch


def chirp(t: float) -> float:
    return 0.5 * np.sin(3 * t + 2 * t**2)


def test_mujoco_accelerates_the_furuta_pendulum_alike() -> None:
    model = mujoco.MjModel.from_xml_string(furuta_mjcf(FURUTA))
    data = mujoco.MjData(model)
    for q, qd in random_states(FURUTA):
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, qd, 0.7
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(data.qacc, acceleration(FURUTA, q, qd, 0.7), rtol=1e-11)


@pytest.mark.parametrize("q0", [[0.0, np.pi - 0.03], [0.5, 2.0]], ids=["upright", "raised"])
def test_mujoco_moves_the_furuta_pendulum_alike(q0: list[float]) -> None:
    t = np.linspace(0, 2, 21)
    ours, theirs = solve(FURUTA, q0, [0.0, 0.0], t, chirp), simulate_furuta(FURUTA, q0, [0.0, 0.0], t, chirp)
    assert np.ptp(ours.q, axis=0).min() > 0.5
    np.testing.assert_allclose(theirs.q, ours.q, rtol=0, atol=1e-5)


def test_mujoco_converges_with_fourth_order_on_the_release() -> None:
    t = np.linspace(0, 2, 21)
    state = [0.0, np.pi - 0.03], [0.0, 0.0]
    truth = solve(FURUTA, *state, t).q
    errors = [np.abs(simulate_furuta(FURUTA, *state, t, timestep=h).q - truth).max() for h in (2e-3, 1e-3, 5e-4)]
    orders = [np.log2(coarse / fine) for coarse, fine in pairwise(errors)]
    assert min(orders) > 3.7


def link_motion(four_bar: FourBar, motion: Motion) -> Motion:
    """Angles (continuous) and rates of all three links, from the crank's."""
    angles = np.array([four_bar.link_angles(theta) for theta in motion.q[:, 0]])
    slopes = np.array([four_bar.link_slopes(theta) for theta in motion.q[:, 0]])
    return Motion(np.unwrap(angles, axis=0), slopes * motion.qd)


@pytest.mark.parametrize(
    ("four_bar", "theta0", "thetad0", "u"),
    [(FOUR_BAR, 1.2, 0.0, None), (OTHER_FOUR_BAR, 0.5, 12.0, lambda t: 0.2 * chirp(t))],
    ids=["released", "driven"],
)
def test_mujoco_moves_the_four_bar_alike(
    four_bar: FourBar, theta0: float, thetad0: float, u: Callable[[float], float] | None
) -> None:
    t = np.linspace(0, 2, 201)
    ours = link_motion(four_bar, solve(four_bar, theta0, thetad0, t, u))
    theirs = simulate_four_bar(four_bar, theta0, thetad0, t, u)
    assert np.ptp(ours.q, axis=0).min() > 0.5
    np.testing.assert_allclose(theirs.q, ours.q, rtol=0, atol=1e-5)
    np.testing.assert_allclose(theirs.qd, ours.qd, rtol=0, atol=1e-3)


def test_mujoco_converges_with_second_order_on_the_four_bar() -> None:
    """The loop's softness follows the time-step, and with it the error."""
    t = np.linspace(0, 2, 21)
    truth = link_motion(FOUR_BAR, solve(FOUR_BAR, 1.2, 0.0, t)).q
    errors = [np.abs(simulate_four_bar(FOUR_BAR, 1.2, 0.0, t, timestep=h).q - truth).max() for h in (4e-4, 2e-4, 1e-4)]
    orders = [np.log2(coarse / fine) for coarse, fine in pairwise(errors)]
    assert min(orders) > 1.7
