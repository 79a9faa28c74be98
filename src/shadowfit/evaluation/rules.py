"""The rules behind the verdict on a fit: each looks at an estimate and says what a reader must know.

docs/verdict.md states them with their limits. To add one, write a function of an :class:`Estimate` and put it into
``RULES``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from shadowfit.estimation import Estimate
from shadowfit.estimation.solve.system import INSIGNIFICANT
from shadowfit.evaluation.compliance import giving_joints
from shadowfit.evaluation.diagnostics import autocorrelation
from shadowfit.evaluation.forest import Compared, compared, piece_label
from shadowfit.evaluation.latent_words import described, wider
from shadowfit.evaluation.notices import MOST_UNKNOWN, Notice, Severity, listed, ordered
from shadowfit.evaluation.series import compare
from shadowfit.evaluation.unexplained import Unexplained, unexplained
from shadowfit.evaluation.verdict import STRONG, correlation
from shadowfit.mechanism import Sensor

Rule = Callable[[Estimate], Iterator[Notice]]

# Part of a joint's forces that the model does not explain: worth a word, a twentieth of the variance, a tenth of it.
NOTED, MUCH, TOO_MUCH = 0.1, math.sqrt(0.05), math.sqrt(0.1)
# The same of a joint whose torque was measured: half of its variance. Gears of small joints lose 30 or 40 % of their
# torque in ways that no rigid model has, and all methods leave that; of a wrong channel nothing is explained.
HALF = math.sqrt(0.5)
# What is left of a sensor's readings, over its stated noise and over their spread. Models of real machines leave more
# than the noise of a good sensor; error bars know that, and what is left is judged by the motion: a twentieth of
# it, and a fifth.
LOUD = 3.0
OFF, ONLY_NOISE = 0.05, 0.2
# Standard deviations that heed the residuals' correlations, over those that do not.
COLOURED, STRONGLY_COLOURED = 2.0, 10.0
# Correlation of a sensor's residuals with the sample before.
NOT_WHITE = 0.5
# Correlation of two parameters beyond which neither should be used by itself.
INSEPARABLE = 0.99
# Correlation of the missing force with the speed from which on it drives the motion.
DRIVING = 0.3
# Error bars that disagreement makes this much wider are worth a word, and so many of them; beyond, a warning, unless
# they are still below this part of the value.
WIDER, MUCH_WIDER, MOST_PIECES, SMALL_BAR = 1.5, 3.0, 3, 0.01
# χ² that bodies would gain beyond the edge of what they can have, from which on they are pulled there.
PULLED = 4.0
# Part of a parameter below which a standard deviation is not told from rounding.
ROUNDING = 1e-13
# Names of numbers that take energy out of the motion.
FRICTION = ("viscous", "dry", "coulomb", "drag", "damping")
# Names of numbers that are zero in machines without what they stand for, besides friction.
ABSENT_AT_ZERO = (
    *("offset", "delay", "asymmetry", "gear_loss", "quadratic", "stribeck_coulomb", "stribeck_rate"),
    *("eccentric_sin", "eccentric_cos"),
)
# Part of a body's largest moment of inertia by which held ones may give way without a warning.
GAVE_WAY = 0.2
# Inertias that a stated compliance puts off by less than this are of no concern.
SLIGHT = 0.01
# Names of numbers whose sign is a direction: which way an input drives, or a sensor counts.
DIRECTED = ("gain", "torque_constant", "ratio", "scale")


def judge(estimate: Estimate) -> list[Notice]:
    """Everything that the rules have to say, the most serious first."""
    return ordered(notice for rule in RULES for notice in rule(estimate))


def ending(estimate: Estimate) -> Iterator[Notice]:
    """A fit that did not reach a minimum is no result."""
    if estimate.converged:
        return
    untold = [row.name for row in estimate.parameters if row.at_bound or not row.identifiable]
    advice = f"Free fewer parameters: the data do not tell {listed(untold)}, or hold them at a bound" if untold else ""
    yield Notice("red", estimate.status.value.rstrip("."), advice)


def edges(estimate: Estimate) -> Iterator[Notice]:
    """A fit that ended where contacts open or close: the cost has a minimum there, and others near by."""
    if not len(estimate.problem.mechanism.contacts) or not estimate.converged:
        return
    if estimate.unkept_promise > INSIGNIFICANT:
        yield Notice(
            "amber",
            "the fit stands on an edge, where points of contact open and close or stick and slide: its equations "
            f"promise that χ² falls by {estimate.unkept_promise:.2g} more, and it does not",
            "A better minimum may be near: start contacts elsewhere (`--free NAME=START`), leave `--state-weight` to "
            "the data, and compare the costs",
        )


def forces(estimate: Estimate) -> Iterator[Notice]:
    """What the equations of motion leave unexplained, against the strongest force there is."""
    if not np.isfinite(estimate.cost):
        return
    idle = _joints_without_friction(estimate)
    for force in unexplained(estimate):
        if force.gain > DRIVING and force.name in idle:
            yield _driven(force, _held_friction(estimate, force.name))
        if force.share > NOTED:
            red = force.share > (HALF if force.driven else TOO_MUCH)
            severity: Severity = "red" if red else "amber" if force.share > MUCH else "info"
            yield Notice(
                severity,
                f"at {force.name} a force of {force.level:.2g} {force.unit} is unexplained, {_times(force.share)} "
                f"the strongest one there ({force.typical:.2g} {force.unit})",
                _what_to_check(force, severity),
            )


def _what_to_check(force: Unexplained, severity: Severity) -> str:
    if severity == "info":
        return "Error bars include it; `shadowfit advise` names what the model may lack"
    if force.driven and severity != "red":
        return (
            "Compare measured and predicted torque in the report: losses of gears, cables and flexibility are what "
            "rigid models lack, and `shadowfit validate` says what they cost"
        )
    return (
        "Run `shadowfit check`: signs and units of channels and inputs, and what drives or brakes this joint that "
        "the model does not have"
    )


def _driven(force: Unexplained, held: Sequence[str]) -> Notice:
    if held:
        return Notice(
            "red",
            f"{force.name} has less friction than the model holds it at ({', '.join(held)}), and what is free of it "
            "went to zero",
            f"Free what is held (`--free {held[0].partition(' = ')[0]}`), or measure it; else look for a recording "
            "that runs backwards, or an input with the wrong sign",
        )
    return Notice(
        "red",
        f"the motion of {force.name} gains energy that nothing in the model gives, and its friction went to zero",
        "Look for a recording that runs backwards, an input with the wrong sign, or a drive that is not modelled",
    )


def _held_friction(estimate: Estimate, joint: str) -> list[str]:
    """Numbers of a joint's friction that are not free and not zero, with their values."""
    mechanism, free = estimate.problem.given, {row.name for row in estimate.parameters}
    return [
        f"{name} = {value:.4g}"
        for name, leaf in mechanism.leaves().items()
        if leaf.kind == "number" and name.partition(".")[0] == joint and _is_one_of(name, FRICTION) and name not in free
        # The damping of a joint's constraint is a time, and takes nothing from its motion.
        if mechanism.unit(name) != "s"
        if (value := float(mechanism.get(name))) > 0.0
    ]


def _joints_without_friction(estimate: Estimate) -> set[str]:
    """Joints of which every free number of friction ended at zero."""
    zero: dict[str, bool] = {}
    for row in estimate.parameters:
        joint = row.name.partition(".")[0]
        if _is_one_of(row.name, FRICTION):
            zero[joint] = zero.get(joint, True) and row.at_bound and row.value == 0.0
    return {joint for joint, idle in zero.items() if idle}


def sensors(estimate: Estimate) -> Iterator[Notice]:
    """How well sensors are followed, each in the recording in which that is worst."""
    tracks = estimate.problem.tracks
    found: dict[str, list[_Left]] = {}
    for index, track in enumerate(tracks):
        trajectory = estimate.trajectory(index)
        series = compare(estimate.mechanism(index), track.recording, trajectory.time, trajectory.readings)
        for name in estimate.problem.given.sensors:
            readings = series[name]
            if readings.residual.shape[1] != readings.measured.shape[1]:
                continue  # an orientation: its readings and its errors are different things
            known = readings.residual[np.isfinite(readings.residual).all(axis=1), 0]
            where = name if len(tracks) == 1 else f"{name} in {track.recording.name}"
            lag = autocorrelation(known, 1)[1] if len(known) > 20 else 0.0
            found.setdefault(name, []).append(_Left(where, readings.rmse(), _spread(readings.measured), float(lag)))
    for name, sensor in estimate.problem.given.sensors.items():
        rows = [row for row in found.get(name, ()) if math.isfinite(row.rms)]
        if rows:
            yield from _following(max(rows, key=lambda row: row.rms), sensor, name)


@dataclasses.dataclass(frozen=True)
class _Left:
    """What is left of a sensor's readings in one recording."""

    where: str
    rms: float
    spread: float
    """Standard deviation of the readings."""
    lag: float
    """Correlation from sample to sample."""


def _following(left: _Left, sensor: Sensor, name: str) -> Iterator[Notice]:
    unit, stated = sensor.unit(), float(sensor.std)
    coloured = f"; what is left is correlated in time ({left.lag:.2f} from sample to sample)"
    also = coloured if left.lag > NOT_WHITE else ""
    if left.rms <= LOUD * stated:
        if also:
            yield Notice(
                "info",
                f"{left.where} is followed within its noise{also}",
                "Error bars include that; their curve in the report shows what the model lacks",
            )
        return
    share = left.rms / left.spread if left.spread > 0.0 else math.inf
    if share > ONLY_NOISE:
        yield Notice(
            "red",
            f"{left.where} is not followed: {left.rms:.2g} {unit} are left of readings that vary by {left.spread:.2g} "
            f"{unit}",
            "Check column, sign and unit of the channel and of the inputs: this motion is not that of the model",
        )
        return
    severity: Severity = "amber" if share > OFF else "info"
    yield Notice(
        severity,
        f"{left.where} is followed to {left.rms:.2g} {unit}: {_percent(share)} of its spread, {left.rms / stated:.0f} "
        f"times the stated noise{also}",
        "That is how exact the model is; error bars include what it lacks, and `shadowfit advise` names candidates"
        if severity == "info"
        else f"If the sensor is that noisy say so (`--set {name}.std=…`), else the model lacks something: "
        "`shadowfit advise` names candidates",
    )


def colours(estimate: Estimate) -> Iterator[Notice]:
    """Error bars that take residuals for white noise, where they are not."""
    if not estimate.parameters or not np.isfinite(estimate.cost) or not estimate.weights.believed:
        return
    plain, robust = estimate.uncertainty().std, estimate.uncertainty("robust").std
    known = np.array([row.identifiable and not row.at_bound for row in estimate.parameters])
    ratio = np.where(known, robust / np.where(plain > 0.0, plain, np.nan), np.nan)
    if not np.any(ratio > COLOURED):
        return
    worst = int(np.nanargmax(ratio))
    severity: Severity = "red" if ratio[worst] > STRONGLY_COLOURED else "amber"
    yield Notice(
        severity,
        f"residuals are correlated in time or larger than assumed: heeding that, the standard deviation of "
        f"{estimate.parameters[worst].name} is {ratio[worst]:.1f} times the stated one",
        "Use `--intervals robust`, and look for what the model lacks",
    )


def parameters(estimate: Estimate) -> Iterator[Notice]:
    """Parameters on a bound, or not told by the data."""
    idle = _joints_without_friction(estimate)
    by_noise = estimate.uncertainty("gauss-newton").std
    for row, noise in zip(estimate.parameters, by_noise, strict=True):
        joint = row.name.partition(".")[0]
        unit = "" if row.unit == "1" else f" {row.unit}"
        if row.at_bound and row.value == 0.0 and _is_one_of(row.name, FRICTION):
            yield Notice(
                "amber" if joint in idle else "info",
                f"{row.name} ended at zero",
                "All friction of this joint that is free went to zero, which no machine has: check directions and "
                "signs, and what is held"
                if joint in idle
                else "The data see no such friction beside the others of the joint",
            )
        elif row.at_bound:
            yield Notice(
                "amber",
                f"{row.name} sits on its bound {row.value:.4g}{unit}",
                "Widen the bound if it was a guess; else the model lacks something that the parameter tries to make up",
            )
        elif row.value != 0.0 and noise <= ROUNDING * abs(row.value):
            yield Notice(
                "red",
                f"the standard deviation of {row.name} by noise alone, {noise:.2g}{unit}, is below the "
                "rounding of its value",
                "The equations of motion outweigh the readings so far that these drown in rounding: leave "
                "`--state-weight` to the data, and check the stated noise of the sensors",
            )
    kept = [row.name for row in estimate.parameters if row.from_prior]
    if kept:
        parts = list(dict.fromkeys(name.partition(".")[0] for name in kept))
        which = listed(kept) if len(kept) <= MOST_UNKNOWN else f"of {listed(parts)}"
        yield Notice(
            "info",
            f"{len(kept)} of {len(estimate.parameters)} parameters stay near the model file's values: {which}",
            "The data tell less about them than is known beforehand (priors of `result.json`)",
        )
    yield from _untold(estimate)


def _untold(estimate: Estimate) -> Iterator[Notice]:
    """What the data do not tell: small friction and offsets apart from what a machine cannot be without."""
    unseen = {name for finding in estimate.findings for name in finding.names}
    unknown = [row for row in estimate.parameters if not row.at_bound and not row.identifiable]
    absent = [
        row.name for row in unknown if row.name not in unseen and _is_one_of(row.name, (*FRICTION, *ABSENT_AT_ZERO))
    ]
    names = [row.name for row in unknown if row.name not in absent]
    groups = [finding for finding in estimate.findings if len(finding.names) > 1]
    if absent:
        yield Notice(
            "info",
            f"{listed(absent)} cannot be told from zero: the interval says how large "
            f"{'it' if len(absent) == 1 else 'they'} may be",
            f"Leave {_it(absent)} out where that is enough",
        )
    if len(names) + len(groups) > MOST_UNKNOWN and np.isfinite(estimate.cost):
        base = estimate.base_parameters
        if base.grouped or base.unseen:
            yield _combined(estimate, len(names))
            return
    if names:
        one = len(names) == 1
        yield Notice(
            "amber",
            f"{listed(names)} {'is' if one else 'are'} not identifiable: {'its' if one else 'their'} standard "
            f"deviation{' exceeds its size' if one else 's exceed their sizes'}",
            f"Fix {_it(names)} (no `--free`), or record a motion that depends on {_it(names)}",
        )
    for finding in groups:
        yield Notice("amber", f"not identifiable: {finding.text.rstrip('.')}", "Fix one of them")


def _is_one_of(name: str, words: tuple[str, ...]) -> bool:
    """Whether a part of a parameter's name behind the first, ``drag`` in ``hinge.drag.coefficient``, is a word."""
    return any(part in words for part in name.partition("@")[0].split(".")[1:])


def _it(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"


def _combined(estimate: Estimate, unknown: int) -> Notice:
    """Many parameters that are not told by themselves, in one sentence."""
    base = estimate.base_parameters
    return Notice(
        "amber",
        f"{unknown} of {len(estimate.parameters)} parameters are not identifiable by themselves: the motion determines "
        f"{len(base.combinations)} base parameters, {len(base.grouped)} of them combinations, and does not see "
        f"{len(base.unseen)} parameters at all",
        "The table of base parameters says which; the rest stays near the file's values, or where priors (`--prior`) "
        "have it",
    )


def directions(estimate: Estimate) -> Iterator[Notice]:
    """Inputs and sensors that came out the other way round: a mirrored channel is explained exactly by that."""
    given = {p.name: p.start for p in estimate.problem.parameters.parameters if not p.is_rotation}
    for row in estimate.parameters:
        name = row.name.partition("@")[0]
        if name.rpartition(".")[2] in DIRECTED and row.identifiable and row.value * float(given[name]) < 0.0:
            unit = "" if row.unit == "1" else f" {row.unit}"
            yield Notice(
                "amber",
                f"{row.name} came out as {row.value:.4g}{unit}, with the opposite sign of the model's "
                f"{float(given[name]):.4g}",
                "Check the sign of the channel and the direction of the axis; if the machine is that way round, say so "
                f"in the model (`--set {name}=…`)",
            )


def pairs(estimate: Estimate) -> Iterator[Notice]:
    """Parameters that are hardly told apart."""
    rows = estimate.parameters
    table = np.nan_to_num(correlation(estimate.covariance))
    for i, j in zip(*np.nonzero(np.abs(np.triu(table, 1)) > STRONG), strict=True):
        if rows[i].identifiable and rows[j].identifiable:
            yield Notice(
                "amber" if abs(table[i, j]) > INSEPARABLE else "info",
                f"{rows[i].name} and {rows[j].name} are hardly told apart (correlation {table[i, j]:.3f})",
                "Only a combination of the two is well known: fix one, or record another kind of motion",
            )


def levels(estimate: Estimate) -> Iterator[Notice]:
    """Noise that was estimated: sensors far from what the model states, a search that found no end."""
    choice = estimate.noise_choice
    if choice is None:
        return
    if choice.at_end:
        yield Notice(
            "amber",
            "how far the equations of motion hold was not told by the data: the search for it reached the end of its "
            "range",
            "State the noise of the sensors (`--set SENSOR.std=…`), or how well forces are known (`--force-noise "
            "JOINT=STD`)",
        )
    rated = list(zip(estimate.problem.given.sensors.items(), choice.sensor_ratio, strict=True))
    yield from _sensors_beyond("amber", [(name, own, ratio) for (name, own), ratio in rated if ratio >= LOUD])
    yield from _sensors_beyond("info", [(name, own, ratio) for (name, own), ratio in rated if ratio <= 1.0 / LOUD])


def _sensors_beyond(severity: Severity, rows: list[tuple[str, Sensor, float]]) -> Iterator[Notice]:
    """Sensors that are noisier than stated, or better, in one sentence."""
    if not rows:
        return
    texts = [
        f"{name} as {ratio * float(sensor.std):.2g} {sensor.unit()} "
        f"({f'{ratio:.1f} times' if ratio > 1.0 else f'1/{1.0 / ratio:.0f} of'} the stated one)"
        for name, sensor, ratio in rows
    ]
    first, sensor, ratio = rows[0]
    state = f"`--set {first}.std={ratio * float(sensor.std):.2g}`"
    yield Notice(
        severity,
        f"the noise of {'sensors' if len(rows) > 1 else 'a sensor'} was estimated: {', '.join(texts)}",
        f"If the noise is known, the model lacks something; else state it ({state})"
        if severity == "amber"
        else f"These are better than the model says; stating it ({state}) spares the search",
    )


def pieces(estimate: Estimate) -> Iterator[Notice]:
    """Recordings, or pieces of them, that disagree about a parameter."""
    if not estimate.parameters or not np.isfinite(estimate.cost):
        return
    # Pieces of a recording say anything about a parameter that the whole does not tell.
    identified = {row.name for row in estimate.parameters if row.identifiable}
    wide = [row for row in compared(estimate) if row.wider > WIDER and row.name in identified]
    bars = {row.name: row.std / abs(row.value) for row in estimate.parameters if row.value != 0.0}
    for row in sorted(wide, key=lambda one: -one.wider)[:MOST_PIECES]:
        unit = "" if row.unit == "1" else f" {row.unit}"
        low, high = row.extremes()
        # A machine may differ from recording to recording; of pieces of one, error bars say enough.
        matters = row.of_recordings and row.wider > MUCH_WIDER and bars.get(row.name, math.inf) > SMALL_BAR
        yield Notice(
            "amber" if matters else "info",
            f"{'recordings' if row.of_recordings else 'pieces of the data'} disagree about {row.name}: "
            f"{row.values[low]:.4g} in {_piece(estimate, row, low)}, {row.values[high]:.4g}{unit} in "
            f"{_piece(estimate, row, high)}; its error bar is {row.wider:.2g} times wider for it",
            _what_to_try(row),
        )


def unlike_noise(estimate: Estimate) -> Iterator[Notice]:
    """Errors that are functions of the motion, of time or of a reading, and what they do to the error bars."""
    found = described(estimate)
    if not found:
        return
    most = sorted(wider(estimate).items(), key=lambda one: -one[1])[:MOST_PIECES]
    named = ", ".join(f"{name} {factor:.2g} times" for name, factor in most if factor > WIDER)
    yield Notice(
        "info",
        f"errors that are not noise: {'; '.join(found)}. Error bars include what they may do to the parameters"
        + (f" (wider for it: {named})" if named else ""),
        "`shadowfit advise` names what the model may lack",
    )


def _piece(estimate: Estimate, row: Compared, index: int) -> str:
    piece = row.pieces[index]
    names = [track.recording.name for track in estimate.problem.tracks]
    return piece_label(names, piece.recording, piece.begin, piece.end, row.of_recordings)


def _what_to_try(row: Compared) -> str:
    if row.of_recordings:
        return (
            f"If the machine was changed in between give it a value in each (`--each {row.name}`); else the model "
            "lacks something in which they differ (amplitude, direction, temperature): `shadowfit advise` names "
            "candidates"
        )
    if row.drifts:
        return (
            "It goes one way in time, as with a motion that decays or a machine that warms up: `shadowfit advise` "
            "names what the model may lack; `--from` and `--to` fit a part by itself"
        )
    return (
        "The model lacks something that changes between them (amplitude, direction, temperature): `shadowfit advise` "
        "names candidates"
    )


def bodies(estimate: Estimate) -> Iterator[Notice]:
    """Bodies on the edge of what a body can have, and moments of inertia that gave way for a body to be possible."""
    if estimate.on_edge and np.isfinite(estimate.cost):
        evidence = estimate.evidence
        pull = evidence.gradient @ evidence.bread(~evidence.at_bound) @ evidence.gradient / evidence.reference**2
        yield Notice(
            "amber" if pull > PULLED else "info",
            f"{', '.join(estimate.on_edge)}: on the edge of what a body can have (flat, a second moment of zero)",
            "The data pull beyond it: free all six moments of inertia, or look for what the model lacks"
            if pull > PULLED
            else "The data do not mind",
        )
    changed = {name: value for name, value in estimate.followers().items() if value != _given(estimate, name)}
    hidden = {solid.body for solid in estimate.problem.parameters.solids if solid.hidden}
    for body in dict.fromkeys(name.partition(".")[0] for name in changed):
        names = [name for name in changed if name.startswith(f"{body}.")]
        values = listed([f"{name} = {changed[name]:.4g}" for name in names])
        if body in hidden:
            yield Notice("info", f"{values}: held, without effect on this motion, and as near as a body can have it")
            continue
        largest = max(abs(_given(estimate, f"{body}.inertia.{axis}")) for axis in ("xx", "yy", "zz"))
        moved = max(abs(changed[name] - _given(estimate, name)) for name in names)
        yield Notice(
            "amber" if moved > GAVE_WAY * largest else "info",
            f"{values}: moved from the model's {', '.join(f'{_given(estimate, name):.4g}' for name in names)}, with "
            "which no body has the estimated moments of inertia",
            f"Measure {_it(names)}, or free {_it(names)} as well if the motion tells {_it(names)}",
        )


def _given(estimate: Estimate, name: str) -> float:
    """A number of the model as it was given."""
    return float(estimate.problem.given.get(name))


def joints(estimate: Estimate) -> Iterator[Notice]:
    """Joints that the fit took for rigid, and that give."""
    for effect, text in giving_joints(estimate) if estimate.parameters else ():
        yield Notice("amber" if effect > SLIGHT else "info", text.rstrip("."))


RULES: tuple[Rule, ...] = (
    *(forces, sensors, ending, edges, levels, unlike_noise, pieces),
    *(colours, parameters, directions, pairs, bodies, joints),
)


def _spread(measured: np.ndarray) -> float:
    """Standard deviation of a sensor's readings about their mean, the largest of its channels."""
    known = measured[np.isfinite(measured).all(axis=1)]
    return float(np.max(np.std(known, axis=0))) if len(known) else 0.0


def _percent(share: float) -> str:
    return f"{100.0 * share:.2g} %"


def _times(share: float) -> str:
    return f"{share:.0%} of" if share < 2.0 else f"{share:.0f} times"
