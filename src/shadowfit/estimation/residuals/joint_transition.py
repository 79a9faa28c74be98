"""The dynamics residual of a time step in joint coordinates: joints are rigid, and no constraint force appears.

With ``F = M (v' − v) − h (f + f_g)`` of all bodies (:mod:`shadowfit.dynamics.balance`), velocities ``v = (q_k ⊟
q_{k−1})/h`` and ``v' = (q_{k+1} ⊟ q_k)/h`` of configurations that violate no joint, and l the impulses of laws and dry
friction along the axes, the step misses the impulses of the coordinates

    r = Tᵀ F − l

at ``q_k``, where T turns rates of the coordinates into velocities. The joints' forces act along ``G_k``, and
``G_k T_k = 0``: r is zero exactly where the `exact` stepper goes if compliances vanish. Each coordinate's residual is
the impulse [N m s, N s] that its own joint lacks, and no joint's error leaks into the equation of another one, as it
would if errors of the predicted velocity were weighed, ``A⁻¹ r``. (Shafts of motors are part of l.)

What a joint carries, for dry friction in proportion to its load, is the sum of F over the bodies that hang on it.
Joints that close loops act on the bodies with impulses that are no function of the motion; F is then without these.
:mod:`recursion` gives the same for trees of any size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import balance, loop_step, loops, rigid_step, rows, shafts
from shadowfit.dynamics.elements import Elements, JointGroup, assemble
from shadowfit.dynamics.state import Moving
from shadowfit.dynamics.tree import Tree, forward_kinematics, hang
from shadowfit.geometry import Pose
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism.mechanism import Mechanism


class Balance(NamedTuple):
    """A step in joint coordinates."""

    missing: Float[Array, "d"]
    """r [N m s, N s]."""
    limits: Float[Array, "a"]
    """Largest impulses of dry friction along all axes but shafts [N m s, N s]."""
    speeds: Float[Array, "a"]
    """Of all axes, before the step [rad/s, m/s]."""


def balance_of(
    tree: Tree,
    mechanism: Mechanism,
    motions: Pose,
    command: Float[Array, "inputs"],
    timestep: Float[Array, ""],
    widths: Float[Array, "a"],
    reaction: Float[Array, "m"] | None = None,
) -> Balance:
    """The step between three configurations, given as motions of the joints.

    ``widths`` are those of dry friction along all axes (:mod:`stopping`); ``reaction`` are the impulses of joints that
    close loops, along the rows of their gaps.
    """
    links, rest = loops.opened(tree, mechanism)
    elements = assemble(rest)
    before, now, after = (forward_kinematics(tree, mechanism, motions[i]) for i in range(3))
    velocity = now.pose.minus(before.pose) / timestep
    new_velocity = after.pose.minus(now.pose) / timestep
    step = Moving(now.pose, velocity, new_velocity, command, timestep)
    missing = balance.bodies_balance(elements, step, "exact")
    along, shaft = np.split(np.arange(widths.shape[0]), [widths.shape[0] - len(mechanism.shafts)])
    limits: list[Array] = []
    speeds: list[Array] = []
    if tree.loops:
        assert reaction is not None
        closers = loops.closing(tree, mechanism)
        axes = loops.along_axes(closers, step, reaction, balance.Turning(None, widths[along[tree.size :]]))
        missing = missing - loops.on_bodies(closers, now.pose, reaction, axes)
        limits, speeds = [axes.limit], [axes.speed]
    acting, limit = _along_axes(links, elements, step, missing, widths[: tree.size])
    old, new = (jnp.asarray(tree.selection() @ motions[i + 1].minus(motions[i]).ravel()) / timestep for i in range(2))
    if len(mechanism.shafts):
        acting = acting + shafts.along(tree, mechanism, old, new, widths[shaft], timestep)[0]
        speeds.append(jnp.stack([shafts.ratios(tree, mechanism, one) @ old for one in mechanism.shafts.values]))
    return Balance(
        jnp.einsum("bid,bi->d", now.twists, missing) - acting,
        jnp.concatenate([limit, *limits]),
        jnp.concatenate([old, *speeds]),
    )


def braked(
    tree: Tree, mechanism: Mechanism, motions: Pose, command: Float[Array, "inputs"], timestep: Float[Array, ""]
) -> tuple[Float[Array, "a"], Float[Array, "a"], Float[Array, "d"]]:
    """What friction does to all axes (:class:`stopping.Braked`) of a tree without loops."""
    # No width matters to largest impulses.
    widths = jnp.ones(tree.size + len(mechanism.shafts))
    here = balance_of(tree, mechanism, motions, command, timestep, widths)
    response = mobility(tree, mechanism, motions[1], timestep)
    stopped = shafts.stopped_along(tree, mechanism, response, timestep)
    return jnp.concatenate([response * here.limits, stopped]), here.speeds, here.limits


def mobility(tree: Tree, mechanism: Mechanism, motion: Pose, timestep: Float[Array, ""]) -> Float[Array, "a"]:
    """Changes of the speeds of all axes but shafts by impulses along them."""
    now = hang(tree, mechanism, motion)
    response = rigid_step.response(tree, mechanism, now, timestep)
    along = jnp.diag(response)
    return jnp.concatenate([along, loop_step.own_mobility(tree, mechanism, now, response)]) if tree.loops else along


def _along_axes(
    tree: Tree, elements: Elements, step: Moving, missing: Float[Array, "bodies 6"], widths: Float[Array, "w"]
) -> tuple[Float[Array, "d"], Float[Array, "d"]]:
    """l, and the largest impulses of dry friction; ``widths`` of all coordinates, or none where nothing rubs."""
    whole, acting, limits = step.with_world(), [], []
    about = jnp.concatenate([missing[:, :3], missing[:, 3:] + jnp.cross(step.pose.position, missing[:, :3])], axis=1)
    for group in elements.groups:
        axis = balance.axis_motion(group, rows.geometry(group, whole.pose), whole)
        loads, rubbing = jnp.zeros((group.size, group.gap_rows)), balance.Turning(None)
        if group.friction is not None:
            hanging = [np.array(tree.hanging_on(tree.holding(joint).body)) for joint in group.joints]
            wrenches = jnp.stack([about[bodies].sum(0) for bodies in hanging])
            across = rows.load_rows(group, whole.pose, tree.signs(group.joints))
            loads = jnp.einsum("nmi,ni->nm", across, wrenches)
            rubbing = balance.Turning(None, widths[_places(tree, group)])
        found = balance.axis_impulse(group, axis, loads, rubbing, step.command, step.timestep)
        acting.append(found.laws + found.dry)
        limits.append(found.limit)
    return on_axes(tree, elements, acting), on_axes(tree, elements, limits)


def on_axes(tree: Tree, elements: Elements, values: list[Float[Array, "n"]]) -> Float[Array, "d"]:
    """Values of the joints with an axis, at their coordinates; zero for all others."""
    spread = jnp.zeros(tree.size)
    for group, of_group in zip(elements.groups, values, strict=True):
        if group.has_axis:
            spread = spread.at[_places(tree, group)].set(of_group)
    return spread


def _places(tree: Tree, group: JointGroup) -> np.ndarray:
    """Coordinates of a group's joints."""
    return np.array([tree.coordinate(joint) for joint in group.joints])
