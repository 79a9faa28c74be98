"""How well a model predicts over short and long times, for the price of one linearisation.

A recording is cut into windows of H steps. In each the equations of motion are solved from the best first states of the
window, and the readings are compared with the samples: for H as long as the recording this is the output error of a
simulation, for H of a few steps that of the next steps only. Nothing is simulated: around states that follow the
samples, the linearised equations of a step

    A_k δ_{k−1} + B_k δ_k + C_k δ_{k+1} + r_k = 0

carry the missing impulses r_k, and two free first states, on through the window. They are one triangular band matrix.

Errors are taken relative to how much a sensor's readings vary, and none counts for more than that: where a motion is
not predictable over H (chaos, a machine that falls), H says nothing. The score is the mean logarithm over windows of 8,
16, 32, … steps and the whole: a difference of 0.01 is one per cent of the error, on all horizons.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float
from scipy.linalg.lapack import dtbtrs

from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.deferred_correction import renewed

# The shortest window [steps].
SHORTEST = 8
# Directions of the first states that a window hardly sees are held, relative to those that it sees best.
UNSEEN = 1e-12
# Larger numbers are as good as infinite.
DIVERGED = 1e12
# An exact prediction has a logarithm, too.
LEAST_ERROR = 1e-9


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Errors of predictions over windows of several lengths."""

    steps: tuple[int, ...]
    """H."""
    errors: Float[np.ndarray, "horizons sensors"]
    """Root mean square of each sensor's errors, relative to how much its readings vary."""

    @property
    def score(self) -> float:
        """Mean logarithm of the errors."""
        return float(np.mean(np.log(np.maximum(self.errors, LEAST_ERROR))))


@dataclasses.dataclass(frozen=True)
class _Motion:
    """Linearised equations of one recording: ``δ_{k+1} = f_k − a_k δ_{k−1} − b_k δ_k``, and readings of the states."""

    before: Float[np.ndarray, "n d d"]
    now: Float[np.ndarray, "n d d"]
    forced: Float[np.ndarray, "n d"]
    reading: Float[np.ndarray, "n m W d"]
    """∂(prediction − sample)/∂(states of a step's window); zero for a missing sample."""
    error: Float[np.ndarray, "n m"]


def predict(problem: Problem, along: Point, values: Values) -> Prediction:
    """Predictions of the model with given parameter values, around states that follow the samples."""
    point = renewed(problem, dataclasses.replace(along, values=values))
    spread = _variation(problem)
    longest = max(track.steps for track in problem.tracks)
    steps = tuple(
        SHORTEST * 2**i for i in range(max(int(np.log2(longest / SHORTEST)) + 1, 0)) if SHORTEST * 2**i < longest
    )
    steps = (*steps, longest)
    squares, counts = np.zeros((len(steps), len(spread))), np.zeros((len(steps), len(spread)))
    for index in range(len(problem.tracks)):
        motion = _motion(problem, point, index)
        for row, horizon in enumerate(steps):
            _add_windows(motion, spread, horizon, squares[row], counts[row])
    sizes = np.cumsum([0, *problem.error_sizes[:-1]])
    total, number = np.add.reduceat(squares, sizes, axis=1), np.add.reduceat(counts, sizes, axis=1)
    return Prediction(steps, np.sqrt(total / np.maximum(number, 1.0)))


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
    found = np.concatenate(columns)
    return np.where(found > 0.0, found, 1.0)


def _motion(problem: Problem, point: Point, index: int) -> _Motion:
    size, steps = problem.plan.node_size, problem.tracks[index].steps
    plain = Weights(np.eye(size), (1.0,) * len(problem.error_sizes), 1.0)
    chunks = list(objective.chunk_rows(problem, point, plain, index))
    states = np.concatenate([np.asarray(rows.states) for rows in chunks])[:steps]
    residual = np.concatenate([np.asarray(rows.residual) for rows in chunks])[:steps]
    before, now, after = (states[:, :size, i] for i in range(3))
    right = np.concatenate([before, now, -residual[:, :size, None]], axis=2)
    solved = np.linalg.solve(after, right)
    return _Motion(
        solved[..., :size], solved[..., size : 2 * size], solved[..., -1], states[:, size:], residual[:, size:]
    )


def _add_windows(motion: _Motion, spread: np.ndarray, horizon: int, squares: np.ndarray, counts: np.ndarray) -> None:
    """Add the squared errors of all windows of a recording."""
    steps, rows, _, size = motion.reading.shape
    horizon = min(horizon, steps)
    followed = _followed(motion, horizon)
    window = motion.reading.shape[2]
    padded = np.concatenate([followed, np.zeros((window, *followed.shape[1:]))])
    predicted = sum(motion.reading[:, :, i] @ padded[i : i + steps] for i in range(window))
    predicted[..., 0] += motion.error
    present = np.any(motion.reading != 0.0, axis=(2, 3))
    scale = np.tile(1.0 / spread, rows // len(spread))
    predicted = np.where(present[..., None], predicted * scale[:, None], 0.0)
    # Step k's own state is the second of its window: windows begin a step earlier.
    first = np.arange(-1, steps, horizon) if horizon < steps else np.array([-1])
    for begin, end in zip(first, [*first[1:], steps], strict=True):
        part = slice(max(begin, 0), end)
        error = _best_start(predicted[part].reshape(-1, 2 * size + 1)).reshape(-1, rows)
        folded = np.minimum(error**2, 1.0).reshape(len(error), -1, len(spread))
        squares += folded.sum(axis=(0, 1))
        counts += present[part].reshape(len(error), -1, len(spread)).sum(axis=(0, 1))


def _best_start(columns: Float[np.ndarray, "x c"]) -> Float[np.ndarray, " x"]:
    """The first column less what the others, responses to the first states, can explain of it."""
    error, by_start = columns[:, 0], columns[:, 1:]
    norm = np.linalg.norm(by_start, axis=0)
    unit = by_start / np.where(norm > 0.0, norm, 1.0)
    matrix = unit.T @ unit
    values, vectors = np.linalg.eigh(matrix)
    seen = values > UNSEEN * max(values[-1], 1e-300)
    along = vectors[:, seen]
    return error - unit @ (along @ ((along.T @ (unit.T @ error)) / values[seen]))


def _followed(motion: _Motion, horizon: int) -> Float[np.ndarray, "n+2 d c"]:
    """States that follow: by the missing impulses (first column), and by each of the first states of a window."""
    steps, size = motion.forced.shape
    nodes = steps + 2
    number = np.arange(2, nodes)
    begins = (number % horizon < 2) if horizon < steps else np.zeros(steps, bool)
    keep = ~begins
    band = np.zeros((3 * size, nodes * size))
    band[0] = 1.0
    for row in range(size):
        for column in range(size):
            for distance, block in ((1, motion.now), (2, motion.before)):
                place = (number - distance) * size + column
                band[number * size + row - place, place] = keep * block[:, row, column]
    right = np.zeros((nodes, size, 2 * size + 1))
    right[2:, :, 0] = motion.forced * keep[:, None]
    starts = np.arange(0, nodes, horizon) if horizon < steps else np.zeros(1, int)
    for place in range(2):
        own = starts[starts + place < nodes] + place
        for column in range(size):
            right[own, column, 1 + place * size + column] = 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        solved, _ = dtbtrs(band, right.reshape(nodes * size, -1), uplo="L", diag="U")
    finite = np.nan_to_num(solved, nan=DIVERGED, posinf=DIVERGED, neginf=-DIVERGED)
    return np.clip(finite, -DIVERGED, DIVERGED).reshape(nodes, size, -1)
