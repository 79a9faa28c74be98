"""Trajectories with compliant joints (:mod:`spook`, :mod:`exact`) as machine code, where nothing is complementary.

Mechanisms with dry friction, contacts or end stops have a complementarity problem in each step, whose pivoting is no
straight program: they are left to XLA (:mod:`rollout`), as are those too large to be written out.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from shadowfit.arrays import Array
from shadowfit.complementarity import Status
from shadowfit.complementarity.small_solve import small_solve
from shadowfit.dynamics import exact, spook
from shadowfit.dynamics.discretization import SCHEMES, Discretization
from shadowfit.dynamics.elements import Elements, assemble
from shadowfit.dynamics.state import State, with_world
from shadowfit.dynamics.velocity_problem import (
    VelocityProblem,
    behind,
    complementary_count,
    equality_bias,
    schur_complement,
)
from shadowfit.geometry import Pose
from shadowfit.kernels import is_own
from shadowfit.kernels.kernel import LARGEST
from shadowfit.kernels.sequence import Layout, Sequence
from shadowfit.mechanism.mechanism import Mechanism

Arrays = list[Any]
# Kernels compute with numbers alone.
SOLVED = float(Status.SOLVED)


class Run(NamedTuple):
    """States at all times, as the stepper has them, and what led to each."""

    states: State
    """Of the leapfrog, with velocities of half a step before each time, and one time more."""
    status: Int[np.ndarray, " t"]
    multipliers: tuple[Float[np.ndarray, "t n r"], ...]
    """Impulses of the step that ends at each time, by group of joints; zero at the first."""


def run(
    mechanism: Mechanism,
    elements: Elements,
    initial: State,
    command: Float[np.ndarray, "steps+1 inputs"],
    timestep: float,
    discretization: Discretization,
) -> Run | None:
    """All steps from an initial state; None where XLA has to do it."""
    rows = sum(group.size * group.rows for group in elements.groups)
    # Elimination of a dense system takes a third of its cube.
    if complementary_count(elements) or rows**3 > 3 * LARGEST or elements.body_count == 0:
        return None
    leaves, structure = jax.tree.flatten(mechanism)
    settings, constants = [np.asarray(leaf) for leaf in leaves], [np.asarray(timestep, float)]
    stepper = _stepper(structure, is_own(mechanism), elements.body_count, command.shape[1], discretization)
    if stepper.code(settings, constants, 1) is None:
        return None
    position, orientation, velocity = (
        np.asarray(x, float) for x in (initial.pose.position, initial.pose.orientation, initial.velocity)
    )
    zero = np.zeros(())

    def advance(velocity: np.ndarray, status: np.ndarray, command: np.ndarray) -> Arrays:
        return stepper(settings, constants, [position, orientation, velocity, status, velocity, zero], [command])

    status = zero
    if SCHEMES[discretization].staggered:
        # Leapfrog start: the velocity half a step before the initial time, to second order, from a whole step after it.
        after = advance(velocity, zero, command[:1])
        status = after[3][0]
        velocity = velocity - 0.5 * (after[2][0] - velocity)
    else:
        command = command[:-1]
    found = advance(velocity, status, command)
    first = [position, orientation, velocity, status, *(np.zeros_like(x[0]) for x in found[4:])]
    places, turns, speeds, statuses, *impulses = (
        np.concatenate([a[None], b]) for a, b in zip(first, found, strict=True)
    )
    return Run(State(Pose(places, turns), speeds), statuses.astype(int), tuple(impulses))


@functools.cache
def _stepper(structure: Any, own: bool, bodies: int, inputs: int, discretization: Discretization) -> Sequence:
    places, turns, speeds, number = np.zeros((bodies, 3)), np.zeros((bodies, 4)), np.zeros((bodies, 6)), np.zeros(())
    layout = Layout([places, turns, speeds, number], [speeds, number], [np.zeros(inputs)])
    key = f"compliant step {discretization} {structure}" if own else None
    return Sequence(functools.partial(_step, structure, discretization), layout, key)


def _step(
    structure: Any, discretization: Discretization, settings: Arrays, constants: Arrays, varying: Arrays
) -> Arrays:
    """One iteration of one step: where it ends, whether another one is needed, and what it found.

    After a failed step the state stays what it was.
    """
    elements, timestep = assemble(jax.tree.unflatten(structure, settings)), constants[0]
    position, orientation, velocity, failed, iterate, count, command = varying
    state = State(Pose(position, orientation), velocity)
    iteration = _newton if discretization == "exact" else _once
    (after, impulses), change = iteration(elements, state, command, timestep, iterate)
    new = after[:-1]
    again = (change > exact.TOLERANCE) & (count < exact.MAX_ITERATIONS - 1)
    settled = jnp.where(change <= 10.0 * exact.TOLERANCE, SOLVED, float(exact.NewtonStatus.NOT_SETTLED))
    moved = state.pose.plus(timestep * new)
    finite = jnp.all(jnp.isfinite(new)) & jnp.all(jnp.isfinite(moved.orientation))
    status = jnp.where(failed == SOLVED, jnp.where(finite, settled, float(Status.INACCURATE)), failed)
    again = again & (failed == SOLVED) & finite

    def kept(after: Array, before: Array) -> Array:
        return jnp.where(status == SOLVED, after, before)

    states = [kept(moved.position, position), kept(moved.orientation, orientation), kept(new, velocity)]
    following = jnp.where(again, new, states[2])
    return [
        *states,
        status,
        following,
        jnp.where(again, count + 1.0, 0.0),
        again.astype(float),
        *states,
        status,
        *impulses,
    ]


_Solution = tuple[Float[Array, "bodies+1 6"], tuple[Float[Array, "n r"], ...]]
"""Velocity after the step, and impulses along the rows of each group."""


def _newton(
    elements: Elements, state: State, command: Array, timestep: Array, iterate: Array
) -> tuple[_Solution, Array]:
    """An iteration of the exact constraint, and how much it changed, relative to the velocity's size."""
    _, last = with_world(state.pose, iterate)
    solution = _solved(elements, exact.velocity_problem(elements, state, command, timestep, last))
    change = jnp.max(jnp.abs(solution[0] - last)) / (1.0 + jnp.max(jnp.abs(last)))
    return solution, change


def _once(elements: Elements, state: State, command: Array, timestep: Array, _: Array) -> tuple[_Solution, Array]:
    """SPOOK's step, which is linear in the new velocity."""
    return _solved(elements, spook.velocity_problem(elements, state, command, timestep)), jnp.zeros(())


def _solved(elements: Elements, problem: VelocityProblem) -> _Solution:
    bias = equality_bias(elements, problem)
    found = -small_solve(schur_complement(elements, problem), bias[:, None])[:, 0] if len(bias) else bias
    return behind(elements, problem, found)
