"""What errors look like that are not white: functions of the motion, slow forces, uneven or drifting sensors.

A model's error is mostly a small unknown function: friction that is not quite viscous plus Coulomb, a spring that is
not there, a force that changes as the machine warms up, an eccentric encoder. Each joint and each sensor has its
candidates, sums of a few smooth functions (:mod:`state_functions`) whose coefficients have a normal prior of unknown
size; which of them the data ask for, and how large they are, is found in the problem linearised along the most likely
motion (:mod:`components`), which follows the samples whatever the model lacks.

**What it does to the parameters.** The fit has no such functions, for the model is to be simulated; its parameters
stand in for them as well as they can. With columns Z of the functions, T of the parameters (states are projected out of
both) and ``H = TᵀT``, coefficients c move the estimate by ``−H⁻¹TᵀZ c``. With their variances S the covariance grows by

    H⁻¹ TᵀZ S ZᵀT H⁻¹.

S is that of the prior, not of the coefficients given the data: what parameters stand in for is what the data do not
show. Friction as a function of speed may be known well and its split into viscous and Coulomb friction not at all:
their error bars then say so. Where no function is found nothing is added.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from shadowfit.arrays import Bool, Float
from shadowfit.estimation.linear.projection import Follower, Projection
from shadowfit.estimation.problem import rows
from shadowfit.estimation.problem.drives import driven_by_force, is_led, targets
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.sensor_limits import sensor_limits, stated_std
from shadowfit.estimation.problem.sticking import all_told, left_open, told
from shadowfit.estimation.problem.weights import Weights, unit_weights
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.levenberg_marquardt import WARM_DAMPING
from shadowfit.estimation.solve.objective import Linearisation
from shadowfit.estimation.solve.proposal import propose
from shadowfit.estimation.uncertainty import components, state_functions
from shadowfit.estimation.uncertainty.evidence import Evidence, projected
from shadowfit.estimation.uncertainty.latent import Latent, LatentKind, Latents
from shadowfit.estimation.uncertainty.likelihood import deviance
from shadowfit.records import record

# Most numbers of columns that are held at a time: candidates are looked at in as many parts as that takes.
MOST_NUMBERS = 2e7
# Rows that are reduced to a triangle at a time: all of them beside each other would be held three times.
TOGETHER = 5000
# The states are projected out again until columns change by no more than this, or so often: weights far above those of
# the errors leave rounding of the first time.
SETTLED, PASSES = 1e-6, 5
# It is looked at in one of so many columns.
WORST = 10
# Factor from weight to weight (in κ), and how much more likely the next one has to be (−2 log L).
STRIDE, EVIDENCE = 100.0, 2.0
# Functions are named that are rather there than not.
EVEN = 0.5
# Largest part of a function's variance that parameters may stand in for.
HIDDEN = 0.75


@record(frozen=True)
class _Candidate:
    """Functions of one kind."""

    kind: LatentKind
    name: str
    functions: tuple[Float[np.ndarray, "n f"], ...]
    """Along the steps of each recording [N m, N, or the sensor's unit for a coefficient of one]."""
    place: Callable[[Weights, int], tuple[list[int], Float[np.ndarray, "n k"]]]
    """Weighted rows of a recording's steps in which it shows, and what one unit does to them."""
    joint: int | None = None
    """Of forces: the coordinate that they act on."""

    @property
    def width(self) -> int:
        return self.functions[0].shape[1]

    @property
    def energy(self) -> float:
        """Mean square of the sum of all functions with coefficients of unit variance."""
        return float(np.mean(np.sum(np.square(np.concatenate(self.functions)), axis=1)))

    def put(self, weights: Weights, recording: int, columns: Float[np.ndarray, "n m f"]) -> None:
        """Set its columns where they are not zero."""
        where, unit = self.place(weights, recording)
        columns[:, where] = unit[..., None] * self.functions[recording][:, None]


@record(frozen=True)
class Linear:
    """The problem linearised with some weights, states projected out."""

    weights: Weights
    projections: tuple[Projection, ...]
    places: tuple[np.ndarray, ...]
    """Of each recording's parameters among all."""
    free: Bool[np.ndarray, " p"]
    open: float = 0.0
    """Equations that tell nothing of the level of errors, since they leave friction at rest open."""

    def columns(self, part: Sequence[_Candidate], recording: int, states: Follower) -> Float[np.ndarray, "n m c"]:
        """Columns of some candidates in the rows of a recording, whose states are projected out."""
        edges = _edges(part)
        given = np.zeros((*self.projections[recording].residual.shape, edges[-1]))
        for one, begin, end in zip(part, edges, edges[1:], strict=False):
            one.put(self.weights, recording, given[..., begin:end])
        return _without_states(states, given)


@record(frozen=True)
class _Function:
    """Functions that are there."""

    candidate: _Candidate
    variance: float
    """Of the coefficients."""
    gain: float

    def latent(self) -> Latent:
        size = float(np.sqrt(self.variance * self.candidate.energy))
        return Latent(self.candidate.kind, self.candidate.name, size, self.gain)


@record(frozen=True)
class Explanation:
    """Errors explained by white ones of some level, and functions."""

    deviance: float
    """−2 log L, up to a constant."""
    functions: tuple[_Function, ...] = ()
    white: float = 1.0
    """Level of the white errors of impulses beside the functions, relative to where all errors are white."""

    @property
    def smooth(self) -> bool:
        """Whether errors are functions of the motion or of a reading, or hardly white beside slow ones.

        (Random forces that are white within a step, too, look slow to some extent; and they turn the machine where
        they are large, so that a function of the way since then does not tell them from friction.)
        """
        kinds = {one.candidate.kind for one in self.functions if components.probability(one.gain) > EVEN}
        return self.white < STRIDE**-0.25 or bool(kinds & {"speed", "position", "scale"})

    def added(self, weights: Weights, evidence: Evidence) -> Latents:
        """The functions, and what they do to the parameters of a fit."""
        size = len(evidence.labels)
        if not self.functions:
            return Latents((), np.zeros((size, size)))
        variances = np.concatenate([np.full(one.candidate.width, one.variance) for one in self.functions])
        linear = Linear(weights, evidence.projections, evidence.places, ~evidence.at_bound)
        listed = [one.candidate for one in self.functions]
        columns = [linear.columns(listed, i, one.follower()) for i, one in enumerate(linear.projections)]
        sums = _Sums.of(linear, columns, size)
        left = np.diagonal(sums.squares) - np.sum(sums.across * (evidence.bread(linear.free) @ sums.across), axis=0)
        told = _told(one.latent() for one in self.functions if components.probability(one.gain) > EVEN)
        energy = float(variances @ np.maximum(left, 0.0))
        unexplained = self._unexplained(linear, evidence, columns, sums, variances) if weights.believed else ()
        return Latents(told, (sums.across * variances) @ sums.across.T, energy, unexplained)

    def _unexplained(
        self,
        linear: Linear,
        evidence: Evidence,
        columns: Sequence[Float[np.ndarray, "n m c"]],
        sums: _Sums,
        variances: Float[np.ndarray, " c"],
    ) -> tuple[Float[np.ndarray, "n m"], ...]:
        """Residuals less what functions of these variances most likely are of them, parameters following."""
        bread, across = evidence.bread(linear.free), sums.across
        follow = bread @ across
        information = sums.squares - across.T @ follow
        white = (self.white * evidence.reference) ** 2
        # (ZᵀZ + σ²S⁻¹) c = −Zᵀr by what has no size either: c = √S d.
        root = np.sqrt(variances)
        matrix = root[:, None] * information * root + white * np.eye(len(root))
        coefficients = -root * np.linalg.solve(matrix, root * (sums.residual - follow.T @ sums.slope))
        moved = -bread @ sums.slope - follow @ coefficients
        left = []
        for place, projection, own in zip(linear.places, linear.projections, columns, strict=True):
            explained = own @ coefficients + projection.rows @ moved[place]
            # Rows without a residual stay so.
            left.append(np.where(projection.residual != 0.0, projection.residual + explained, 0.0))
        return tuple(left)


@record(frozen=True)
class _Sums:
    """Products of the functions' columns Z with each other, with those of the parameters T and with the residuals r."""

    squares: Float[np.ndarray, "c c"]
    """ZᵀZ."""
    across: Float[np.ndarray, "p c"]
    """TᵀZ."""
    residual: Float[np.ndarray, " c"]
    """Zᵀr."""
    slope: Float[np.ndarray, " p"]
    """Tᵀr."""

    @classmethod
    def of(cls, linear: Linear, columns: Sequence[Float[np.ndarray, "n m c"]], size: int) -> _Sums:
        """For the functions' columns in each recording and so many parameters."""
        width = columns[0].shape[-1]
        sums = cls(np.zeros((width, width)), np.zeros((size, width)), np.zeros(width), np.zeros(size))
        for place, projection, own in zip(linear.places, linear.projections, columns, strict=True):
            flat = own.reshape(-1, width)
            rows_here, residual = projection.rows.reshape(len(flat), -1), projection.residual.ravel()
            sums.squares[...] += flat.T @ flat
            sums.across[place] += rows_here.T @ flat
            sums.residual[...] += flat.T @ residual
            sums.slope[place] += rows_here.T @ residual
        return sums


def _told(functions: Iterable[Latent]) -> tuple[Latent, ...]:
    """Functions of one kind and joint as one error."""
    together: dict[tuple[LatentKind, str], Latent] = {}
    for one in functions:
        key = one.kind, one.name
        other = together.get(key, Latent(*key, 0.0, 0.0))
        together[key] = Latent(*key, float(np.hypot(one.size, other.size)), one.gain + other.gain)
    return tuple(together.values())


def explain(problem: Problem, here: Linearisation, weights: Weights, evidence: Evidence) -> Explanation:
    """The errors that the data ask for beside white ones, along the most likely motion.

    Levels of white errors and functions are found together: equations of motion get more weight than the white errors
    that explain everything ask for, in strides, as long as functions make up for it in the likelihood. Where white
    errors have next to no freedom they cannot.
    """
    point, free = here.point, ~evidence.at_bound
    if not all(
        np.all(np.isfinite(projection.residual)) and np.all(np.isfinite(projection.rows))
        for projection in evidence.projections
    ):
        return Explanation(np.inf)  # a fit that failed

    def linearised(weights: Weights, known: bool = False) -> tuple[Linear, float]:
        there = here if known else objective.linearise(problem, point, weights)
        which = range(len(problem.tracks))
        projections = evidence.projections if known else tuple(projected(problem, there, weights, i) for i in which)
        step = propose(problem, there, WARM_DAMPING, "scaled")
        white = deviance(problem, there, weights, change=0.0 if step is None else step.change, volume=False)[0]
        return Linear(weights, projections, evidence.places, free, left_open(all_told(problem, point, weights))), white

    parts = _parts(problem, candidates(problem, point))
    trial = weights.likely
    likely, white = linearised(trial, known=weights.believed and weights.pull is None)
    best = _explained(problem, parts, likely, white)
    strides = 0
    while strides or most_fall(evidence.noise[0].degrees) > EVIDENCE:
        trial = trial.scaled(STRIDE)
        explanation = _explained(problem, parts, *linearised(trial), best.deviance - EVIDENCE)
        if not explanation.deviance < best.deviance - EVIDENCE:
            break
        strides += 1
        best = dataclasses.replace(explanation, white=explanation.white * STRIDE ** (-0.5 * strides))
    missing = _missing(likely) if best.functions else ()
    limited = (_limited(problem, likely, missing, function) for function in best.functions)
    functions = tuple(function for function in limited if function is not None)
    return dataclasses.replace(best, functions=functions, white=best.white if functions else 1.0)


def most_fall(degrees: float) -> float:
    """By how much −2 log L can fall at most if white forces become smaller by a stride, functions beside them or not.

    Sums of squares over variances only grow. The determinant falls by ``Σ log((1 + x)/(1 + x/S))`` with the variances x
    of the forces' independent parts in units of how well the data tell them, and ``Σ x/(1 + x)`` are their degrees of
    freedom. For so many of them the former is largest where as many parts as can be are known for certain.
    """
    whole, part = divmod(degrees, 1.0)
    return float(whole * np.log(STRIDE) - np.log1p(-part * (1.0 - 1.0 / STRIDE)))


def _missing(likely: Linear) -> tuple[Float[np.ndarray, "n m"], ...]:
    """What errors leave of each recording's rows."""
    return tuple(_without_states(one.follower(), one.residual[..., None].copy())[..., 0] for one in likely.projections)


def _limited(
    problem: Problem, likely: Linear, missing: Sequence[Float[np.ndarray, "n m"]], function: _Function
) -> _Function | None:
    """A force that is no larger than the most likely motion, where all errors are white, shows of it.

    Most of it may be hidden, because parameters stand in for it, but not all but a trace: functions that nearly cancel
    each other explain anything that is small and sharp, at any size. Of a sensor's errors, which states follow, hardly
    anything shows there: those beyond the largest noise that a sensor of the stated one is given are no explanation.
    """
    one = function.candidate
    if one.joint is None:
        sensor = problem.sensors.index(one.name)
        most = float(stated_std(problem)[sensor] * sensor_limits(problem)[1][sensor]) ** 2
        return function if function.variance * one.energy <= most else None
    shown, whole = 0.0, 0.0
    for functions, rows_missing in zip(one.functions, missing, strict=True):
        own, basis = rows_missing[:, one.joint], np.linalg.qr(functions)[0]
        shown, whole = shown + float(np.sum((basis.T @ own) ** 2)), whole + float(own @ own)
    level = likely.weights.unexplained[one.joint] / problem.timestep
    most = level**2 * (shown / whole if whole > 0.0 else 0.0) / (1.0 - HIDDEN)
    return dataclasses.replace(function, variance=min(function.variance, most / one.energy))


def _explained(
    problem: Problem,
    parts: Sequence[Sequence[_Candidate]],
    linear: Linear,
    white: float,
    beyond: float = np.inf,
) -> Explanation:
    """The most likely functions beside white errors of the weights' levels.

    They are not looked for where no functions could bring −2 log L below what they have to go ``beyond``.
    """
    asked: Sequence[_Candidate] = parts[0]
    if len(parts) > 1:
        asked = [one for part in parts for one in _asked(problem, linear, part)]
    if not asked:
        return Explanation(white)
    compared = _compared(problem, linear, asked)
    if white - components.most_fall(compared) >= beyond:
        return Explanation(white)
    sizes = components.chosen(compared)
    variance = {g: components.probability(sizes.gain[g]) * sizes.ratio[g] * sizes.variance for g in sizes.present}
    there = tuple(_Function(asked[g], variance[g], sizes.gain[g]) for g in sizes.present)
    level = float(np.sqrt(sizes.variance)) / linear.weights.reference if there else 1.0
    return Explanation(white - sizes.fall, there, level)


def _parts(problem: Problem, listed: Sequence[_Candidate]) -> list[list[_Candidate]]:
    """Candidates in parts whose columns can be held at a time."""
    size, samples = problem.plan.node_size, sum(problem.error_sizes)
    most = max(track.steps * (size + track.fraction.shape[1] * samples) for track in problem.tracks)
    parts: list[list[_Candidate]] = [[]]
    for one in listed:
        if parts[-1] and most * (one.width + sum(other.width for other in parts[-1])) > MOST_NUMBERS:
            parts.append([])
        parts[-1].append(one)
    return parts


def _asked(problem: Problem, linear: Linear, part: Sequence[_Candidate]) -> list[_Candidate]:
    """Those of some candidates that the data ask for by themselves."""
    return [part[g] for g in components.chosen(_compared(problem, linear, part)).present] if part else []


def _compared(problem: Problem, linear: Linear, part: Sequence[_Candidate]) -> components.Rows:
    """Products of the candidates' columns with each other and with the residuals, parameters projected out."""
    free, edges = linear.free, _edges(part)

    def tables() -> Iterator[tuple[Float[np.ndarray, "r p"], Float[np.ndarray, "r c+1"]]]:
        for index, (place, projection) in enumerate(zip(linear.places, linear.projections, strict=True)):
            count, states = projection.residual.size, projection.follower()
            own = projection.rows.reshape(count, -1)
            by_functions = linear.columns(part, index, states).reshape(count, -1)
            residual = _without_states(states, projection.residual[..., None].copy()).reshape(-1, 1)
            for begin in range(0, count, TOGETHER):
                here = slice(begin, begin + TOGETHER)
                by_parameters = np.zeros((len(own[here]), len(free)))
                by_parameters[:, place] = own[here]
                yield by_parameters[:, free], np.concatenate([by_functions[here], residual[here]], axis=1)

    parameters = int(np.count_nonzero(free))
    first_states = 2 * problem.plan.node_size * len(linear.projections)
    degrees = max(problem.sample_count() - linear.open - parameters - first_states, 1.0)
    return components.projected(tables(), degrees, tuple(tuple(range(*pair)) for pair in itertools.pairwise(edges)))


def _edges(part: Sequence[_Candidate]) -> list[int]:
    """Where the columns of each candidate begin, and the last ones end."""
    return list(itertools.accumulate((one.width for one in part), initial=0))


def _without_states(states: Follower, columns: Float[np.ndarray, "n m c"]) -> Float[np.ndarray, "n m c"]:
    """What the states of a recording leave of some columns, which are overwritten."""
    before = _squares(columns)
    # Rounding is worst in those of which least is left: if another time changes nothing of them, it is done.
    share = 1.0 - states.take_off(columns) / np.where(before > 0.0, before, 1.0)
    worst = np.argsort(share)[: max(len(share) // WORST, 1)]
    if not _taken_off_again(states, np.take(columns, worst, axis=2)).any():
        return columns
    unsettled = np.arange(len(share))
    for _ in range(PASSES - 1):
        if 2 * len(unsettled) > len(share):
            changed = _taken_off_again(states, columns)
            unsettled = np.flatnonzero(changed)
        else:
            some = np.take(columns, unsettled, axis=2)
            changed = _taken_off_again(states, some)
            columns[..., unsettled] = some
            unsettled = unsettled[changed]
        if not unsettled.size:
            break
    return columns


def _taken_off_again(states: Follower, columns: Float[np.ndarray, "n m c"]) -> Bool[np.ndarray, " c"]:
    """Take off what the states still take up of some columns; those that this changes by more than rounding."""
    return ~(states.take_off(columns) <= SETTLED**2 * _squares(columns))


def _squares(columns: Float[np.ndarray, "n m c"]) -> Float[np.ndarray, " c"]:
    return np.asarray(np.einsum("kmc,kmc->c", columns, columns))


# --- candidates ---


def candidates(problem: Problem, point: Point) -> list[_Candidate]:
    """All errors that are looked for: of each joint coordinate, and of each sensor with one component."""
    steps = [track.steps for track in problem.tracks]
    slow = state_functions.of_time(steps)
    listed = []
    motions = [_motion(problem, point, i) for i in range(len(steps))]
    drives, aims = _drives(problem, point), _targets(problem, point)
    for joint, name in enumerate(problem.level_names or ()):
        position, speed = ([motion[i][:, joint] for motion in motions] for i in (0, 1))
        row = functools.partial(_impulse, problem, point, joint), joint
        listed.append(_Candidate("speed", name, state_functions.of_speed(position, speed), *row))
        # Coulomb friction stands in for friction near rest as for no other function of the speed, by as much as it is
        # large: beside them, with one size for all, it would be taken for smaller.
        listed += [_Candidate("speed", name, one, *row) for one in state_functions.near_rest(speed)]
        # Distances are alternatives, and so different in what they do to inertias that they have no size in common.
        listed += [_Candidate("turning", name, one, *row) for one in state_functions.of_turning(position, speed)]
        listed.append(_Candidate("position", name, state_functions.of_position(position), *row))
        if name in drives:
            listed.append(_Candidate("drive", name, state_functions.of_drive(drives[name]), *row))
            listed.append(_Candidate("late", name, state_functions.of_delay(drives[name]), *row))
        if name in aims:
            listed.append(_Candidate("late", name, state_functions.of_lag(aims[name]), *row))
        listed.append(_Candidate("slow", name, slow, *row))
    for sensor, name in enumerate(problem.sensors):
        if problem.error_sizes[sensor] == 1:
            reading = [_readings(problem, i, sensor) for i in range(len(steps))]
            place = functools.partial(_reading, problem, sensor)
            listed.append(_Candidate("scale", name, state_functions.of_position(reading), place))
            listed.append(_Candidate("drift", name, slow, place))
    return listed


def _drives(problem: Problem, point: Point) -> dict[str, list[Float[np.ndarray, " n"]]]:
    """Impulses that known forces give each joint that they drive, in each recording; none of a machine that is led.

    Forces along a path that a controller holds are those that the machine needed: they have friction and all that the
    model lacks in them, and as functions of these would take its place.
    """
    driven: frozenset[str] = frozenset() if is_led(problem) else driven_by_force(problem)
    places = [(joint, name) for joint, name in enumerate(problem.level_names or ()) if name in driven]
    if not places:
        return {}
    known = [force for _, force in objective.missing_and_known(problem, point, unit_weights(problem))]
    return {name: [force[:, joint] for force in known] for joint, name in places}


def _targets(problem: Problem, point: Point) -> dict[str, list[Float[np.ndarray, " n"]]]:
    """Targets of the joints that follow one, in each recording; of several the first."""
    followed = targets(problem)
    if not followed:
        return {}
    inputs = list(problem.mechanism.inputs)
    tables = [problem.commands_at(point.values, i)[0] for i in range(len(problem.tracks))]
    return {
        name: [table[:, inputs.index(next(iter(sources.values())))] for table in tables]
        for name, sources in followed.items()
    }


def _impulse(
    problem: Problem, point: Point, joint: int, weights: Weights, recording: int
) -> tuple[list[int], Float[np.ndarray, "n 1"]]:
    """A force of one on a joint coordinate in the weighted rows."""
    impulse = problem.timestep * weights.dynamics[joint, joint]
    unit = np.full((problem.tracks[recording].steps, 1), impulse)
    counted = told(problem, point, weights, recording)
    return [joint], unit if counted is None else unit * counted[:, [joint]]


def _reading(
    problem: Problem, sensor: int, weights: Weights, recording: int
) -> tuple[list[int], Float[np.ndarray, "n samples"]]:
    """An error of one of a sensor in the weighted rows."""
    where = [here.start for here in rows.groups(problem, recording)[1 + sensor].samples()]
    return where, np.asarray(problem.tracks[recording].present[sensor]) / weights.std[sensor]


def _motion(problem: Problem, point: Point, recording: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions (from where they begin) and speeds of all joint coordinates at the steps."""
    moved, steps = problem.moved(point.nodes[recording]), problem.tracks[recording].steps
    speed = 0.5 * (moved[1 : steps + 1] + moved[:steps]) / problem.timestep
    return np.cumsum(moved, axis=0)[:steps], speed


def _readings(problem: Problem, recording: int, sensor: int) -> Float[np.ndarray, " n"]:
    """Mean reading of each step; between others where there is none."""
    track = problem.tracks[recording]
    present, measured = np.asarray(track.present[sensor]), np.asarray(track.measured[sensor])[..., 0]
    count = present.sum(axis=1)
    known = np.flatnonzero(count)
    if not len(known):
        return np.zeros(track.steps)
    mean = np.sum(np.where(present, measured, 0.0), axis=1)[known] / count[known]
    return np.interp(np.arange(track.steps), known, mean)
