"""Which numbers of a mechanism depend on which parameters, read off the operations: the plan of all linearisations."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from shadowfit.arrays import Array
from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.state import Instant, State
from shadowfit.errors import MechanismError
from shadowfit.estimation.problem.options import Options, ProblemError
from shadowfit.estimation.problem.parameters import ParameterSet
from shadowfit.estimation.residuals.equations import Equations, Friction
from shadowfit.estimation.residuals.joint_slopes import Columns
from shadowfit.estimation.residuals.observation import reads_commands
from shadowfit.estimation.residuals.parameter_layout import Layout, Parametrised, Values
from shadowfit.estimation.residuals.plan import Plan
from shadowfit.estimation.residuals.unknowns import Unknowns
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
    layout = Layout(numbers, turns, order, tuple(places[name][0] for name in inputs if name in places))
    friction: Friction = "mean" if options.correction == "deferred" else "stepper"
    equations = Equations(options.residual, options.discretization, friction)
    draft = Plan(layout, equations, _unknowns(mechanism, options), window, on_grid, options.huber)
    acting = _remembered_dependencies(draft, mechanism)
    columns = Columns(*(tuple(acting[name]) for name in ("geometry", "bodies", "contacts")))
    # Commands are not traced: what acts through the inputs acts on all that reads them.
    through = layout.inputs if reads_commands(mechanism) else ()
    seen = tuple(sorted({*acting["sensors"], *through}))
    return dataclasses.replace(draft, layout=dataclasses.replace(layout, sensors=seen, columns=columns))


def _unknowns(mechanism: Mechanism, options: Options) -> Unknowns:
    if len(mechanism.shafts) and options.unknowns != "joint":
        name = mechanism.shafts.names[0]
        raise ProblemError(f"{name!r} is a shaft that several joints turn: it needs the unknowns 'joint'")
    try:
        return options.kind.of(mechanism)
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
    layout = plan.layout
    values = Values(rng.uniform(2.0, 3.0, len(layout.numbers)), np.tile([0.5, 0.1, 0.7, 0.5], (len(layout.turns), 1)))
    bodies = len(mechanism.bodies)

    def everything(given: Array) -> tuple[list[Array], ...]:
        *parts, command = jnp.split(given[plan.parameters :], bodies * np.array([3, 7, 13, 19]))
        moving = [part.reshape(bodies, -1) for part in parts]
        now = Parametrised(layout, jax.tree.unflatten(structure, general), values).moved(given[: plan.parameters])
        view = plan.unknowns.view(now, State(Pose(moving[0], moving[1]), moving[2]), Instant(moving[3], command))
        elements = assemble(now)
        geometry = [(group.kind, group.a, group.b) for group in elements.groups]
        acting = (elements.bodies, elements.gravity, elements.forces)
        touching = (elements.contacts, elements.bodies, geometry) if elements.contacts else ()
        # Readings also depend on what moves the nodes along.
        readings = [sensor.read(view) for sensor in now.sensors.values]
        readings.append(plan.unknowns.constraints(now, Pose(moving[0], moving[1])))
        return tuple(jax.tree.leaves(part) for part in (geometry, acting, touching, readings))

    names = ("geometry", "bodies", "contacts", "sensors")
    size = plan.parameters + 19 * bodies + len(mechanism.inputs)
    counts = [len(part) for part in jax.eval_shape(everything, np.zeros(size))]
    try:
        reached = reach(everything, np.zeros(size))
    except (UnsupportedError, TooLargeError):
        return {name: list(range(plan.parameters)) for name in names}
    places = np.split(np.array(reached)[:, : plan.parameters], np.cumsum(counts)[:-1])
    return {name: np.flatnonzero(part.any(axis=0)).tolist() for name, part in zip(names, places, strict=True)}
