"""Mechanisms and helpers that several tests of the dynamics share."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from shadowfit.dynamics import State, Trajectory, place, simulate
from shadowfit.mechanism import Mechanism

STEPPERS = ("spook", "exact")


def with_joints(mechanism: Mechanism, **values: float) -> Mechanism:
    """All joints with the same compliance (both kinds), damping or viscous friction."""
    ends = {
        "compliance": (".compliance.linear", ".compliance.rotational"),
        "damping": (".damping",),
        "viscous": (".viscous",),
        "coulomb": (".coulomb",),
        "dry": (".dry",),
        "stick_time": (".stick_time",),
    }
    joints = tuple(f"{name}." for name in mechanism.joints)
    chosen = {
        leaf: value
        for option, value in values.items()
        for leaf in mechanism.leaves()
        if leaf.startswith(joints) and leaf.endswith(ends[option]) and leaf.count(".") == ends[option][0].count(".")
    }
    return mechanism.set(chosen)


def run(
    mechanism: Mechanism,
    initial: State,
    duration: float,
    timestep: float,
    discretization: str,
    inputs: Mapping[str, Any] | None = None,
) -> Trajectory:
    """A simulation with diagnostics (always, so that a mechanism is compiled once)."""
    steps = round(duration / timestep)
    return simulate(
        mechanism,
        initial,
        inputs,
        timestep=timestep,
        steps=steps,
        discretization=discretization,
        diagnostics=True,
        joints="compliant",
        substeps=1,
    )


def released(mechanism: Mechanism, positions: dict[str, float], *arguments: Any, **options: Any) -> Trajectory:
    """A simulation from rest at joint positions."""
    return run(mechanism, place(mechanism, positions), *arguments, **options)


def energy(trajectory: Trajectory) -> NDArray[np.float64]:
    """Kinetic and potential energy [J] over time."""
    return np.asarray(trajectory.diagnostics.kinetic + trajectory.diagnostics.potential)


def reading(trajectory: Trajectory, *names: str) -> NDArray[np.float64]:
    """Readings of some sensors, one column each."""
    return np.stack([np.asarray(trajectory.readings[name]) for name in names], axis=1)


def orders(errors: list[float]) -> NDArray[np.float64]:
    """Orders of convergence from errors at steps that halve each time."""
    return np.log2(np.array(errors[:-1]) / np.array(errors[1:]))


def central_difference(function: Callable[[NDArray], Any], x: NDArray, steps: NDArray) -> NDArray[np.float64]:
    """Jacobian by differences that are accurate to fourth order, with a step for each argument."""
    columns = []
    for direction in np.diag(steps):
        a, b, c, d = (np.asarray(function(x + k * direction)) for k in (-2, -1, 1, 2))
        columns.append((a - 8 * b + 8 * c - d) / (12 * direction.sum()))
    return np.stack(columns, axis=-1)


def one_sided_difference(function: Callable[[NDArray], Any], x: NDArray, steps: NDArray) -> NDArray[np.float64]:
    """Jacobian by differences to one side only, of second order."""
    here = np.asarray(function(x))
    columns = []
    for direction in np.diag(steps):
        a, b = (np.asarray(function(x + k * direction)) for k in (1, 2))
        columns.append((4 * a - b - 3 * here) / (2 * direction.sum()))
    return np.stack(columns, axis=-1)


def flat(tree: Any) -> NDArray[np.float64]:
    """All numbers of a tree in one vector."""
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])
