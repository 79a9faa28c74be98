"""Rows of contacts ``c(q) ≥ 0`` at one configuration (see ``velocity_problem`` for the conditions they enter)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import rows
from shadowfit.dynamics.elements import Elements, PlaneElement, StopElement
from shadowfit.dynamics.velocity_problem import ContactRows, stick_sigma
from shadowfit.geometry import Pose, rotations
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism.joint_types import Frame

Geometries = Sequence[rows.Geometry] | Mapping[int, rows.Geometry]
"""Geometries of groups of joints, by their index."""


def contact_rows(
    elements: Elements,
    pose: Pose,
    velocity: Float[Array, "bodies+1 6"],
    inverse_mass: Float[Array, "bodies+1 6 6"],
    geometries: Geometries,
    timestep: Float[Array, ""],
) -> tuple[ContactRows, ...]:
    """Rows of all contacts; pose and velocity include the world. Geometries are needed of joints with stops only."""
    built = []
    for contact in elements.contacts:
        if isinstance(contact, StopElement):
            built.append(_stop(elements, contact, velocity, geometries, timestep))
        else:
            built.append(_plane(elements, contact, pose, velocity, inverse_mass, timestep))
    return tuple(built)


def contact_gaps(elements: Elements, pose: Pose, geometries: Geometries) -> tuple[Float[Array, "points"], ...]:
    """Gaps [m, rad] of the points of each contact, of both sides of a stop; pose includes the world."""
    return tuple(
        _stop_gap(contact, geometries) if isinstance(contact, StopElement) else _plane_points(contact, pose)[0]
        for contact in elements.contacts
    )


def _bias(gap: Array, approach: Array, damping: Array, compliance: Array, timestep: Array) -> tuple[Array, Array]:
    """``Σ``, and the bias of ``C v₊ + Σ λ + bias ≥ 0``: ``(4/h) Υ c − Υ max(C v, c/h)`` once in touch, ``c/h`` before.

    The relaxation is for what touches. Applied at a distance it would slow a body down from ``c ≈ τ |C v|`` on; an open
    gap only must not be overrun within the step. Of the step that closed the gap only the part behind the surface
    counts as approach, ``c/h``: so the bias is continuous in the configuration, which estimation needs.
    """
    upsilon = 1.0 / (1.0 + 4.0 * damping / timestep)
    sigma = 4.0 / timestep**2 * compliance * upsilon
    touching = upsilon * (4.0 / timestep * gap - jnp.maximum(approach, gap / timestep))
    return jnp.broadcast_to(sigma, gap.shape), jnp.where(gap > 0.0, gap / timestep, touching)


def _stop(
    elements: Elements,
    stop: StopElement,
    velocity: Array,
    geometries: Geometries,
    timestep: Array,
) -> ContactRows:
    group, member = elements.groups[stop.group], stop.member
    geometry = geometries[stop.group]
    row = jnp.zeros((elements.body_count + 1, 6))
    row = row.at[group.a.bodies[member]].add(geometry.axis_a[member])
    row = row.at[group.b.bodies[member]].add(geometry.axis_b[member])
    normal = jnp.stack([row, -row])
    gap = _stop_gap(stop, geometries)
    approach = jnp.einsum("cbi,bi->c", normal, velocity)
    sigma, bias = _bias(gap, approach, stop.limit.damping, stop.limit.compliance, timestep)
    return ContactRows(normal, sigma, bias, None, None, None)


def _stop_gap(stop: StopElement, geometries: Geometries) -> Float[Array, "2"]:
    position = geometries[stop.group].position[stop.member]
    # An absent stop is far away, not at infinity, where the products of the pivoting would not be finite.
    return jnp.clip(jnp.stack([position - stop.limit.lower, stop.limit.upper - position]), -1e6, 1e6)


def _plane(
    elements: Elements,
    element: PlaneElement,
    pose: Pose,
    velocity: Array,
    inverse_mass: Array,
    timestep: Array,
) -> ContactRows:
    contact, plane, body = element.contact, element.plane, element.body
    gap, points, axes = _plane_points(element, pose)

    def row(direction: Array) -> Array:
        """Relative velocity of the contact points along a direction."""
        block = jnp.zeros((points.shape[0], elements.body_count + 1, 6))
        for index, sign in ((body, 1.0), (plane, -1.0)):
            lever = points - pose.position[index]
            turning = jnp.cross(lever, direction[None])
            moving = jnp.broadcast_to(direction, turning.shape)
            block = block.at[:, index].add(sign * jnp.concatenate([moving, turning], axis=1))
        return block

    normal = row(axes[:, 0])
    first, second = row(axes[:, 1]), row(axes[:, 2])
    tangent = jnp.stack([first, -first, second, -second], axis=1)
    approach = jnp.einsum("cbi,bi->c", normal, velocity)
    sigma, bias = _bias(gap, approach, contact.damping, contact.compliance, timestep)
    mobility = jnp.einsum("cbi,bij,cbj->c", first, inverse_mass, first)
    stick = stick_sigma(contact.stick_time, contact.friction == 0.0, mobility, timestep)
    return ContactRows(normal, sigma, bias, tangent, stick, jnp.asarray(contact.friction))


def _plane_points(
    element: PlaneElement, pose: Pose
) -> tuple[Float[Array, "c"], Float[Array, "c 3"], Float[Array, "3 3"]]:
    """Gaps and places of contact points [m, world], and the plane's axes, its normal first."""
    contact, plane, body = element.contact, element.plane, element.body
    turn = rotations.matrix(pose.orientation)
    axes = turn[plane] @ rotations.matrix(contact.plane_rotation)
    frame_a = Frame(pose.position[plane] + turn[plane] @ (contact.plane_point - element.plane_com), axes)
    frame_b = Frame(pose.position[body] + turn[body] @ (contact.center - element.body_com), turn[body])
    return (*contact.shape.points(frame_a, frame_b), axes)
