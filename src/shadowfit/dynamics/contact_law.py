"""Impulses of contact points as functions of the bodies' new velocity, in closed form.

With ``Σ > 0`` the conditions of a contact point (:mod:`velocity_problem`) can be solved for its impulses where the new
velocity ``v'`` is known, because then nothing couples the points:

    λ_n = max(0, −(C v' + bias)/Σ),      λ_t = P(−D v'/Σ_t)

with ``P`` the projection onto the pyramid ``|λ_1| + |λ_2| ≤ μ λ_n``. Each point is on a *branch*: open or touching,
and, if it has friction, stuck, sliding along one tangent (a corner of the pyramid's section) or along both (an edge).
On a branch the impulses are linear in ``v'``; an estimator that fixes branches can differentiate them.
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import body_forces, rows
from shadowfit.dynamics.contact_rows import contact_rows
from shadowfit.dynamics.elements import Elements, StopElement
from shadowfit.dynamics.velocity_problem import ContactRows
from shadowfit.geometry import Pose
from shadowfit.lazy_jax import jnp
from shadowfit.pytrees import PyTree, field


class Points(PyTree):
    """All contact points of a mechanism, stacked; ``frictional`` are the places of those that have tangents."""

    normal: Float[Array, "p r"]
    sigma: Float[Array, "p"]
    bias: Float[Array, "p"]
    tangent: Float[Array, "q 2 r"]
    tangent_sigma: Float[Array, "q"]
    coefficient: Float[Array, "q"]
    drift: Float[Array, "q 2"]
    """Speeds of sliding while the velocity is zero [m/s]: none of bodies, some of coordinates (`as_seen`)."""
    frictional: tuple[int, ...] = field(static=True)

    @property
    def rubbing(self) -> np.ndarray:
        """Places of the points with friction, as an array."""
        return np.array(self.frictional, int)

    def closing(self, velocity: Float[Array, "r"]) -> Float[Array, "p"]:
        """``C v' + bias`` [m/s or rad/s]: negative where bodies would overlap."""
        return self.normal @ velocity + self.bias

    def sliding(self, velocity: Float[Array, "r"]) -> Float[Array, "q 2"]:
        """``D v'`` [m/s]."""
        return self.tangent @ velocity + self.drift

    def push(self, impulses: Impulses) -> Float[Array, "r"]:
        """Impulse on the bodies [N s, N m s]."""
        return impulses.normal @ self.normal + jnp.einsum("qt,qtr->r", impulses.tangent, self.tangent)

    def as_seen(self, moving: Float[Array, "r d"], velocity: Float[Array, "r"], rates: Float[Array, "d"]) -> Points:
        """The same points as functions of other rates, ``v' + moving (u − rates)``, and pushing along these."""
        normal, tangent = self.normal @ moving, self.tangent @ moving
        bias = self.bias + self.normal @ velocity - normal @ rates
        drift = self.drift + self.tangent @ velocity - tangent @ rates
        return Points(normal, self.sigma, bias, tangent, self.tangent_sigma, self.coefficient, drift, self.frictional)


class Impulses(PyTree):
    """``λ_n`` of all points and ``λ_t`` of those with friction [N s, N m s]."""

    normal: Float[Array, "p"]
    tangent: Float[Array, "q 2"]


class Branch(PyTree):
    """Where each point is: ``touching`` is 1 or 0; ``slip`` has the signs of the motion, zero for a tangent that does
    not slide at the limit, both zero where the point sticks."""

    touching: Float[Array, "p"]
    slip: Float[Array, "q 2"]


def contact_points(
    elements: Elements, pose: Pose, velocity: Float[Array, "bodies+1 6"], timestep: Float[Array, ""]
) -> Points:
    """Contact points of all contacts; pose and velocity include the world."""
    inverse_mass = body_forces.inverse_mass(elements, pose[:-1])
    return stacked(contact_rows(elements, pose, velocity, inverse_mass, stopped_joints(elements, pose), timestep))


def stopped_joints(elements: Elements, pose: Pose) -> dict[int, rows.Geometry]:
    """Geometries of groups of joints that have end stops, by their index; pose includes the world."""
    stopped = {contact.group for contact in elements.contacts if isinstance(contact, StopElement)}
    return {index: rows.geometry(elements.groups[index], pose) for index in stopped}


def stacked(contacts: tuple[ContactRows, ...]) -> Points:
    """Rows of all contacts over the moving bodies (the world has no velocity)."""
    size = 6 * (contacts[0].normal.shape[1] - 1)
    normal, sigma, bias = [], [], []
    tangent: list[Array] = [jnp.zeros((0, 2, size))]
    tangent_sigma: list[Array] = [jnp.zeros(0)]
    coefficient = [jnp.zeros(0)]
    frictional: list[int] = []
    first = 0
    for contact in contacts:
        count = contact.bias.shape[0]
        normal.append(contact.normal[:, :-1].reshape(count, size))
        sigma.append(contact.sigma)
        bias.append(contact.bias)
        if contact.tangent is not None and contact.tangent_sigma is not None and contact.coefficient is not None:
            # Every second row: the others are the same directions with the other sign.
            tangent.append(contact.tangent[:, ::2, :-1].reshape(count, 2, size))
            tangent_sigma.append(contact.tangent_sigma)
            coefficient.append(jnp.broadcast_to(contact.coefficient, (count,)))
            frictional += range(first, first + count)
        first += count
    return Points(
        jnp.concatenate(normal),
        jnp.concatenate(sigma),
        jnp.concatenate(bias),
        jnp.concatenate(tangent),
        jnp.concatenate(tangent_sigma),
        jnp.concatenate(coefficient),
        jnp.zeros((len(frictional), 2)),
        tuple(frictional),
    )


def projected(trial: Float[Array, "... 2"], limit: Float[Array, "..."]) -> Float[Array, "... 2"]:
    """The nearest pair with ``|λ_1| + |λ_2| ≤ limit``: both sizes lowered alike, but not below zero."""
    size = jnp.abs(trial)
    larger, smaller = jnp.max(size, axis=-1), jnp.min(size, axis=-1)
    lowered = jnp.where(larger - smaller >= limit, larger - limit, 0.5 * (larger + smaller - limit))
    return jnp.sign(trial) * jnp.maximum(size - jnp.maximum(lowered, 0.0)[..., None], 0.0)


def slip_of(trial: Float[Array, "... 2"], limit: Float[Array, "..."]) -> Float[Array, "... 2"]:
    """Branch of the projection of a trial impulse: which way each tangent slides, zero where it does not."""
    size = jnp.abs(trial)
    stuck = jnp.sum(size, axis=-1) <= limit
    # A corner of the section is nearest where one tangent exceeds the other by the whole limit.
    ahead = size[..., 0] - size[..., 1]
    alone = jnp.stack([ahead > -limit, ahead < limit], axis=-1)
    direction = -jnp.sign(trial)
    return jnp.where(stuck[..., None], 0.0, jnp.where(alone, direction, 0.0))


def branch_at(points: Points, velocity: Float[Array, "r"]) -> Branch:
    """Branches of the closed form at a known new velocity."""
    closing = points.closing(velocity)
    limit = points.coefficient * jnp.maximum(-closing / points.sigma, 0.0)[points.rubbing]
    trial = -points.sliding(velocity) / points.tangent_sigma[:, None]
    return Branch(jnp.where(closing < 0.0, 1.0, 0.0), slip_of(trial, limit))


def impulses_on(points: Points, branch: Branch, velocity: Float[Array, "r"]) -> Impulses:
    """Impulses on fixed branches, linear in the velocity.

    Where tangents slide in the directions d (n of them), ``λ_t = −d μ λ_n/n`` plus what keeps two sliding tangents at
    the same speed, ``−(s − d (d·s)/n)/Σ_t``.
    """
    normal = jnp.where(branch.touching > 0.0, -points.closing(velocity) / points.sigma, 0.0)
    limit = points.coefficient * normal[points.rubbing]
    sliding = points.sliding(velocity)
    slip = branch.slip
    count = jnp.sum(jnp.abs(slip), axis=1, keepdims=True)
    shared = jnp.where(count > 1.0, 0.5, 1.0)
    uneven = jnp.where(count > 1.0, sliding - 0.5 * slip * jnp.sum(slip * sliding, axis=1, keepdims=True), 0.0)
    slides = -slip * shared * limit[:, None] - uneven / points.tangent_sigma[:, None]
    sticks = -sliding / points.tangent_sigma[:, None]
    touching = branch.touching[points.rubbing][:, None] > 0.0
    tangent = jnp.where(touching, jnp.where(count > 0.0, slides, sticks), 0.0)
    return Impulses(normal, tangent)
