"""The rows of a chunk of time steps by compiled kernels: the same as `linearise_chunk`, several times faster.

Two kernels: the dynamics of a step, and the observations of one sample. What their code depends on besides this
package's source is the plan and the structure of the mechanism; mechanisms with parts from outside are traced anew in
each process.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from shadowfit.estimation import linearise
from shadowfit.estimation.front import Rows
from shadowfit.estimation.linearise import ChunkData, Costs, Nodes, Plan
from shadowfit.geometry import Pose
from shadowfit.kernels import Kernel, TooLargeError, UnsupportedError, kernel
from shadowfit.mechanism.mechanism import Mechanism

Arrays = list[np.ndarray]


@dataclasses.dataclass(frozen=True)
class StepKernels:
    """Compiled rows of one problem."""

    plan: Plan
    mechanism: Mechanism
    dynamics: Kernel
    observation: Kernel

    def rows(
        self,
        numbers: np.ndarray,
        turns: np.ndarray,
        nodes: Nodes,
        data: ChunkData,
        dynamics_weight: np.ndarray,
        timestep: float,
        live: int,
        reference: float,
    ) -> tuple[Rows, Costs]:
        """Rows of the steps of one chunk, as `linearise_chunk` gives them."""
        plan = self.plan
        steps, samples = data.fraction.shape
        settings = [np.asarray(leaf) for leaf in jax.tree.leaves(self.mechanism)]
        windows = [np.stack([x[i : i + steps] for i in range(plan.window)], axis=1) for x in jax.tree.leaves(nodes)]
        weight = _weight(dynamics_weight)
        step = np.asarray(timestep)
        moving = self.dynamics(
            settings, [numbers, turns, weight, step], [*windows, data.command, data.command_derivatives]
        )
        repeated = windows if samples == 1 else [np.repeat(x, samples, axis=0) for x in windows]
        readings = [x.reshape(steps * samples, 1, *x.shape[2:]) for x in (*data.measured, *data.weight, data.fraction)]
        seen = self.observation(settings, [numbers, turns, step, np.asarray(reference)], [*repeated, *readings])
        *observed, costs = seen
        parts = [
            np.concatenate([x, y.reshape(steps, -1, *x.shape[2:])], axis=1)
            for x, y in zip(moving, observed, strict=True)
        ]
        counted = max(min(int(live), steps), 0)
        sensors = costs.reshape(steps, samples, -1)[:counted].sum(axis=(0, 1))
        return Rows(*parts), Costs(np.sum(moving[2][:counted] ** 2), sensors)


def step_kernels(plan: Plan, mechanism: Mechanism, data: ChunkData, dynamics_weight: np.ndarray) -> StepKernels | None:
    """Compiled rows for chunks of data like the given one; None where a mechanism is too large to be written out."""
    leaves, structure = jax.tree.flatten(mechanism)
    settings = [np.asarray(leaf) for leaf in leaves]
    bodies = len(mechanism.bodies)
    numbers, turns = np.zeros(len(plan.numbers)), np.tile([1.0, 0.0, 0.0, 0.0], (len(plan.turns), 1))
    scalar = np.zeros(())
    pose = [np.zeros((plan.window, bodies, 3)), np.zeros((plan.window, bodies, 4))]
    windows = pose if plan.unknowns == "configuration" else [*pose, np.zeros((plan.window, bodies, 6))]
    inputs = [np.zeros(data.command.shape[1:]), np.zeros(data.command_derivatives.shape[1:])]
    readings = [np.zeros((1, *x.shape[2:])) for x in (*data.measured, *data.weight, data.fraction)]
    key = f"{plan} {structure}" if _is_own(mechanism) else None
    motion = functools.partial(_dynamics_rows, plan, structure)
    sight = functools.partial(_observation_rows, plan, structure)
    try:
        return StepKernels(
            plan,
            mechanism,
            kernel(
                motion,
                settings,
                [numbers, turns, _weight(dynamics_weight), scalar],
                [*windows, *inputs],
                key and f"dynamics {key}",
            ),
            kernel(sight, settings, [numbers, turns, scalar, scalar], [*windows, *readings], key and f"seen {key}"),
        )
    except (TooLargeError, UnsupportedError):
        return None


def _weight(matrix: np.ndarray) -> np.ndarray:
    """The diagonal of a diagonal weight, which spares most of the products; else the whole."""
    diagonal = np.diagonal(matrix)
    return diagonal.copy() if np.array_equal(matrix, np.diag(diagonal)) else np.asarray(matrix)


def _as_nodes(plan: Plan, windows: Arrays) -> Nodes:
    pose = Pose(windows[0], windows[1])
    return Nodes(pose, None if plan.unknowns == "configuration" else windows[2])


def _dynamics_rows(plan: Plan, structure: Any, settings: Arrays, constants: Arrays, varying: Arrays) -> Rows:
    numbers, turns, weight, timestep = constants
    prepared = linearise.prepare(plan, jax.tree.unflatten(structure, settings), numbers, turns)
    *windows, command, slopes = varying
    data = ChunkData(command, slopes, (), (), jnp.zeros(0))
    motion = linearise.dynamics_rows(plan, prepared, _as_nodes(plan, windows), data, timestep)
    return linearise.weighted(motion, jnp.diag(weight) if weight.ndim == 1 else weight)


def _observation_rows(
    plan: Plan, structure: Any, settings: Arrays, constants: Arrays, varying: Arrays
) -> tuple[Rows, jax.Array]:
    numbers, turns, timestep, reference = constants
    mechanism = jax.tree.unflatten(structure, settings)
    prepared = linearise.prepare(plan, mechanism, numbers, turns)
    count = 2 if plan.unknowns == "configuration" else 3
    windows, rest = varying[:count], varying[count:]
    sensors = len(mechanism.sensors)
    data = ChunkData(
        jnp.zeros(0), jnp.zeros((0, 0)), tuple(rest[:sensors]), tuple(rest[sensors : 2 * sensors]), rest[-1]
    )
    return linearise.observation_rows(plan, prepared, _as_nodes(plan, windows), data, timestep, reference)


def _is_own(part: Any) -> bool:
    """Whether all parts of a mechanism are of this package, so that its source tells what they do."""
    if isinstance(part, list | tuple):
        return all(_is_own(x) for x in part)
    if dataclasses.is_dataclass(part):
        inside = type(part).__module__.startswith("shadowfit.")
        return inside and all(_is_own(getattr(part, field.name)) for field in dataclasses.fields(part))
    return not callable(part)
