"""The parameters' step within bounds and cones: every step ends at bodies that exist.

    minimise ½ δᵀHδ + gᵀδ   subject to   lower ≤ δ ≤ upper,   C_c(δ) = C_c + Σ_i δ_i A_ci ≻ 0

The matrices C (3×3 or 4×4, one or two for each body with free inertia) are linear in the parameters, so the set is
convex and the step is exact: no detour by coordinates in which it would be curved, and a flat body, on the edge of the
set, is an ordinary value. Where the step within bounds alone (:mod:`box_step`) stays inside, it is the answer.
Otherwise

    φ_μ(δ) = ½ δᵀHδ + gᵀδ − μ Σ_c log det C_c(δ),        μ → 0

is minimised by Newton steps within the bounds (Boyd and Vandenberghe, Convex Optimization, section 11.3), each a box
step; along a step φ_μ is known in closed form from the eigenvalues of its direction relative to C. The minimum for μ is
no further than ``Σ_c 3μ`` above that of the step.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.arrays import Float, Int
from shadowfit.complementarity import Status
from shadowfit.estimation.linear.box_step import BoxStep, box_step
from shadowfit.records import record

# μ relative to the decrease that bounds alone allow: at first and at last, and from one to the next.
FIRST, LAST, SHRINK = 0.1, 1e-10, 0.05
# Newton steps for one μ. Three or four are usual, more where the start hugs an edge.
NEWTON_STEPS = 30
# Squared Newton decrement, in units of μ, at which the minimum for a μ is found.
CENTRED = 1e-3
# Part of the way to the edge that a Newton step may go.
WAY = 0.9
# Smallest eigenvalue of C, relative to its trace, to which the edge is approached. Nearer, the curvature of the barrier
# across the edge leaves too few digits for what the data say along it (1e-12 ended in small steps and many refusals).
THINNEST = 1e-8
# Newton steps when the best point of a line is looked for; five are usual. It is found to this part of itself.
LINE_STEPS, LINE = 40, 1e-9


@record(frozen=True)
class Cones:
    """Matrices that must stay positive definite, as functions of a step."""

    offset: Float[np.ndarray, "c k k"]
    """C at no step."""
    places: Int[np.ndarray, "c e"]
    """Variables that each depends on."""
    slopes: Float[np.ndarray, "c e k k"]
    """Derivatives by these; zero for places that do not count."""

    def __len__(self) -> int:
        return len(self.offset)

    def at(self, step: Float[np.ndarray, " p"]) -> Float[np.ndarray, "c k k"]:
        """C after a step."""
        return self.offset + self.along(step)

    def along(self, step: Float[np.ndarray, " p"]) -> Float[np.ndarray, "c k k"]:
        """Change of C by a step."""
        return np.einsum("ce,ceij->cij", step[self.places], self.slopes)

    def contain(self, step: Float[np.ndarray, " p"]) -> bool:
        """Whether a step ends inside, by more than rounding."""
        return len(self) == 0 or bool(np.all(self.room(step) > THINNEST))

    def room(self, step: Float[np.ndarray, " p"]) -> Float[np.ndarray, " c"]:
        """Smallest eigenvalue of each matrix after a step, relative to the trace before it."""
        size = np.abs(np.trace(self.offset, axis1=1, axis2=2))
        return np.linalg.eigvalsh(self.at(step))[:, 0] / size

    def around(self, step: Float[np.ndarray, " p"]) -> Cones:
        """Those of the cones that a step ends inside of."""
        inside = self.room(step) > 0.0
        return Cones(self.offset[inside], self.places[inside], self.slopes[inside])

    def barrier(self, step: Float[np.ndarray, " p"]) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian of ``−Σ log det C`` at a step."""
        count = len(step)
        gradient, hessian = np.zeros(count), np.zeros((count, count))
        turned = np.linalg.solve(self.at(step)[:, None], self.slopes)
        np.add.at(gradient, self.places, -np.trace(turned, axis1=2, axis2=3))
        pairs = np.einsum("caij,cbji->cab", turned, turned)
        np.add.at(hessian, (self.places[:, :, None], self.places[:, None, :]), pairs)
        return gradient, hessian

    def rates(self, step: Float[np.ndarray, " p"], direction: Float[np.ndarray, " p"]) -> Float[np.ndarray, " ck"]:
        """λ with ``det C(step + t direction) = det C(step) Π (1 + λ t)``."""
        root = np.linalg.cholesky(self.at(step))
        half = np.linalg.solve(root, self.along(direction))
        return np.linalg.eigvalsh(np.linalg.solve(root, np.swapaxes(half, 1, 2))).ravel()


def joined(first: Cones, second: Cones) -> Cones:
    """Both, in matrices of the larger size; smaller ones are filled up with a constant that has no say."""
    size = max(first.offset.shape[1], second.offset.shape[1])
    count = max(first.places.shape[1], second.places.shape[1])
    parts = [_filled_up(one, size, count) for one in (first, second)]
    return Cones(*(np.concatenate([getattr(one, name) for one in parts]) for name in ("offset", "places", "slopes")))


def _filled_up(cones: Cones, size: int, count: int) -> Cones:
    """The same with matrices of a given size, as functions of a given number of variables."""
    more, unused = size - cones.offset.shape[1], count - cones.places.shape[1]
    offset = np.pad(cones.offset, ((0, 0), (0, more), (0, more)))
    mean = np.abs(np.trace(cones.offset, axis1=1, axis2=2)) / cones.offset.shape[1]
    for place in range(size - more, size):
        offset[:, place, place] = mean
    slopes = np.pad(cones.slopes, ((0, 0), (0, unused), (0, more), (0, more)))
    return Cones(offset, np.pad(cones.places, ((0, 0), (0, unused))), slopes)


@record(frozen=True)
class _Program:
    """The quadratic program."""

    matrix: Float[np.ndarray, "p p"]
    gradient: Float[np.ndarray, " p"]
    lower: Float[np.ndarray, " p"]
    upper: Float[np.ndarray, " p"]

    def value(self, step: Float[np.ndarray, " p"]) -> float:
        return float(0.5 * step @ self.matrix @ step + self.gradient @ step)

    def slope(self, step: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
        return self.matrix @ step + self.gradient


def cone_step(
    matrix: Float[np.ndarray, "p p"],
    gradient: Float[np.ndarray, " p"],
    bounds: tuple[Float[np.ndarray, " p"], Float[np.ndarray, " p"]],
    cones: Cones,
    guess: BoxStep | None = None,
) -> BoxStep:
    """Minimise ``½ δᵀHδ + gᵀδ`` over a box and those cones that contain δ = 0; else as :func:`box_step`."""
    box = box_step(matrix, gradient, *bounds, guess)
    cones = cones.around(np.zeros_like(box.step))
    if not box.ok or cones.contain(box.step):
        return box
    program = _Program(matrix, gradient, *bounds)
    best = np.zeros_like(box.step), dataclasses.replace(box, status=Status.INACCURATE)
    scale = abs(program.value(box.step)) / (3.0 * len(cones))
    barrier = FIRST * scale
    while barrier >= LAST * scale:
        centred = _centred(program, cones, barrier, *best)
        best = centred or best
        if centred is None or not cones.contain(best[0]):
            break
        barrier *= SHRINK
    step, newton = best
    # Sums of steps reach a bound up to rounding; the last of them knows which ones.
    exact = np.where(newton.at_lower, bounds[0], np.where(newton.at_upper, bounds[1], np.clip(step, *bounds)))
    step = exact if newton.ok and np.all(cones.room(exact) > 0.0) else step
    return dataclasses.replace(newton, step=step, gradient=program.slope(step))


def _centred(
    program: _Program, cones: Cones, barrier: float, start: Float[np.ndarray, " p"], guess: BoxStep
) -> tuple[Float[np.ndarray, " p"], BoxStep] | None:
    """The minimum of φ_μ, from a start inside; None where rounding forbids the first step."""
    step, centre = start, None
    for _ in range(NEWTON_STEPS):
        slope, curvature = cones.barrier(step)
        slope = program.slope(step) + barrier * slope
        bounds = program.lower - step, program.upper - step
        # Bounds that the last step reached may be exceeded by rounding.
        bounds = np.minimum(bounds[0], 0.0), np.maximum(bounds[1], 0.0)
        newton = box_step(program.matrix + barrier * curvature, slope, *bounds, guess)
        if not newton.ok:
            return centre
        decrement = -float(slope @ newton.step)
        if decrement <= CENTRED * barrier:
            return step, newton
        reach = _reach(newton.step, bounds)
        step = step + _best(program, cones, barrier, (step, newton.step), reach) * newton.step
        guess = newton
        centre = step, newton
    return centre


def _reach(direction: Float[np.ndarray, " p"], bounds: tuple[np.ndarray, np.ndarray]) -> float:
    """How far one can go before a bound is met, in units of the direction; one at least."""
    moving = direction != 0.0
    room = np.where(direction > 0.0, bounds[1], bounds[0])[moving]
    return max(float(np.min(room / direction[moving], initial=np.inf)), 1.0)


def _best(
    program: _Program,
    cones: Cones,
    barrier: float,
    line: tuple[Float[np.ndarray, " p"], Float[np.ndarray, " p"]],
    reach: float,
) -> float:
    """Where φ_μ is least on a line (start, direction), before ``reach`` and the edge: a zero of its rising slope."""
    start, direction = line
    rates = cones.rates(start, direction)
    edge = WAY / -rates.min() if rates.min() < 0.0 else np.inf
    first, second = float(program.slope(start) @ direction), float(direction @ program.matrix @ direction)

    def slope(t: float) -> tuple[float, float]:
        """Slope and curvature of φ_μ along the line."""
        share = rates / (1.0 + rates * t)
        return first + second * t - barrier * float(share.sum()), second + barrier * float(share @ share)

    low, high = 0.0, min(reach, edge)
    if not np.isfinite(high):
        # The quadratic term alone stops the line; barriers that fall along it do not.
        high = 1.0
        while slope(high)[0] < 0.0:
            high *= 2.0
    if slope(high)[0] <= 0.0:
        return high
    # Newton's steps, or halves of the interval where they would leave it.
    t = min(1.0, high)
    for _ in range(LINE_STEPS):
        rise, bend = slope(t)
        low, high = (t, high) if rise < 0.0 else (low, t)
        t, before = t - rise / bend, t
        if not low < t < high:
            t = 0.5 * (low + high)
        if abs(t - before) <= LINE * t:
            break
    return t
