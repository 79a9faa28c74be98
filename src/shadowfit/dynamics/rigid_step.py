"""One step of a tree of rigid joints, in joint coordinates.

The step from ``q_k`` looks for the increment δ of the joints' motions, ``q_{k+1} = q_k ⊞ δ``, that leaves no impulse
missing along any coordinate,

    τ(δ) = Tᵀ F − l = 0,     F = M (v' − v) − h (f + f_g),     v' = (q_{k+1} ⊟ q_k)/h,

T, M and the directions of all impulses at ``q_k``: the `exact` discretisation in the limit of vanishing compliances,
and the equations that fits in joint coordinates solve. l are the impulses of laws and dry friction along the axes.

Both sides of Newton's equation ``(∂τ/∂δ) Δ = −τ`` are sums over all that hangs on a joint, gathered inwards along the
tree: ``τ_j = s_jᵀ Σ W_b``, with W_b the impulse missing at a body as a wrench about the world's origin, s_j the twist
of coordinate j; and ``∂τ_j/∂δ_i = s_jᵀ (Σ C_b) s̃_i / h``, with s̃ the twists at ``q_{k+1}`` and C_b how the wrench
depends on them (:mod:`composites`). Coordinates on different branches do not meet; eliminated from the leaves inwards,
the matrix stays as sparse as it is.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from shadowfit.complementarity.small_solve import small_solve
from shadowfit.dynamics import balance, exact
from shadowfit.dynamics.axis_impulses import AxisImpulses, axis_impulses
from shadowfit.dynamics.composites import (
    about_origin,
    column,
    composites_of,
    coordinate_bodies,
    dot,
    hanging,
    held_by,
    row,
)
from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.tree import Hung, Link, Tree, hang, motions
from shadowfit.geometry import Pose, rotations
from shadowfit.mechanism.mechanism import Mechanism

MAX_ROUNDS = 30
# Newton stops when the next change of the speeds is expected below this, relative to their size (plus 1 m/s or rad/s).
TOLERANCE = 1e-12
# How much larger the next change is taken than the last ones let expect.
CAUTION = 4.0
# Curvature before it has been seen: the first step takes more than one round.
UNSEEN = 1e30
# Speeds are differences of positions, whose rounding errors [relative] they inherit over the time-step.
ROUNDING = 16.0 * float(np.finfo(float).eps)


class Carried(NamedTuple):
    """What a step hands on to the next one."""

    motion: Pose
    """Of all bodies, a step ago."""
    last: Float[Array, "d"]
    """Increment that led from there to the present."""
    earlier: Float[Array, "d"]
    """The increment before that."""
    pose: Pose
    """Of all bodies, a step ago."""
    curvature: Float[Array, ""]
    """Change of a round over the square of the last one's, where it was seen [s]."""
    status: Float[Array, ""]


class Trial(NamedTuple):
    """Where Newton's iteration is."""

    increment: Float[Array, "d"]
    change: Float[Array, ""]
    """Of the last round [1/s]."""
    rounds: Float[Array, ""]


class Found(NamedTuple):
    """The present state, and the increment to the next one."""

    position: Float[Array, "bodies 3"]
    orientation: Float[Array, "bodies 4"]
    velocity: Float[Array, "bodies 6"]
    increment: Float[Array, "d"]
    status: Float[Array, ""]


def step(
    tree: Tree,
    mechanism: Mechanism,
    timestep: Float[Array, ""],
    carried: Carried,
    trial: Trial,
    command: Float[Array, "inputs"],
) -> tuple[Carried, Trial, Float[Array, ""], Found]:
    """One round of Newton's iteration: what the next step starts from, the next round, whether it is needed, the state.

    A step that does not settle turns the status to `exact.NewtonStatus.NOT_SETTLED`, from there on.
    """
    motion = moved(tree, carried.motion, carried.last)
    now = hang(tree, mechanism, motion)
    velocity = now.pose.minus(carried.pose) / timestep
    after = hang(tree, mechanism, moved(tree, motion, trial.increment))
    new_velocity = after.pose.minus(now.pose) / timestep
    elements = assemble(mechanism)
    missing = balance.bodies_balance(elements, now.pose, velocity, new_velocity, command, timestep, "exact")
    wrenches = hanging(tree, about_origin(missing, now.pose.position))
    along = axis_impulses(tree, elements, now, wrenches, (velocity, new_velocity), command, timestep)
    twists = _turned(tree, after.twists, trial.increment)
    composites = hanging(tree, composites_of(elements, now.pose, after.pose, velocity, new_velocity, timestep))
    matrix = _matrix(tree, now, twists, composites, along, _velocity_maps(after.pose, new_velocity, timestep))
    impulse = [dot(s, wrenches[b]) for s, b in zip(now.twists, coordinate_bodies(tree), strict=True)]
    right = jnp.stack(impulse) - along.impulse if impulse else along.impulse
    # From the leaves inwards: eliminating a coordinate then fills nothing in.
    change = small_solve(matrix[::-1, ::-1], -timestep * right[::-1, None])[::-1, 0]
    increment = trial.increment + change
    size = jnp.max(jnp.abs(jnp.append(change, 0.0))) / timestep
    fast = 1.0 + jnp.max(jnp.abs(jnp.append(increment, 0.0))) / timestep
    floor = TOLERANCE * fast + ROUNDING * jnp.max(jnp.abs(after.pose.position)) / timestep
    # The rounds converge quadratically: the next change follows from this one and the curvature, which a step whose
    # guess is good takes from the steps before it.
    first = trial.rounds == 0.0
    curvature = jnp.where(first, carried.curvature, size / trial.change**2)
    expected = CAUTION * curvature * size**2
    # Forgotten by halves: what a single round lets see may be small by chance.
    before = jnp.where(carried.curvature < UNSEEN, 0.5 * carried.curvature, 0.0)
    remembered = jnp.where(first, curvature, jnp.maximum(curvature, before))
    settled = expected <= floor
    failed = ~settled & ((trial.rounds + 1.0 >= MAX_ROUNDS) | ~jnp.isfinite(size))
    status = jnp.where(failed, float(exact.NewtonStatus.NOT_SETTLED), 0.0)
    status = jnp.where(carried.status == 0.0, status, carried.status)
    again = ~settled & (status == 0.0)
    following = jnp.where(again, increment, 3.0 * (increment - carried.last) + carried.earlier)
    return (
        Carried(motion, increment, carried.last, now.pose, remembered, status),
        Trial(following, jnp.where(again, size, 0.0), jnp.where(again, trial.rounds + 1.0, 0.0)),
        jnp.where(again, 1.0, 0.0),
        Found(now.pose.position, now.pose.orientation, velocity, increment, status),
    )


def multipliers(
    tree: Tree,
    mechanism: Mechanism,
    pose: Pose,
    velocities: tuple[Float[Array, "bodies 6"], Float[Array, "bodies 6"]],
    command: Float[Array, "inputs"],
    timestep: Float[Array, ""],
) -> list[Float[Array, "n r"]]:
    """Impulses of a step from a pose, between given velocities, as `AxisImpulses.by_group`."""
    elements = assemble(mechanism)
    now = hang(tree, mechanism, motions(tree, mechanism, pose))
    missing = balance.bodies_balance(elements, pose, *velocities, command, timestep, "exact")
    wrenches = hanging(tree, about_origin(missing, pose.position))
    return axis_impulses(tree, elements, now, wrenches, velocities, command, timestep).by_group


def moved(tree: Tree, motion: Pose, increment: Float[Array, "d"]) -> Pose:
    """Motions ``⊞`` increments of the coordinates."""
    positions, orientations = list(motion.position), list(motion.orientation)
    start = 0
    for link in tree.links:
        own = dict(zip(link.freedom, increment[start : start + len(link.freedom)], strict=True))
        start += len(link.freedom)
        shift = [own.get(i, jnp.zeros(())) for i in range(3)]
        positions[link.body] = motion.position[link.body] + jnp.stack(shift)
        turning = _turning(link)
        if len(turning) == 1:
            # About one axis half the angle is all there is to a quaternion.
            half = 0.5 * own[turning[0]]
            vector = [jnp.sin(half) if 3 + i == turning[0] else jnp.zeros(()) for i in range(3)]
            turn = jnp.stack([jnp.cos(half), *vector])
        elif turning:
            turn = rotations.exp(_rotation(own))
        else:
            continue
        orientations[link.body] = rotations.normalise(rotations.multiply(turn, motion.orientation[link.body]))
    return Pose(jnp.stack(positions), jnp.stack(orientations))


def _turning(link: Link) -> list[int]:
    return [i for i in link.freedom if i >= 3]


def _rotation(own: dict[int, Array]) -> Float[Array, "3"]:
    return jnp.stack([own.get(i, jnp.zeros(())) for i in (3, 4, 5)])


def _turned(tree: Tree, twists: tuple[Array, ...], increment: Float[Array, "d"]) -> list[Float[Array, "6"]]:
    """Twists at ``q ⊞ δ`` by changes of δ; the left Jacobian of a rotation vector leads from these to changes there."""
    found: list[Array] = []
    for link in tree.links:
        start = len(found)
        count = len(link.freedom)
        turning = [start + k for k, i in enumerate(link.freedom) if i >= 3]
        own = list(twists[start : start + count])
        if len(turning) > 1:
            vector = _rotation(dict(zip(link.freedom, increment[start : start + count], strict=True)))
            jacobian = rotations.left_jacobian(vector)
            axes = [i - 3 for i in link.freedom if i >= 3]
            for place, axis in zip(turning, axes, strict=True):
                parts = [jacobian[other, axis] * twists[at] for at, other in zip(turning, axes, strict=True)]
                own[place - start] = jnp.sum(jnp.stack(parts), axis=0)
        found += own
    return found


class _Maps(NamedTuple):
    """How the new velocities depend on twists about the origin: ``v = s + ω × x``, ``ω' = J⁻¹ ω``."""

    position: Float[Array, "bodies 3"]
    turning: Float[Array, "bodies 3 3"]

    def row(self, body: int, given: Float[Array, "6"]) -> Float[Array, "6"]:
        """A row for the velocity of a body as a row for twists."""
        linear, angular = given[:3], given[3:]
        return jnp.concatenate([linear, jnp.cross(self.position[body], linear) + self.turning[body].T @ angular])


def _velocity_maps(after: Pose, new_velocity: Array, timestep: Array) -> _Maps:
    return _Maps(after.position, rotations.left_jacobian_inverse(timestep * new_velocity[:, 3:]))


def _matrix(
    tree: Tree,
    now: Hung,
    twists: list[Float[Array, "6"]],
    composites: list[Float[Array, "16"]],
    along: AxisImpulses,
    maps: _Maps,
) -> Float[Array, "d d"]:
    """``h ∂τ/∂δ``."""
    bodies, above = coordinate_bodies(tree), held_by(tree)
    size = len(bodies)
    entries = [[jnp.zeros(())] * size for _ in range(size)]
    columns = [column(composites[b], s) for b, s in zip(bodies, twists, strict=True)]
    for j in range(size):
        left = now.twists[j] - along.by_wrench[j]
        along_row = row(left, composites[bodies[j]])
        for i in range(size):
            if bodies[j] in above[bodies[i]]:
                entries[j][i] = dot(left, columns[i])
            elif bodies[i] in above[bodies[j]]:
                entries[j][i] = dot(along_row, twists[i])
    for j, sides in enumerate(along.axes):
        for body, axis in sides:
            speed = along.slope[j] * maps.row(body, axis)
            for i in range(size):
                if bodies[i] in above[body]:
                    entries[j][i] = entries[j][i] - dot(speed, twists[i])
    return jnp.stack([jnp.stack(entry) for entry in entries]) if size else jnp.zeros((0, 0))
