"""The frictionless pendulum in closed form, by elliptic integrals and functions.

With w^2 = m g l / (J + m l^2), released at rest from the amplitude A, and k = sin(A / 2), the substitution
sin(theta / 2) = k sin(s) turns energy conservation into ds/dt = w sqrt(1 - k^2 sin(s)^2). A quarter of the
period is K(k^2) / w, and sin(s) is a Jacobi elliptic function of time.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ellipj, ellipkm1

from reference.reduced_ode import Pendulum


def small_angle_frequency(pendulum: Pendulum) -> float:
    """w = sqrt(m g l / (J + m l^2)) [rad/s]; damping is ignored."""
    moment = pendulum.mass * pendulum.gravity * pendulum.length
    return float(np.sqrt(moment / (pendulum.inertia + pendulum.mass * pendulum.length**2)))


def period(pendulum: Pendulum, amplitude: float) -> float:
    """4 K(m) / w [s] with m = sin(A / 2)^2, for an amplitude A in (0, pi) rad.

    K is taken as a function of 1 - m = cos(A / 2)^2, which keeps its digits close to the upright position.
    """
    return float(4 * ellipkm1(np.cos(amplitude / 2) ** 2) / small_angle_frequency(pendulum))


def released_angle(pendulum: Pendulum, amplitude: float, t: ArrayLike) -> NDArray[np.float64]:
    """theta(t) [rad] after a release at rest from theta(0) = A: sin(theta / 2) = k cn(w t) / dn(w t)."""
    k = np.sin(amplitude / 2)
    _, cn, dn, _ = ellipj(small_angle_frequency(pendulum) * np.asarray(t, dtype=float), k**2)
    return 2 * np.arcsin(k * cn / dn)
