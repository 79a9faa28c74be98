"""Mass properties: moved, turned, added, and the nearest ones that a body can have."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from shadowfit.errors import MechanismError
from shadowfit.mechanism.body import check_inertia
from shadowfit.records import record

# A body that states no inertia is taken as a ball of water of its mass: a guess that scales as bodies do.
DENSITY = 1000.0  # kg/m³


@record(frozen=True)
class MassProperties:
    """Mass [kg], centre of mass [m] and inertia about it [kg m²], in the axes of some frame."""

    mass: float
    com: np.ndarray
    inertia: np.ndarray

    def moved(self, rotation: np.ndarray, position: np.ndarray) -> MassProperties:
        """The same in a frame in which the present one has that rotation matrix and position."""
        inertia = rotation @ self.inertia @ rotation.T
        return MassProperties(self.mass, position + rotation @ self.com, 0.5 * (inertia + inertia.T))

    def plus(self, other: MassProperties, sign: float = 1.0) -> MassProperties:
        """Both as one rigid body, or with ``sign`` −1 what is left without the other.

        ``I = Σ I_i + Σ m_i (|d_i|² 1 − d_i d_iᵀ)`` with d_i from the common centre of mass.
        """
        mass = self.mass + sign * other.mass
        com = (self.mass * self.com + sign * other.mass * other.com) / mass
        inertia = self.inertia + sign * other.inertia
        inertia = inertia + self.mass * _steiner(self.com - com) + sign * other.mass * _steiner(other.com - com)
        return MassProperties(mass, com, inertia)


def total(parts: Iterable[MassProperties]) -> MassProperties:
    """Several as one rigid body."""
    first, *others = parts
    for other in others:
        first = first.plus(other)
    return first


def ball(mass: float, com: np.ndarray) -> MassProperties:
    """A solid ball of water: ``I = 2/5 m r²`` with ``m = 4/3 π r³ ρ``."""
    radius = (3.0 * mass / (4.0 * np.pi * DENSITY)) ** (1.0 / 3.0)
    return MassProperties(mass, com, 0.4 * mass * radius**2 * np.eye(3))


@record(frozen=True)
class Flaw:
    """Why no body has an inertia, the nearest one that a body has [kg m²], and how a file would state that."""

    why: str
    nearest: np.ndarray
    written: str

    @property
    def repaired(self) -> str:
        """What to tell where the nearest one is taken."""
        return f"{self.why}; taken as the nearest possible one, {self.written}"

    def refused(self, others: Iterable[str] = ()) -> str:
        """What to tell where it is refused, together with ``others`` that are as impossible."""
        listed = ", ".join(others)
        return (
            f"{self.why}; the nearest possible one is {self.written}."
            f"{f' Impossible as well: {listed}.' if listed else ''} Write what is possible into the file, or put "
            '`robot = "FILE"` and `repair = true` into a model file (.toml) and use it instead'
        )


def flaw_of(inertia: np.ndarray, what: str, written: Callable[[np.ndarray], str]) -> Flaw | None:
    """What is wrong with an inertia; None where a body can have it.

    ``what`` it is the inertia of, and how a file would have it ``written``.
    """
    try:
        check_inertia(inertia, what)
    except MechanismError as error:
        nearest = nearest_possible(inertia)
        return Flaw(str(error), nearest, written(nearest))
    return None


def matrix_of(moments: np.ndarray) -> np.ndarray:
    """The symmetric matrix of ``xx yy zz xy xz yz``."""
    xx, yy, zz, xy, xz, yz = moments
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def moments_of(matrix: np.ndarray) -> np.ndarray:
    """``xx yy zz xy xz yz`` of a symmetric matrix."""
    return matrix[(0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)]


def nearest_possible(inertia: np.ndarray, slack: float = 1e-6) -> np.ndarray:
    """The nearest inertia (in the Frobenius norm) that a body with some extent in every direction has.

    With principal moments J_i the second moments of the mass, ``p_i = (J_1 + J_2 + J_3)/2 − J_i``, must be positive;
    this is the whole condition, the triangle inequality included. Those below ``slack`` of the largest are raised to
    it; the projection keeps the principal axes.
    """
    from scipy.optimize import lsq_linear  # noqa: PLC0415  (slow to import, and not needed for most models)

    moments, axes = np.linalg.eigh(0.5 * (inertia + inertia.T))
    second = 0.5 * np.sum(moments) - moments
    floor = slack * np.max(np.abs(second))
    to_moments = np.ones((3, 3)) - np.eye(3)
    second = lsq_linear(to_moments, moments, (floor, np.inf), method="bvls").x
    nearest = axes @ np.diag(to_moments @ second) @ axes.T
    return 0.5 * (nearest + nearest.T)


def _steiner(offset: np.ndarray) -> np.ndarray:
    return offset @ offset * np.eye(3) - np.outer(offset, offset)
