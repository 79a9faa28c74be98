"""Bodies all of whose ten inertial numbers are free: the coordinates in which their steps are straight.

Forces depend on mass m, centre of mass c and inertia J about it by products (m c, m c cᵀ); on the moments of the mass
distribution about the body's frame,

    φ = (m, h, Σ),    h = ∫ r dm = m c,    Σ = ∫ r rᵀ dm = S + m c cᵀ,    S = ½ tr(J) 1 − J,

linearly (Atkeson, An and Hollerbach, Estimation of inertial parameters of manipulator loads and links, 1986). So a step
is taken in φ: ``χ ⊞ δ`` for an increment δ of (m, c, J) is the body with the moments ``φ + (∂φ/∂χ) δ``. Along a path
that the sensors give, a fit of an arm is then one linear problem, whatever mass, centre and inertia start from. In the
named numbers the same steps would run along curved valleys: where the motion tells m c but not m, each step that halves
m would need a centre twice as far, and a quadratic model does not know.

A body is possible exactly if its pseudo-inertia is positive (Wensing, Kim and Slotine, Linear matrix inequalities for
physically consistent inertial parameter identification, 2018), which is a cone in φ:

    P = [ Σ   ℓh ]
        [ ℓhᵀ ℓ²m ]  ≻ 0,        ℓ any length, here the body's radius of gyration about its frame.
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Float, Int
from shadowfit.estimation.linear.cone_step import Cones
from shadowfit.mechanism.second_moments import BASIS
from shadowfit.records import record

# Σ keeps this distance from the edge, relative to its trace; other programs check without tolerance.
MARGIN = 1e-9
# Σ may grow by this factor: what the data say nothing about would otherwise wander off.
RANGE = 1e3
FIRST, SECOND = slice(1, 4), slice(4, 10)
ROWS, COLUMNS = np.array([0, 1, 2, 0, 0, 1]), np.array([0, 1, 2, 1, 2, 2])


def moments(numbers: Float[np.ndarray, "b 10"]) -> Float[np.ndarray, "b 10"]:
    """(m, h, Σ) [kg, kg m, kg m²] of bodies with mass, centre of mass and inertia (xx, yy, zz, xy, xz, yz)."""
    mass, com = numbers[:, :1], numbers[:, FIRST]
    spread = _second_of_inertia(numbers[:, SECOND]) + mass * com[:, ROWS] * com[:, COLUMNS]
    return np.concatenate([mass, mass * com, spread], axis=1)


def numbers_of(phi: Float[np.ndarray, "b 10"]) -> Float[np.ndarray, "b 10"]:
    """Mass, centre of mass and inertia of bodies with given moments."""
    mass = phi[:, :1]
    com = phi[:, FIRST] / mass
    spread = phi[:, SECOND] - mass * com[:, ROWS] * com[:, COLUMNS]
    return np.concatenate([mass, com, _inertia_of_second(spread)], axis=1)


def slopes(numbers: Float[np.ndarray, "b 10"]) -> Float[np.ndarray, "b 10 10"]:
    """Derivatives of the moments by mass, centre of mass and inertia."""
    mass, com = numbers[:, 0], numbers[:, FIRST]
    slope = np.zeros((len(numbers), 10, 10))
    slope[:, 0, 0] = 1.0
    slope[:, FIRST, 0] = com
    slope[:, SECOND, 0] = com[:, ROWS] * com[:, COLUMNS]
    for axis in range(3):
        unit = np.eye(3)[axis]
        slope[:, 1 + axis, 1 + axis] = mass
        turned = unit[ROWS] * com[:, COLUMNS] + com[:, ROWS] * unit[COLUMNS]
        slope[:, SECOND, 1 + axis] = mass[:, None] * turned
    slope[:, SECOND, SECOND] = _second_of_inertia(np.eye(6)).T
    return slope


def _second_of_inertia(entries: Float[np.ndarray, "b 6"]) -> Float[np.ndarray, "b 6"]:
    """Entries of ``½ tr(J) 1 − J``."""
    half = 0.5 * np.sum(entries[:, :3], axis=1, keepdims=True)
    return np.concatenate([half - entries[:, :3], -entries[:, 3:]], axis=1)


def _inertia_of_second(entries: Float[np.ndarray, "b 6"]) -> Float[np.ndarray, "b 6"]:
    """Entries of ``tr(S) 1 − S``."""
    whole = np.sum(entries[:, :3], axis=1, keepdims=True)
    return np.concatenate([whole - entries[:, :3], -entries[:, 3:]], axis=1)


@record(frozen=True)
class WholeBodies:
    """Where the ten numbers of such bodies are among the increments of all parameters."""

    places: Int[np.ndarray, "b 10"]

    def __len__(self) -> int:
        return len(self.places)

    def moved(self, flat: Float[np.ndarray, " p"], increments: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
        """Values after a step of all parameters; those of these bodies by their moments."""
        result = flat + increments
        if len(self):
            numbers, step = flat[self.places], increments[self.places]
            phi = moments(numbers) + np.einsum("bij,bj->bi", slopes(numbers), step)
            result[self.places] = numbers_of(phi)
        return result

    def between(self, flat: Float[np.ndarray, " p"], other: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
        """The increments that take ``other`` to ``flat``."""
        result = flat - other
        if len(self):
            start = other[self.places]
            change = moments(flat[self.places]) - moments(start)
            result[self.places] = np.linalg.solve(slopes(start), change[:, :, None])[:, :, 0]
        return result

    def carried(self, flat: Float[np.ndarray, " p"], start: Float[np.ndarray, " p"]) -> Float[np.ndarray, "p p"]:
        """Derivative of :meth:`between` of values and a start by increments at these values."""
        matrix = np.eye(len(flat))
        if len(self):
            turned = np.linalg.solve(slopes(start[self.places]), slopes(flat[self.places]))
            matrix[self.places[:, :, None], self.places[:, None, :]] = turned
        return matrix

    def tangent(self, flat: Float[np.ndarray, " p"]) -> Float[np.ndarray, "p p"]:
        """Increments of all parameters by steps in which these bodies move by their moments: ``δ = T δφ``."""
        matrix = np.eye(len(flat))
        inverse = np.linalg.inv(slopes(flat[self.places]))
        matrix[self.places[:, :, None], self.places[:, None, :]] = inverse
        return matrix

    def sizes(self, flat: Float[np.ndarray, " p"]) -> Float[np.ndarray, "b 10"]:
        """Typical size of each moment: ``m``, ``mℓ``, ``mℓ²``."""
        phi = moments(flat[self.places])
        length = _gyration(phi)
        powers = np.repeat([0, 1, 2], [1, 3, 6])
        return np.abs(phi[:, :1]) * length[:, None] ** powers

    def limits(
        self, flat: Float[np.ndarray, " p"], start: Float[np.ndarray, " p"]
    ) -> tuple[Float[np.ndarray, "b 9"], Float[np.ndarray, "b 9"]]:
        """Smallest and largest steps of h and Σ: no diagonal of Σ grows to more than ``RANGE`` of the start's trace."""
        phi, first = moments(flat[self.places]), moments(start[self.places])
        most = RANGE * np.sum(first[:, 4:7], axis=1, keepdims=True) - phi[:, 4:7]
        free = np.full((len(self), 3), np.inf)
        return (
            np.full((len(self), 9), -np.inf),
            np.concatenate([free, np.maximum(most, 0.0), free], axis=1),
        )

    def cones(self, flat: Float[np.ndarray, " p"]) -> Cones:
        """Pseudo-inertias of the bodies, as functions of a step of the moments."""
        phi = moments(flat[self.places])
        basis = pseudo_inertia(np.eye(10)[None], _gyration(phi)[:, None])
        return Cones(np.einsum("be,beij->bij", phi, basis), self.places, basis)


NO_WHOLE_BODIES = WholeBodies(np.zeros((0, 10), int))


def _gyration(phi: Float[np.ndarray, "b 10"]) -> Float[np.ndarray, " b"]:
    """Radius of gyration about the frame [m]."""
    return np.sqrt(np.sum(phi[:, 4:7], axis=1) / phi[:, 0])


def pseudo_inertia(phi: Float[np.ndarray, "*#n 10"], length: Float[np.ndarray, "*#n"]) -> Float[np.ndarray, "... 4 4"]:
    """P of moments, for bodies of given lengths; Σ less its margin."""
    spread = np.einsum("...e,eij->...ij", phi[..., SECOND], BASIS)
    trace = np.trace(spread, axis1=-2, axis2=-1)[..., None, None]
    shape = np.broadcast_shapes(spread.shape[:-2], length.shape)
    matrix = np.zeros((*shape, 4, 4))
    matrix[..., :3, :3] = spread - MARGIN * trace * np.eye(3)
    first = length[..., None] * phi[..., FIRST]
    matrix[..., :3, 3], matrix[..., 3, :3] = first, first
    matrix[..., 3, 3] = length**2 * phi[..., 0]
    return matrix
