"""Simulation: many steps in one compiled loop, of one trajectory or of several, with checks before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shadowfit.complementarity import Status
from shadowfit.dynamics import exact, rigid
from shadowfit.dynamics.discretization import Discretization
from shadowfit.dynamics.elements import assembled
from shadowfit.dynamics.outcomes import Start, Steps, outcomes
from shadowfit.dynamics.requests import (
    Joints,
    check_joints,
    check_request,
    input_signals,
    taken_joints,
    taken_substeps,
)
from shadowfit.dynamics.state import State
from shadowfit.dynamics.trajectory import Trajectory
from shadowfit.dynamics.tree import tree_of
from shadowfit.errors import SimulationError
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.trees import map_leaves

# Loops whose weakest row counts for less than this, relative to the strongest, are named when a step fails.
NEARLY_SINGULAR = 1e-2


def simulate(
    mechanism: Mechanism,
    initial: State,
    inputs: Mapping[str, Any] | None = None,
    *,
    timestep: float,
    steps: int,
    substeps: int | None = None,
    discretization: Discretization = "exact",
    joints: Joints | None = None,
    diagnostics: bool = False,
) -> Trajectory:
    """Simulate ``steps`` steps of ``timestep`` [s] from an initial state.

    Defaults are those of a fit, so that what is simulated and fitted comes back.

    Args:
        mechanism: what moves.
        initial: its state at time zero, as :func:`place` makes it.
        inputs: each input as a number, as an array of ``steps`` values (each held over its step; or of as many as
            there are substeps), or as a function of time [s].
        timestep: from state to state of the trajectory [s].
        steps: how many.
        substeps: steps of the stepper in each of these; None: eight with ``exact`` where no speeds jump, so that its
            errors are a sixty-fourth, else one.
        discretization: ``exact``, or the paper's ``spook``.
        joints: ``rigid`` moves the mechanism in joint coordinates (:mod:`rigid_step`), ``compliant`` takes joints as
            the model has them; None: rigid with ``exact`` where that is possible.
        diagnostics: report multipliers, energies and gaps as well.

    Raises:
        SimulationError: a step fails; it is named, and the trajectory so far is in ``partial``.
    """
    how, finer = _settled(mechanism, timestep, substeps, discretization, joints, diagnostics)
    ((run, status),) = outcomes(how, [_start(how, initial, inputs or {}, steps, finer)])
    if status == Status.SOLVED:
        return _thinned(run, finer)
    raise SimulationError(
        f"simulation of {mechanism.name!r} stopped at step {len(run) // finer} of {steps} "
        f"(t = {len(run) * how.timestep:.6g} s): "
        f"{_failure(status)}{_loops_at(mechanism, run) if how.joints == 'rigid' else ''}",
        _thinned(run, finer),
    )


def simulate_many(
    mechanism: Mechanism,
    initial: Sequence[State],
    inputs: Sequence[Mapping[str, Any]] | Mapping[str, Any] | None = None,
    *,
    timestep: float,
    steps: int,
    substeps: int | None = None,
    discretization: Discretization = "exact",
    joints: Joints | None = None,
    diagnostics: bool = False,
) -> list[Trajectory]:
    """:func:`simulate` from several states, with inputs of each or the same for all.

    Four trajectories go side by side in vector registers, and groups of four in threads; each has the digits that it
    has alone. A trajectory of which a step fails ends there: it has fewer than ``steps + 1`` times.
    """
    how, finer = _settled(mechanism, timestep, substeps, discretization, joints, diagnostics)
    given = [inputs or {}] * len(initial) if inputs is None or isinstance(inputs, Mapping) else inputs
    if len(given) != len(initial):
        raise SimulationError(f"{len(initial)} initial states and inputs of {len(given)} trajectories were given")
    starts = [_start(how, state, own, steps, finer) for state, own in zip(initial, given, strict=True)]
    return [_thinned(run, finer) for run, _ in outcomes(how, starts)] if starts else []


def _settled(
    mechanism: Mechanism,
    timestep: float,
    substeps: int | None,
    discretization: Discretization,
    joints: Joints | None,
    diagnostics: bool,
) -> tuple[Steps, int]:
    """How to step, and substeps of a step."""
    finer = taken_substeps(mechanism, substeps, discretization)
    kind = taken_joints(mechanism, joints, discretization)
    return Steps(mechanism, timestep / finer, discretization, kind, diagnostics), finer


def _thinned(run: Trajectory, every: int) -> Trajectory:
    """A trajectory at every so many of its times."""
    return run if every == 1 else map_leaves(lambda x: np.asarray(x)[::every], run)


def _start(how: Steps, initial: State, inputs: Mapping[str, Any], steps: int, finer: int) -> Start:
    """What one trajectory starts from, checked."""
    check_request(how.mechanism, initial, finer * how.timestep, steps, how.discretization, how.joints)
    signals = input_signals(how.mechanism, inputs, finer * how.timestep, steps, finer)
    check_joints(how.mechanism, assembled(how.mechanism), initial)
    return Start(initial, signals)


def _failure(status: int) -> str:
    if status == exact.NewtonStatus.NOT_SETTLED:
        return "Newton's iterations for the exact constraint did not settle; try a smaller time-step"
    return f"its equations were not solved ({Status(status).text})"


def _loops_at(mechanism: Mechanism, run: Trajectory) -> str:
    """A sentence about loops whose last configuration is nearly singular."""
    tree = tree_of(mechanism)
    if not tree.rigid_loops:
        return ""
    pose = map_leaves(lambda x: np.asarray(x)[-1], run.states.pose)
    weakest, joint = rigid.weakest_loop(tree, mechanism, pose)
    if weakest > NEARLY_SINGULAR:
        return ""
    return f". The loop of joint {joint!r} is near a singular configuration there, where it can go on in two ways"
