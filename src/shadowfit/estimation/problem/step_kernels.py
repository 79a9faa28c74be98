"""The functions of a time step (:mod:`step_functions`), compiled to run over time.

Each one is made when first needed. What their code depends on besides this package's source is the plan and the
structure of the mechanism; mechanisms with parts from outside are traced anew in each process.
"""

from __future__ import annotations

import atexit
import dataclasses
import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from shadowfit.arrays import Array
from shadowfit.estimation.linear.front import RowTable
from shadowfit.estimation.problem import step_functions
from shadowfit.estimation.problem.chunk import Chunk, ChunkData
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.residuals.observation import Sample, Scale, observed_nodes, reads_commands
from shadowfit.estimation.residuals.parameter_layout import Parametrised, Values
from shadowfit.estimation.residuals.plan import Plan
from shadowfit.estimation.residuals.stopping import Braked
from shadowfit.estimation.residuals.unknowns import Recursion
from shadowfit.geometry import Pose
from shadowfit.kernels import OverTime, Workspace, is_own, over_time, windowed
from shadowfit.kernels.kernel import LARGEST
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.records import record
from shadowfit.trees import flatten, leaves_of, map_leaves, structure_of, unflatten

NO_VALUES = Values(np.zeros(0), np.zeros((0, 4)))


@record(frozen=True)
class Call:
    """A function of one step, and what to evaluate it on over time."""

    function: Callable[..., Any]
    values: Values
    constants: Any
    """The same for all times: a tree of arrays."""
    varying: Any
    """A tree of arrays with a first axis of time."""
    carry: Any = None
    """A tree of what the function's outputs hand on to the next time; comes before ``varying`` in a pair with it."""
    within: int | None = None
    """Times on a second axis of what varies, if it has two: as many, or one where it is the same for all of these."""

    @property
    def axes(self) -> int:
        """Axes of time of what varies."""
        return 1 if self.within is None else 2


@record(frozen=True)
class StepKernels:
    """Compiled functions of one plan and mechanism."""

    plan: Plan
    mechanism: Mechanism
    largest: int = LARGEST
    """Operations beyond which a function is left to XLA."""
    _made: dict[Any, OverTime] = dataclasses.field(default_factory=dict, compare=False, repr=False)
    _lock: threading.Lock = dataclasses.field(default_factory=threading.Lock, compare=False, repr=False)
    _of_thread: threading.local = dataclasses.field(default_factory=threading.local, compare=False, repr=False)
    """What belongs to one thread: its workspace."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Without what was compiled, which does not travel: other processes find it in their cache."""
        return StepKernels, (self.plan, self.mechanism, self.largest)

    @functools.cached_property
    def settings(self) -> list[np.ndarray]:
        """Numbers of the mechanism."""
        return [np.asarray(leaf) for leaf in leaves_of(self.mechanism)]

    @functools.cached_property
    def _observed(self) -> range:
        """Nodes of a step's window that its samples involve."""
        return observed_nodes(self.plan, self.mechanism)

    @functools.cached_property
    def _reads_commands(self) -> bool:
        """Whether some sensor asks for the inputs."""
        return reads_commands(self.mechanism)

    def rows(self, chunk: Chunk, passing: bool = False) -> tuple[RowTable, RowTable]:
        """Weighted rows of the dynamics and of the observations, the latter with all samples of a step together.

        ``passing``: only until this thread asks for such rows again, which lie in the same memory.
        """
        workspace = self._workspace if passing else None
        seen = self._observed
        (observed,) = self.run(self._observation_call(chunk), workspace)
        moving = self.dynamics_rows(chunk, workspace)
        together = observed.reshape(len(moving.wide), -1, observed.shape[-1])
        return moving, RowTable(together, len(seen), self.plan.node_size, seen[0], not self.plan.layout.sensors)

    @property
    def _workspace(self) -> Workspace:
        """Memory of this thread, for what is not kept."""
        if not hasattr(self._of_thread, "workspace"):
            self._of_thread.workspace = Workspace()
        workspace: Workspace = self._of_thread.workspace
        return workspace

    def dynamics_rows(self, chunk: Chunk, workspace: Workspace | None = None) -> RowTable:
        """Weighted rows of the dynamics alone."""
        if self.recursion is None:
            (moving,) = self.run(self._dynamics_call(chunk), workspace)
        else:
            moving = self._swept(self.recursion, chunk)
        if chunk.shaping is not None:
            moving = chunk.shaping.times(moving)
        table = RowTable(moving, self.plan.unknowns.reach, self.plan.node_size)
        if chunk.proportion is not None:
            width = table.window * table.node_size
            # Errors of the discretisation grow with the forces, too.
            whole = moving[:, :, -1] + chunk.data.truncation @ chunk.dynamics_weight.T
            moving[:, :, width:-1] -= whole[:, :, None] * chunk.proportion
        if chunk.told is not None:
            moving *= chunk.told[:, :, None]
        return table

    def residuals(self, chunk: Chunk) -> np.ndarray:
        """Weighted residuals of the dynamics and of the observations of each step, without derivatives."""
        if self.recursion is None:
            dynamics, observed = (table.wide[:, :, -1] for table in self.rows(chunk))
            return np.concatenate([dynamics, observed], axis=1)
        data = chunk.data
        (seen,) = self.run(self._observation_call(chunk), self._workspace)
        nodes, command = chunk.nodes.pose[: len(data.command) + 2], (data.command, data.command_slopes)
        missing = self.missing(chunk.values, nodes, command, chunk.timestep, data.widths) - data.truncation
        weighted = missing @ chunk.dynamics_weight.T
        if chunk.told is not None:
            weighted *= chunk.told
        return np.concatenate([weighted, seen[..., -1].reshape(len(missing), -1)], axis=1)

    def missing(
        self, values: Values, poses: Pose, commands: tuple[Array, Array], timestep: float, widths: np.ndarray
    ) -> np.ndarray:
        """Missing impulses of steps between nodes by recursion, unweighted."""
        assert self.recursion is not None
        if len(self.mechanism.contacts) == 0:
            return self.recursion.missing(values, poses, commands[0], timestep, widths)
        rows = self.recursion.rows(values, poses, commands, timestep, widths)
        return self.behind_contacts(values, poses, timestep, rows)[:, :, -1]

    @functools.cached_property
    def recursion(self) -> Recursion | None:
        """What gives the dynamics of many steps by sweeps over the machine, where their code is not written out."""
        return self.plan.unknowns.recursion(self.plan.layout, self.plan.equations, self.mechanism)

    def _swept(self, recursion: Recursion, chunk: Chunk) -> np.ndarray:
        """Weighted rows of the dynamics by recursion."""
        data, weight = chunk.data, _weight(chunk.dynamics_weight)
        nodes = chunk.nodes.pose[: len(data.command) + 2]
        command = (data.command, data.command_slopes)
        rows = recursion.rows(chunk.values, nodes, command, chunk.timestep, data.widths)
        rows = self.behind_contacts(chunk.values, nodes, chunk.timestep, rows)
        rows[:, :, -1] -= data.truncation
        if weight.ndim == 2:
            return weight @ rows
        rows *= weight[:, None]
        return rows

    @functools.cached_property
    def stick_times(self) -> np.ndarray:
        """How long each axis creeps whose dry friction has a held width (:mod:`stopping`)."""
        return self.plan.unknowns.stick_times(self.mechanism)

    def braked(self, values: Values, poses: Pose, command: Array, timestep: float) -> Braked:
        """What the widths of dry friction follow from in the steps between nodes."""
        if self.recursion is not None:
            return self.recursion.braked(values, poses, command, timestep)
        return Braked(*self.run(self._braked_call(values, poses, command, timestep)))

    def _braked_call(self, values: Values, poses: Pose, command: Array, timestep: float) -> Call:
        moving = windows(Nodes(poses, None), range(3), len(command)).pose
        return Call(step_functions.braked, values, np.asarray(timestep), (moving, command))

    def behind_contacts(self, values: Values, poses: Pose, timestep: float, rows: np.ndarray) -> np.ndarray:
        """Rows by recursion, unweighted, as contacts and end stops leave them where there are any."""
        if len(self.mechanism.contacts) == 0:
            return rows
        size, reach = self.plan.node_size, self.plan.unknowns.reach
        moving = windows(Nodes(poses, None), range(reach), len(rows))
        by_rates = timestep * rows[:, :, (reach - 1) * size : reach * size]
        given = (moving, by_rates, rows[:, :, -1].copy())
        through, pushed, residual = self.run(Call(step_functions.touched, values, np.asarray(timestep), given))
        return np.concatenate([through @ (rows[:, :, :-1] - pushed), residual[:, :, None]], axis=2)

    def prepare_rows(self, chunk: Chunk) -> None:
        """Have the code of `rows` made in the background, for arrays like these."""
        if self.recursion is None:
            self._prepare(self._dynamics_call(chunk))
            if len(self.stick_times):
                self._prepare(self._braked_call(chunk.values, chunk.nodes.pose, chunk.data.command, chunk.timestep))
        else:
            self.recursion.prepare()
        self._prepare(self._observation_call(chunk))

    def _prepare(self, call: Call) -> None:
        self._made_for(call, leaves_of((call.values, call.constants)), leaves_of(call.varying))

    def _dynamics_call(self, chunk: Chunk) -> Call:
        """What gives the rows of the dynamics, of the steps."""
        data = chunk.data
        moving = windows(chunk.nodes, range(self.plan.unknowns.reach), len(data.command))
        return Call(
            step_functions.dynamics_rows,
            chunk.values,
            (_weight(chunk.dynamics_weight), np.asarray(chunk.timestep)),
            (moving, data.command, data.command_slopes, data.widths, data.truncation),
        )

    def _observation_call(self, chunk: Chunk) -> Call:
        """What gives the rows of the observations, of all samples."""
        data = chunk.data
        steps, samples = data.fraction.shape
        seen = map_leaves(lambda x: x[:, None], windows(chunk.nodes, self._observed, steps))
        sample = Sample(data.measured, data.weight, data.shift, data.fraction, *self._sensed(data))
        scale = Scale(np.asarray(chunk.timestep), np.asarray(chunk.reference))
        return Call(step_functions.observation_rows, chunk.values, scale, (seen, sample), within=samples)

    def _sensed(self, data: ChunkData) -> tuple[Array, Array]:
        """Commands of the samples of each step, and their derivatives; of no inputs where no sensor asks for them."""
        count = data.command.shape[1] if self._reads_commands else 0
        return data.command[:, None, :count], data.command_slopes[:, None, :count]

    def retract(self, nodes: Nodes, steps: np.ndarray) -> Nodes:
        """``x ⊞ δ`` of all nodes."""
        return self.shift(nodes, self.plan.unknowns.directions(steps))

    def shift(self, nodes: Nodes, steps: Array) -> Nodes:
        """The same with increments in all directions of each body, also where joints leave only some free."""
        moved = self.run(Call(step_functions.shifted, NO_VALUES, None, (nodes, steps)))
        return unflatten(structure_of(nodes), moved)

    def run(self, call: Call, workspace: Workspace | None = None) -> list[np.ndarray]:
        """Outputs over time."""
        carry = None if call.carry is None else leaves_of(call.carry)
        constants, varying = leaves_of((call.values, call.constants)), leaves_of(call.varying)
        made = self._made_for(call, constants, varying)
        return made(self.settings, constants, varying, carry, workspace, call.within)

    def _made_for(self, call: Call, constants: list[Any], varying: list[Any]) -> OverTime:
        """The code of a call, whose constants and varying arrays are listed."""
        # A weight may be a vector or a matrix, a chunk may hold more or fewer samples.
        each = [np.shape(x)[call.axes :] for x in varying]
        kind = (call.function, *map(np.shape, constants), *each)
        with self._lock:
            if kind not in self._made:
                structure, carried = structure_of(self.mechanism), leaves_of(call.carry)
                inputs = call.varying if call.carry is None else (call.carry, call.varying)
                constant_tree, varying_tree = (
                    structure_of((call.values, call.constants)),
                    structure_of(inputs),
                )

                def one(settings: list[Any], constants: list[Any], varying: list[Any]) -> Any:
                    values, same = unflatten(constant_tree, constants)
                    machine = Parametrised(self.plan.layout, unflatten(structure, settings), values)
                    return call.function(self.plan, machine, same, unflatten(varying_tree, varying))

                key = (call.function, self.plan, structure) if is_own(self.mechanism) else None
                shapes = [*carried, *map(np.empty, each)]
                self._made[kind] = over_time(one, self.settings, constants, shapes, key, len(carried), self.largest)
            return self._made[kind]


_shared: weakref.WeakValueDictionary[Any, StepKernels] = weakref.WeakValueDictionary()
"""Of the problems that there are, by what distinguishes them."""
# Problems that live to the end of a program would else be taken out when what hashes them is gone.
atexit.register(_shared.clear)


def step_kernels(plan: Plan, mechanism: Mechanism) -> StepKernels:
    """The compiled functions of a plan and a mechanism; problems with the same numbers share them, and their memory.

    A fit of many recordings has a problem for a few of them at a time: to find code anew for each of these took as long
    as to evaluate them.
    """
    leaves, structure = flatten(mechanism)
    key = (plan, structure, *((np.shape(leaf), np.asarray(leaf).tobytes()) for leaf in leaves))
    return _shared.setdefault(key, StepKernels(plan, mechanism))


def _weight(matrix: np.ndarray) -> np.ndarray:
    """The diagonal of a diagonal weight, which spares most of the products; else the whole."""
    diagonal = np.diagonal(matrix)
    return diagonal.copy() if np.array_equal(matrix, np.diag(diagonal)) else np.asarray(matrix)


def windows(nodes: Nodes, window: range, steps: int) -> Nodes:
    """Those of the nodes that each step's window holds, on a second axis; nothing is copied."""
    return map_leaves(lambda x: windowed(np.asarray(x)[window.start :], len(window), steps), nodes)
