"""The momentum balance of a time step as a sum over elements: joints, type by type, and bodies.

For a transition from ``(q, v)`` to the velocity ``v'`` the impulse that is missing is

    F(q, v, v') = M (v' − v) − h (f + f_g) − Σ_joints [Gᵀ λ + Ḡᵀ l],

zero exactly where the stepper would go. With ``Σ > 0`` the gap multipliers λ and the impulse l along the free axis
(laws and dry friction) are closed functions of ``v'``: the paper's inverse dynamics. Both depend on the bodies only
through a few scalars of the joint, which :class:`JointPoint` holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import body_forces, exact, rows, sliding, spook
from shadowfit.dynamics.discretization import SCHEMES
from shadowfit.dynamics.elements import Elements, JointGroup
from shadowfit.dynamics.state import Moving, with_world
from shadowfit.geometry import Pose, rotations
from shadowfit.lazy_jax import jax, jnp
from shadowfit.pytrees import PyTree

Geometries = tuple[rows.Geometry, rows.Geometry | None]
"""Of a group's joints, now and before (:func:`start_geometry`)."""


class AxisMotion(NamedTuple):
    """Positions [rad, m] and speeds of the joints' free axes, at the start and at the end of a step."""

    position: Float[Array, "n"]
    speed: Float[Array, "n"]
    new_speed: Float[Array, "n"]


class JointPoint(PyTree):
    """Joints of a group at ``(q, v, v')``: geometry, and the scalars that their impulses depend on.

    ``before`` and ``after`` are the geometries at ``q ⊟ h v`` and ``q ⊞ h v'``, which the exact discretisation uses;
    SPOOK uses ``closing = G v`` and ``new_closing = G v'``.
    """

    geometry: rows.Geometry
    before: rows.Geometry | None
    after: rows.Geometry | None
    closing: Float[Array, "n m"]
    new_closing: Float[Array, "n m"]
    speed: Float[Array, "n"]
    new_speed: Float[Array, "n"]

    @property
    def axis(self) -> AxisMotion:
        """The motion of the free axes."""
        return AxisMotion(self.geometry.position, self.speed, self.new_speed)


class Sticking(PyTree):
    """The stepper's dry friction, ``λ_t = −clip(Ḡ v'/Σ_t, ± L)``: its direction is that of the end of the step."""

    sigma: Float[Array, "n"]
    """Σ_t."""
    slip: Float[Array, "n"] | None = None
    """A fixed branch instead: +1 or −1 slides in that direction, 0 sticks."""


class Turning(PyTree):
    """Dry friction whose direction is a mean over the step (:mod:`sliding`)."""

    mobility: Float[Array, "n"] | None
    """Change of an axis' speed by an impulse along it, in the mechanism, from which the width follows."""
    held: Float[Array, "n"] | None = None
    """The width itself [rad/s, m/s], whatever the mobility and friction are."""

    def width(
        self, stick_time: Float[Array, "n"], limit: Float[Array, "n"], timestep: Float[Array, ""]
    ) -> Float[Array, "n"]:
        """w of friction of a largest impulse L [N m s, N s]."""
        if self.held is not None:
            return self.held
        assert self.mobility is not None
        return sliding.stick_width(stick_time, self.mobility * limit, timestep)

    def part(self, places: np.ndarray) -> Turning:
        """Some of the axes."""
        mobility, held = (None if x is None else x[places] for x in (self.mobility, self.held))
        return Turning(mobility, held)


Rubbing = Sticking | Turning


def joint_point(
    group: JointGroup,
    whole: Moving,
    discretization: str,
    known: Geometries | None = None,
) -> JointPoint:
    """Evaluate the joints of a group; the step includes the world.

    ``known`` are the geometries now and before (:func:`start_geometry`), which do not depend on the new velocity.
    """
    geometry, before = known or start_geometry(group, whole, discretization)
    after = None if before is None else rows.geometry(group, whole.pose.plus(whole.timestep * whole.new_velocity))
    return JointPoint(
        geometry,
        before,
        after,
        rows.apply(geometry.gap_a, geometry.gap_b, group, whole.velocity),
        rows.apply(geometry.gap_a, geometry.gap_b, group, whole.new_velocity),
        rows.apply(geometry.axis_a, geometry.axis_b, group, whole.velocity),
        rows.apply(geometry.axis_a, geometry.axis_b, group, whole.new_velocity),
    )


def start_geometry(group: JointGroup, whole: Moving, discretization: str) -> Geometries:
    """Geometry of a group's joints at ``q`` and, for the exact discretisation, at ``q ⊟ h v``."""
    now = rows.geometry(group, whole.pose)
    if SCHEMES[discretization].affine:
        return now, None
    return now, rows.geometry(group, whole.pose.plus(-whole.timestep * whole.velocity))


def load(group: JointGroup, point: JointPoint, timestep: Float[Array, ""]) -> Float[Array, "n m"]:
    """Gap multipliers ``λ = −defect/Σ`` [N s, N m s]."""
    relaxed = rows.relaxation(group, timestep)
    if point.before is None or point.after is None:
        defect = point.new_closing + relaxed.upsilon * (4.0 / timestep * point.geometry.gap - point.closing)
    else:
        defect = exact.gap_defect(relaxed, point.geometry.gap, point.before.gap, point.after.gap, timestep)
    return -defect / relaxed.sigma


def law_impulse(
    group: JointGroup,
    axis: AxisMotion,
    command: Float[Array, "inputs"],
    timestep: Float[Array, ""],
    discretization: str,
) -> Float[Array, "n"]:
    """Impulse of viscous friction and all laws along the free axes."""
    if not group.has_axis:
        return jnp.zeros(group.size)
    position, speed, new_speed = axis
    if SCHEMES[discretization].affine:
        stiffness, push = spook.axis_impulse(group, position, speed, command, timestep)
        return push - stiffness * new_speed
    return exact.axis_impulse(group, position, speed, new_speed, command, timestep)


def friction_impulse(
    group: JointGroup,
    axis: AxisMotion,
    loads: Float[Array, "n m"],
    rubbing: Rubbing,
    command: Float[Array, "inputs"],
    timestep: Float[Array, ""],
) -> Float[Array, "n"]:
    """Dry friction of a largest impulse ``Σ U |λ| + h·level``, as ``rubbing`` says."""
    return dry_friction(group, axis, friction_limit(group, axis, loads, command, timestep), rubbing, timestep)


def dry_friction(
    group: JointGroup, axis: AxisMotion, limit: Float[Array, "n"], rubbing: Rubbing, timestep: Float[Array, ""]
) -> Float[Array, "n"]:
    """Dry friction of a largest impulse L."""
    if group.friction is None:
        return jnp.zeros(group.size)
    _, speed, new_speed = axis
    if isinstance(rubbing, Turning):
        width = rubbing.width(group.friction.stick_time, limit, timestep)
        return -limit * sliding.mean_direction(speed, new_speed, width)
    stuck = -new_speed / rubbing.sigma
    if rubbing.slip is None:
        return jnp.clip(stuck, -limit, limit)
    return jnp.where(rubbing.slip == 0.0, stuck, -rubbing.slip * limit)


def friction_limit(
    group: JointGroup,
    axis: AxisMotion,
    loads: Float[Array, "n l"],
    command: Float[Array, "inputs"],
    timestep: Float[Array, ""],
) -> Float[Array, "n"]:
    """Largest impulse of dry friction, ``L = Σ U |λ| + h·level``; zero without any.

    Loads are impulses along the m gap rows and, in trees, one more along the axis.
    """
    if group.friction is None:
        return jnp.zeros(group.size)
    position, speed, _ = axis
    across, along = loads[:, : group.gap_rows], loads[:, group.gap_rows :]
    passed = along[:, 0] / timestep if along.shape[1] else None
    weights, level = rows.friction_limits(group, position, speed, command, passed)
    return jnp.sum(weights * jnp.abs(across), axis=1) + timestep * level


class AxisImpulse(NamedTuple):
    """Impulses along the free axes of rigid joints [N m s, N s]."""

    laws: Float[Array, "n"]
    dry: Float[Array, "n"]
    limit: Float[Array, "n"]
    """Largest dry friction, L."""


def axis_motion(group: JointGroup, geometry: rows.Geometry, whole: Moving) -> AxisMotion:
    """Free axes in a step that includes the world."""
    speeds = (rows.apply(geometry.axis_a, geometry.axis_b, group, v) for v in (whole.velocity, whole.new_velocity))
    return AxisMotion(geometry.position, *speeds)


def axis_impulse(
    group: JointGroup,
    axis: AxisMotion,
    loads: Float[Array, "n l"],
    rubbing: Rubbing,
    command: Float[Array, "inputs"],
    timestep: Float[Array, ""],
) -> AxisImpulse:
    """Laws and dry friction of joints that transmit ``loads`` as in :func:`friction_limit`."""
    limit = friction_limit(group, axis, loads, command, timestep)
    laws = law_impulse(group, axis, command, timestep, "exact")
    return AxisImpulse(laws, dry_friction(group, axis, limit, rubbing, timestep), limit)


def joint_impulse(
    loads: Float[Array, "n m"], along: Float[Array, "n"], geometry: rows.Geometry
) -> Float[Array, "n 2 6"]:
    """``Gᵀ λ + Ḡᵀ l`` on the two bodies of each joint."""
    on_a = jnp.einsum("nm,nmi->ni", loads, geometry.gap_a) + along[:, None] * geometry.axis_a
    on_b = jnp.einsum("nm,nmi->ni", loads, geometry.gap_b) + along[:, None] * geometry.axis_b
    return jnp.stack([on_a, on_b], axis=1)


def bodies_balance(elements: Elements, step: Moving, discretization: str) -> Float[Array, "bodies 6"]:
    """The bodies' part of F, ``M (v' − v) − h (f + f_g)``.

    The gyroscopic torque is taken at the start (SPOOK) or at the middle of the step.
    """
    old_share, new_share = SCHEMES[discretization].gyroscopic
    gravity, timestep = elements.gravity, step.timestep

    def one(
        mass: Array, inertia: Array, applied: Array, orientation: Array, velocity: Array, new_velocity: Array
    ) -> Float[Array, "6"]:
        turn = rotations.matrix(orientation)
        world_inertia = turn @ inertia @ turn.T
        change = new_velocity - velocity
        spin = old_share * velocity[3:] + new_share * new_velocity[3:]
        gyroscopic = -jnp.cross(spin, world_inertia @ spin)
        linear = mass * change[:3] - timestep * (mass * gravity + applied[:3])
        angular = world_inertia @ change[3:] - timestep * (gyroscopic + applied[3:])
        return jnp.concatenate([linear, angular])

    applied = body_forces.applied_wrench(elements, step.pose, step.command)
    bodies, states = elements.bodies, (step.pose.orientation, step.velocity, step.new_velocity)
    return jax.vmap(one)(bodies.mass, bodies.inertia, applied, *states)


def stick_sigmas(elements: Elements, pose: Pose, timestep: Float[Array, ""]) -> tuple[Float[Array, "n"], ...]:
    """``Σ_t`` of each group's joints (ones where a group has no dry friction)."""
    whole, _ = with_world(pose, jnp.zeros((elements.body_count, 6)))
    inverse_mass = body_forces.inverse_mass(elements, pose)
    sigmas = []
    for group in elements.groups:
        if group.friction is None:
            sigmas.append(jnp.ones(group.size))
            continue
        mobility = spook.tangent_mobility(group, rows.geometry(group, whole), inverse_mass)
        sigmas.append(group.friction.stick_time / timestep * mobility)
    return tuple(sigmas)


def on_bodies(elements: Elements, group: JointGroup, impulse: Float[Array, "n 2 6"]) -> Float[Array, "bodies 6"]:
    """Impulses on the two bodies of each joint, summed for each body."""
    sides = np.stack([group.a.bodies, group.b.bodies], axis=1)
    return jnp.zeros((elements.body_count + 1, 6)).at[sides].add(impulse)[:-1]


class Missing(NamedTuple):
    """What a step misses, without contacts."""

    impulse: Float[Array, "bodies 6"]
    """F [N s, N m s]."""
    loads: list[Float[Array, "n m"]]
    """Gap multipliers λ of each group's joints."""


def missing(
    elements: Elements,
    step: Moving,
    discretization: str,
    rubbing: Sequence[Rubbing | None],
    known: Sequence[Float[Array, "n m"] | None] | None = None,
    start: Sequence[Geometries] | None = None,
) -> Missing:
    """``F(q, v, v')`` of all bodies; ``rubbing`` says how dry friction acts in each group, None: it is left out.

    ``known`` multipliers, those of a group or None, change as those of the gaps' defect do. ``start`` are the groups'
    geometries where the caller has them.
    """
    whole, command, timestep = step.with_world(), step.command, step.timestep
    balance, transmitted = bodies_balance(elements, step, discretization), []
    for place, (group, acting) in enumerate(zip(elements.groups, rubbing, strict=True)):
        point = joint_point(group, whole, discretization, None if start is None else start[place])
        loads = load(group, point, timestep)
        given = None if known is None else known[place]
        if given is not None:
            loads = given + (loads - jax.lax.stop_gradient(loads))
        along = law_impulse(group, point.axis, command, timestep, discretization)
        if acting is not None:
            along = along + friction_impulse(group, point.axis, loads, acting, command, timestep)
        balance = balance - on_bodies(elements, group, joint_impulse(loads, along, point.geometry))
        transmitted.append(loads)
    return Missing(balance, transmitted)


def missing_impulse(elements: Elements, step: Moving, discretization: str) -> Float[Array, "bodies 6"]:
    """``F(q, v, v')`` [N s, N m s] of all bodies with the stepper's friction, without contacts."""
    sticking = [Sticking(sigma) for sigma in stick_sigmas(elements, step.pose, step.timestep)]
    return missing(elements, step, discretization, sticking).impulse
