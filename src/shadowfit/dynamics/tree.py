"""Joint coordinates: the motions that rigid joints leave free, and the bodies' poses that follow from them.

In a *tree* every body hangs on one other body (or the world) by one joint, or floats. Its *motion* is the pose of the
joint's frame b in frame a [m, quaternion], a floating body's own pose in the world. What a joint leaves free are some
of the six directions of ⊞ on that pose: the turn about x for a hinge. Coordinates of all joints, in the order of the
tree, are the d unknowns of a configuration; ``T`` [bodies × 6, d] turns their rates into the bodies' velocities.
Joints that are left over close loops: their gaps are functions of the coordinates (:mod:`loops`). Joints that are said
to be compliant hold no body in the tree: they are among those, whether or not they close a loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics.elements import center_of_mass
from shadowfit.dynamics.state import with_world
from shadowfit.errors import MechanismError
from shadowfit.geometry import Pose, rotations
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism.joint import WORLD, Joint
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.pytrees import PyTree
from shadowfit.records import record

ALL_DIRECTIONS = (0, 1, 2, 3, 4, 5)
DIRECTIONS = ("x", "y", "z", "rx", "ry", "rz")
"""Of ⊞ on a pose: translations, then rotations."""


@record(frozen=True)
class Link:
    """A body and what holds it."""

    body: int
    base: int
    """The body that it hangs on; the world comes behind the last body."""
    joint: int | None
    """None: the body floats."""
    forward: bool
    """Whether the body is the joint's child."""
    freedom: tuple[int, ...]
    """Directions that are free: translations 0–2, rotations 3–5, in the axes of frame a."""


@record(frozen=True)
class Tree:
    """All bodies, each one behind what it hangs on."""

    links: tuple[Link, ...]
    loops: tuple[int, ...] = ()
    """Joints that close loops."""
    compliant: tuple[int, ...] = ()
    """Those of them that are compliant."""

    @property
    def rigid_loops(self) -> tuple[int, ...]:
        """Rigid joints that close loops."""
        return tuple(joint for joint in self.loops if joint not in self.compliant)

    @property
    def size(self) -> int:
        """d."""
        return sum(len(link.freedom) for link in self.links)

    def selection(self) -> Float[np.ndarray, "d bodies*6"]:
        """Row i has a one at the direction of its body's motion that coordinate i is."""
        places = [6 * link.body + direction for link in self.links for direction in link.freedom]
        return np.eye(6 * len(self.links))[places].reshape(len(places), 6 * len(self.links))

    def hanging_on(self, body: int) -> tuple[int, ...]:
        """A body and all that it holds."""
        held = {body}
        for link in self.links:
            if link.base in held:
                held.add(link.body)
        return tuple(sorted(held))

    def coordinate(self, joint: int) -> int:
        """Place of a joint's only coordinate."""
        before = self.links[: self.links.index(self.holding(joint))]
        return sum(len(link.freedom) for link in before)

    def holding(self, joint: int) -> Link:
        """The link of a joint."""
        return next(link for link in self.links if link.joint == joint)

    def signs(self, joints: Iterable[int]) -> Float[np.ndarray, "n"]:
        """1 for joints on whose frame b their link hangs, −1 for those turned about."""
        return np.array([1.0 if self.holding(joint).forward else -1.0 for joint in joints])


def tree_of(mechanism: Mechanism) -> Tree:
    """The mechanism as a tree, with the joints that close its loops; raises where rigid joints do not describe it."""
    names, joints = (*mechanism.bodies.names, WORLD), mechanism.joints
    for name, joint in joints.items():
        if joint.kind.freedom is None and joint.kind.row_count() == 0:
            raise MechanismError(
                f"joint {name!r} is a {type(joint.kind).__name__.lower()}, which holds no position: joint coordinates "
                "do not describe it"
            )
    links: list[Link] = []
    placed = [WORLD]
    waiting = {
        i: joint for i, joint in enumerate(joints.values) if joint.kind.freedom is not None and not joint.compliant
    }
    while len(links) < len(mechanism.bodies):
        next_joint = next(
            (i for i, joint in waiting.items() if (joint.parent in placed) != (joint.child in placed)), None
        )
        if next_joint is None:
            body = next(name for name in mechanism.bodies if name not in placed)
            # A component that no joint ties to the world floats, held by its first body.
            links.append(Link(names.index(body), names.index(WORLD), None, True, ALL_DIRECTIONS))
        else:
            joint = waiting.pop(next_joint)
            forward = joint.parent in placed
            body, base = (joint.child, joint.parent) if forward else (joint.parent, joint.child)
            links.append(Link(names.index(body), names.index(base), next_joint, forward, joint.kind.freedom))
        placed.append(body)
    holding = {link.joint for link in links}
    loops = tuple(i for i in range(len(joints)) if i not in holding)
    return Tree(tuple(links), loops, tuple(i for i in loops if joints.values[i].compliant))


def coordinate_names(tree: Tree, mechanism: Mechanism) -> tuple[str, ...]:
    """A name for each coordinate: its joint's (or its floating body's), with the direction where there are several."""
    names: list[str] = []
    for link in tree.links:
        name = mechanism.bodies.names[link.body] if link.joint is None else mechanism.joints.names[link.joint]
        single = len(link.freedom) == 1
        names += [name if single else f"{name}.{DIRECTIONS[direction]}" for direction in link.freedom]
    return tuple(names)


class Placed(PyTree):
    """Bodies at a configuration."""

    pose: Pose
    twists: Float[Array, "bodies 6 d"]
    """T."""
    centers: Float[Array, "bodies 3"]
    """Where the frame b of each body's joint is [m]: rotations of the joint are about this point."""


def forward_kinematics(tree: Tree, mechanism: Mechanism, motion: Pose) -> Placed:
    """Poses of all bodies at given motions."""
    hung = hang(tree, mechanism, motion)
    return Placed(hung.pose, velocities_by(tree, hung.twists, hung.pose.position), hung.centers)


def velocities_by(
    tree: Tree, twists: Sequence[Float[Array, "6"]], position: Float[Array, "bodies 3"]
) -> Float[Array, "bodies 6 d"]:
    """T: velocities of bodies at given places by the rate of each coordinate, from the coordinates' twists."""
    count = len(tree.links)
    moving: dict[int, list[int]] = {count: []}
    start = 0
    for link in tree.links:
        moving[link.body] = [*moving[link.base], *range(start, start + len(link.freedom))]
        start += len(link.freedom)
    return jnp.stack([_columns(twists, moving[i], position[i], tree.size) for i in range(count)])


class Hung(PyTree):
    """Bodies at a configuration, with what each coordinate does to all that hangs on its joint."""

    pose: Pose
    twists: tuple[Float[Array, "6"], ...]
    """For each coordinate the velocity at the world's origin, and the spin, that its rate gives."""
    centers: Float[Array, "bodies 3"]
    """As in `Placed`."""


def hang(tree: Tree, mechanism: Mechanism, motion: Pose) -> Hung:
    """Poses of all bodies at given motions, outwards along the tree."""
    count = len(tree.links)
    hung: dict[int, Held] = {count: Held(_ORIGIN, jnp.eye(3), jnp.zeros(3))}
    twists = []
    for link in tree.links:
        here = hung[link.body] = hang_on(mechanism, link, free_part(link, motion), hung[link.base].pose)
        twists += [twist(direction, here) for direction in link.freedom]
    bodies = [hung[i] for i in range(count)]
    return Hung(
        Pose(*(jnp.stack(x) for x in zip(*((b.pose.position, b.pose.orientation) for b in bodies), strict=True))),
        tuple(twists),
        jnp.stack([b.center for b in bodies]),
    )


_ORIGIN = Pose(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))


class Held(NamedTuple):
    """A body with what its own coordinates do to it."""

    pose: Pose
    directions: Float[Array, "3 3"]
    """Columns are the velocities that the three translations give it, or the spins that the rotations do."""
    center: Float[Array, "3"]
    """Frame b of its joint, about which it turns."""


def hang_on(mechanism: Mechanism, link: Link, motion: Pose, base: Pose) -> Held:
    """A body at a motion, on a base at a given pose."""
    if link.joint is None:
        return Held(motion, jnp.eye(3), motion.position)
    (point, frame), (lever, frame_b) = _sides(mechanism, mechanism.joints.values[link.joint], link.forward)
    turn = rotations.multiply(base.orientation, frame)
    at = base.position + rotations.rotate(base.orientation, point)
    if link.forward:
        directions = rotations.matrix(turn)
        at = center = at + directions @ motion.position
        turn = rotations.multiply(turn, motion.orientation)
    else:
        # The base has frame b: the body moves against its own motion.
        center, turn = at, rotations.multiply(turn, rotations.conjugate(motion.orientation))
        directions = -rotations.matrix(turn)
        at = at + directions @ motion.position
    orientation = rotations.multiply(turn, rotations.conjugate(frame_b))
    return Held(Pose(at - rotations.rotate(orientation, lever), orientation), directions, center)


def twist(direction: int, body: Held) -> Float[Array, "6"]:
    """Velocity at the world's origin, and spin, of all that hangs on a body, by the rate of one of its directions."""
    along = body.directions[:, direction % 3]
    if direction < 3:
        return jnp.concatenate([along, jnp.zeros(3)])
    return jnp.concatenate([jnp.cross(body.center, along), along])


def _columns(twists: Sequence[Float[Array, "6"]], moving: list[int], position: Array, size: int) -> Float[Array, "6 d"]:
    """Velocity of a body by each coordinate, of which only some move it."""
    columns = [jnp.zeros(6)] * size
    for coordinate in moving:
        linear, angular = twists[coordinate][:3], twists[coordinate][3:]
        columns[coordinate] = jnp.concatenate([linear + jnp.cross(angular, position), angular])
    return jnp.stack(columns, axis=1) if columns else jnp.zeros((6, 0))


def free_part(link: Link, motion: Pose) -> Pose:
    """A body's motion, exactly zero where it is not free: what is known to be zero costs nothing."""
    position = [motion.position[link.body, i] if i in link.freedom else jnp.zeros(()) for i in range(3)]
    turning = [i in link.freedom for i in (3, 4, 5)]
    if not any(turning):
        return Pose(jnp.stack(position), jnp.array([1.0, 0.0, 0.0, 0.0]))
    # Turns about two axes reach the third one.
    parts = turning if sum(turning) == 1 else [True] * 3
    vector = [motion.orientation[link.body, 1 + i] if parts[i] else jnp.zeros(()) for i in range(3)]
    return Pose(jnp.stack(position), jnp.stack([motion.orientation[link.body, 0], *vector]))


def _sides(mechanism: Mechanism, joint: Joint, forward: bool) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Lever from the centre of mass [m] and frame (quaternion), in the body's axes: of the base, and of the body."""
    parent = (joint.parent_point - center_of_mass(mechanism, joint.parent), jnp.asarray(joint.parent_rotation))
    child = (joint.child_point - center_of_mass(mechanism, joint.child), jnp.asarray(joint.child_rotation))
    return (parent, child) if forward else (child, parent)


def motions(tree: Tree, mechanism: Mechanism, pose: Pose) -> Pose:
    """Motions of bodies at given poses; what the joints do not allow is left out."""
    whole, _ = with_world(pose, jnp.zeros((len(tree.links), 6)))
    listed = [Pose(jnp.zeros(3), jnp.zeros(4))] * len(tree.links)
    for link in tree.links:
        if link.joint is None:
            listed[link.body] = whole[link.body]
            continue
        joint = mechanism.joints.values[link.joint]
        parent, child = (link.base, link.body) if link.forward else (link.body, link.base)
        (point_a, frame_a), (point_b, frame_b) = _sides(mechanism, joint, True)
        a = whole.position[parent] + rotations.rotate(whole.orientation[parent], point_a)
        b = whole.position[child] + rotations.rotate(whole.orientation[child], point_b)
        turn = rotations.conjugate(rotations.multiply(whole.orientation[parent], frame_a))
        relative = rotations.multiply(turn, rotations.multiply(whole.orientation[child], frame_b))
        listed[link.body] = Pose(rotations.rotate(turn, b - a), relative)
    stacked = Pose(jnp.stack([f.position for f in listed]), jnp.stack([f.orientation for f in listed]))
    clean = {link.body: free_part(link, stacked) for link in tree.links}
    return Pose(
        jnp.stack([clean[i].position for i in range(len(clean))]),
        rotations.normalise(jnp.stack([clean[i].orientation for i in range(len(clean))])),
    )
