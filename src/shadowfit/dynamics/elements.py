"""A mechanism as stacked arrays: bodies, and joints grouped by type, ready for ``vmap`` over elements of a type.

The grouping is static (it follows from the mechanism's structure), the numbers may be traced. The world is one more
body behind the last, with zero inverse mass, so that no element needs a special case for it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.geometry import matrices, rotations
from shadowfit.lazy_jax import namespace
from shadowfit.mechanism.contacts import JointLimit, PlaneContact
from shadowfit.mechanism.friction import FrictionLaw
from shadowfit.mechanism.joint import WORLD, Joint
from shadowfit.mechanism.joint_types import JointType
from shadowfit.mechanism.laws import AxisLaw
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.surroundings import Wrench
from shadowfit.pytrees import PyTree, field
from shadowfit.trees import leaves_of, map_leaves, structure_of, unflatten


class Bodies(PyTree):
    """Mass [kg], inertia [kg m²] and its inverse in body axes, and the centre of mass [m] in the body's frame."""

    mass: Float[Array, "n"]
    inertia: Float[Array, "n 3 3"]
    inverse_inertia: Float[Array, "n 3 3"]
    com: Float[Array, "n 3"]


class Attachments(PyTree):
    """One side of the joints of a group: body indices, levers from the centre of mass [m] and frames, in body axes."""

    body_indices: tuple[int, ...] = field(static=True)
    levers: Float[Array, "n 3"]
    frames: Float[Array, "n 3 3"]

    @property
    def bodies(self) -> np.ndarray:
        """Body indices as an array."""
        return np.array(self.body_indices)


class LawGroup(PyTree):
    """Axis laws of one kind within a group: stacked numbers, the place of each law's joint, its inputs (−1: none)."""

    law: AxisLaw
    member_indices: tuple[int, ...] = field(static=True)
    input_indices: tuple[tuple[int, ...], ...] = field(static=True)

    @property
    def members(self) -> np.ndarray:
        """Places of the laws' joints in their group, as an array."""
        return np.array(self.member_indices)

    @property
    def inputs(self) -> np.ndarray:
        """Input indices as an array: a row for each law, without a second axis where laws have one channel."""
        indices = np.array(self.input_indices)
        return indices[:, 0] if indices.shape[1] == 1 else indices


class JointGroup(PyTree):
    """Joints with the same type and the same kind of dry friction, stacked.

    ``compliance`` has one entry for each gap row; ``joints`` are the indices of the members in the mechanism.
    """

    kind: JointType
    a: Attachments
    b: Attachments
    compliance: Float[Array, "n m"]
    damping: Float[Array, "n"]
    viscous: Float[Array, "n"]
    friction: FrictionLaw | None
    laws: tuple[LawGroup, ...]
    joints: tuple[int, ...] = field(static=True)
    gap_rows: int = field(static=True)
    has_axis: bool = field(static=True)
    linear_rows: int = field(static=True)

    @property
    def size(self) -> int:
        """Number of joints in the group."""
        return len(self.joints)

    @property
    def rows(self) -> int:
        """Equality rows of each member: gap rows, the axis row, and the tangential row of dry friction."""
        return self.gap_rows + int(self.has_axis) + int(self.friction is not None)


class StopElement(PyTree):
    """A joint limit and the place of its joint among the groups."""

    limit: JointLimit
    group: int = field(static=True)
    member: int = field(static=True)


class PlaneElement(PyTree):
    """A contact with a plane, its number of points, its bodies and their centres of mass [m] in the bodies' frames."""

    contact: PlaneContact
    points: int = field(static=True)
    plane: int = field(static=True)
    body: int = field(static=True)
    plane_com: Float[Array, "3"]
    body_com: Float[Array, "3"]


class ForceElement(PyTree):
    """A wrench on a body, and the index of its input (−1: none)."""

    wrench: Wrench
    body: int = field(static=True)
    input: int = field(static=True)


class Elements(PyTree):
    """The whole mechanism as stacked arrays; ``joint_places`` gives group and member of each joint of the mechanism."""

    bodies: Bodies
    groups: tuple[JointGroup, ...]
    contacts: tuple[StopElement | PlaneElement, ...]
    forces: tuple[ForceElement, ...]
    gravity: Float[Array, "3"]
    joint_places: tuple[tuple[int, int], ...] = field(static=True)

    @property
    def body_count(self) -> int:
        """Number of moving bodies."""
        return self.bodies.mass.shape[0]


def assemble(mechanism: Mechanism) -> Elements:
    """Stack the numbers of a mechanism by type. Cheap; done once before a loop over time."""
    index = {name: i for i, name in enumerate((*mechanism.bodies.names, WORLD))}
    inertia = _stack([body.inertia.matrix() for body in mechanism.bodies.values])
    bodies = Bodies(
        _stack([body.mass for body in mechanism.bodies.values]),
        inertia,
        matrices.inverse(inertia),
        _stack([body.com for body in mechanism.bodies.values]),
    )
    groups = tuple(_group(mechanism, members, index) for members in _members_by_type(mechanism))
    places = {joint: (g, m) for g, group in enumerate(groups) for m, joint in enumerate(group.joints)}
    inputs = mechanism.inputs.names
    forces = tuple(
        ForceElement(force, index[force.body], inputs.index(force.input) if force.input is not None else -1)
        for force in mechanism.forces.values
    )
    return Elements(
        bodies,
        groups,
        tuple(_contact(mechanism, contact, index, places) for contact in mechanism.contacts.values),
        forces,
        mechanism.gravity.vector(),
        tuple(places[j] for j in range(len(mechanism.joints))),
    )


def assembled(mechanism: Mechanism) -> Elements:
    """``assemble`` by NumPy: for callers that hold numbers, not tracers."""
    return map_leaves(np.asarray, assemble(map_leaves(np.asarray, mechanism)))


def _contact(
    mechanism: Mechanism,
    contact: JointLimit | PlaneContact,
    index: dict[str, int],
    places: dict[int, tuple[int, int]],
) -> StopElement | PlaneElement:
    if isinstance(contact, JointLimit):
        return StopElement(contact, *places[mechanism.joints.index(contact.joint)])
    return PlaneElement(
        contact,
        contact.shape.count(),
        index[contact.plane],
        index[contact.body],
        *(center_of_mass(mechanism, name) for name in (contact.plane, contact.body)),
    )


def center_of_mass(mechanism: Mechanism, body: str) -> Array:
    """Centre of mass of a body in its frame [m]; the world's is its origin."""
    return np.zeros(3) if body == WORLD else mechanism.bodies[body].com


def _stack(values: list[Any]) -> Array:
    library = namespace(*values)
    return library.stack([library.asarray(value) for value in values])


def _stack_modules(modules: list[Any]) -> Any:
    """Modules of one type as a single module with stacked leaves; static fields are the first one's."""
    structure = structure_of(modules[0])
    stacked = [_stack(list(column)) for column in zip(*(leaves_of(m) for m in modules), strict=True)]
    return unflatten(structure, stacked)


def _members_by_type(mechanism: Mechanism) -> list[list[int]]:
    groups: dict[tuple[Any, ...], list[int]] = {}
    for position, joint in enumerate(mechanism.joints.values):
        key = (structure_of(joint.kind), structure_of(joint.friction))
        groups.setdefault(key, []).append(position)
    return list(groups.values())


def _kind_of_law(law: AxisLaw) -> tuple[Any, ...]:
    """The law's type and its static options; of the inputs, which may differ from joint to joint, whether it has them.

    A command that is nobody's reads zero.
    """
    options = [field.name for field in dataclasses.fields(law) if field.metadata.get("static")]
    own = ((name, getattr(law, name)) for name in options if name not in law.channels)
    return type(law), *own, *(source is None for source in law.sources[1:])


def _group(mechanism: Mechanism, members: list[int], index: dict[str, int]) -> JointGroup:
    joints = [mechanism.joints.values[i] for i in members]
    first = joints[0]
    rows = first.kind.row_count()
    return JointGroup(
        kind=_stack_modules([joint.kind for joint in joints]),
        a=_attach(mechanism, index, [(j.parent, j.parent_point, j.parent_rotation) for j in joints]),
        b=_attach(mechanism, index, [(j.child, j.child_point, j.child_rotation) for j in joints]),
        compliance=_stack([_row_compliance(joint, rows) for joint in joints]),
        damping=_stack([joint.damping for joint in joints]),
        viscous=_stack([joint.viscous for joint in joints]),
        friction=_stack_modules([j.friction for j in joints]) if first.friction is not None else None,
        laws=_laws(mechanism, joints),
        joints=tuple(members),
        gap_rows=rows,
        has_axis=first.kind.axis_kind is not None,
        linear_rows=first.kind.linear_rows,
    )


def _attach(mechanism: Mechanism, index: dict[str, int], sides: list[tuple[str, Any, Any]]) -> Attachments:
    return Attachments(
        tuple(index[name] for name, _, _ in sides),
        _stack([point - center_of_mass(mechanism, name) for name, point, _ in sides]),
        rotations.matrix(_stack([rotation for _, _, rotation in sides])),
    )


def _row_compliance(joint: Joint, rows: int) -> Array:
    linear, compliance = joint.kind.linear_rows, joint.compliance
    library = namespace(compliance.linear, compliance.rotational)
    return library.concatenate(
        [
            library.full(linear, compliance.linear, dtype=float),
            library.full(rows - linear, compliance.rotational, dtype=float),
        ]
    )


def _laws(mechanism: Mechanism, joints: list[Joint]) -> tuple[LawGroup, ...]:
    by_kind: dict[tuple[Any, ...], list[tuple[int, AxisLaw]]] = {}
    for member, joint in enumerate(joints):
        for law in joint.laws.values:
            by_kind.setdefault(_kind_of_law(law), []).append((member, law))
    names = mechanism.inputs.names
    return tuple(
        LawGroup(
            _stack_modules([law for _, law in entries]),
            tuple(member for member, _ in entries),
            tuple(tuple(-1 if one is None else names.index(one) for one in law.sources) for _, law in entries),
        )
        for entries in by_kind.values()
    )
