"""What a fit evaluates at every time step, as compiled functions over time.

* ``dynamics`` and ``observation``: rows of the least squares problem, of a step and of one sample
  (:mod:`linearise`);
* ``start``: gaps of the first states with their derivatives (:mod:`start_state`);
* ``follow``: one iteration of the inverse kinematics behind the initial trajectory (:mod:`initial`);
* ``retract``: ``x ⊞ δ`` of the states.

Each one is made when first needed. What their code depends on besides this package's source is the plan and the
structure of the mechanism; mechanisms with parts from outside are traced anew in each process.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from shadowfit.dynamics.tree import motions, place
from shadowfit.estimation.linear.front import Rows, Table
from shadowfit.estimation.residuals import inverse_kinematics, joint_rows, linearise, start_state
from shadowfit.estimation.residuals.frame import Frame, frame
from shadowfit.estimation.residuals.linearise import ChunkData, Nodes, Plan, Sample
from shadowfit.geometry import Pose, rotations
from shadowfit.kernels import OverTime, Workspace, is_own, over_time
from shadowfit.kernels.kernel import LARGEST
from shadowfit.mechanism.mechanism import Mechanism

Arrays = list[Any]
_Call = tuple[Callable[..., Any], Arrays, Arrays]
"""A function with its constants and what varies over time."""


@dataclasses.dataclass(frozen=True)
class Chunk:
    """What the rows of some consecutive steps are computed from."""

    numbers: np.ndarray
    """Values of the free numbers."""
    turns: np.ndarray
    """Values of the free rotations."""
    nodes: Nodes
    """``window − 1`` more than there are steps."""
    data: ChunkData
    dynamics_weight: np.ndarray
    """A square root of the inverse covariance of the impulse residual (``√κ`` times one in the paper)."""
    timestep: float
    """h [s]."""
    reference: float
    """Standard deviation behind a weight of one, in which a robust loss counts."""


@dataclasses.dataclass(frozen=True)
class StepKernels:
    """Compiled functions of one plan and mechanism."""

    plan: Plan
    mechanism: Mechanism
    largest: int = LARGEST
    """Operations beyond which a function is left to XLA."""
    _made: dict[Any, OverTime] = dataclasses.field(default_factory=dict, compare=False, repr=False)
    _lock: threading.Lock = dataclasses.field(default_factory=threading.Lock, compare=False, repr=False)
    _own: threading.local = dataclasses.field(default_factory=threading.local, compare=False, repr=False)
    """What belongs to one thread: its workspace."""

    @functools.cached_property
    def settings(self) -> Arrays:
        """Numbers of the mechanism."""
        return [np.asarray(leaf) for leaf in jax.tree.leaves(self.mechanism)]

    def rows(self, chunk: Chunk, passing: bool = False) -> tuple[Table, Table]:
        """Weighted rows of the dynamics and of the observations, the latter with all samples of a step together.

        ``passing``: only until this thread asks for such rows again, which lie in the same memory.
        """
        if passing and not hasattr(self._own, "workspace"):
            self._own.workspace = Workspace()
        workspace = self._own.workspace if passing else None
        dynamics, observation = self._row_calls(chunk)
        size = self.plan.node_size
        seen = linearise.observed_nodes(self.plan, self.mechanism)
        (moving,), (observed,) = (self._run(*call, workspace=workspace) for call in (dynamics, observation))
        together = observed.reshape(len(moving), -1, observed.shape[-1])
        return Table(moving, self.plan.reach, size), Table(together, len(seen), size, seen[0])

    def prepare_rows(self, chunk: Chunk) -> None:
        """Have the code of `rows` made in the background, for arrays like these."""
        for call in self._row_calls(chunk):
            self._made_for(*call)

    def _row_calls(self, chunk: Chunk) -> tuple[_Call, _Call]:
        """What gives the rows of the dynamics, of the steps, and those of the observations, of all samples."""
        data, plan = chunk.data, self.plan
        steps, samples = data.fraction.shape
        moving = _windows(chunk.nodes, range(plan.reach), steps)
        seen = _windows(chunk.nodes, linearise.observed_nodes(plan, self.mechanism), steps)
        repeated = seen if samples == 1 else [np.repeat(x, samples, axis=0) for x in seen]
        step = np.asarray(chunk.timestep)
        readings = [
            x.reshape(steps * samples, *x.shape[2:]) for x in (*data.measured, *data.weight, *data.shift, data.fraction)
        ]
        return (
            (
                _dynamics_rows,
                [chunk.numbers, chunk.turns, _weight(chunk.dynamics_weight), step],
                [*moving, data.command, data.command_derivatives, data.truncation],
            ),
            (
                _observation_rows,
                [chunk.numbers, chunk.turns, step, np.asarray(chunk.reference)],
                [*repeated, *readings],
            ),
        )

    def dynamics_residuals(
        self,
        numbers: np.ndarray,
        turns: np.ndarray,
        poses: Pose,
        command: tuple[np.ndarray, np.ndarray],
        timestep: float,
    ) -> np.ndarray:
        """Dynamics residuals [N s, N m s] at all but the first and the last of poses a time-step apart."""
        size = self.plan.impulses
        inside = len(poses.position) - 2
        varying = [*_windows(poses, range(3), inside), *command, np.zeros((inside, size))]
        (found,) = self._run(_dynamics_rows, [numbers, turns, np.ones(size), np.asarray(timestep)], varying)
        return found[:, :, -1]

    def reading_errors(
        self,
        numbers: np.ndarray,
        turns: np.ndarray,
        windows: Pose,
        fraction: np.ndarray,
        truth: Pose,
        times: tuple[float, float],
    ) -> Arrays:
        """Errors of each sensor's readings through windows of poses, against poses of a better curve.

        ``times`` are those between the poses of the windows and of the curve [s].
        """
        constants = [numbers, turns, *map(np.asarray, times)]
        varying = [*jax.tree.leaves(windows), fraction, *jax.tree.leaves(truth)]
        sizes = [sensor.error_size() for sensor in self.mechanism.sensors.values]
        return np.split(self._run(_reading_errors, constants, varying)[0], np.cumsum(sizes)[:-1], axis=1)

    def frames(self, numbers: np.ndarray, turns: np.ndarray, poses: Pose) -> Frame:
        """Rows of the gaps and inertia along poses."""
        return Frame(*self._run(_frame, [numbers, turns], jax.tree.leaves(poses)))

    def start_parts(self, numbers: np.ndarray, turns: np.ndarray, nodes: Nodes) -> start_state.StartParts:
        """Gaps of states with their derivatives, and the bodies' masses; along the nodes."""
        return start_state.StartParts(*self._run(_start_parts, [numbers, turns], jax.tree.leaves(nodes)))

    def follow(
        self, numbers: np.ndarray, turns: np.ndarray, weights: np.ndarray, pose: Pose, targets: Arrays
    ) -> tuple[np.ndarray, np.ndarray]:
        """Positions and orientations after each iteration of inverse kinematics, one per target."""
        found = self._run(_follow, [numbers, turns, weights], targets, [pose.position, pose.orientation])
        return found[0], found[1]

    def retract(self, nodes: Nodes, steps: np.ndarray) -> Nodes:
        """``x ⊞ δ`` of all nodes."""
        tree = self.plan.tree
        return self.shift(nodes, steps if tree is None else steps @ tree.selection())

    def shift(self, nodes: Nodes, steps: np.ndarray) -> Nodes:
        """The same with increments in all directions of each body, also where joints leave only some free."""
        return _as_nodes(self._run(_shift, [], [*jax.tree.leaves(nodes), steps]))

    def bodies(self, numbers: np.ndarray, turns: np.ndarray, poses: Pose) -> Pose:
        """Poses of the bodies at the poses of nodes."""
        return poses if self.plan.tree is None else Pose(*self._placed(numbers, turns, poses)[:2])

    def twists(self, numbers: np.ndarray, turns: np.ndarray, poses: Pose) -> np.ndarray:
        """T at the poses of nodes in joint coordinates, shape (n, bodies, 6, d)."""
        return self._placed(numbers, turns, poses)[2]

    def _placed(self, numbers: np.ndarray, turns: np.ndarray, poses: Pose) -> Arrays:
        return self._run(_placed_bodies, [numbers, turns], jax.tree.leaves(poses))

    def nodes_of(self, numbers: np.ndarray, turns: np.ndarray, poses: Pose) -> Pose:
        """Poses of nodes at given poses of the bodies: the motions of the joints, if these are the unknowns."""
        if self.plan.tree is None:
            return poses
        return Pose(*self._run(_motions, [numbers, turns], jax.tree.leaves(poses)))

    def _run(
        self,
        function: Callable[..., Any],
        constants: Arrays,
        varying: Arrays,
        carry: Arrays | None = None,
        workspace: Workspace | None = None,
    ) -> Arrays:
        made = self._made_for(function, constants, varying, carry)
        return made(self.settings, constants, varying, carry, workspace)

    def _made_for(
        self, function: Callable[..., Any], constants: Arrays, varying: Arrays, carry: Arrays | None = None
    ) -> OverTime:
        # A weight may be a vector or a matrix, a chunk may hold more or fewer samples.
        kind = (function, *(np.shape(x) for x in constants), *(np.shape(x)[1:] for x in varying))
        with self._lock:
            if kind not in self._made:
                _, structure = jax.tree.flatten(self.mechanism)
                key = f"{function.__name__} {self.plan} {structure}" if is_own(self.mechanism) else None
                one = functools.partial(function, self.plan, structure)
                shapes = [*(carry or []), *(np.empty(np.shape(x)[1:]) for x in varying)]
                self._made[kind] = over_time(one, self.settings, constants, shapes, key, len(carry or []), self.largest)
            return self._made[kind]


def _weight(matrix: np.ndarray) -> np.ndarray:
    """The diagonal of a diagonal weight, which spares most of the products; else the whole."""
    diagonal = np.diagonal(matrix)
    return diagonal.copy() if np.array_equal(matrix, np.diag(diagonal)) else np.asarray(matrix)


def _windows(nodes: Nodes | Pose, window: range, steps: int) -> Arrays:
    """Those of the nodes that each step's window holds."""
    return [np.stack([x[i : i + steps] for i in window], axis=1) for x in jax.tree.leaves(nodes)]


def _as_nodes(arrays: Arrays) -> Nodes:
    return Nodes(Pose(arrays[0], arrays[1]), arrays[2] if len(arrays) > 2 else None)


def _dynamics_rows(plan: Plan, structure: Any, settings: Arrays, constants: Arrays, varying: Arrays) -> jax.Array:
    numbers, turns, weight, timestep = constants
    mechanism = jax.tree.unflatten(structure, settings)
    *windows, command, slopes, truncation = varying
    nodes = _as_nodes(windows)
    if plan.tree is None:
        prepared = linearise.prepare(plan, mechanism, numbers, turns)
        motion = linearise.dynamics_rows(plan, prepared, nodes, command, slopes, timestep)
    else:
        motion = joint_rows.dynamics_rows(plan, mechanism, numbers, turns, nodes.pose, command, slopes, timestep)
    corrected = Rows(motion.states, motion.parameters, motion.residual - truncation)
    return _side_by_side(linearise.weighted(corrected, jnp.diag(weight) if weight.ndim == 1 else weight))


def _observation_rows(plan: Plan, structure: Any, settings: Arrays, constants: Arrays, varying: Arrays) -> jax.Array:
    numbers, turns, timestep, reference = constants
    now = linearise.current(plan, jax.tree.unflatten(structure, settings), numbers, turns)
    count = 3 if plan.own_velocity else 2
    windows, rest = varying[:count], varying[count:]
    sensors = len(now.mechanism.sensors)
    measured, weight, shift = (tuple(rest[i * sensors : (i + 1) * sensors]) for i in range(3))
    sample = Sample(measured, weight, shift, rest[-1])
    return _side_by_side(linearise.observation_rows(plan, now, _as_nodes(windows), sample, timestep, reference))


def _reading_errors(plan: Plan, structure: Any, settings: Arrays, constants: Arrays, varying: Arrays) -> jax.Array:
    numbers, turns, timestep, apart = constants
    now = linearise.current(plan, jax.tree.unflatten(structure, settings), numbers, turns)
    window, fraction, truth = Pose(*varying[:2]), varying[2], Pose(*varying[3:])
    return linearise.reading_errors(plan, now, window, fraction, truth, timestep, apart)


def _side_by_side(rows: Rows) -> jax.Array:
    """``[states | parameters | residual]``, as the normal equations want it."""
    states = rows.states.reshape(len(rows.states), -1)
    return jnp.concatenate([states, rows.parameters, rows.residual[:, None]], axis=1)


def _frame(plan: Plan, structure: Any, settings: Arrays, constants: Arrays, varying: Arrays) -> Frame:
    return frame(plan, jax.tree.unflatten(structure, settings), constants[0], constants[1], Pose(*varying))


def _start_parts(
    plan: Plan, structure: Any, settings: Arrays, constants: Arrays, varying: Arrays
) -> start_state.StartParts:
    mechanism = jax.tree.unflatten(structure, settings)
    return start_state.start_parts(plan, mechanism, constants[0], constants[1], _as_nodes(varying))


def _follow(plan: Plan, structure: Any, settings: Arrays, constants: Arrays, varying: Arrays) -> tuple[Any, Any]:
    now, weights = _written(plan, structure, settings, constants), constants[2]
    pose = inverse_kinematics.corrected(now, Pose(varying[0], varying[1]), tuple(varying[2:]), weights)
    return pose.position, pose.orientation


def _placed_bodies(plan: Plan, structure: Any, settings: Arrays, constants: Arrays, varying: Arrays) -> Arrays:
    assert plan.tree is not None
    placed = place(plan.tree, _written(plan, structure, settings, constants), Pose(*varying))
    return [placed.pose.position, placed.pose.orientation, placed.twists]


def _motions(plan: Plan, structure: Any, settings: Arrays, constants: Arrays, varying: Arrays) -> Pose:
    assert plan.tree is not None
    return motions(plan.tree, _written(plan, structure, settings, constants), Pose(*varying))


def _written(plan: Plan, structure: Any, settings: Arrays, constants: Arrays) -> Mechanism:
    """The mechanism at the parameters' values."""
    return linearise.current(plan, jax.tree.unflatten(structure, settings), constants[0], constants[1]).mechanism


def _shift(_: Plan, __: Any, ___: Arrays, ____: Arrays, varying: Arrays) -> Arrays:
    *nodes, step = varying
    parts = step.reshape(nodes[0].shape[0], -1)
    moved = Pose(nodes[0], nodes[1]).plus(parts[:, :6])
    found = [moved.position, rotations.normalise(moved.orientation)]
    return [*found, nodes[2] + parts[:, 6:]] if len(nodes) > 2 else found
