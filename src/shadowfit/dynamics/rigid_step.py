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
the matrix stays as sparse as it is. Joints that close loops add impulses, which act on their bodies like any force, and
the condition that their gaps are zero at ``q_{k+1}``, or give as compliant ones do (:mod:`loop_step`). Contacts and end
stops add impulses that are piecewise linear in the new velocities (:mod:`joint_contacts`): every round finds out which
points touch and slide, and the step ends where they do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.complementarity.small_solve import small_solve
from shadowfit.dynamics import balance, exact, joint_contacts, loop_step, loops, rows, shafts, sliding
from shadowfit.dynamics.axis_impulses import AxisImpulses, axis_impulses, inverse_of, mass_of
from shadowfit.dynamics.composites import (
    VelocityMaps,
    about_origin,
    column,
    composites_of,
    coordinate_bodies,
    dot,
    hanging,
    held_by,
    row,
)
from shadowfit.dynamics.elements import Elements, assemble
from shadowfit.dynamics.joint_contacts import Touching
from shadowfit.dynamics.state import Moving
from shadowfit.dynamics.tree import Hung, Link, Tree, hang, motions
from shadowfit.geometry import Pose, rotations
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism.contacts import PlaneContact
from shadowfit.mechanism.mechanism import Mechanism

MAX_ROUNDS = 30
# Newton stops when the next change of the speeds is expected below this, relative to their size (plus 1 m/s or rad/s).
TOLERANCE = 1e-12
# How much larger the next change is taken than the last ones let expect.
CAUTION = 4.0
# Curvature before it has been seen: the first step takes more than one round.
UNSEEN = 1e30
# Weights of the last increments, newest first, in the guess of the next one: it continues a polynomial through them.
EXTRAPOLATION = np.array([5.0, -10.0, 10.0, -5.0, 1.0])
# Speeds are differences of positions, whose rounding errors [relative] they inherit over the time-step.
ROUNDING = 16.0 * float(np.finfo(float).eps)


class Carried(NamedTuple):
    """What a step hands on to the next one."""

    motion: Pose
    """Of all bodies, a step ago."""
    last: Float[Array, "d"]
    """Increment that led from there to the present."""
    earlier: Float[Array, "e d"]
    """The increments before that, newest first."""
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
    reaction: Float[Array, "m"]
    """Impulses of joints that close loops."""
    contacts: Float[Array, "c"]
    """Impulses of contact points."""


class Found(NamedTuple):
    """The present state, and the increment to the next one."""

    position: Float[Array, "bodies 3"]
    orientation: Float[Array, "bodies 4"]
    velocity: Float[Array, "bodies 6"]
    increment: Float[Array, "d"]
    status: Float[Array, ""]
    reaction: Float[Array, "m"]
    contacts: Float[Array, "c"]


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
    rate = 1.0 / timestep  # once a call: a division takes as long as several products
    velocity = rate * now.pose.minus(carried.pose)
    after = hang(tree, mechanism, moved(tree, motion, trial.increment))
    new_velocity = rate * after.pose.minus(now.pose)
    moving = Moving(now.pose, velocity, new_velocity, command, timestep)
    links, elements = _opened(tree, mechanism)
    mobility = response(tree, mechanism, now, timestep)
    closing = loop_step.acting(tree, mechanism, now, moving, trial.reaction, mobility) if tree.loops else None
    twists = _turned(tree, after.twists, trial.increment)
    maps = VelocityMaps.at(after.pose, new_velocity, timestep)
    touching = None
    if len(mechanism.contacts):
        rates = trial.increment / timestep
        touching = Touching.at(assemble(mechanism), tree, moving, now, (twists, maps), rates)
    wrenches = _missing(links, elements, moving, closing)
    transmitted = _transmitted(tree, mechanism, moving, wrenches, trial.contacts)
    along = axis_impulses(links, elements, now, transmitted, moving, jnp.diag(mobility))
    composites = hanging(tree, composites_of(elements, now.pose, after.pose, velocity, new_velocity, timestep))
    matrix = _matrix(tree, now, twists, composites, along, maps)
    impulse = [dot(s, wrenches[b]) for s, b in zip(now.twists, coordinate_bodies(tree), strict=True)]
    right = jnp.stack(impulse) - along.impulse if impulse else along.impulse
    if len(mechanism.shafts):
        before, later = carried.last / timestep, trial.increment / timestep
        stopped = shafts.stopped_along(tree, mechanism, jnp.diag(mobility), timestep)
        widths = sliding.stick_width(jnp.zeros(len(mechanism.shafts)), stopped, timestep)
        turned, by_rates = shafts.along(tree, mechanism, before, later, widths, timestep)
        right, matrix = right - turned, matrix - by_rates
    contacts, branch = trial.contacts, None
    if touching is not None:
        branch = touching.branches(matrix, right, contacts) if closing is None else touching.branches_here()
        push, slope = touching.pushed(branch)
        right, matrix = right - push, matrix - slope
    if closing is None:
        change, reaction = _solved(matrix, -timestep * right[:, None])[:, 0], trial.reaction
    else:
        left = [s - load for s, load in zip(now.twists, along.by_wrench, strict=True)]
        matrix = matrix - closing.by_laws(tree, left, twists, maps)
        closed = closing.rows(tree, left, twists, (carried.pose, after.pose))
        change, more = closed.solved(lambda right: _solved(matrix, right), -timestep * right, timestep * trial.reaction)
        reaction = trial.reaction + more / timestep
    increment = trial.increment + change
    size = jnp.max(jnp.abs(jnp.append(change, 0.0))) / timestep
    fast = 1.0 + jnp.max(jnp.abs(jnp.append(increment, 0.0))) / timestep
    floor = TOLERANCE * fast + ROUNDING * jnp.max(jnp.abs(after.pose.position)) / timestep
    # The rounds converge quadratically: the next change follows from this one and the curvature, which a step whose
    # guess is good takes from the steps before it, unless friction bends where a gear's load changes its sign: steps on
    # one side of that know nothing of the other.
    first = trial.rounds == 0.0
    known = jnp.where(rows.share_of_load(elements) > 0.0, UNSEEN, carried.curvature)
    curvature = jnp.where(first, known, size / trial.change**2)
    expected = CAUTION * curvature * size**2
    # Forgotten by halves: what a single round lets see may be small by chance.
    before = jnp.where(carried.curvature < UNSEEN, 0.5 * carried.curvature, 0.0)
    remembered = jnp.where(first, curvature, jnp.maximum(curvature, before))
    settled = (expected <= floor) | (size <= floor)
    if touching is not None and branch is not None:
        # Points that are neither here nor there by rounding alone do not matter.
        settled = settled & (touching.holds(branch, increment / timestep) | (size <= floor))
        contacts = touching.impulses(branch, increment / timestep)
    failed = ~settled & ((trial.rounds + 1.0 >= MAX_ROUNDS) | ~jnp.isfinite(size))
    status = jnp.where(failed, float(exact.NewtonStatus.NOT_SETTLED), 0.0)
    status = jnp.where(carried.status == 0.0, status, carried.status)
    again = ~settled & (status == 0.0)
    past = jnp.concatenate([increment[None], carried.last[None], carried.earlier])
    following = jnp.where(again, increment, jnp.sum(EXTRAPOLATION[:, None] * past, axis=0))
    return (
        Carried(motion, increment, past[1:-1], now.pose, remembered, status),
        Trial(following, jnp.where(again, size, 0.0), jnp.where(again, trial.rounds + 1.0, 0.0), reaction, contacts),
        jnp.where(again, 1.0, 0.0),
        Found(now.pose.position, now.pose.orientation, velocity, increment, status, reaction, contacts),
    )


def _solved(matrix: Float[Array, "d d"], right: Float[Array, "d k"]) -> Float[Array, "d k"]:
    """From the leaves inwards: eliminating a coordinate then fills nothing in.

    Without a search for pivots, which would mix branches: the matrix is an inertia, with what laws of a step add to it.
    """
    return small_solve(matrix[::-1, ::-1], right[::-1], definite=True)[::-1]


def _opened(tree: Tree, mechanism: Mechanism) -> tuple[Tree, Elements]:
    """The tree without joints that close loops, as its elements number them."""
    links, rest = loops.opened(tree, mechanism)
    return links, assemble(rest)


def response(tree: Tree, mechanism: Mechanism, now: Hung, timestep: Float[Array, ""]) -> Float[Array, "d d"]:
    """Changes of the rates by impulses along the coordinates; zeros in machines without dry friction."""
    if len(mechanism.shafts) == 0 and all(joint.friction is None for joint in mechanism.joints.values):
        return jnp.zeros((tree.size, tree.size))
    mass = mass_of(*_opened(tree, mechanism), now)
    return loop_step.response(tree, mechanism, now, mass, timestep) if tree.loops else inverse_of(mass)


def _missing(
    tree: Tree, elements: Elements, moving: Moving, closing: loop_step.Acting | None
) -> list[Float[Array, "6"]]:
    """Wrench about the origin that each body's joint transmits where nothing is touched."""
    missing = balance.bodies_balance(elements, moving, "exact")
    if closing is not None:
        missing = missing - closing.on_bodies
    return hanging(tree, about_origin(missing, moving.pose.position))


def _transmitted(
    tree: Tree, mechanism: Mechanism, moving: Moving, missing: list[Float[Array, "6"]], contacts: Float[Array, "c"]
) -> list[Float[Array, "6"]]:
    """Wrench about the origin that each body's joint transmits, beside contacts of given impulses.

    End stops push two bodies against each other along the axis that they share: nothing across it changes.
    """
    if not any(isinstance(contact, PlaneContact) for contact in mechanism.contacts.values):
        return missing
    pushes = about_origin(joint_contacts.on_bodies(assemble(mechanism), moving, contacts), moving.pose.position)
    return [wrench - push for wrench, push in zip(missing, hanging(tree, pushes), strict=True)]


def multipliers(
    tree: Tree,
    mechanism: Mechanism,
    moving: Moving,
    reaction: Float[Array, "m"],
    contacts: Float[Array, "c"],
) -> list[Float[Array, "n r"]]:
    """Impulses of a step, as `AxisImpulses.by_group`."""
    links, elements = _opened(tree, mechanism)
    now = hang(tree, mechanism, motions(tree, mechanism, moving.pose))
    mobility = response(tree, mechanism, now, moving.timestep)
    closing = loop_step.acting(tree, mechanism, now, moving, reaction, mobility) if tree.loops else None
    wrenches = _transmitted(tree, mechanism, moving, _missing(links, elements, moving, closing), contacts)
    by_group = axis_impulses(links, elements, now, wrenches, moving, jnp.diag(mobility)).by_group
    return by_group if closing is None else closing.among(tree, mechanism, elements, by_group)


def moved(tree: Tree, motion: Pose, increment: Float[Array, "d"]) -> Pose:
    """Motions ``⊞`` increments of the coordinates."""
    positions, orientations = list(motion.position), list(motion.orientation)
    start = 0
    for link in tree.links:
        changes = dict(zip(link.freedom, increment[start : start + len(link.freedom)], strict=True))
        start += len(link.freedom)
        shift = [changes.get(i, jnp.zeros(())) for i in range(3)]
        positions[link.body] = motion.position[link.body] + jnp.stack(shift)
        turning = _turning(link)
        if len(turning) == 1:
            # About one axis half the angle is all there is to a quaternion.
            half = 0.5 * changes[turning[0]]
            vector = [jnp.sin(half) if 3 + i == turning[0] else jnp.zeros(()) for i in range(3)]
            turn: Array = jnp.stack([jnp.cos(half), *vector])
        elif turning:
            turn = rotations.exp(_rotation(changes))
        else:
            continue
        orientations[link.body] = rotations.normalise(rotations.multiply(turn, motion.orientation[link.body]))
    return Pose(jnp.stack(positions), jnp.stack(orientations))


def _turning(link: Link) -> list[int]:
    return [i for i in link.freedom if i >= 3]


def _rotation(changes: dict[int, Array]) -> Float[Array, "3"]:
    return jnp.stack([changes.get(i, jnp.zeros(())) for i in (3, 4, 5)])


def _turned(tree: Tree, twists: tuple[Array, ...], increment: Float[Array, "d"]) -> list[Float[Array, "6"]]:
    """Twists at ``q ⊞ δ`` by changes of δ; the left Jacobian of a rotation vector leads from these to changes there."""
    turned: list[Array] = []
    for link in tree.links:
        start = len(turned)
        count = len(link.freedom)
        turning = [start + k for k, i in enumerate(link.freedom) if i >= 3]
        of_link = list(twists[start : start + count])
        if len(turning) > 1:
            vector = _rotation(dict(zip(link.freedom, increment[start : start + count], strict=True)))
            jacobian = rotations.left_jacobian(vector)
            axes = [i - 3 for i in link.freedom if i >= 3]
            for place, axis in zip(turning, axes, strict=True):
                parts = [jacobian[other, axis] * twists[at] for at, other in zip(turning, axes, strict=True)]
                of_link[place - start] = jnp.sum(jnp.stack(parts), axis=0)
        turned += of_link
    return turned


def _matrix(
    tree: Tree,
    now: Hung,
    twists: list[Float[Array, "6"]],
    composites: list[Float[Array, "16"]],
    along: AxisImpulses,
    maps: VelocityMaps,
) -> Float[Array, "d d"]:
    """``h ∂τ/∂δ``."""
    bodies, above = coordinate_bodies(tree), held_by(tree)
    size = len(bodies)
    entries: list[list[Array]] = [[jnp.zeros(())] * size for _ in range(size)]
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
        speeds = [along.slope[j] * maps.row(body, axis) for body, axis in sides]
        # What both sides hang on moves them together: their rows are added once, not once for each coordinate.
        both = speeds[0] + speeds[1] if len(speeds) == 2 else None
        for i in range(size):
            moving = [speed for (body, _), speed in zip(sides, speeds, strict=True) if bodies[i] in above[body]]
            if moving:
                speed = both if both is not None and len(moving) == 2 else moving[0]
                entries[j][i] = entries[j][i] - dot(speed, twists[i])
    return jnp.stack([jnp.stack(entry) for entry in entries]) if size else jnp.zeros((0, 0))
