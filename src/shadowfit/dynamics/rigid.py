"""Trajectories of trees of rigid joints (:mod:`rigid_step`), as machine code."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from shadowfit.arrays import Array, Float, Int
from shadowfit.dynamics import loops, rigid_step
from shadowfit.dynamics.elements import assembled
from shadowfit.dynamics.joint_contacts import impulse_count
from shadowfit.dynamics.rigid_step import Carried, Trial
from shadowfit.dynamics.state import Moving, State
from shadowfit.dynamics.tree import Tree, forward_kinematics, motions
from shadowfit.geometry import Pose
from shadowfit.kernels import is_own
from shadowfit.kernels.along import along
from shadowfit.kernels.sequence import Layout, Sequence, in_groups
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.trees import flatten, leaves_of, unflatten

Arrays = list[Any]
# Rows of loops that count for less than this, relative to the largest, are redundant.
REDUNDANT = 1e-9
# Increments before the last one that a step carries on.
EARLIER = len(rigid_step.EXTRAPOLATION) - 2


class Run(NamedTuple):
    """States at all steps and one beyond, and the status of the step that led to each."""

    position: Float[np.ndarray, "*batch t bodies 3"]
    orientation: Float[np.ndarray, "*batch t bodies 4"]
    velocity: Float[np.ndarray, "*batch t bodies 6"]
    """Of the leapfrog, half a step before each time."""
    status: Int[np.ndarray, "*batch t"]
    reaction: Float[np.ndarray, "*batch t m"]
    """Impulses of joints that close loops, in the step that follows each time."""
    contacts: Float[np.ndarray, "*batch t c"]
    """Impulses of contact points, likewise."""


def run(
    tree: Tree,
    mechanism: Mechanism,
    initial: State,
    command: Float[np.ndarray, "*batch steps inputs"],
    timestep: float,
) -> Run:
    """As many steps as there are commands, from states at the initial time; a first axis of all makes a batch."""
    leaves, structure = flatten(mechanism)
    settings, constants = [np.asarray(leaf) for leaf in leaves], [np.asarray(timestep, float)]
    closing = loops.row_count(tree, mechanism)
    touching = impulse_count(assembled(mechanism))
    stepper = _stepper(tree, structure, is_own(mechanism), _Sizes(command.shape[-1], closing, touching))
    state = [np.asarray(x, float) for x in (initial.pose.position, initial.pose.orientation, initial.velocity)]
    batch = state[0].shape[:-2]
    *pose, velocity = (x.reshape(-1, *x.shape[-2:]) for x in state)
    motion, rates = _start(tree, mechanism, pose, velocity)

    def advance(rates: np.ndarray, command: np.ndarray) -> Arrays:
        """Trajectories whose speeds half a step before the initial time are given."""
        back = along(_move, None, [*motion, -timestep * rates], tree)
        before = _placed(tree, mechanism, back)[0]
        zero = np.zeros(len(rates))
        last = timestep * rates
        past = np.repeat(last[:, None], EARLIER, axis=1)
        start = [*back, last, past, *before, np.full_like(zero, rigid_step.UNSEEN), zero, last, zero, zero]
        start += [np.zeros((len(rates), closing)), np.zeros((len(rates), touching))]
        shaped = [x.reshape((*batch, *x.shape[1:])) for x in start]
        return stepper(settings, constants, shaped, [command])

    # Leapfrog start: the speeds half a step before the initial time, to second order, from a whole step after it.
    first = advance(rates, command[..., :1, :])[3].reshape(rates.shape) / timestep
    before = rates - 0.5 * (first - rates)
    if tree.loops:
        # Only the speeds after a step bend as the loops want it: those before are on the other side of the present.
        before = 2.0 * rates - advance(before, command[..., :1, :])[3].reshape(rates.shape) / timestep
    outputs = advance(before, np.concatenate([command, command[..., -1:, :]], axis=-2))
    return Run(outputs[0], outputs[1], outputs[2], _before(outputs[4]), outputs[5], outputs[6])


def _before(status: Float[np.ndarray, "*batch t"]) -> Int[np.ndarray, "*batch t"]:
    """The status of the step that led to each time, from those of the steps that follow."""
    shifted = np.zeros(status.shape, int)
    rows, found = (x.reshape(-1, x.shape[-1]) for x in (shifted, status))

    def shift(group: slice) -> None:
        rows[group, 1:] = found[group, :-1]

    in_groups(shift, *rows.shape)
    return shifted


def multipliers(
    tree: Tree, mechanism: Mechanism, run: Run, command: Float[np.ndarray, "steps inputs"], timestep: float
) -> tuple[Float[np.ndarray, "t n r"], ...]:
    """Impulses of the step that ends at each time but the last, by group of joints; zero at the first."""
    if len(mechanism.joints) == 0:
        return ()
    steps = np.full(len(command), timestep)
    given = [run.position[:-1], run.orientation[:-1], run.velocity[:-1], run.velocity[1:], command, steps]
    impulses = along(_transmitted, mechanism, [*given, run.reaction[:-1], run.contacts[:-1]], tree)
    return tuple(np.concatenate([np.zeros_like(x[:1]), x[:-1]]) for x in impulses)


def weakest_loop(tree: Tree, mechanism: Mechanism, pose: Pose) -> tuple[float, str]:
    """How much the weakest row of rigid loops counts that is not redundant, relative to all, and its joint."""
    given = [np.asarray(x)[None] for x in (pose.position, pose.orientation)]
    motion = along(_motions, mechanism, given, tree)
    (rows,) = (x[0] for x in along(_loop_rows, mechanism, motion, tree))
    rigid = [mechanism.joints.names[i] for i in tree.rigid_loops]
    joints = loops.row_joints(tree, mechanism)
    held = [row for row, joint in enumerate(joints) if joint in rigid]
    left, values, _ = np.linalg.svd(rows[held])
    counting = values[values > REDUNDANT * values[0]]
    row = int(np.argmax(np.abs(left[:, len(counting) - 1])))
    return float(counting[-1] / values[0]), joints[held[row]]


def _loop_rows(mechanism: Mechanism, position: Array, orientation: Array, tree: Tree) -> Arrays:
    placed = forward_kinematics(tree, mechanism, Pose(position, orientation))
    return [loops.jacobian(loops.closing(tree, mechanism), placed.pose, placed.twists)]


class _Sizes(NamedTuple):
    """Numbers of inputs, of impulses of loops, and of those of contact points."""

    inputs: int
    closing: int
    touching: int


@functools.cache
def _stepper(tree: Tree, structure: Any, is_packaged: bool, sizes: _Sizes) -> Sequence:
    count, size = len(tree.links), tree.size
    places, turns = np.zeros((count, 3)), np.zeros((count, 4))
    number = np.zeros(())
    layout = Layout(
        [places, turns, np.zeros(size), np.zeros((EARLIER, size)), places, turns, number, number],
        [np.zeros(size), number, number, np.zeros(sizes.closing), np.zeros(sizes.touching)],
        [np.zeros(sizes.inputs)],
    )
    key = (_step, tree, structure) if is_packaged else None
    return Sequence(functools.partial(_step, tree, structure), layout, key)


def _step(tree: Tree, structure: Any, settings: Arrays, constants: Arrays, varying: Arrays) -> Arrays:
    mechanism = unflatten(structure, settings)
    last, earlier, *pose, curvature, status = varying[2:8]
    carried = Carried(Pose(*varying[:2]), last, earlier, Pose(*pose), curvature, status)
    result = rigid_step.step(tree, mechanism, constants[0], carried, Trial(*varying[8:13]), varying[13])
    return leaves_of(result)


def _start(
    tree: Tree, mechanism: Mechanism, pose: Arrays, velocity: Float[np.ndarray, "n bodies 6"]
) -> tuple[Arrays, Float[np.ndarray, "n d"]]:
    """Motions of the joints and rates of their coordinates; what joints do not allow is left out."""
    motions = along(_motions, mechanism, pose, tree)
    twists = _placed(tree, mechanism, motions)[1]
    flat = twists.reshape(len(twists), -1, tree.size)
    return motions, np.einsum("ndi,ni->nd", np.linalg.pinv(flat), velocity.reshape(len(velocity), -1))


def _placed(tree: Tree, mechanism: Mechanism, motion: Arrays) -> tuple[Arrays, np.ndarray]:
    """Poses of the bodies, and T."""
    *pose, twists = along(_place, mechanism, motion, tree)
    return pose, twists


def _motions(mechanism: Mechanism, position: Array, orientation: Array, tree: Tree) -> Arrays:
    return leaves_of(motions(tree, mechanism, Pose(position, orientation)))


def _place(mechanism: Mechanism, position: Array, orientation: Array, tree: Tree) -> Arrays:
    placed = forward_kinematics(tree, mechanism, Pose(position, orientation))
    return [placed.pose.position, placed.pose.orientation, placed.twists]


def _move(_: None, position: Array, orientation: Array, increment: Array, tree: Tree) -> Arrays:
    return leaves_of(rigid_step.moved(tree, Pose(position, orientation), increment))


def _transmitted(mechanism: Mechanism, *given: Any) -> Arrays:
    position, orientation, velocity, new_velocity, command, timestep, reaction, contacts, tree = given
    moving = Moving(Pose(position, orientation), velocity, new_velocity, command, timestep)
    return rigid_step.multipliers(tree, mechanism, moving, reaction, contacts)
