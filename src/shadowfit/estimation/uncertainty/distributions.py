"""Quantiles and tails of the normal, the χ² and Student's distribution.

A few lines each: the package that has them takes a quarter of a second to import, a tenth of a small fit's time.
"""

from __future__ import annotations

import math
import statistics

import numpy as np

from shadowfit.arrays import ArrayLike, Float

NORMAL = statistics.NormalDist()
# Degrees of freedom from which on the expansion in their inverse is exact to rounding.
MANY = 1000.0
# Distance in standard deviations from which on the tail of the normal is as good as an exponential (to two per cent).
FAR = 20.0
# Newton's steps and terms of a continued fraction, far more than are needed.
LIMIT = 500
TINY, ROUNDING = 1e-300, float(np.finfo(float).eps)


def normal_quantile(level: Float[ArrayLike, "..."]) -> Float[np.ndarray, "..."]:
    """Value that a standard normal variable stays below with a given probability in (0, 1)."""
    return np.vectorize(NORMAL.inv_cdf, otypes=[float])(level)


def square_beyond(distance: float) -> float:
    """Mean square of a standard normal variable's excess over a value that it exceeds.

    ``E[(x − a)² | x > a] = 1 + a² − a φ(a)/Q(a)``; for large a its terms cancel, and leave 2/a².
    """
    if distance > FAR:
        return 2.0 / distance**2
    tail = 0.5 * math.erfc(distance / math.sqrt(2.0))
    return 1.0 + distance**2 - distance * NORMAL.pdf(distance) / tail


def chi_square_tail(degrees: int, value: float) -> float:
    """Probability that χ² with a whole number of degrees of freedom exceeds a value.

    With y = value/2 it is ``e⁻ʸ Σ_{i<k/2} yⁱ/Γ(i+1)`` over whole i for even k; over halves, and with ``erfc √y`` for
    the first term, for odd k.
    """
    half = 0.5 * value
    if not half > 0.0:
        return math.nan if math.isnan(half) else 1.0
    if math.isinf(half):
        return 0.0
    odd = degrees % 2
    terms = [math.erfc(math.sqrt(half))] if odd else []
    powers = (i + 0.5 * odd for i in range(degrees // 2))
    terms += [math.exp(power * math.log(half) - half - math.lgamma(power + 1.0)) for power in powers]
    return min(math.fsum(terms), 1.0)


def student_quantile(degrees: Float[ArrayLike, "..."], level: float) -> Float[np.ndarray, "..."]:
    """Value that Student's t with given degrees of freedom (any positive number, or ∞) stays below, 0 < level < 1."""
    each, place = np.unique(np.asarray(degrees, float), return_inverse=True)
    return np.array([_student(freedom, level) for freedom in each.tolist()])[place].reshape(np.shape(degrees))


def _student(degrees: float, level: float) -> float:
    if not degrees > 0.0:
        return math.nan
    if level < 0.5:
        return -_student(degrees, 1.0 - level)
    if level == 0.5:
        return 0.0
    z = NORMAL.inv_cdf(level)
    if degrees >= MANY:
        first, second = (z**3 + z) / 4.0, (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
        third = (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0
        return z + first / degrees + second / degrees**2 + third / degrees**3
    return _by_newton(degrees, 1.0 - level, z)


def _by_newton(degrees: float, tail: float, z: float) -> float:
    """Root of ``log P(T > eᵘ) − log tail``, which falls and is concave: from the second step on Newton's comes down."""
    constant = math.lgamma(0.5 * (degrees + 1.0)) - math.lgamma(0.5 * degrees) - 0.5 * math.log(degrees * math.pi)
    u = math.log(z)
    for _ in range(LIMIT):
        t = math.exp(u)
        beyond = 0.5 * _incomplete_beta(0.5 * degrees, 0.5, degrees, t * t)
        density = math.exp(constant - 0.5 * (degrees + 1.0) * math.log1p(t * t / degrees))
        step = beyond * math.log(beyond / tail) / (density * t)
        u += step
        if abs(step) <= 4.0 * ROUNDING:
            break
    return math.exp(u)


def _incomplete_beta(a: float, b: float, left: float, right: float) -> float:
    """Regularised ``I_x(a, b)`` at x = left/(left + right), by its continued fraction."""
    x, rest = left / (left + right), right / (left + right)
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _incomplete_beta(b, a, right, left)
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    # Lentz's method for 1/(1 + d₁/(1 + d₂/(1 + …))).
    value, above, below = 1.0, 1.0, 0.0
    for n in range(LIMIT):
        m = n // 2
        if n == 0:
            term = 1.0
        elif n % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        below = 1.0 / _away_from_zero(1.0 + term * below)
        above = _away_from_zero(1.0 + term / above)
        value *= above * below
        if n and abs(above * below - 1.0) <= ROUNDING:
            break
    return math.exp(logarithm) * (value - 1.0) / a


def _away_from_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY
