"""Trajectories with compliant joints (:mod:`spook`, :mod:`exact`) as machine code.

A round of a step solves the velocity problem, linearised about the last round's velocity, on the branches of dry
friction, contacts and end stops that the last round's solution is on (:mod:`velocity_branches`); the step ends where
neither changes. Mechanisms too large to be written out are left to XLA (:mod:`rollout`), and so are trajectories of
which a step does not end: there Lemke's method has the last word.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from shadowfit.arrays import Array, Float, Int
from shadowfit.complementarity import Status
from shadowfit.dynamics import exact, spook
from shadowfit.dynamics.discretization import SCHEMES, Discretization
from shadowfit.dynamics.elements import Elements, assemble
from shadowfit.dynamics.joint_contacts import impulse_count
from shadowfit.dynamics.state import State, with_world
from shadowfit.dynamics.velocity_branches import branch_count, solve_on, towards
from shadowfit.geometry import Pose
from shadowfit.kernels import TooLargeError, is_own
from shadowfit.kernels.batched import tell
from shadowfit.kernels.kernel import LARGEST
from shadowfit.kernels.sequence import Layout, Sequence
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.trees import flatten, unflatten

Arrays = list[Any]
# Kernels compute with numbers alone.
SOLVED = float(Status.SOLVED)


# Rounds of a step in which branches may change.
MAX_ROUNDS = 512


class Run(NamedTuple):
    """States at all times, as the stepper has them, and what led to each."""

    states: State
    """Of the leapfrog, with velocities of half a step before each time, and one time more."""
    status: Int[np.ndarray, "*batch t"]
    multipliers: tuple[Float[np.ndarray, "*batch t n r"], ...]
    """Impulses of the step that ends at each time, by group of joints; zero at the first."""


def run(
    mechanism: Mechanism,
    elements: Elements,
    initial: State,
    command: Float[np.ndarray, "*batch steps+1 inputs"],
    timestep: float,
    discretization: Discretization,
) -> Run | None:
    """All steps from initial states, of which a first axis makes a batch; None where XLA has to do it."""
    rows = sum(group.size * group.rows for group in elements.groups) + impulse_count(elements)
    # Elimination of a dense system takes a third of its cube.
    if elements.body_count == 0:
        return None
    if rows**3 > 3 * LARGEST:
        tell(TooLargeError(f"a step solves for {rows} impulses of joints and contacts at once"))
        return None
    leaves, structure = flatten(mechanism)
    settings, constants = [np.asarray(leaf) for leaf in leaves], [np.asarray(timestep, float)]
    sizes = _Sizes(elements.body_count, command.shape[-1], branch_count(elements))
    stepper = _stepper(structure, is_own(mechanism), sizes, discretization)
    if stepper.code(settings, constants, 1) is None:
        return None
    position, orientation, velocity = (
        np.asarray(x, float) for x in (initial.pose.position, initial.pose.orientation, initial.velocity)
    )
    zero = np.zeros(position.shape[:-2])
    branches = np.zeros((*zero.shape, sizes.branches))

    def advance(velocity: np.ndarray, status: np.ndarray, command: np.ndarray) -> Arrays:
        start = [position, orientation, velocity, status, velocity, branches, zero]
        return stepper(settings, constants, start, [command])

    status = zero
    if SCHEMES[discretization].staggered:
        # Leapfrog start: the velocity half a step before the initial time, to second order, from a whole step after it.
        after = advance(velocity, zero, command[..., :1, :])
        status = after[3][..., 0]
        velocity = velocity - 0.5 * (after[2][..., 0, :, :] - velocity)
    else:
        command = command[..., :-1, :]
    after = advance(velocity, status, command)
    time = zero.ndim
    first = [position, orientation, velocity, status, *(np.zeros_like(x.take(0, time)) for x in after[4:])]
    places, turns, speeds, statuses, *impulses = (
        np.concatenate([np.expand_dims(a, time), b], axis=time) for a, b in zip(first, after, strict=True)
    )
    return Run(State(Pose(places, turns), speeds), statuses.astype(int), tuple(impulses))


class _Sizes(NamedTuple):
    """Numbers of bodies, of inputs, and of what says on which branches a step is."""

    bodies: int
    inputs: int
    branches: int


@functools.cache
def _stepper(structure: Any, is_own: bool, sizes: _Sizes, discretization: Discretization) -> Sequence:
    bodies, number = sizes.bodies, np.zeros(())
    places, turns, speeds = np.zeros((bodies, 3)), np.zeros((bodies, 4)), np.zeros((bodies, 6))
    iterated = [speeds, np.zeros(sizes.branches), number]
    layout = Layout([places, turns, speeds, number], iterated, [np.zeros(sizes.inputs)])
    key = (_step, discretization, structure) if is_own else None
    return Sequence(functools.partial(_step, structure, discretization), layout, key)


def _step(
    structure: Any, discretization: Discretization, settings: Arrays, constants: Arrays, varying: Arrays
) -> Arrays:
    """One round of one step: where it ends, whether another one is needed, and what it found.

    After a failed step the state stays what it was.
    """
    elements, timestep = assemble(unflatten(structure, settings)), constants[0]
    position, orientation, velocity, failed, iterate, branches, count, command = varying
    state = State(Pose(position, orientation), velocity)
    _, last = with_world(state.pose, iterate)
    if discretization == "exact":
        problem = exact.velocity_problem(elements, state, command, timestep, last)
    else:
        problem = spook.velocity_problem(elements, state, command, timestep)
    solved = solve_on(elements, problem, branches)
    new = solved.velocity[:-1]
    fast = 1.0 + jnp.max(jnp.abs(iterate))
    left = solved.violation / fast
    if discretization == "exact":
        left = jnp.maximum(left, jnp.max(jnp.abs(new - iterate)) / fast)
    settled = left <= exact.TOLERANCE
    moved = state.pose.plus(timestep * new)
    finite = jnp.all(jnp.isfinite(new)) & jnp.all(jnp.isfinite(moved.orientation))
    limit = MAX_ROUNDS if len(branches) else exact.MAX_ITERATIONS
    again = ~settled & (count < limit - 1.0) & (failed == SOLVED) & finite
    # Ten times looser: rounding may hold the last changes just above the tolerance.
    ending = jnp.where(left <= 10.0 * exact.TOLERANCE, SOLVED, float(exact.NewtonStatus.NOT_SETTLED))
    status = jnp.where(failed == SOLVED, jnp.where(finite, ending, float(Status.INACCURATE)), failed)

    def kept(after: Array, before: Array) -> Array:
        return jnp.where(status == SOLVED, after, before)

    states = [kept(moved.position, position), kept(moved.orientation, orientation), kept(new, velocity)]
    return [
        *states,
        status,
        jnp.where(again, new, states[2]),
        towards(branches, solved.branches, count),
        jnp.where(again, count + 1.0, 0.0),
        again.astype(float),
        *states,
        status,
        *solved.impulses,
    ]
