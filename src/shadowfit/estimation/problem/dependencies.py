"""The plan of all linearisations, with the parameters that readings depend on, read off the operations."""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.arrays import Array
from shadowfit.dynamics.state import Instant, State
from shadowfit.errors import MechanismError
from shadowfit.estimation.problem.options import Options, ProblemError
from shadowfit.estimation.problem.parameters import ParameterSet
from shadowfit.estimation.residuals.equations import Equations, Friction
from shadowfit.estimation.residuals.observation import reads_commands
from shadowfit.estimation.residuals.parameter_layout import Layout, Parametrised, Values
from shadowfit.estimation.residuals.plan import Plan
from shadowfit.estimation.residuals.unknowns import Unknowns
from shadowfit.geometry import Pose
from shadowfit.kernels import TooLargeError, UnsupportedError, fingerprint, is_own, reach, remembered
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.trees import flatten, unflatten


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
    # Commands are not traced: what acts through the inputs acts on all that reads them.
    through = layout.inputs if reads_commands(mechanism) else ()
    seen = tuple(sorted({*_remembered_dependencies(draft, mechanism), *through}))
    return dataclasses.replace(draft, layout=dataclasses.replace(layout, sensors=seen))


def _unknowns(mechanism: Mechanism, options: Options) -> Unknowns:
    if len(mechanism.shafts) and options.unknowns != "joint":
        name = mechanism.shafts.names[0]
        raise ProblemError(f"{name!r} is a shaft that several joints turn: it needs the unknowns 'joint'")
    try:
        return options.kind.of(mechanism)
    except MechanismError as error:
        raise ProblemError(f"{error}; use the unknowns 'configuration'") from error


def _remembered_dependencies(plan: Plan, mechanism: Mechanism) -> list[int]:
    """The same for every problem of this plan and structure; kept from run to run like compiled code."""
    if not is_own(mechanism):
        return _dependencies(plan, mechanism)
    leaves, structure = flatten(mechanism)
    special = [np.where(np.isin(leaf, (0.0, 1.0)), leaf, np.nan).tolist() for leaf in leaves]
    name = fingerprint("dependencies", plan, structure, special)
    return remembered(name, lambda: _dependencies(plan, mechanism))


def _dependencies(plan: Plan, mechanism: Mechanism) -> list[int]:
    """The parameters that sensors' readings depend on, read off the operations."""
    leaves, structure = flatten(mechanism)
    # Zeros and ones shape the operations; all other numbers are as good as any, and must not cancel by chance.
    rng = np.random.default_rng(0)
    general = [np.where(np.isin(leaf, (0.0, 1.0)), leaf, rng.uniform(2.0, 3.0, np.shape(leaf))) for leaf in leaves]
    layout = plan.layout
    values = Values(rng.uniform(2.0, 3.0, len(layout.numbers)), np.tile([0.5, 0.1, 0.7, 0.5], (len(layout.turns), 1)))
    bodies = len(mechanism.bodies)

    def readings(given: Array) -> list[Array]:
        *parts, command = jnp.split(given[plan.parameters :], bodies * np.array([3, 7, 13, 19]))
        position, orientation, velocity, acceleration = (part.reshape(bodies, -1) for part in parts)
        pose = Pose(position, orientation)
        now = Parametrised(layout, unflatten(structure, general), values).moved(given[: plan.parameters])
        view = plan.unknowns.view(now, State(pose, velocity), Instant(acceleration, command))
        # Readings also depend on what moves the nodes along.
        return [*(sensor.read(view) for sensor in now.sensors.values), plan.unknowns.constraints(now, pose)]

    size = plan.parameters + 19 * bodies + len(mechanism.inputs)
    try:
        reached = reach(readings, np.zeros(size))
    except (UnsupportedError, TooLargeError):
        return list(range(plan.parameters))
    return np.flatnonzero(np.array(reached)[:, : plan.parameters].any(axis=0)).tolist()
