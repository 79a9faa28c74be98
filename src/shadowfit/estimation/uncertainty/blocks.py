"""Do the recordings, and the pieces of one recording, agree? Error bars that know about it.

Each piece b of the data, with states of its own, has its own say about the parameters. Linearised at the estimate χ its
rows leave an information H_b and a gradient g_b, hence its own estimate and what noise makes of that,

    χ_b = χ − H_b⁻¹ g_b,     V_b = H_b⁻¹ M_b H_b⁻¹,

with M_b the variance of g_b by the estimated levels of the noise (``M_b = H_b`` where the weights are those). Where the
model is right the χ_b scatter by V_b. Where it is not quite right, each piece prefers other parameters, and they
scatter by more: random effects, ``χ_b ~ N(χ, V_b + τ²)``. As in metrology, where laboratories disagree, each
parameter's τ² follows from Cochran's Q (DerSimonian and Laird 1986), and its variance grows by what τ² adds to that of
the pieces' mean,

    [Σ_b 1/(v_b + τ²)]⁻¹ − [Σ_b 1/v_b]⁻¹,

but by no larger factor than theirs. (Short pieces of a machine with many parameters know far less of each than their
share, and what they add to the variance of *their* mean says little about a fit that knows more.)

Errors of a model change slowly (with the amplitude of a decaying swing, say), so that neighbours agree by chance: the
data are cut into about two, four and eight pieces, and the largest disagreement counts. A trend over the pieces of a
recording, χ_b = χ + β (t_b − t̄), is looked for by itself: it shows where no two neighbours differ, and does not average
out, so that all of its variance β² var(t) counts.

Pieces that agree scatter, too. So both are averaged, a model by which they agree and one by which they do not: what is
added counts with the probability that they do not, by its odds and how much less likely a Q of ν degrees of freedom is
without, ``2 log L = Q − ν − ν log(Q/ν)``. Nothing is chosen, and little noise in the data changes little.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from shadowfit.arrays import Bool, Float
from shadowfit.estimation.linear import front, projection
from shadowfit.estimation.linear.threads import in_threads, one_thread
from shadowfit.estimation.problem import rows
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.chunks import RecordingRows, chunk_length
from shadowfit.estimation.uncertainty.residual_covariance import score_variance
from shadowfit.records import record
from shadowfit.trees import map_leaves

# Pieces of all data, about.
COUNTS = (2, 4, 8)
# A piece has at least this many time steps for each of its unknowns (parameters and first states).
STEPS_PER_UNKNOWN = 4
# Odds, before looking at the data, that a parameter of a model differs from piece to piece.
ODDS = 0.004
# Disagreement is named where it is rather there than not.
EVEN = 0.5
# Pieces hold on to the estimate of all by this fraction of what all pieces tell: what one cannot tell stays.
HOLD = 1e-3
# Fewer pieces show no trend.
LEAST_FOR_TREND = 4

Result = TypeVar("Result")


@record(frozen=True)
class Piece:
    """What some consecutive steps of a recording say about the parameters by themselves."""

    recording: int
    begin: float
    """Time of the first step [s]."""
    end: float
    difference: Float[np.ndarray, " p"]
    """χ_b − χ of the increments; zero for parameters that are not free."""
    std: Float[np.ndarray, " p"]
    """Root of the diagonal of V_b."""


@record(frozen=True)
class Noise:
    """What noise alone makes of the parameters."""

    variance: Float[np.ndarray, " p"]
    """Of each, by all data."""
    wider: Float[np.ndarray, " p"]
    """Its root, over that of white errors."""
    impulse_ratio: Float[np.ndarray, " r"]
    """Standard deviation of each weighted impulse residual in units of ``σ₀``."""


@record(frozen=True)
class Disagreement:
    """How much pieces of the data differ, for each parameter."""

    pieces: tuple[tuple[Piece, ...], ...]
    """The data cut into few and more pieces."""
    added: Float[np.ndarray, " p"]
    """Variance that disagreement adds; zero where pieces agree."""
    degrees: Float[np.ndarray, " p"]
    """Degrees of freedom behind it: the largest number of pieces that differ, less one, or two for a trend; or ∞."""
    spread: Float[np.ndarray, " p"]
    """τ: how much a parameter differs from piece to piece beyond noise; zero where they rather agree."""


class Pieces:
    """The data cut into pieces; what these say is found once, and compared with these parameters free or those."""

    def __init__(self, problem: Problem, point: Point, weights: Weights) -> None:
        self.problem, self.point, self.weights = problem, point, weights
        self.partitions = partitions(problem)
        self._told: dict[bytes, dict[Cut, Statement]] = {}

    def compare(self, free: Bool[np.ndarray, " p"], noise: Noise) -> Disagreement:
        """How much they disagree."""
        return disagreement(self.problem, self.partitions, self._statements(noise.impulse_ratio), free, noise)

    def _statements(self, impulse_ratio: Float[np.ndarray, " r"]) -> dict[Cut, Statement]:
        key = impulse_ratio.tobytes()
        if key not in self._told:
            cuts = [cut for cuts in self.partitions for cut in cuts]
            self._told[key] = statements(self.problem, self.point, self.weights, cuts, impulse_ratio)
        return self._told[key]


def disagreement(
    problem: Problem,
    partitions: Sequence[Sequence[Cut]],
    told: Mapping[Cut, Statement],
    free: Bool[np.ndarray, " p"],
    noise: Noise,
) -> Disagreement:
    """Compare what pieces say about the free parameters."""
    size = problem.parameters.size
    added, spread, degrees = np.zeros(size), np.zeros(size), np.full(size, np.inf)
    scales = []
    for cuts in partitions:
        pieces = _pieces(problem, cuts, [told[cut] for cut in cuts], free, noise)
        scales.append(pieces)
        difference = np.array([piece.difference for piece in pieces])
        std = np.array([piece.std for piece in pieces])
        for i in np.flatnonzero(free).tolist():
            for scatter in (random_effects(difference[:, i], std[:, i]), _trends(pieces, i)):
                extra = scatter.probability * scatter.growth * min(scatter.variance, noise.variance[i])
                if extra > 0.0:
                    # Many pieces that differ as well make the size of what few of them show better known.
                    degrees[i] = scatter.degrees
                if extra > added[i]:
                    added[i], spread[i] = extra, scatter.effect if scatter.probability > EVEN else 0.0
    return Disagreement(tuple(scales), added, degrees, spread)


@record(frozen=True)
class Scatter:
    """What the values of pieces add to the variance of their mean, beyond noise."""

    growth: float = 0.0
    """How many times the variance of their mean; zero if they agree."""
    variance: float = 0.0
    """That variance, by noise alone."""
    effect: float = 0.0
    """τ: the standard deviation from piece to piece."""
    degrees: float = np.inf
    probability: float = 0.0
    """That they do not agree."""


def random_effects(values: Float[np.ndarray, " b"], std: Float[np.ndarray, " b"]) -> Scatter:
    """Values that scatter about their mean (DerSimonian and Laird)."""
    values, weight = _with_a_say(values, std)
    if len(values) < 2:
        return Scatter()
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        mean = np.sum(weight * values) / np.sum(weight)
        cochran, degrees = float(np.sum(weight * (values - mean) ** 2)), len(values) - 1
        if not degrees < cochran < np.inf:
            return Scatter()
        effect = (cochran - degrees) / (np.sum(weight) - np.sum(weight**2) / np.sum(weight))
        growth = float(np.sum(weight) / np.sum(1.0 / (1.0 / weight + effect)) - 1.0)
        probability = _no_coincidence(cochran, degrees)
        scatter = Scatter(growth, float(1.0 / np.sum(weight)), float(np.sqrt(effect)), degrees, probability)
    return scatter if np.isfinite(growth) else Scatter()


def trend(times: Float[np.ndarray, " b"], values: Float[np.ndarray, " b"], std: Float[np.ndarray, " b"]) -> Scatter:
    """Values that drift along a straight line in time."""
    values, weight, times = _with_a_say(values, std, times)
    if len(values) < LEAST_FOR_TREND:
        return Scatter()
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        share = weight / np.sum(weight)
        centred = times - share @ times
        leverage = float(share @ centred**2)
        slope, total = float(share @ (centred * values)) / leverage, float(np.sum(weight))
        # β²/var(β) with var(β) = 1/(Σw var(t)).
        evidence = slope**2 * leverage * total
        if not 1.0 < evidence < np.inf:
            return Scatter()
        variance = (1.0 - 1.0 / evidence) * slope**2 * leverage
    probability = _no_coincidence(evidence, 1)
    return Scatter(variance * total, 1.0 / total, float(np.sqrt(variance)), len(values) - 2, probability)


def _with_a_say(
    values: Float[np.ndarray, " b"], std: Float[np.ndarray, " b"], *others: Float[np.ndarray, " b"]
) -> tuple[Float[np.ndarray, " b"], ...]:
    """Values and weights of the pieces that know something, but (with absurd weights) not all."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        weight = 1.0 / np.square(std)
    known = np.isfinite(weight) & (weight > 0.0) & np.isfinite(values)
    return (values[known], weight[known], *(other[known] for other in others))


def _no_coincidence(squares: float, degrees: int) -> float:
    """Probability that squares of so many degrees of freedom have more than their own variance."""
    gain = squares - degrees - degrees * math.log(squares / degrees)
    return 1.0 / (1.0 + math.exp(-0.5 * gain) / ODDS)


def _trends(pieces: Sequence[Piece], parameter: int) -> Scatter:
    """The strongest trend over the pieces of a recording."""
    trends = []
    for recording in {piece.recording for piece in pieces}:
        pieces_here = [piece for piece in pieces if piece.recording == recording]
        columns = ((0.5 * (p.begin + p.end), p.difference[parameter], p.std[parameter]) for p in pieces_here)
        trends.append(trend(*(np.array(column) for column in zip(*columns, strict=True))))
    return max(trends, key=lambda one: one.growth)


@record(frozen=True)
class Cut:
    """Some steps of a recording."""

    recording: int
    first: int
    last: int
    """The step behind the last one."""


def partitions(problem: Problem) -> list[list[Cut]]:
    """The data in two, four, eight pieces; at least one for each recording, and none too short."""
    recordings = len(problem.tracks)
    partitions: list[list[Cut]] = []
    least = STEPS_PER_UNKNOWN * (problem.parameters.size + 2 * problem.plan.node_size)
    for each in sorted({max(count // recordings, 1) for count in COUNTS}):
        cuts = []
        for index, track in enumerate(problem.tracks):
            parts = max(min(each, track.steps // least), 1)
            edges = np.linspace(0, track.steps, parts + 1).astype(int)
            cuts += [Cut(index, int(a), int(b)) for a, b in itertools.pairwise(edges)]
        if len(cuts) > 1 and (not partitions or len(cuts) > len(partitions[-1])):
            partitions.append(cuts)
    return partitions


@record(frozen=True)
class Statement:
    """What a piece says, states projected out: H_b, g_b, M_b."""

    information: Float[np.ndarray, "p p"]
    gradient: Float[np.ndarray, " p"]
    variance: Float[np.ndarray, "p p"]


def _pieces(
    problem: Problem, cuts: Sequence[Cut], statements: Sequence[Statement], free: Bool[np.ndarray, " p"], noise: Noise
) -> tuple[Piece, ...]:
    """Estimates of the pieces by themselves."""
    held = HOLD * np.sum([one.information for one in statements], axis=0)
    pieces = []
    for cut, one in zip(cuts, statements, strict=True):
        value, std = estimate_alone(one.information + held, one.gradient, one.variance, free, problem.parameters.scales)
        times = problem.tracks[cut.recording].times(problem.timestep)
        span = float(times[cut.first]), float(times[cut.last - 1])
        pieces.append(Piece(cut.recording, *span, value, noise.wider * std))
    return tuple(pieces)


def statements(
    problem: Problem, point: Point, weights: Weights, cuts: Iterable[Cut], impulse_ratio: Float[np.ndarray, " r"]
) -> dict[Cut, Statement]:
    """What pieces say, each with states of its own; the rows that they are cut from are evaluated once."""
    by_recording: dict[int, list[Cut]] = {}
    for cut in dict.fromkeys(cuts):
        by_recording.setdefault(cut.recording, []).append(cut)
    told: dict[Cut, Statement] = {}
    with one_thread():
        for index, listed in by_recording.items():
            recorded = RecordingRows(problem, point, weights, index)
            chunks = zip(*in_threads(recorded.tables, recorded.starts), strict=True)
            tables = [front.joined(tables) for tables in chunks]
            told |= {cut: _statement(problem, point, weights, cut, impulse_ratio, tables) for cut in listed}
    return told


def _statement(
    problem: Problem,
    point: Point,
    weights: Weights,
    cut: Cut,
    impulse_ratio: Float[np.ndarray, " r"],
    tables: Sequence[front.RowTable],
) -> Statement:
    """What a piece says by the rows of its recording."""
    plan, place, size = problem.plan, problem.parameters.places(cut.recording), problem.parameters.size
    steps, length = cut.last - cut.first, chunk_length(problem, cut.recording)
    begins = range(cut.first, cut.last, length)
    chunks = [(begin, [one.between(begin, min(begin + length, cut.last)) for one in tables]) for begin in begins]
    nodes = map_leaves(lambda x: x[cut.first :], point.nodes[cut.recording])
    shifted = dataclasses.replace(point, nodes=_replaced(point.nodes, cut.recording, nodes))
    start = objective.start_rows_of(problem, shifted, weights, cut.recording)
    assembly = front.Assembly(steps + plan.window - 1, plan.window, plan.node_size, plan.parameters)
    for begin, rows_here in chunks:
        assembly.add(rows_here, begin - cut.first)
    normal = assembly.normal(start)
    factor, ridge = objective.undamped(normal)

    def each_chunk(work: Callable[[int, front.Rows], Result]) -> Iterable[Result]:
        return in_threads(lambda one: work(one[0] - cut.first, front.merge(one[1], plan.window)), chunks)

    projected = projection.project(each_chunk, start, factor, steps, ridge)
    information, gradient, variance = np.zeros((size, size)), np.zeros(size), np.zeros((size, size))
    np.add.at(information, np.ix_(place, place), projected.information)
    np.add.at(gradient, place, projected.gradient)
    layout, assumed = rows.groups(problem, cut.recording), weights.reference**2
    variance_here = score_variance(layout, projected, impulse_ratio, assumed)
    np.add.at(variance, np.ix_(place, place), variance_here)
    return Statement(information, gradient, variance)


def estimate_alone(
    information: np.ndarray,
    gradient: np.ndarray,
    variance: np.ndarray,
    free: Bool[np.ndarray, " p"],
    sizes: Float[np.ndarray, " p"],
) -> tuple[Float[np.ndarray, " p"], Float[np.ndarray, " p"]]:
    """``−H_b⁻¹ g_b`` and the standard deviations of it; zero and infinite for parameters that are not free.

    So for those of which a piece tells nothing: what rounding leaves of their information, in units of typical
    ``sizes``, would be correlated with that of the others in any way.
    """
    value, std = np.zeros(len(free)), np.full(len(free), np.inf)
    told = np.where(free, np.diagonal(information) * sizes**2, 0.0)
    kept = told > objective.ROUNDING * told.max(initial=0.0)
    if kept.any():
        scale = 1.0 / np.sqrt(np.diagonal(information)[kept])
        inverse = np.linalg.pinv(information[np.ix_(kept, kept)] * np.outer(scale, scale), hermitian=True)
        inverse = inverse * np.outer(scale, scale)
        value[kept] = -inverse @ gradient[kept]
        std[kept] = np.sqrt(np.maximum(np.diagonal(inverse @ variance[np.ix_(kept, kept)] @ inverse), 0.0))
    return value, std


def _replaced(parts: Sequence, index: int, part: object) -> tuple:
    return tuple(part if i == index else one for i, one in enumerate(parts))
