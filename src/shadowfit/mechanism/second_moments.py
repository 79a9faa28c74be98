"""Which inertias a body can have, as matrices that must not have negative eigenvalues.

A body is its distribution of mass. With J the inertia about the centre of mass, the second moments of that distribution
are

    S = ∫ r rᵀ dm = ½ tr(J) 1 − J,        J = tr(S) 1 − S,

and an inertia belongs to some body exactly if S has no negative eigenvalue, which is the triangle inequality of the
principal moments. Both are linear in the entries of J. An eigenvalue of zero is a flat body, two are a thin rod. In
the parameters of a :class:`~body.Body` (mass, centre of mass, inertia about it) nothing else has to be asked but a
positive mass: any centre of mass will do.
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Float

ENTRIES = ("xx", "yy", "zz", "xy", "xz", "yz")
"""Names of the six entries of an inertia, in this order everywhere."""


def _basis() -> Float[np.ndarray, "6 3 3"]:
    basis = np.zeros((6, 3, 3))
    for number, (row, column) in enumerate(("xyz".index(name[0]), "xyz".index(name[1])) for name in ENTRIES):
        basis[number, row, column] = basis[number, column, row] = 1.0
    return basis


BASIS = _basis()
"""J = Σ entry · BASIS."""


def inertia_matrix(entries: Float[np.ndarray, "*n 6"]) -> Float[np.ndarray, "*n 3 3"]:
    """The matrix of the entries."""
    return np.einsum("...e,eij->...ij", entries, BASIS)


def second_moments(inertia: Float[np.ndarray, "*n 3 3"], margin: float = 0.0) -> Float[np.ndarray, "*n 3 3"]:
    """``S − margin · tr(J) 1`` [kg m²]; positive definite where a body has this inertia, with that much to spare."""
    trace = np.trace(inertia, axis1=-2, axis2=-1)[..., None, None]
    return (0.5 - margin) * trace * np.eye(3) - inertia


def thickness(inertia: Float[np.ndarray, "*n 3 3"]) -> Float[np.ndarray, "*n"] | np.float64:
    """Smallest principal second moment over the trace of J: 1/6 for a ball, 0 for flat bodies, below for none."""
    return np.linalg.eigvalsh(second_moments(inertia))[..., 0] / np.trace(inertia, axis1=-2, axis2=-1)
