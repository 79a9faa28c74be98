"""Which way does time run in a recording? Friction takes energy out of a motion; played backwards, it gives some.

Over a piece of a recording the equations of motion without friction leave a work unexplained, of which friction may
take its part, and free parameters change theirs:

    Σ_j ∫ m_j q̇_j dt = − Σ_j ∫ (b_j q̇_j² + c_j |q̇_j|) dt − Σ_p δ_p Σ_j ∫ (∂m_j/∂p) q̇_j dt + e

with m_j the force that joint j lacks. A work is a change of energy: errors of accelerations do not add up in it, and
forces between bodies do not appear. Least squares over the pieces with b, c ≥ 0, and once more with b, c ≤ 0, leave S₊
and S₋; with ν pieces more than unknowns the odds of a recording that runs backwards are ``(S₊/S₋)^(ν/2)``. When time
is turned round the two change places. An input that is late takes or gives energy as well: where the odds need it to be
on time, they are a doubt and no more.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation import Estimate
from shadowfit.estimation.linear.box_step import box_step
from shadowfit.estimation.linear.threads import one_thread
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import unit_weights
from shadowfit.estimation.solve import objective
from shadowfit.evaluation.unexplained import Terms, force_terms, tree_behind
from shadowfit.records import record

# Endings of the names of numbers that take energy out of a motion, and that are not negative.
LOSSES = (
    "viscous",
    "dry",
    "coulomb",
    "stribeck",
    "stribeck_coulomb",
    "gear_loss",
    "load_loss",
    "coefficient",
    "damping",
    "back_emf",
)
# Pieces of a recording: at least so many, and so many times the unknowns; each of so many steps at least.
PIECES, TIMES, STEPS = 30, 4, 4
# Natural logarithm of the odds from which on a recording is said to run backwards, less one for each loss.
CERTAIN = math.log(100.0)
# Directions of the parameters' columns below this, relative to the largest, are rounding.
NOTHING = 1e-6
# In place of a loss that is not zero: numbers that are exactly zero shape the code of a step, which would be made anew.
NEXT_TO_NOTHING = 1e-100
# Added to the losses' normal equations, whose diagonal is one: two losses may be alike.
ROUNDING = 1e-12


@record(frozen=True)
class Direction:
    """Natural logarithms of the odds that a recording runs backwards, less one for each loss; zero: nothing is told."""

    prompt: float
    """If inputs act when the recording says."""
    late: float
    """If they may be late, or early: the change of their forces is one more unknown of each joint."""

    @property
    def certain(self) -> bool:
        """Whether time runs backwards, whenever inputs act."""
        return self.late > CERTAIN

    @property
    def likely(self) -> bool:
        """Whether time runs backwards, or inputs are late."""
        return self.certain or self.prompt > CERTAIN


def direction(estimate: Estimate, index: int = 0, terms: Terms | None = None) -> Direction:
    """What the energy of a recording says about its time; ``terms`` of its equations of motion may be known."""
    if tree_behind(estimate.problem) is None or not np.isfinite(estimate.cost):
        return Direction(0.0, 0.0)
    missing, change, driven = _forces(estimate, index)
    speed = (terms or force_terms(estimate, index)).speed[:, :, 0]
    late = np.gradient(driven, axis=0)[:, :, None] * np.eye(driven.shape[1])
    steps = min(len(missing), len(speed))
    # Ends of the motion are continued, not measured.
    missing, change, late, speed = (own[:steps][2:-2] for own in (missing, change, late, speed))
    prompt = _log_odds(missing, change, speed)
    if not driven.any():
        return Direction(prompt, prompt)
    return Direction(prompt, _log_odds(missing, np.concatenate([change, late], axis=2), speed))


def _log_odds(
    missing: Float[np.ndarray, "n d"], change: Float[np.ndarray, "n d p"], speed: Float[np.ndarray, "n d"]
) -> float:
    losses = np.concatenate([-(speed**2), -np.abs(speed)], axis=1)
    others = np.einsum("njp,nj->np", change, speed)
    count = min(max(PIECES, TIMES * (losses.shape[1] + others.shape[1])), len(speed) // STEPS)
    if count <= losses.shape[1]:
        return 0.0
    work, losses, others = (_pieces(own, count) for own in (np.sum(missing * speed, axis=1)[:, None], losses, others))
    basis = _span(others)
    left = count - basis.shape[1] - losses.shape[1]
    work, losses = (_beside(basis, own) for own in (work, losses))
    forward, back = (left_over(sign * losses, work[:, 0]) for sign in (1.0, -1.0))
    if left < 1 or forward == 0.0 or back == 0.0:
        return 0.0
    evidence = left * math.log(forward / back)
    return math.copysign(max(abs(evidence) - losses.shape[1], 0.0), evidence)


def _forces(
    estimate: Estimate, index: int
) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d p"], Float[np.ndarray, "n d"]]:
    """What joints lack without any friction [N m, N], what the other parameters change in it, what inputs give."""
    problem, point = without_losses(estimate.problem, estimate.outcome.linearisation.point)
    weights = unit_weights(problem)
    with one_thread():
        rows = list(objective.chunk_rows(problem, point, weights, index))
        idle = objective.residuals(problem.without_inputs(), point, weights, index)
    steps, size = problem.tracks[index].steps, problem.plan.impulses
    missing, change = (
        np.concatenate([np.asarray(getattr(own, name)) for own in rows])[:steps, :size] / problem.timestep
        for name in ("residual", "parameters")
    )
    labels = np.array(problem.parameters.labels())[problem.parameters.places(index)]
    driven = idle[:, :size] / problem.timestep - missing
    return missing, change[..., [not _is_loss(label) for label in labels]], driven


def without_losses(problem: Problem, point: Point) -> tuple[Problem, Point]:
    """The same problem and motion with no friction, or none that counts."""
    losses = {name: problem.mechanism.get(name) for name in problem.mechanism.leaves() if _is_loss(name)}
    none = {name: np.where(np.asarray(value) == 0.0, 0.0, NEXT_TO_NOTHING) for name, value in losses.items()}
    values = problem.parameters.with_numbers(
        point.values, {name: 0.0 for name in problem.parameters.names if name in none}
    )
    return dataclasses.replace(problem, mechanism=problem.mechanism.write(none)), dataclasses.replace(
        point, values=values
    )


def _is_loss(name: str) -> bool:
    return name.partition("@")[0].rpartition(".")[2] in LOSSES


def _pieces(power: Float[np.ndarray, "n c"], count: int) -> Float[np.ndarray, "k c"]:
    """Sums over pieces of equal length."""
    edges = np.linspace(0, len(power), count + 1).astype(int)
    return np.add.reduceat(power, edges[:-1], axis=0)


def _span(columns: Float[np.ndarray, "k p"]) -> Float[np.ndarray, "k r"]:
    """Orthonormal directions of columns, whatever their units."""
    size = np.linalg.norm(columns, axis=0)
    left, values, _ = np.linalg.svd(columns[:, size > 0.0] / size[size > 0.0], full_matrices=False)
    return left[:, values > NOTHING * values.max(initial=0.0)]


def _beside(basis: Float[np.ndarray, "k r"], columns: Float[np.ndarray, "k c"]) -> Float[np.ndarray, "k c"]:
    """What is left of columns beside the directions of a basis; what is rounding is zero."""
    rest = columns - basis @ (basis.T @ columns)
    return np.where(np.linalg.norm(rest, axis=0) > NOTHING * np.linalg.norm(columns, axis=0), rest, 0.0)


def left_over(columns: Float[np.ndarray, "k c"], target: Float[np.ndarray, " k"]) -> float:
    """Norm of what columns leave of a target with coefficients that are not negative."""
    size = np.linalg.norm(columns, axis=0)
    scaled = columns[:, size > 0.0] / size[size > 0.0]
    matrix = scaled.T @ scaled + ROUNDING * np.eye(scaled.shape[1])
    found = box_step(matrix, -scaled.T @ target, np.zeros(len(matrix)), np.full(len(matrix), np.inf))
    return float(np.linalg.norm(target - scaled @ found.step))
