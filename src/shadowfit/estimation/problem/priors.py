"""What is known of parameters beforehand: a quadratic form about the values they start from.

A number may have a standard deviation of its own. A body all of whose ten inertial numbers are free may have an
*entropic* prior instead, which knows what a body is. With its pseudo-inertia P (:mod:`whole_bodies`), linear in the
moments φ of its mass, the relative entropy of two mass distributions with normal density is, up to a factor,

    D(P, P₀) = tr(P P₀⁻¹) − log det(P P₀⁻¹) − 4  =  ½ ‖P₀^{-½} (P − P₀) P₀^{-½}‖² + …

(Lee, Wensing and Park, Geometric robot dynamic identification: a convex programming approach, 2020). The prior is
``2 D/σ²`` to second order: a normal one in φ, that looks the same in every frame and every unit. In the body's
principal axes it says: the mass, and each of the second moments ∫x² dm, are known to the part σ of themselves, and the
centre of mass to σ/√2 of the radius of gyration √(∫x² dm/m) along that axis.
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.problem.whole_bodies import SECOND, moments, pseudo_inertia, slopes
from shadowfit.mechanism.second_moments import inertia_matrix

# A body is taken to be this thick, relative to its largest second moment: files have rods and plates without thickness,
# of which the prior would else be sure.
THINNEST = 0.01


def entropic_information(numbers: Float[np.ndarray, "b 10"]) -> Float[np.ndarray, "b 10 10"]:
    """Inverse covariance of mass, centre of mass and inertia of bodies with entropic priors of spread one, about them.

    ``A_ij = tr(P₀⁻¹ E_i P₀⁻¹ E_j)`` for the moments, E the derivatives of P by them, taken to the ten numbers.
    """
    phi = moments(numbers)
    length = np.sqrt(np.sum(phi[:, 4:7], axis=1) / phi[:, 0])
    thick = phi.copy()
    thick[:, SECOND] += _thickness(numbers)[:, None] * np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    inverse = np.linalg.inv(pseudo_inertia(thick, length))
    basis = inverse[:, None] @ pseudo_inertia(np.eye(10)[None], length[:, None])
    metric = np.einsum("beij,bfji->bef", basis, basis)
    by_number = slopes(numbers)
    return np.swapaxes(by_number, 1, 2) @ metric @ by_number


def _thickness(numbers: Float[np.ndarray, "b 10"]) -> Float[np.ndarray, " b"]:
    """What is added to all principal second moments about the centre of mass, so that none is too small."""
    inertia = inertia_matrix(numbers[:, SECOND])
    principal = 0.5 * np.trace(inertia, axis1=1, axis2=2)[:, None] - np.linalg.eigvalsh(inertia)
    return np.maximum(THINNEST * np.max(principal, axis=1) - np.min(principal, axis=1), 0.0)
