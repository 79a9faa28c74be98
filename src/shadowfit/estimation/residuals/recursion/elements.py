"""What a tree of rigid joints is made of, one link at a time: where it goes, what its body misses, what its axis gives.

A link is a small mechanism of its own: a body, the body that it hangs on (none if that is the world), and the joint
between them. Each function here is traced and compiled once for all links of a kind, and run over time for each of
them (:mod:`rows`); :mod:`sweep` puts them together. Poses are those of the bodies' frames, twists and
wrenches are about the world's origin: ``(v, ω)`` and ``(f, n)``.

Derivatives are by forward mode on these small functions (:func:`shadowfit.kernels.slopes`), so that a new joint type,
law or kind of friction needs none of its own. Where none are wanted (:attr:`Kind.slopes`) what is given is the value
alone, and a small part of the code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import balance, body_forces, rows
from shadowfit.dynamics.elements import Elements, assemble
from shadowfit.dynamics.state import Moving
from shadowfit.dynamics.tree import Link, free_part, hang_on, twist
from shadowfit.geometry import Pose, rotations
from shadowfit.kernels import slopes
from shadowfit.lazy_jax import jax, jnp
from shadowfit.mechanism.leaves import Parts, read
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.records import record
from shadowfit.trees import unflatten

Arrays = list[Any]
BODY, BASE = 0, 1
"""Places of the two bodies in a link's own mechanism; without the second, that is the world's."""
TIMES = 3
_WORLD = Pose(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))


@record(frozen=True)
class Kind:
    """What the code for a link depends on, besides numbers."""

    structure: Any
    """Of the link's own mechanism."""
    link: Link
    """How its body hangs on the other one."""
    free: tuple[str, ...]
    """Names of those of its numbers that are parameters, for any link of this kind."""
    rubs: bool
    """Whether any joint of the machine has dry friction, whose regularisation needs inertias of all."""
    slopes: bool = True
    """Whether derivatives are wanted."""

    @property
    def grounded(self) -> bool:
        """Whether it hangs on the world."""
        return len(self.blank.bodies) == 1

    @property
    def blank(self) -> Mechanism:
        """The link's mechanism without numbers."""
        return unflatten(self.structure, [None] * self.structure.size)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Increments of each free number: three for a rotation."""
        known = self.blank.leaves()
        return tuple(3 if known[name].kind == "rotation" else 1 for name in self.free)

    def written(self, numbers: Arrays, increments: Array) -> Mechanism:
        """The link's mechanism at its numbers plus increments of the free ones."""
        plain = unflatten(self.structure, numbers)
        known, values, start = plain.leaves(), {}, 0
        for name, size in zip(self.free, self.sizes, strict=True):
            now, step = read(plain, known[name]), increments[start : start + size]
            values[name] = rotations.plus_local(now, step) if size == 3 else now + step[0]
            start += size
        return plain.write(values)


def _differentiated(kind: Kind, function: Callable[[Array], Array], size: int) -> tuple[Array, Array]:
    """Value and derivatives of a function of increments at zero; of none of them where no derivatives are wanted."""
    if kind.slopes:
        return slopes(function, jnp.zeros(size))
    value = function(jnp.zeros(size))
    return value, jnp.zeros((*value.shape, 0))


def _as_pose(numbers: Float[Array, "7"]) -> Pose:
    return Pose(numbers[:3], numbers[3:])


def _moved(frame: Pose, motion: Float[Array, "6"]) -> Pose:
    """A frame moved by a small twist about the world's origin."""
    shift = motion[:3] + jnp.cross(motion[3:], frame.position)
    return Pose(frame.position + shift, rotations.plus(frame.orientation, motion[3:]))


def _at_center(mechanism: Mechanism, body: int, frame: Pose) -> Pose:
    """The pose of a body's centre of mass."""
    com = jnp.asarray(mechanism.bodies.values[body].com)
    return Pose(frame.position + rotations.rotate(frame.orientation, com), frame.orientation)


def _hung(kind: Kind, mechanism: Mechanism, base: Pose, motion: Pose, step: Array) -> tuple[Pose, list[Array]]:
    """Frame of the link's body, and the twists of its coordinates, at a motion plus a step of the coordinates."""
    along = jnp.zeros(6)
    if kind.link.freedom:
        along = along.at[np.array(kind.link.freedom)].set(step)
    free_motion = free_part(kind.link, _one(motion.plus(along)))
    if kind.link.joint is None:
        # The motion of a floating body is that of its centre of mass.
        center = jnp.asarray(mechanism.bodies.values[BODY].com)
        placed = hang_on(mechanism, kind.link, free_motion, base)
        frame = Pose(placed.pose.position - rotations.rotate(placed.pose.orientation, center), placed.pose.orientation)
    else:
        # Without centres of mass poses are those of the frames.
        bodies = Parts({name: body.having(com=np.zeros(3)) for name, body in mechanism.bodies.items()})
        placed = hang_on(mechanism.having(bodies=bodies), kind.link, free_motion, base)
        frame = placed.pose
    return frame, [twist(direction, placed) for direction in kind.link.freedom]


def _one(pose: Pose) -> Pose:
    return Pose(pose.position[None], pose.orientation[None])


def place_link(kind: Kind, numbers: Arrays, base: Float[Array, "7"], motion: Float[Array, "7"]) -> Float[Array, "x"]:
    """``[frame | S of the k coordinates | S of the g free numbers | changes of the former by k + g | shaft inertia]``.

    Free numbers of a link's geometry move all that hangs on it, as coordinates do. ``[frame | S of the coordinates |
    shaft inertia]`` where no derivatives are wanted.
    """
    freedom, free = len(kind.link.freedom), sum(kind.sizes)
    at = _WORLD if kind.grounded else _as_pose(base)
    start, _ = _hung(kind, _plain(kind, numbers), at, _as_pose(motion), jnp.zeros(freedom))
    straight = jax.lax.stop_gradient(rotations.conjugate(start.orientation))

    def moving(increments: Array) -> Array:
        frame, twists = _hung(
            kind, kind.written(numbers, increments[freedom:]), at, _as_pose(motion), increments[:freedom]
        )
        turn = 2.0 * rotations.multiply(frame.orientation, straight)[1:]
        return jnp.concatenate([frame.position, turn, *twists])

    value, table = _differentiated(kind, moving, freedom + free)
    if not kind.slopes:
        return jnp.concatenate([value[:3], start.orientation, value[6:], _shaft(kind, numbers)])
    by_free = table[:6, freedom:]
    places = jnp.concatenate([by_free[:3] - jnp.cross(by_free[3:], value[:3, None], axis=0), by_free[3:]])
    changes = jnp.swapaxes(table[6:].reshape(freedom, 6, freedom + free), 1, 2)
    shaft = _shaft(kind, numbers)
    return jnp.concatenate([value[:3], start.orientation, value[6:], places.T.ravel(), changes.ravel(), shaft])


def _plain(kind: Kind, numbers: Arrays) -> Mechanism:
    return unflatten(kind.structure, numbers)


def _shaft(kind: Kind, numbers: Arrays) -> Float[Array, "1"]:
    if kind.link.joint is None or not _plain(kind, numbers).joints.values[0].kind.axis_kind:
        return jnp.zeros(1)
    (group,) = assemble(_plain(kind, numbers)).groups
    return rows.axis_inertia(group)


def body_wrench(
    kind: Kind, numbers: Arrays, timestep: Array, frames: Float[Array, "3 7"], command: Float[Array, "inputs"]
) -> Float[Array, "x"]:
    """``[F | ∂F/∂(twists at three times, free numbers, inputs) | inertia]`` of a body, the wrench that it misses."""
    free, inputs = sum(kind.sizes), command.shape[0]

    def missing(increments: Array) -> Array:
        mechanism = kind.written(numbers, increments[6 * TIMES : 6 * TIMES + free])
        poses = [
            _at_center(mechanism, BODY, _moved(_as_pose(frames[t]), increments[6 * t : 6 * t + 6]))
            for t in range(TIMES)
        ]
        before, now, after = map(_one, poses)
        driving = command + increments[6 * TIMES + free :]
        step = Moving(now, now.minus(before) / timestep, after.minus(now) / timestep, driving, timestep)
        wrench = balance.bodies_balance(assemble(mechanism), step, "exact")[0]
        return jnp.concatenate([wrench[:3], wrench[3:] + jnp.cross(now.position[0], wrench[:3])])

    value, table = _differentiated(kind, missing, 6 * TIMES + free + inputs)
    inertia = _inertia(kind, numbers, _as_pose(frames[1])) if kind.rubs else jnp.zeros((0,))
    return jnp.concatenate([value, table.ravel(), inertia])


def _inertia(kind: Kind, numbers: Arrays, frame: Pose) -> Float[Array, "36"]:
    """Spatial inertia of a body about the world's origin."""
    mechanism = _plain(kind, numbers)
    elements, pose = assemble(mechanism), _at_center(mechanism, BODY, frame)
    lever = rotations.cross_matrix(pose.position)
    mass = elements.bodies.mass[0]
    turning = body_forces.world_inertia(elements, _one(pose))[0] - mass * lever @ lever
    return jnp.block([[mass * jnp.eye(3), -mass * lever], [mass * lever, turning]]).ravel()


def axis_impulse(
    kind: Kind,
    numbers: Arrays,
    timestep: Array,
    bases: Float[Array, "3 7"],
    motions: Float[Array, "3 7"],
    command: Float[Array, "inputs"],
    carried: Float[Array, "7"],
) -> Float[Array, "x"]:
    """``[l | ∂l/∂(common twists, coordinates, wrench, free numbers, inputs)]`` of laws and dry friction along an axis.

    ``carried`` are the wrench that the joint carries, and the width of its friction. Common twists of both bodies, at
    three times, are left out where the base is the world, and the wrench where there is no dry friction. Without
    derivatives it is ``[l | L]``, with friction's limit.
    """
    freedom, free = len(kind.link.freedom), sum(kind.sizes)
    common = 0 if kind.grounded else 6 * TIMES
    load = 6 if rubs(kind) else 0
    ends = np.cumsum([common, TIMES * freedom, load, free])

    def along(increments: Array) -> tuple[Array, Array]:
        together, motion_steps, wrench, change, drive = jnp.split(increments, ends)
        mechanism = kind.written(numbers, change)
        poses = []
        for t in range(TIMES):
            base = _WORLD if kind.grounded else _moved(_as_pose(bases[t]), together[6 * t : 6 * t + 6])
            step = motion_steps[freedom * t : freedom * (t + 1)]
            frame, _ = _hung(kind, mechanism, base, _as_pose(motions[t]), step)
            both = [_at_center(mechanism, BODY, frame)]
            both += [] if kind.grounded else [_at_center(mechanism, BASE, base)]
            poses.append(Pose(jnp.stack([p.position for p in both]), jnp.stack([p.orientation for p in both])))
        acting = carried[:6] + wrench if load else carried[:6]
        rubbing = balance.Turning(None, carried[6:])
        sign = np.array([1.0 if kind.link.forward else -1.0])
        return _impulse(assemble(mechanism), poses, acting, sign, rubbing, command + drive, timestep)

    size = int(ends[-1]) + command.shape[0]
    if not kind.slopes:
        return jnp.concatenate(along(jnp.zeros(size)))
    value, table = slopes(lambda increments: along(increments)[0], jnp.zeros(size))
    return jnp.concatenate([value, table.ravel()])


def rubs(kind: Kind) -> bool:
    """Whether a link's own joint has dry friction."""
    return kind.blank.joints.values[0].friction is not None


def _impulse(
    elements: Elements,
    poses: list[Pose],
    wrench: Array,
    sign: np.ndarray,
    rubbing: balance.Turning,
    command: Array,
    timestep: Array,
) -> tuple[Float[Array, "1"], Float[Array, "1"]]:
    """l between three configurations of a link's bodies, and the largest impulse of dry friction."""
    before, now, after = poses
    (group,) = elements.groups
    step = Moving(now, now.minus(before) / timestep, after.minus(now) / timestep, command, timestep).with_world()
    axis = balance.axis_motion(group, rows.geometry(group, step.pose), step)
    rubs = group.friction is not None
    loads = rows.load_rows(group, step.pose, sign) @ wrench if rubs else jnp.zeros((1, group.gap_rows))
    found = balance.axis_impulse(group, axis, loads, rubbing, command, timestep)
    return found.laws + found.dry, found.limit
