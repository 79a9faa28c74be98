"""Which numbers of a mechanism depend on which parameters, read off the operations: the plan of all linearisations."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.kinematics import StateView
from shadowfit.dynamics.motion_view import MotionView
from shadowfit.dynamics.state import State
from shadowfit.dynamics.tree import Tree, tree_of
from shadowfit.errors import MechanismError
from shadowfit.estimation.problem.options import Options, ProblemError
from shadowfit.estimation.problem.parameters import ParameterSet
from shadowfit.estimation.residuals import transition
from shadowfit.estimation.residuals.linearise import Plan, write
from shadowfit.geometry import Pose
from shadowfit.kernels import TooLargeError, UnsupportedError, fingerprint, is_own, reach, remembered
from shadowfit.mechanism.mechanism import Mechanism


def make_plan(mechanism: Mechanism, parameters: ParameterSet, options: Options, window: int, on_grid: bool) -> Plan:
    """What is fixed for all linearisations of a problem."""
    numbers = tuple(p.name for p in parameters.parameters if not p.is_rotation)
    turns = tuple(p.name for p in parameters.parameters if p.is_rotation)
    places: dict[str, list[int]] = {}
    start = 0
    for parameter in parameters.parameters:
        places[parameter.name] = list(range(start, start + parameter.size))
        start += parameter.size
    order = tuple(i for name in (*numbers, *turns) for i in places[name])
    inputs = [f"{name}.{leaf}" for name in mechanism.inputs for leaf in ("gain", "offset", "delay")]
    columns = tuple(places[name][0] for name in inputs if name in places)
    draft = Plan(
        numbers,
        turns,
        order,
        transition.Columns(),
        columns,
        (),
        window,
        on_grid,
        options.residual,
        options.discretization,
        "mean" if options.correction == "deferred" else "stepper",
        options.unknowns,
        options.huber,
        len(mechanism.bodies),
        _tree(mechanism) if options.unknowns == "joint" else None,
    )
    found = _remembered_dependencies(draft, mechanism)
    acting = transition.Columns(tuple(found["geometry"]), tuple(found["bodies"]), tuple(found["contacts"]))
    return dataclasses.replace(draft, columns=acting, sensor_columns=tuple(found["sensors"]))


def _tree(mechanism: Mechanism) -> Tree:
    try:
        return tree_of(mechanism)
    except MechanismError as error:
        raise ProblemError(f"{error}; use the unknowns 'configuration'") from error


def _remembered_dependencies(plan: Plan, mechanism: Mechanism) -> dict[str, list[int]]:
    """The same for every problem of this plan and structure; kept from run to run like compiled code."""
    if not is_own(mechanism):
        return _dependencies(plan, mechanism)
    leaves, structure = jax.tree.flatten(mechanism)
    special = [np.where(np.isin(leaf, (0.0, 1.0)), leaf, np.nan).tolist() for leaf in leaves]
    name = fingerprint("dependencies", f"{plan} {structure} {special}")
    return remembered(name, lambda: _dependencies(plan, mechanism))


def _dependencies(plan: Plan, mechanism: Mechanism) -> dict[str, list[int]]:
    """Which parameters change the geometry, the bodies and the sensors' readings, read off the operations."""
    leaves, structure = jax.tree.flatten(mechanism)
    # Zeros and ones shape the operations; all other numbers are as good as any, and must not cancel by chance.
    rng = np.random.default_rng(0)
    general = [np.where(np.isin(leaf, (0.0, 1.0)), leaf, rng.uniform(2.0, 3.0, np.shape(leaf))) for leaf in leaves]
    numbers = rng.uniform(2.0, 3.0, len(plan.numbers))
    turns = np.tile([0.5, 0.1, 0.7, 0.5], (len(plan.turns), 1))
    bodies = len(mechanism.bodies)

    def everything(given: Array) -> tuple[list[Array], ...]:
        moving = [part.reshape(bodies, -1) for part in jnp.split(given[plan.parameters :], [bodies * 3, bodies * 7])]
        now = write(plan, jax.tree.unflatten(structure, general), numbers, turns, given[: plan.parameters])
        state = State(Pose(moving[0], moving[1]), moving[2])
        view = StateView(now, state) if plan.tree is None else MotionView(plan.tree, now, state)
        elements = assemble(now)
        geometry = [(group.kind, group.a, group.b) for group in elements.groups]
        acting = (elements.bodies, elements.gravity, elements.forces)
        touching = (elements.contacts, elements.bodies, geometry) if elements.contacts else ()
        readings = [sensor.read(view) for sensor in now.sensors.values]
        return tuple(jax.tree.leaves(part) for part in (geometry, acting, touching, readings))

    names = ("geometry", "bodies", "contacts", "sensors")
    counts = [len(part) for part in jax.eval_shape(everything, np.zeros(plan.parameters + 13 * bodies))]
    try:
        found = reach(everything, np.zeros(plan.parameters + 13 * bodies))
    except (UnsupportedError, TooLargeError):
        return {name: list(range(plan.parameters)) for name in names}
    places = np.split(np.array(found)[:, : plan.parameters], np.cumsum(counts)[:-1])
    return {name: np.flatnonzero(part.any(axis=0)).tolist() for name, part in zip(names, places, strict=True)}
