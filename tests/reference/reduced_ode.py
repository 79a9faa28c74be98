"""Mechanisms as ordinary differential equations in minimal coordinates, solved tightly.

These are the truths that the simulator's tests compare with. They share nothing with the library: joint
angles instead of bodies, Lagrange's equations by hand instead of constraints, an adaptive Runge-Kutta method
instead of a fixed step.

Every model has n coordinates q, a kinetic energy T = qd^T M(q) qd / 2 and a potential V(q).
Lagrange's equations,

    d/dt (dT/dqd) - dT/dq + dV/dq = Q,

give M(q) qdd = f(q, qd, u), where f collects the velocity terms, gravity, damping and the input, all on the
right. A model therefore offers three methods:

    mass_matrix(q)      (n, n)   M
    force(q, qd, u)     (n,)     f
    energy(q, qd)       float    T + V [J]

Frames and signs, everywhere: right-handed world axes with z up, gravity along -z (the Furuta pendulum may
tilt it), rotations positive about their axis by the right-hand rule. Units are SI with angles in radians.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import atan2, cos, hypot, sin, sqrt, tanh
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import OdeSolution, solve_ivp
from scipy.spatial.transform import Rotation

Vector = NDArray[np.float64]
Signal = Callable[[float], float]


class IntegrationError(RuntimeError):
    """The integrator gave up before the last time asked for."""


class AssemblyError(ValueError):
    """The links of a four-bar linkage cannot be joined at the given crank angle."""


class Model(Protocol):
    """What `solve` needs to know about a mechanism (see the module's docstring)."""

    def mass_matrix(self, q: Vector) -> Vector: ...

    def force(self, q: Vector, qd: Vector, u: float) -> Vector: ...

    def energy(self, q: Vector, qd: Vector) -> float: ...


class Motion(NamedTuple):
    """Coordinates `q` (times, n) and their rates `qd` (times, n)."""

    q: Vector
    qd: Vector


@dataclass(frozen=True)
class Pendulum:
    """A rigid body on one horizontal hinge; q = (theta), theta = 0 hanging.

    The centre of mass moves on a circle of radius l: T = (J + m l^2) thetad^2 / 2 and V = -m g l cos(theta),
    hence

        (J + m l^2) thetadd = -m g l sin(theta) - b thetad - c tanh(thetad / w) + u.

    The equation keeps its form under theta -> -theta, so the sense of the horizontal axis does not matter.
    """

    mass: float = 0.428
    """m [kg]"""
    length: float = 0.092
    """l, from the hinge to the centre of mass [m]"""
    inertia: float = 0.0039
    """J, about the axis through the centre of mass parallel to the hinge [kg m^2]"""
    viscous: float = 0.0
    """b [N m s]"""
    gravity: float = 9.82
    """g [m/s^2]"""
    coulomb: float = 0.0
    """c, level of dry friction [N m]"""
    coulomb_speed: float = 1e-2
    """w, speed over which dry friction changes sign; smooth, so it creeps instead of sticking [rad/s]"""

    def mass_matrix(self, q: Vector) -> Vector:
        """J + m l^2, (1, 1)."""
        del q
        return np.array([[self.inertia + self.mass * self.length**2]])

    def force(self, q: Vector, qd: Vector, u: float) -> Vector:
        """Torque about the hinge, (1,); the input u is a torque [N m]."""
        weight = -self.mass * self.gravity * self.length * sin(q[0])
        friction = -self.viscous * qd[0] - self.coulomb * tanh(qd[0] / self.coulomb_speed)
        return np.array([weight + friction + u])

    def energy(self, q: Vector, qd: Vector) -> float:
        """T + V, zero at rest at the height of the hinge."""
        kinetic = 0.5 * (self.inertia + self.mass * self.length**2) * qd[0] ** 2
        return float(kinetic - self.mass * self.gravity * self.length * cos(q[0]))


@dataclass(frozen=True)
class Furuta:
    """Rotary pendulum; q = (theta1, theta2), theta2 = 0 hanging.

    Hinge 1 stands at the origin with its axis along +z. The arm points along e_r, and e_t is a quarter turn
    ahead:

        e_r = (cos theta1, sin theta1, 0),    e_t = (-sin theta1, cos theta1, 0).

    The arm's centre of mass is at l1 e_r. Hinge 2 is at L e_r with L = l1 + lA; its axis is e_r, outward. Since
    e_r cross (-e_z) = e_t, a positive turn about e_r takes -e_z to d = s e_t - c e_z, the direction of the rod,
    with s = sin theta2, c = cos theta2. The pendulum's centre of mass and its velocity are

        r = L e_r + l2 (s e_t - c e_z),
        v = (L theta1d + l2 c theta2d) e_t - l2 s theta1d e_r + l2 s theta2d e_z,

    and its angular velocity is theta1d e_z + theta2d e_r. The pendulum's frame is x = d along the rod, y = e_r
    along hinge 2 and z = x cross y = -c e_t - s e_z, in which the angular velocity is
    (-c theta1d, theta2d, -s theta1d). Therefore

        M11 = Js + JAzz + mA l1^2 + mB L^2 + (mB l2^2 + JBzz) s^2 + JBxx c^2,
        M12 = mB L l2 c,
        M22 = JByy + mB l2^2.

    M depends on theta2 only; with M' = dM/dtheta2, Lagrange's equations are

        M11 theta1dd + M12 theta2dd = -M11' theta1d theta2d - M12' theta2d^2 + Q1,
        M12 theta1dd + M22 theta2dd =  M11' theta1d^2 / 2 + Q2,

    M11' = 2 s c (mB l2^2 + JBzz - JBxx), M12' = -mB L l2 s. With the gravity vector a = R(tilt) (0, 0, -g),

        Q1 = a . (mA l1 e_t + mB (L e_t - l2 s e_r)) - b1 theta1d + K u,
        Q2 = a . mB l2 (c e_t + s e_z) - b2 theta2d.

    The arm turns about its z axis only: JAxx and JAyy have no effect and are there for other simulators.
    """

    arm_mass: float = 0.238
    """mA [kg]"""
    pendulum_mass: float = 0.428
    """mB [kg]"""
    arm_centre: float = 0.128
    """l1, from hinge 1 to the arm's centre of mass [m]"""
    arm_reach: float = 0.248
    """lA, from the arm's centre of mass to hinge 2 [m]"""
    pendulum_centre: float = 0.092
    """l2, from hinge 2 to the pendulum's centre of mass [m]"""
    arm_inertia: tuple[float, float, float] = (1e-4, 0.003, 0.003)
    """JAxx along the arm, JAyy, JAzz about the vertical; about the centre of mass [kg m^2]"""
    pendulum_inertia: tuple[float, float, float] = (1e-4, 0.004, 0.004)
    """JBxx along the rod, JByy about hinge 2, JBzz the third; about the centre of mass [kg m^2]"""
    shaft_inertia: float = 1e-4
    """Js, turns with hinge 1 [kg m^2]"""
    viscous: tuple[float, float] = (0.0, 0.0)
    """b1, b2 [N m s]"""
    motor_gain: float = 0.1
    """K [N m per unit of u]"""
    gravity: float = 9.82
    """g [m/s^2]"""
    tilt: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Rotation vector that turns (0, 0, -g) into the gravity vector [rad]"""

    @property
    def hinge2_radius(self) -> float:
        """L = l1 + lA, from hinge 1 to hinge 2 [m]."""
        return self.arm_centre + self.arm_reach

    @cached_property
    def gravity_vector(self) -> Vector:
        """R(tilt) (0, 0, -g) [m/s^2], (3,)."""
        return Rotation.from_rotvec(self.tilt).apply([0.0, 0.0, -self.gravity])

    def mass_matrix(self, q: Vector) -> Vector:
        """M (2, 2)."""
        s, c = sin(q[1]), cos(q[1])
        m_b, radius, l2 = self.pendulum_mass, self.hinge2_radius, self.pendulum_centre
        j_xx, j_yy, j_zz = self.pendulum_inertia
        arm = self.shaft_inertia + self.arm_inertia[2] + self.arm_mass * self.arm_centre**2
        m11 = arm + m_b * radius**2 + (m_b * l2**2 + j_zz) * s**2 + j_xx * c**2
        m12 = m_b * radius * l2 * c
        return np.array([[m11, m12], [m12, j_yy + m_b * l2**2]])

    def force(self, q: Vector, qd: Vector, u: float) -> Vector:
        """Velocity terms, gravity, damping and motor torque K u (2,)."""
        s, c = sin(q[1]), cos(q[1])
        m_b, radius, l2 = self.pendulum_mass, self.hinge2_radius, self.pendulum_centre
        j_xx, _, j_zz = self.pendulum_inertia
        dm11 = 2 * s * c * (m_b * l2**2 + j_zz - j_xx)
        dm12 = -m_b * radius * l2 * s

        e_r, e_t = _radial_and_tangent(q[0])
        a_r, a_t, a_z = self.gravity_vector @ e_r, self.gravity_vector @ e_t, self.gravity_vector[2]
        weight1 = (self.arm_mass * self.arm_centre + m_b * radius) * a_t - m_b * l2 * s * a_r
        weight2 = m_b * l2 * (c * a_t + s * a_z)

        torque1 = weight1 - self.viscous[0] * qd[0] + self.motor_gain * u
        torque2 = weight2 - self.viscous[1] * qd[1]
        velocity1 = -dm11 * qd[0] * qd[1] - dm12 * qd[1] ** 2
        velocity2 = 0.5 * dm11 * qd[0] ** 2
        return np.array([torque1 + velocity1, torque2 + velocity2])

    def energy(self, q: Vector, qd: Vector) -> float:
        """T + V, V zero for both centres of mass at hinge 1."""
        e_r, e_t = _radial_and_tangent(q[0])
        e_z = np.array([0.0, 0.0, 1.0])
        arm = self.arm_centre * e_r
        rod = sin(q[1]) * e_t - cos(q[1]) * e_z
        pendulum = self.hinge2_radius * e_r + self.pendulum_centre * rod
        potential = -self.gravity_vector @ (self.arm_mass * arm + self.pendulum_mass * pendulum)
        return float(0.5 * qd @ self.mass_matrix(q) @ qd + potential)


def _radial_and_tangent(angle: float) -> tuple[Vector, Vector]:
    """Horizontal unit vectors e_r at `angle` from +x towards +y, and e_t a quarter turn ahead."""
    return np.array([cos(angle), sin(angle), 0.0]), np.array([-sin(angle), cos(angle), 0.0])


@dataclass(frozen=True)
class CartPole:
    """Cart on the x axis with a pole on a hinge along +y; q = (x, theta), theta = 0 hanging.

    A positive turn about +y takes -z to (-sin theta, 0, -cos theta): a positive theta swings the pole towards
    -x. The pole's centre of mass is at (x - l sin theta, 0, -l cos theta), its velocity (xd - l c thetad, 0,
    l s thetad) with s = sin theta, c = cos theta. So

        T = (M + m) xd^2 / 2 - m l c xd thetad + (J + m l^2) thetad^2 / 2,    V = -m g l c,

        (M + m) xdd - m l c thetadd     = -m l s thetad^2 - b_c xd + u,
        -m l c xdd + (J + m l^2) thetadd = -m g l s - b_p thetad.
    """

    cart_mass: float = 0.5
    """M [kg]"""
    pole_mass: float = 0.2
    """m [kg]"""
    pole_centre: float = 0.3
    """l, from the hinge to the pole's centre of mass [m]"""
    pole_inertia: float = 0.006
    """J, about the y axis through the pole's centre of mass [kg m^2]"""
    cart_viscous: float = 0.0
    """b_c [N s/m]"""
    pole_viscous: float = 0.0
    """b_p [N m s]"""
    gravity: float = 9.82
    """g [m/s^2]"""

    def mass_matrix(self, q: Vector) -> Vector:
        """M (2, 2)."""
        coupling = -self.pole_mass * self.pole_centre * cos(q[1])
        hinge = self.pole_inertia + self.pole_mass * self.pole_centre**2
        return np.array([[self.cart_mass + self.pole_mass, coupling], [coupling, hinge]])

    def force(self, q: Vector, qd: Vector, u: float) -> Vector:
        """Force along x and torque about the hinge (2,); the input u is a force on the cart along +x [N]."""
        moment = self.pole_mass * self.pole_centre * sin(q[1])
        cart = -moment * qd[1] ** 2 - self.cart_viscous * qd[0] + u
        return np.array([cart, -self.gravity * moment - self.pole_viscous * qd[1]])

    def energy(self, q: Vector, qd: Vector) -> float:
        """T + V, V zero with the pole level."""
        potential = -self.pole_mass * self.gravity * self.pole_centre * cos(q[1])
        return float(0.5 * qd @ self.mass_matrix(q) @ qd + potential)


@dataclass(frozen=True)
class Chain:
    """Planar chain of n links on parallel horizontal hinges; q = relative angles, all zero hanging straight.

    q_i is the angle of link i against link i - 1 (against the vertical for the first): what an encoder in
    hinge i reads. The absolute angles are phi = S q with S the lower triangle of ones. The centre of mass of
    link i is

        r_i = sum_k A_ik d(phi_k),   A_ik = length_k for k < i, centre_i for k = i, 0 for k > i,

    where d(phi) is the unit vector at angle phi from straight down and d(phi_j)' . d(phi_k)' = cos(phi_j -
    phi_k). With W = A^T diag(m) A,

        T = sum_jk W_jk cos(phi_j - phi_k) phid_j phid_k / 2 + sum_j J_j phid_j^2 / 2,
        V = -g sum_k (A^T m)_k cos phi_k,

    and Lagrange's equations for phi are

        sum_k W_jk cos(phi_j - phi_k) phidd_k + J_j phidd_j = -sum_k W_jk sin(phi_j - phi_k) phid_k^2
                                                             - g (A^T m)_j sin phi_j.

    S^T takes generalised forces on phi to those on q: M_q = S^T M_phi S, f_q = S^T f_phi, to which the hinges
    add -b_i qd_i. The input u is a torque in the first hinge. As for one pendulum, the sense of the axes does
    not matter.
    """

    masses: tuple[float, ...]
    """m [kg]"""
    lengths: tuple[float, ...]
    """From hinge to next hinge [m]; the last one has no effect"""
    centres: tuple[float, ...]
    """From a link's hinge to its centre of mass, along the link [m]"""
    inertias: tuple[float, ...]
    """J, about the axis through the centre of mass parallel to the hinges [kg m^2]"""
    viscous: tuple[float, ...]
    """b of each hinge [N m s]"""
    gravity: float = 9.82
    """g [m/s^2]"""

    @cached_property
    def levers(self) -> Vector:
        """A (n, n) [m]."""
        n = len(self.masses)
        return np.tril(np.tile(self.lengths, (n, 1)), -1) + np.diag(self.centres)

    @cached_property
    def _couplings(self) -> Vector:
        """W (n, n) [kg m^2]."""
        return self.levers.T @ np.diag(self.masses) @ self.levers

    @cached_property
    def _weights(self) -> Vector:
        """g A^T m (n,) [N m]."""
        return self.gravity * self.levers.T @ np.asarray(self.masses)

    def mass_matrix(self, q: Vector) -> Vector:
        """S^T M_phi S (n, n)."""
        phi = np.cumsum(q)
        absolute = self._couplings * np.cos(phi[:, None] - phi[None, :]) + np.diag(self.inertias)
        return _sum_from_each(_sum_from_each(absolute).T)

    def force(self, q: Vector, qd: Vector, u: float) -> Vector:
        """S^T f_phi - b qd, and u in the first hinge (n,)."""
        phi, phid = np.cumsum(q), np.cumsum(qd)
        centrifugal = -(self._couplings * np.sin(phi[:, None] - phi[None, :])) @ phid**2
        torque = _sum_from_each(centrifugal - self._weights * np.sin(phi)) - np.asarray(self.viscous) * qd
        torque[0] += u
        return torque

    def energy(self, q: Vector, qd: Vector) -> float:
        """T + V, V zero for all centres of mass at the height of the first hinge."""
        return float(0.5 * qd @ self.mass_matrix(q) @ qd - self._weights @ np.cos(np.cumsum(q)))


def _sum_from_each(values: Vector) -> Vector:
    """S^T applied on the first axis: entry i becomes the sum of entries i, i + 1, ..."""
    return np.cumsum(values[::-1], axis=0)[::-1]


def double_pendulum(viscous: tuple[float, float] = (0.0, 0.0), gravity: float = 9.82) -> Chain:
    """Two unequal links, the second with its centre of mass off the middle."""
    return Chain((0.4, 0.3), (0.25, 0.2), (0.11, 0.13), (0.003, 0.002), viscous, gravity)


@dataclass(frozen=True)
class FourBar:
    """Planar four-bar linkage of uniform thin rods; q = (theta), the crank's angle.

    The plane is (x, z). Angles go from +x towards +z, which is positive about the axis -y.
    With u(a) = (cos a, sin a),

        crank    from O = (0, 0) to B = a u(theta),
        coupler  from B to C = B + b u(phi),
        rocker   from D = (d, 0) to C = D + c u(psi),

    and the loop closes when a u(theta) + b u(phi) = D + c u(psi). C is one of the two points at distance b
    from B and c from D; `branch` = +1 takes the one left of the way from B to D, -1 the one right of it.

    With ' = d/dtheta, the derivative of the loop, multiplied by u(psi) and by u(phi), gives

        phi' = -a sin(psi - theta) / (b sin(psi - phi)),    psi' = a sin(phi - theta) / (c sin(phi - psi)),

    and the second derivative in the same way

        phi'' = (a cos(psi - theta) + b phi'^2 cos(psi - phi) - c psi'^2) / (b sin(psi - phi)),
        psi'' = (c psi'^2 cos(phi - psi) - a cos(phi - theta) - b phi'^2) / (c sin(phi - psi)).

    A thin rod has m L^2 / 12 about its centre, m L^2 / 3 about an end. So T = M(theta) thetad^2 / 2 with

        M = m_a a^2 / 3 + m_c c^2 psi'^2 / 3 + m_b (a^2 + a b phi' cos(phi - theta) + b^2 phi'^2 / 3),
        V = g (m_a a sin(theta) / 2 + m_b (a sin(theta) + b sin(phi) / 2) + m_c c sin(psi) / 2),

    and Lagrange's equation is M thetadd = -M' thetad^2 / 2 - V' + u, with u a torque on the crank.
    """

    ground: float = 0.4
    """d, between the two fixed hinges [m]"""
    crank: float = 0.15
    """a [m]"""
    coupler: float = 0.35
    """b [m]"""
    rocker: float = 0.3
    """c [m]"""
    masses: tuple[float, float, float] = (0.2, 0.5, 0.4)
    """m_a, m_b, m_c of crank, coupler and rocker [kg]"""
    gravity: float = 9.82
    """g along -z [m/s^2]"""
    branch: int = 1
    """Which of the two ways to put the linkage together, +1 or -1"""

    def link_angles(self, theta: float) -> Vector:
        """(theta, phi, psi) [rad], (3,); phi and psi in (-pi, pi]. AssemblyError if the loop cannot close."""
        pivot_x, pivot_z = self.ground - self.crank * cos(theta), -self.crank * sin(theta)  # from B to D
        distance = hypot(pivot_x, pivot_z)
        shortest, longest = abs(self.coupler - self.rocker), self.coupler + self.rocker
        if not shortest < distance < longest:
            raise AssemblyError(
                f"crank angle {theta:.6g} rad leaves {distance:.6g} m between crank tip and rocker hinge; "
                f"coupler and rocker can span more than {shortest:.6g} m and less than {longest:.6g} m"
            )
        along = (distance**2 + self.coupler**2 - self.rocker**2) / (2 * distance)
        aside = self.branch * sqrt(self.coupler**2 - along**2)
        x = (along * pivot_x - aside * pivot_z) / distance
        z = (along * pivot_z + aside * pivot_x) / distance
        return np.array([theta, atan2(z, x), atan2(z - pivot_z, x - pivot_x)])

    def link_slopes(self, theta: float) -> Vector:
        """(1, phi', psi'), the links' angular velocities per unit of crank speed (3,)."""
        _, phi, psi = self.link_angles(theta)
        gap = sin(psi - phi)
        return np.array(
            [
                1.0,
                -self.crank * sin(psi - theta) / (self.coupler * gap),
                -self.crank * sin(phi - theta) / (self.rocker * gap),
            ]
        )

    def _link_curvatures(self, theta: float) -> tuple[float, float]:
        """(phi'', psi'')."""
        _, phi, psi = self.link_angles(theta)
        _, dphi, dpsi = self.link_slopes(theta)
        a, b, c = self.crank, self.coupler, self.rocker
        gap = sin(psi - phi)
        ddphi = (a * cos(psi - theta) + b * dphi**2 * cos(psi - phi) - c * dpsi**2) / (b * gap)
        ddpsi = -(c * dpsi**2 * cos(phi - psi) - a * cos(phi - theta) - b * dphi**2) / (c * gap)
        return ddphi, ddpsi

    def centres(self, theta: float) -> Vector:
        """(x, z) of the centres of mass of crank, coupler and rocker [m], (3, 2)."""
        unit = np.array([[cos(angle), sin(angle)] for angle in self.link_angles(theta)])
        tip = self.crank * unit[0]
        pivot = np.array([self.ground, 0.0])
        return np.array([tip / 2, tip + self.coupler / 2 * unit[1], pivot + self.rocker / 2 * unit[2]])

    def mass_matrix(self, q: Vector) -> Vector:
        """M (1, 1)."""
        theta, phi, _ = self.link_angles(q[0])
        _, dphi, dpsi = self.link_slopes(q[0])
        a, b, c = self.crank, self.coupler, self.rocker
        m_a, m_b, m_c = self.masses
        coupler = a**2 + a * b * dphi * cos(phi - theta) + b**2 * dphi**2 / 3
        return np.array([[m_a * a**2 / 3 + m_b * coupler + m_c * c**2 * dpsi**2 / 3]])

    def force(self, q: Vector, qd: Vector, u: float) -> Vector:
        """-M' thetad^2 / 2 - V' + u (1,)."""
        theta, phi, psi = self.link_angles(q[0])
        _, dphi, dpsi = self.link_slopes(q[0])
        ddphi, ddpsi = self._link_curvatures(q[0])
        a, b, c = self.crank, self.coupler, self.rocker
        m_a, m_b, m_c = self.masses
        swing = ddphi * cos(phi - theta) - dphi * sin(phi - theta) * (dphi - 1)
        d_mass = m_b * (a * b * swing + 2 / 3 * b**2 * dphi * ddphi) + 2 / 3 * m_c * c**2 * dpsi * ddpsi
        lift = (m_a / 2 + m_b) * a * cos(theta) + m_b * b / 2 * cos(phi) * dphi + m_c * c / 2 * cos(psi) * dpsi
        return np.array([-0.5 * d_mass * qd[0] ** 2 - self.gravity * lift + u])

    def energy(self, q: Vector, qd: Vector) -> float:
        """T + V, V zero for all centres of mass at the height of the fixed hinges."""
        potential = self.gravity * np.asarray(self.masses) @ self.centres(q[0])[:, 1]
        return float(0.5 * qd @ self.mass_matrix(q) @ qd + potential)


def acceleration(model: Model, q: Vector, qd: Vector, u: float = 0.0) -> Vector:
    """qdd = M(q)^-1 f(q, qd, u), (n,)."""
    return np.linalg.solve(model.mass_matrix(q), model.force(q, qd, u))


def solve(
    model: Model,
    q0: ArrayLike,
    qd0: ArrayLike,
    t: ArrayLike,
    u: Signal | None = None,
    breaks: Sequence[float] = (),
    tolerance: float = 1e-12,
) -> Motion:
    """Motion of `model` from (q0, qd0) at t[0], at the increasing times t [s]; DOP853, rtol = atol = tolerance.

    u(time) is the model's input, zero without. Where u jumps, name the times in `breaks`: the integrator
    restarts there, and each piece sees the value of u from its own side, so that a held signal costs no accuracy.

    Against the closed form of the pendulum, the error over 10 s is 4e-12 rad after a release from 1 rad and
    3e-9 rad from 3 rad, where any error in energy shifts the phase; both shrink in proportion to `tolerance`.
    """
    times = np.asarray(t, dtype=float)
    state = np.concatenate([np.atleast_1d(np.asarray(start, dtype=float)) for start in (q0, qd0)])
    n = state.size // 2
    states = np.empty((times.size, 2 * n))
    states[0] = state
    edges = np.unique([times[0], *(time for time in breaks if times[0] < time < times[-1]), times[-1]])
    for start, stop in pairwise(edges):
        piece = _integrate(model, state, start, stop, u, tolerance)
        wanted = (times > start) & (times <= stop)
        if wanted.any():
            states[wanted] = piece(times[wanted]).T
        state = piece(stop)
    return Motion(states[:, :n], states[:, n:])


def _integrate(
    model: Model, state: Vector, start: float, stop: float, u: Signal | None, tolerance: float
) -> OdeSolution:
    """The motion from `state` = (q, qd) at start to stop [s], as a function of time; u has no jump inside."""
    n = state.size // 2
    last_inside = np.nextafter(stop, start)

    def rate(time: float, y: Vector) -> Vector:
        value = 0.0 if u is None else u(min(time, last_inside))
        return np.concatenate([y[n:], acceleration(model, y[:n], y[n:], value)])

    piece = solve_ivp(rate, (start, stop), state, method="DOP853", rtol=tolerance, atol=tolerance, dense_output=True)
    if not piece.success:
        name = type(model).__name__
        raise IntegrationError(f"{name} stopped at {piece.t[-1]:.9g} s on the way to {stop:.9g} s: {piece.message}")
    return piece.sol
