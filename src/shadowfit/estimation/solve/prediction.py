"""How well a model predicts over short and long times, for the price of one linearisation.

A recording is cut into windows of H steps. In each the equations of motion are solved from the best first states of the
window, and the readings are compared with the samples: for H as long as the recording this is the output error of a
simulation, for H of a few steps that of the next steps only. Nothing is simulated: around states that follow the
samples, the linearised equations of a step

    A_k δ_{k−1} + B_k δ_k + C_k δ_{k+1} + r_k = 0

carry the missing impulses r_k, and two free first states, on through the window. They are one triangular band matrix.

Errors are taken relative to how much a sensor's readings vary, and none counts for more than that: where a motion is
not predictable over H (chaos, a machine that falls), H says nothing. The score is the mean logarithm over windows of 8,
16, 32, … steps and the whole, in proportion to their length: a simulator is for the long ones, and the short ones
decide where those say nothing. A difference of 0.01 is one per cent of the error.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable

import numpy as np

from shadowfit.arrays import Bool, Float, Int
from shadowfit.estimation.linear.substitution import library
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import unit_weights
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.truncation import renewed
from shadowfit.records import record

# The shortest window [steps].
SHORTEST = 8
# Directions of the first states that a window hardly sees are held, relative to those that it sees best.
UNSEEN = 1e-12
# Larger numbers are as good as infinite.
DIVERGED = 1e12
# An exact prediction has a logarithm, too.
LEAST_ERROR = 1e-9


@record(frozen=True)
class Prediction:
    """Errors of predictions over windows of several lengths."""

    steps: tuple[int, ...]
    """H."""
    errors: Float[np.ndarray, "horizons sensors"]
    """Root mean square of each sensor's errors, relative to how much its readings vary."""

    @property
    def score(self) -> float:
        """Mean logarithm of the errors, windows counting in proportion to their length."""
        each = np.mean(np.log(np.maximum(self.errors, LEAST_ERROR)), axis=1)
        return float(np.average(each, weights=self.steps))


@record(frozen=True)
class Motion:
    """Linearised equations of one recording's steps, and readings of the states; in physical units."""

    before: Float[np.ndarray, "n d d"]
    """A⁻: ∂(impulses that step k lacks)/∂(state k−1) [N m s, N s]."""
    now: Float[np.ndarray, "n d d"]
    after: Float[np.ndarray, "n d d"]
    reading: Float[np.ndarray, "n m W d"]
    """∂(prediction − sample)/∂(states of a step's window); zero for a missing sample."""
    parameters: Float[np.ndarray, "n d+m p"]
    """Derivatives of impulses and readings by the recording's parameters."""
    residual: Float[np.ndarray, "n d+m"]
    """Impulses that the steps lack, and errors of the readings."""

    @functools.cached_property
    def present(self) -> Bool[np.ndarray, "n m"]:
        """Which readings there are."""
        return np.any(self.reading != 0.0, axis=(2, 3))


def predict(problem: Problem, along: Point, values: Values) -> Prediction:
    """Predictions of the model with given parameter values, around states that follow the samples."""
    point = renewed(problem, problem.revalued(along, values))
    motions = (linearised(problem, point, i) for i in range(len(problem.tracks)))
    return window_errors(problem, ((motion, motion.residual[..., None]) for motion in motions))[0]


def simulation_errors(problem: Problem, fitted: Point) -> Float[np.ndarray, " sensors"]:
    """Relative errors of the simulation of whole recordings from a fit's own first states, around its states."""
    spread, squares, counts = _variation(problem), [], []
    for index, track in enumerate(problem.tracks):
        motion = linearised(problem, fitted, index)
        error, present = _simulated(_forced(motion, motion.residual[..., None]), spread, track.steps)
        squares.append(_folded(error[..., :1], spread))
        counts.append(present)
    return _by_sensor(problem, np.sum(squares, axis=0)[None], np.sum(counts, axis=0)[None])[0, :, 0]


def linearised(problem: Problem, point: Point, index: int) -> Motion:
    """Equations and readings of one recording at a point."""
    size = problem.plan.node_size
    chunks = list(objective.chunk_rows(problem, point, unit_weights(problem), index))
    states = np.concatenate([np.asarray(rows.states) for rows in chunks])
    parameters = np.concatenate([np.asarray(rows.parameters) for rows in chunks])
    residual = np.concatenate([np.asarray(rows.residual) for rows in chunks])
    before, now, after = (states[:, :size, i] for i in range(3))
    return Motion(before, now, after, states[:, size:], parameters, residual)


def window_errors(
    problem: Problem, recordings: Iterable[tuple[Motion, Float[np.ndarray, "n d+m c"]]]
) -> list[Prediction]:
    """Errors of predictions where impulses that steps lack and errors of readings are given, for each of c cases."""
    spread = _variation(problem)
    steps = horizons(max(track.steps for track in problem.tracks))
    forced = (_forced(motion, given) for motion, given in recordings)
    sums = [[_errors_over(one, spread, horizon) for horizon in steps] for one in forced]
    squares, counts = (np.sum([[pair[i] for pair in each] for each in sums], axis=0) for i in range(2))
    errors = _by_sensor(problem, squares, counts)
    return [Prediction(steps, case) for case in np.moveaxis(errors, -1, 0)]


def _by_sensor(
    problem: Problem, squares: Float[np.ndarray, "horizons m c"], counts: Int[np.ndarray, "horizons m"]
) -> Float[np.ndarray, "horizons sensors c"]:
    """Root mean squares of sensors from sums over their components."""
    sizes = np.cumsum([0, *problem.error_sizes[:-1]])
    total, number = np.add.reduceat(squares, sizes, axis=1), np.add.reduceat(counts, sizes, axis=1)
    return np.sqrt(total / np.maximum(number, 1.0)[..., None])


def horizons(longest: int) -> tuple[int, ...]:
    """Lengths of windows: doubled up to the longest one."""
    doubled = itertools.takewhile(lambda horizon: horizon < longest, (SHORTEST * 2**i for i in itertools.count()))
    return (*doubled, longest)


def _variation(problem: Problem) -> Float[np.ndarray, " m"]:
    """How much each component of a sensor's readings varies about its mean, root mean square over all recordings."""
    columns = []
    for sensor, size in enumerate(problem.error_sizes):
        parts = []
        for track in problem.tracks:
            measured, present = np.asarray(track.measured[sensor]), track.present[sensor]
            kept = measured[present].reshape(-1, measured.shape[-1])
            parts.append(kept - kept.mean(axis=0) if len(kept) else kept)
        joined = np.concatenate(parts)
        # Of an orientation, whose errors have fewer components than its readings, the mean counts.
        each = np.sqrt(np.mean(joined**2, axis=0)) if len(joined) else np.zeros(joined.shape[1])
        columns.append(each if joined.shape[1] == size else np.full(size, np.sqrt(np.mean(each**2))))
    variation = np.concatenate(columns)
    return np.where(variation > 0.0, variation, 1.0)


@record(frozen=True)
class _Forced:
    """A recording with what its steps lack and how far its readings are off, in some cases."""

    motion: Motion
    given: Float[np.ndarray, "n d+m c"]
    next_state: Float[np.ndarray, "n d 2*d+c"]
    """How a state follows: ``C⁻¹A`` and ``C⁻¹B`` by the two before, ``−C⁻¹r`` by what the step lacks in each case."""


def _forced(motion: Motion, given: Float[np.ndarray, "n d+m c"]) -> _Forced:
    lacking = given[:, : motion.after.shape[2]]
    solved = np.linalg.solve(motion.after, np.concatenate([motion.before, motion.now, -lacking], axis=2))
    return _Forced(motion, given, solved)


def _errors_over(
    forced: _Forced, spread: Float[np.ndarray, " m"], horizon: int
) -> tuple[Float[np.ndarray, "m c"], Int[np.ndarray, " m"]]:
    """Sums of squared relative errors over all windows of a recording, and the numbers of samples."""
    steps, cases = len(forced.given), forced.given.shape[2]
    horizon = min(horizon, steps)
    predicted, present = _simulated(forced, spread, horizon)
    # Step k's own state is the second of its window: windows begin a step earlier.
    lead = 1 if horizon < steps else 0
    filled = _filled(predicted, lead, horizon)
    error = _best_start(filled.reshape(-1, horizon * predicted.shape[1], filled.shape[-1]), cases)
    return _folded(error, spread), present


def _simulated(
    forced: _Forced, spread: Float[np.ndarray, " m"], horizon: int
) -> tuple[Float[np.ndarray, "n m c+s"], Int[np.ndarray, " m"]]:
    """Relative errors of readings in each window: by missing impulses for each case, and by each first state of it.

    And the number of samples of each component.
    """
    motion, given = forced.motion, forced.given
    steps, rows, window, size = motion.reading.shape
    followed = _followed(forced.next_state, given.shape[2], horizon)
    padded = np.concatenate([followed, np.zeros((window, *followed.shape[1:]))])
    predicted = sum(motion.reading[:, :, i] @ padded[i : i + steps] for i in range(window))
    predicted[..., : given.shape[2]] += given[:, size:]
    scale = np.tile(1.0 / spread, rows // len(spread))
    relative = np.where(motion.present[..., None], predicted * scale[:, None], 0.0)
    return relative, motion.present.reshape(-1, len(spread)).sum(axis=0)


def _folded(error: Float[np.ndarray, "w x c"], spread: Float[np.ndarray, " m"]) -> Float[np.ndarray, "m c"]:
    """Sums of squared errors of each component; none counts for more than its readings vary."""
    return np.minimum(error**2, 1.0).reshape(-1, len(spread), error.shape[2]).sum(axis=0)


def _filled(values: Float[np.ndarray, "n ..."], lead: int, length: int) -> Float[np.ndarray, "k ..."]:
    """Zeros in front and behind, so that the first axis holds whole windows."""
    count = -(-(len(values) + lead) // length) * length
    filled = np.zeros((count, *values.shape[1:]))
    filled[lead : lead + len(values)] = values
    return filled


def _best_start(columns: Float[np.ndarray, "w x c+s"], cases: int) -> Float[np.ndarray, "w x c"]:
    """The first columns of each window less what the others, responses to the first states, can explain of them."""
    error, by_start = columns[..., :cases], columns[..., cases:]
    norm = np.linalg.norm(by_start, axis=1, keepdims=True)
    unit = by_start / np.where(norm > 0.0, norm, 1.0)
    values, vectors = np.linalg.eigh(np.swapaxes(unit, 1, 2) @ unit)
    seen = values > UNSEEN * np.maximum(values[:, -1:], 1e-300)
    inverse = np.where(seen, 1.0 / np.where(seen, values, 1.0), 0.0)
    along = np.swapaxes(vectors, 1, 2) @ (np.swapaxes(unit, 1, 2) @ error)
    return error - unit @ (vectors @ (inverse[..., None] * along))


def _followed(solved: Float[np.ndarray, "n d 2*d+c"], cases: int, horizon: int) -> Float[np.ndarray, "n+2 d c+2*d"]:
    """States that follow: by the missing impulses (a column for each case), and by each first state of a window."""
    steps, size, _ = solved.shape
    nodes = steps + 2
    begins = (np.arange(2, nodes) % horizon < 2) if horizon < steps else np.zeros(steps, bool)
    keep = ~begins
    coefficients = np.ascontiguousarray(solved[..., : 2 * size] * keep[:, None, None])
    right = np.zeros((nodes, size, cases + 2 * size))
    right[2:, :, :cases] = solved[..., 2 * size :] * keep[:, None, None]
    starts = np.arange(0, nodes, horizon) if horizon < steps else np.zeros(1, int)
    for place in range(2):
        rows = starts[starts + place < nodes] + place
        for column in range(size):
            right[rows, column, cases + place * size + column] = 1.0
    library("recur", steps, size, right.shape[2], coefficients, right)
    finite = np.nan_to_num(right, nan=DIVERGED, posinf=DIVERGED, neginf=-DIVERGED)
    return np.clip(finite, -DIVERGED, DIVERGED)
