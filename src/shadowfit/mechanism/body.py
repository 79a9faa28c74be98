"""Rigid bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.errors import MechanismError
from shadowfit.lazy_jax import namespace
from shadowfit.mechanism.leaves import number, vector
from shadowfit.pytrees import PyTree, field

# Relative slack of the triangle inequality: a thin rod or a flat plate sits exactly on its edge.
TRIANGLE_SLACK = 1e-9


class Inertia(PyTree):
    """Inertia about the centre of mass in the body's axes [kg m²]: the entries of a symmetric 3×3 matrix."""

    xx: Any = number("kg m²", lower=0.0)
    yy: Any = number("kg m²", lower=0.0)
    zz: Any = number("kg m²", lower=0.0)
    xy: Any = number("kg m²", default=0.0)
    xz: Any = number("kg m²", default=0.0)
    yz: Any = number("kg m²", default=0.0)

    def matrix(self) -> Float[Array, "3 3"]:
        """The 3×3 matrix."""
        rows = self.rows()
        library = namespace(*rows[0], *rows[1], *rows[2])
        return library.stack([library.stack(row) for row in rows])

    def rows(self) -> list[list[Any]]:
        """The entries, row by row."""
        return [[self.xx, self.xy, self.xz], [self.xy, self.yy, self.yz], [self.xz, self.yz, self.zz]]


class Body(PyTree):
    """A rigid body: mass [kg], centre of mass [m] in the body's frame, and inertia about the centre of mass [kg m²].

    The body's frame is where joints and sensors attach; it turns with the body. Moving the centre of mass moves it
    relative to all attachment points.
    """

    mass: Any = number("kg", lower=0.0)
    inertia: Inertia = field()  # type: ignore[misc]  # `number` without a default looks like one
    com: Any = vector("m")

    def __init__(
        self,
        mass: float,
        inertia: Inertia | Sequence[float] | np.ndarray,
        com: Sequence[float] = (0.0, 0.0, 0.0),
    ):
        self.mass = mass
        self.inertia = inertia if isinstance(inertia, Inertia) else _inertia(np.asarray(inertia, float))
        self.com = com

    def check(self, name: str) -> None:
        """Raise unless the body could exist: positive mass, positive inertia, triangle inequality."""
        if not float(self.mass) > 0.0:
            raise MechanismError(f"{name}.mass is {float(self.mass):g} kg; a mass must be positive")
        check_inertia(np.array(self.inertia.rows(), float), f"{name}.inertia")


def check_inertia(matrix: np.ndarray, name: str) -> None:
    """Raise unless ``matrix`` is the inertia of some mass distribution.

    Its principal moments must be positive and none may exceed the sum of the other two.
    """
    moments = np.linalg.eigvalsh(matrix)
    shown = ", ".join(f"{moment:.4g}" for moment in moments)
    if moments[0] <= 0.0:
        raise MechanismError(f"{name} has principal moments {shown} kg m²; all must be positive")
    if moments[2] > (moments[0] + moments[1]) * (1.0 + TRIANGLE_SLACK):
        raise MechanismError(
            f"{name} has principal moments {shown} kg m²; no mass distribution has one larger than the sum of "
            "the other two (triangle inequality)"
        )


def _inertia(values: np.ndarray) -> Inertia:
    if values.shape in ((3,), (6,)):
        return Inertia(*values)
    if values.shape == (3, 3) and np.allclose(values, values.T, rtol=1e-9, atol=0.0):
        return Inertia(*values[(0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)])
    raise MechanismError(
        f"an inertia is given by 3 principal moments, 6 numbers (xx yy zz xy xz yz) or a symmetric 3×3 matrix, "
        f"not by an array of shape {values.shape}"
    )
