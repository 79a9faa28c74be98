"""Forces that act: the determinant of their likelihood, without which inertias are pulled to zero.

If errors of the equations of motion are random forces that act on the machine, their density is one of the motion: with
the missing impulses ``τ_k(q_{k−1}, q_k, q_{k+1})`` of variance ``σ²`` and ``A_k = ∂τ_k/∂q_{k+1}``, its inertia,

    −2 log p = Σ_k τ_kᵀ τ_k/σ² − 2 log|det A_k|.

A heavier machine moves less by the same forces, and a fit that forgets it makes impulses small by making bodies light.
States are estimated as well, and take up the part L_k (their leverage) of the rows, which carry A, too: what is left
of the slope by a parameter is

    −2 Σ_k tr(B_k (1 − L_k)),     B_k = ∂A_k A_k⁻¹ in units of the impulses' levels,

all of it where sensors determine the motion, nothing where the equations do. Its curvature is ``2 Σ tr(B B (1 − L))``.
Error bars do not gain by it, on the contrary: levels are estimated as well, and a heavier machine with larger forces
moves alike. With the levels taken out twice the curvature is to be subtracted from the information: what is left is
that of the known forces alone (`Evidence.covariance`).

**Forces that were read.** Errors of a reading of a force, in a loop that holds the path whatever the force is, have no
such term: the machine does not move by them. They are told by what is in them. An error of the reading n is in the
known force l as in what is missing, ``r = … − l``; a force that acts is not, until a controller answers. So of the
changes Δ from step to step, in which noise shows, the share

    c_j = −Σ Δr_j Δl_j / Σ Δr_j²

is one where errors are those of readings and zero where they act, and joint j has the part 1 − c_j of the determinant.
(How well a model predicts cannot tell: from noisy forces an inertia that is too large predicts best.)

**Errors with memory.** The density is that of white forces. What a model lacks is mostly a function of the state, the
same from step to step, and a controller makes up for it: the motion does not answer. A joint whose errors are
correlated from one step to the next has no determinant.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.linear import front
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Pull, Weights, unit_weights
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.chunks import RecordingRows
from shadowfit.estimation.uncertainty.evidence import Evidence

# Change of a coordinate for a difference quotient [rad, m].
DIFFERENCE = 1e-7
# Steps of each recording along which inertias are looked at, and how many times so many: they change slowly.
STRETCH, STRETCHES = 504, 2
# Errors are white if neighbours have less than this correlation. (White forces in continuous time give 1/4.)
MEMORY = 0.5
# A pull that moves no parameter by more than this part of its standard deviation is not worth a fit.
NEGLIGIBLE = 0.1


def acting_share(problem: Problem, point: Point, weights: Weights) -> Float[np.ndarray, " d"]:
    """The part of what each coordinate lacks that is white and acts, 0 to 1."""
    squares, products, changes, shared = np.zeros((4, problem.plan.node_size))
    for missing, force in objective.missing_and_known(problem, point, weights):
        change, known = np.diff(missing, axis=0), np.diff(force, axis=0)
        squares += np.sum(missing**2, axis=0)
        products += np.sum(missing[1:] * missing[:-1], axis=0)
        changes += np.sum(change**2, axis=0)
        shared -= np.sum(change * known, axis=0)
    least = np.finfo(float).tiny
    read = np.clip(shared / np.maximum(changes, least), 0.0, 1.0)
    share = np.where(products < MEMORY * squares, 1.0 - read, 0.0)
    # Measured by its forces, an equation does not gain by light bodies.
    return share if weights.proportion is None else np.where(weights.proportion.measured, 0.0, share)


def log_volume(problem: Problem, point: Point) -> float:
    """``Σ_k log|det A_k|`` over the steps of all recordings, A in N m s and N s a radian and metre.

    Zero where impulses of bodies are weighed by fixed masses (poses as unknowns): it does not depend on parameters.
    """
    if problem.plan.unknowns.reach != 3:
        return 0.0
    inertia = _inertias(problem, point, unit_weights(problem))
    return sum(track.steps for track in problem.tracks) * float(np.mean(np.linalg.slogdet(inertia)[1]))


def pull(
    problem: Problem, point: Point, weights: Weights, evidence: Evidence, acting: Float[np.ndarray, " d"]
) -> Pull | None:
    """What the determinant does to the parameters, as a parabola for each; None where that is next to nothing.

    ``acting`` is the part of each coordinate's errors that acts.
    """
    # Inertia is that of all joints, also where one rests.
    weights = dataclasses.replace(weights, sticks=False)
    root = np.sqrt(acting)
    freedom = root[:, None] * evidence.noise[0].freedom * root
    slope, curvature = _slopes(problem, point, weights, freedom)
    scale = weights.reference**2
    step = evidence.bread(~evidence.at_bound) @ (scale * slope)
    if not np.any(np.abs(step) > NEGLIGIBLE * evidence.std):
        return None
    # Along parameters that inertia does not depend on there is no pull, whatever its center is.
    moved = np.divide(slope, curvature, out=np.zeros_like(slope), where=curvature > 0.0)
    center = problem.parameters.flat(point.values) + moved
    return Pull(tuple(center.tolist()), tuple(curvature.tolist()))


def _slopes(
    problem: Problem, point: Point, weights: Weights, freedom: Float[np.ndarray, "d d"]
) -> tuple[Float[np.ndarray, " p"], Float[np.ndarray, " p"]]:
    """``Σ tr(B (1 − L))`` and ``Σ tr(B B (1 − L))`` for each parameter; the mean of B over steps stands for all."""
    slope, curvature = np.zeros((2, problem.parameters.size))
    # A is that of impulses, whatever rows are counted in.
    weights = dataclasses.replace(weights, read=None)
    count = 0
    for index in range(len(problem.tracks)):
        place = problem.parameters.places(index)
        for begin in _begins(problem, index):
            inertia, change = _inertia_changes(problem, point, weights, index, begin)
            relative = change @ np.linalg.inv(inertia)[:, None]  # B = ∂A A⁻¹
            weighed = relative @ freedom
            count += len(inertia)
            np.add.at(slope, place, np.einsum("kpii->p", weighed))
            np.add.at(curvature, place, np.einsum("kpij,kpji->p", relative, weighed))
    return slope / count, np.maximum(curvature / count, 0.0)


def _inertia_changes(
    problem: Problem, point: Point, weights: Weights, index: int, begin: int
) -> tuple[Float[np.ndarray, "k d d"], Float[np.ndarray, "k p d d"]]:
    """A and ``∂A/∂χ = ∂²τ/∂χ∂q'`` of every third step of a stretch.

    Rows have derivatives by the parameters; how they change with the last configuration of a step is found for one
    coordinate at a time. Every third configuration is the last of one of these steps, and of no interest to the others.
    """
    reach, size = problem.plan.unknowns.reach, problem.plan.node_size
    steps = np.arange(0, min(problem.tracks[index].steps - begin, STRETCH), reach)

    def rows(where: Point) -> front.Rows:
        return RecordingRows(problem, where, weights, index).dynamics(begin, begin + STRETCH)

    here = rows(point)
    inertia, before = np.array(here.states[steps, :, reach - 1]), np.array(here.parameters[steps])
    changes = np.empty((*before.shape, size))
    for coordinate in range(size):
        increments = np.zeros((len(point.nodes[index].pose.position), size))
        increments[begin + steps + reach - 1, coordinate] = DIFFERENCE
        stepped = problem.kernels.retract(point.nodes[index], increments)
        moved = rows(objective.with_states(problem, point, index, stepped))
        changes[..., coordinate] = (np.asarray(moved.parameters)[steps] - before) / DIFFERENCE
    return inertia, changes.swapaxes(1, 2)


def _begins(problem: Problem, index: int) -> list[int]:
    """First steps of some stretches of a recording."""
    begins = list(range(0, problem.tracks[index].steps, STRETCH))
    return begins[:: max(len(begins) // STRETCHES, 1)]


def _inertias(problem: Problem, point: Point, weights: Weights) -> Float[np.ndarray, "k d d"]:
    """A in units of the impulses' levels, along some steps of each recording."""
    size, parts = problem.plan.node_size, []
    for index in range(len(problem.tracks)):
        recording = RecordingRows(problem, point, weights, index)
        for begin in _begins(problem, index):
            parts.append(np.asarray(recording.dynamics(begin, begin + STRETCH).states)[:, :size, 2])
    return np.concatenate(parts)
