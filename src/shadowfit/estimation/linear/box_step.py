"""The small dense system of the parameters: their step within bounds, and their covariance.

The step is a convex quadratic program,

    minimise ½ δᵀHδ + gᵀδ   subject to   lower ≤ δ ≤ upper.

Write the bounds as ``A δ − c = w ≥ 0``, each row of ``A`` being ±1 in one place. The optimality conditions are
``Hδ + g = Aᵀλ`` with ``0 ≤ λ ⟂ w ≥ 0`` (the paper's appendix on constrained least squares). Eliminating δ leaves a
linear complementarity problem; with the unconstrained minimum ``δ° = −H⁻¹g``,

    A H⁻¹ Aᵀ λ + (A δ° − c) = w,     0 ≤ λ ⟂ w ≥ 0.

Each row is measured in ``σ_i = √(H⁻¹)_ii``, which makes the diagonal one. In these units no variable of the solution
is further from δ° than ``R = ‖δ' − δ°‖_H``, where δ' is any point of the box. Bounds beyond R cannot be met; they are
left out like infinite ones. All right-hand sides then lie within ±R, and a far bound spoils no tolerance.

Which bounds are active is found by Newton steps on ``min(λ, w) = 0`` first: each one releases bounds whose λ is
negative and adds those that are exceeded. They run on the host, where nothing has to be compiled, and nearly always
end at the solution. When they do not, the LCP goes to Lemke's method, whose compilation takes seconds. The step
then follows from a solve for the other variables and sits on its bounds exactly.
"""

from __future__ import annotations

import functools

import numpy as np

from shadowfit.arrays import ArrayLike, Bool, Float
from shadowfit.complementarity import Status, solve_lcp
from shadowfit.errors import ShadowfitError
from shadowfit.estimation.linear.substitution import library
from shadowfit.lazy_jax import jax
from shadowfit.records import record

NEWTON_STEPS = 20
"""Changes of the set of active bounds before Lemke's method takes over; five are usual."""
ROUNDING = 1e-12
"""Excess over a bound, relative to ``σ_i R``, that does not make it active: both choices agree up to rounding."""
FEASIBILITY_TOLERANCE = 1e-8
"""Excess that is clipped away, in the same units; more is a failure. The LCP is verified to 1e-9."""


class BoundsError(ShadowfitError):
    """Bounds of a step that exclude each other or are not numbers."""


@record(frozen=True)
class BoxStep:
    """Solution of the box-constrained quadratic program."""

    step: Float[np.ndarray, " p"]
    """δ; zero if there is no solution."""
    gradient: Float[np.ndarray, " p"]
    """Hδ + g: zero between the bounds, ≥ 0 at a lower and ≤ 0 at an upper one, anything if the variable is fixed."""
    at_lower: Bool[np.ndarray, " p"]
    """Lower bound active."""
    at_upper: Bool[np.ndarray, " p"]
    """Upper bound active; both are for a fixed variable."""
    status: Status
    """How the search ended."""

    @property
    def ok(self) -> bool:
        """Whether the step solves the problem."""
        return self.status is Status.SOLVED


def box_step(
    matrix: Float[ArrayLike, "p p"],
    gradient: Float[ArrayLike, " p"],
    lower: Float[ArrayLike, " p"],
    upper: Float[ArrayLike, " p"],
    guess: BoxStep | None = None,
) -> BoxStep:
    """Minimise ``½ δᵀHδ + gᵀδ`` over a box.

    Args:
        matrix: H, positive definite on the variables that are not fixed; otherwise the status is not `SOLVED`.
        gradient: g.
        lower: lower bounds, −∞ where there is none.
        upper: upper bounds, ∞ where there is none; equal bounds fix a variable.
        guess: result for a similar problem, whose active bounds are tried first.
    """
    H, g, lo, up = (np.asarray(value, dtype=float) for value in (matrix, gradient, lower, upper))
    if not np.all(lo <= up):
        i = int(np.flatnonzero(~(lo <= up))[0])
        raise BoundsError(f"bounds of variable {i} are [{lo[i]}, {up[i]}]; allowed is lower ≤ upper, infinite or not")
    fixed = lo == up
    if guess is not None and (solution := _as_guessed(H, g, (lo, up), guess)) is not None:
        return solution
    center = _minimum(H, g, np.where(fixed, lo, np.nan))
    if center is None:
        return _failed(g, Status.INACCURATE)
    outside = np.clip(center, lo, up) - center
    reach = np.sqrt(outside @ H @ outside)
    if reach == 0.0:
        return BoxStep(center, H @ center + g, fixed, fixed, Status.SOLVED)

    covariance = solve_on(H, ~fixed, np.eye(len(g)))
    assert covariance is not None, "positive definite as above"
    sigma = np.sqrt(np.where(fixed, 1.0, np.diagonal(covariance)))
    distance = np.concatenate([center - lo, up - center]) / np.tile(sigma * reach, 2)
    guessed = np.zeros(2 * len(g), dtype=bool) if guess is None else np.concatenate([guess.at_lower, guess.at_upper])
    by_newton = _active_by_newton(H, g, lo, up, guessed, ROUNDING * sigma * reach)
    if by_newton is not None:
        active, step = by_newton
        at_lower, at_upper = np.split(active | np.tile(fixed, 2), 2)
    else:
        active, status = _active_by_pivoting(covariance / np.outer(sigma, sigma), distance, ~fixed, guessed)
        at_lower, at_upper = np.split(active | np.tile(fixed, 2), 2)
        minimum = _minimum(H, g, np.where(at_lower, lo, np.where(at_upper, up, np.nan)))
        if status is not Status.SOLVED or minimum is None:
            return _failed(g, status if status is not Status.SOLVED else Status.INACCURATE)
        step = minimum
    clipped = np.clip(step, lo, up)
    if np.any(np.abs(step - clipped) > FEASIBILITY_TOLERANCE * sigma * reach):
        return _failed(g, Status.INACCURATE)
    return BoxStep(clipped, H @ clipped + g, at_lower, at_upper, Status.SOLVED)


def _as_guessed(
    H: Float[np.ndarray, "p p"], g: Float[np.ndarray, " p"], bounds: tuple[np.ndarray, np.ndarray], guess: BoxStep
) -> BoxStep | None:
    """The minimum where the bounds of a similar problem are active, if it is the answer: one solve instead of three.

    It is where no other bound is exceeded, and none of these is pulled away from.
    """
    lo, up = bounds
    fixed = lo == up
    at_lower, at_upper = guess.at_lower & np.isfinite(lo) & ~fixed, guess.at_upper & np.isfinite(up) & ~fixed
    step = _minimum(H, g, np.where(at_lower | fixed, lo, np.where(at_upper, up, np.nan)))
    if step is None or np.any((step < lo) | (step > up)):
        return None
    slope = H @ step + g
    if np.any(at_lower & (slope < 0.0)) or np.any(at_upper & (slope > 0.0)):
        return None
    return BoxStep(step, slope, at_lower | fixed, at_upper | fixed, Status.SOLVED)


def parameter_covariance(
    matrix: Float[ArrayLike, "p p"], free: Bool[ArrayLike, " p"] | None = None
) -> Float[np.ndarray, "p p"] | None:
    """Inverse of the reduced, undamped matrix on the free parameters (all if not given), zero on the others.

    None if the matrix is not positive definite there: some combination of parameters is not identifiable.
    """
    H = np.asarray(matrix, dtype=float)
    return solve_on(H, np.ones(len(H), dtype=bool) if free is None else np.asarray(free), np.eye(len(H)))


def solve_on(
    matrix: Float[np.ndarray, "p p"], free: Bool[np.ndarray, " p"], right: Float[np.ndarray, "p *columns"]
) -> Float[np.ndarray, "p *columns"] | None:
    """``x`` with ``H x = right`` on the free variables and zero elsewhere; None if H is not positive definite there.

    H is scaled to a unit diagonal first: units of the parameters differ by many orders of magnitude.
    """
    block = matrix[free][:, free]
    diagonal = np.diagonal(block)
    if not (np.isfinite(block).all() and (diagonal > 0.0).all()):
        return None
    solution = np.zeros_like(right)
    if block.size:
        scale = 1.0 / np.sqrt(diagonal)
        try:
            upper = np.ascontiguousarray(np.linalg.cholesky(block * scale * scale[:, None]).T)
        except np.linalg.LinAlgError:
            return None
        scaled = np.ascontiguousarray((right[free].T * scale).T)
        columns = scaled.size // len(scaled)
        for way in ("forward", "backward"):
            library(way, 1, len(scaled), 0, columns, upper, upper, scaled)
        solution[free] = (scaled.T * scale).T
    return solution


def positive_definite(matrix: Float[np.ndarray, "*n p p"]) -> bool:
    """Whether Cholesky's factors exist, which only see the lower triangles."""
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


def _minimum(
    H: Float[np.ndarray, "p p"], g: Float[np.ndarray, " p"], held: Float[np.ndarray, " p"]
) -> Float[np.ndarray, " p"] | None:
    """Minimum of ``½ δᵀHδ + gᵀδ`` where ``held`` gives the values of variables that stay, NaN for the others."""
    free = np.isnan(held)
    start = np.where(free, 0.0, held)
    change = solve_on(H, free, g + H @ start)
    return None if change is None else start - change


def _active_by_newton(
    H: Float[np.ndarray, "p p"],
    g: Float[np.ndarray, " p"],
    lower: Float[np.ndarray, " p"],
    upper: Float[np.ndarray, " p"],
    guess: Bool[np.ndarray, " 2*p"],
    rounding: Float[np.ndarray, " p"],
) -> tuple[Bool[np.ndarray, " 2*p"], Float[np.ndarray, " p"]] | None:
    """Active bounds (lower, then upper) and the minimum by Newton steps on ``min(λ, w) = 0``; None if endless."""
    fixed = lower == upper
    at_lower, at_upper = np.split(guess & np.isfinite(np.concatenate([lower, upper])), 2)
    for _ in range(NEWTON_STEPS):
        at_upper = at_upper & ~at_lower
        step = _minimum(H, g, np.where(at_lower | fixed, lower, np.where(at_upper, upper, np.nan)))
        if step is None:
            return None
        slope = H @ step + g
        now_lower = ~fixed & np.where(at_lower, slope > 0.0, step < lower - rounding)
        now_upper = ~fixed & np.where(at_upper, slope < 0.0, step > upper + rounding)
        if np.array_equal(now_lower, at_lower) and np.array_equal(now_upper, at_upper):
            return np.concatenate([at_lower, at_upper]), step
        at_lower, at_upper = now_lower, now_upper
    return None


def _active_by_pivoting(
    correlation: Float[np.ndarray, "p p"],
    distance: Float[np.ndarray, " 2*p"],
    free: Bool[np.ndarray, " p"],
    guess: Bool[np.ndarray, " 2*p"],
) -> tuple[Bool[np.ndarray, " 2*p"], Status]:
    """Active bounds from the LCP in units of σ and R.

    The rows of bounds that cannot matter become ``0·λ + 1 = w``, so that the size is always 2p.
    """
    p = len(correlation)
    matters = np.tile(free, 2) & (distance < 1.0 + FEASIBILITY_TOLERANCE)
    A = np.where(matters[:, None], np.concatenate([np.eye(p), -np.eye(p)]), 0.0)
    solution = _compiled_lcp()(A @ correlation @ A.T, np.where(matters, distance, 1.0), guess & matters)
    return np.asarray(solution.active), Status(int(solution.status))


@functools.cache
def _compiled_lcp() -> jax.stages.Wrapped:
    return jax.jit(solve_lcp)


def _failed(gradient: Float[np.ndarray, " p"], status: Status) -> BoxStep:
    """No step at all."""
    nowhere = np.zeros(len(gradient), dtype=bool)
    return BoxStep(np.zeros_like(gradient), gradient, nowhere, nowhere, status)
