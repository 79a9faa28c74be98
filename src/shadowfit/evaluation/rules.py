"""The rules behind the verdict on a fit: each looks at an estimate and says what a reader must know.

docs/verdict.md states them with their limits. To add one, write a function of an :class:`Estimate` and put it into
``RULES``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from shadowfit.estimation import Estimate
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

# Part of a joint's forces that the model does not explain.
MUCH, TOO_MUCH = 0.1, 0.3
# The same of a joint whose torque was measured: half of its variance. Gears of small joints lose 30 or 40 % of their
# torque in ways that no rigid model has, and all methods leave that; of a wrong channel nothing is explained.
HALF = math.sqrt(0.5)
# Noise of a sensor over what its model says, and over the spread of its readings.
LOUD, TOO_LOUD = 3.0, 30.0
NOISY, ONLY_NOISE = 0.1, 0.3
# Standard deviations that heed the residuals' correlations, over those that do not.
COLOURED, STRONGLY_COLOURED = 2.0, 10.0
# Correlation of a sensor's residuals with the sample before.
NOT_WHITE = 0.5
# Correlation of two parameters beyond which neither should be used by itself.
INSEPARABLE = 0.99
# Correlation of the missing force with the speed from which on it drives the motion.
DRIVING = 0.3
# Error bars that disagreement makes this much wider are worth a word, and so many of them.
WIDER, MOST_PIECES = 1.5, 3
# χ² that bodies would gain beyond the edge of what they can have, from which on they are pulled there.
PULLED = 4.0
# Part of a parameter below which a standard deviation is not told from rounding.
ROUNDING = 1e-13
# Names of numbers that take energy out of the motion.
FRICTION = ("viscous", "dry", "coulomb", "drag", "damping")
# Names of numbers whose sign is a direction: which way an input drives, or a sensor counts.
DIRECTED = ("gain", "torque_constant", "ratio", "scale")


def judge(estimate: Estimate) -> list[Notice]:
    """Everything that the rules have to say, the most serious first."""
    return ordered(notice for rule in RULES for notice in rule(estimate))


def ending(estimate: Estimate) -> Iterator[Notice]:
    """A fit that did not reach a minimum is no result."""
    if not estimate.converged:
        yield Notice("red", estimate.status.value.rstrip("."), "")


def forces(estimate: Estimate) -> Iterator[Notice]:
    """What the equations of motion leave unexplained, against the strongest force there is."""
    if not np.isfinite(estimate.cost):
        return
    idle = _joints_without_friction(estimate)
    for force in unexplained(estimate):
        if not force.share > MUCH:
            if force.gain > DRIVING and force.name in idle:
                yield _driven(force)
            continue
        severity: Severity = "red" if force.share > (HALF if force.driven else TOO_MUCH) else "amber"
        yield Notice(
            severity,
            f"at {force.name} a force of {force.level:.2g} {force.unit} is unexplained, {_times(force.share)} "
            f"the strongest one there ({force.typical:.2g} {force.unit})",
            _what_to_check(force, severity),
        )
        if force.gain > DRIVING and force.name in idle:
            yield _driven(force)


def _what_to_check(force: Unexplained, severity: Severity) -> str:
    if force.driven and severity != "red":
        return (
            "Compare measured and predicted torque in the report: losses of gears, cables and flexibility are what "
            "rigid models lack, and `shadowfit validate` says what they cost"
        )
    return (
        "Run `shadowfit check`: signs and units of channels and inputs, and what drives or brakes this joint that "
        "the model does not have"
    )


def _driven(force: Unexplained) -> Notice:
    return Notice(
        "red",
        f"the motion of {force.name} gains energy that nothing in the model gives, and its friction went to zero",
        "Look for a recording that runs backwards, an input with the wrong sign, or a drive that is not modelled",
    )


def _joints_without_friction(estimate: Estimate) -> set[str]:
    """Joints of which every free number of friction ended at zero."""
    zero: dict[str, bool] = {}
    for row in estimate.parameters:
        joint, _, number = row.name.partition(".")
        if number.split("@")[0] in FRICTION:
            zero[joint] = zero.get(joint, True) and row.at_bound and row.value == 0.0
    return {joint for joint, idle in zero.items() if idle}


def sensors(estimate: Estimate) -> Iterator[Notice]:
    """Noise of sensors: larger than stated, as large as the signal, or correlated in time."""
    for index, track in enumerate(estimate.problem.tracks):
        trajectory = estimate.trajectory(index)
        series = compare(estimate.mechanism(index), track.recording, trajectory.time, trajectory.readings)
        for name, sensor in estimate.problem.given.sensors.items():
            readings, stated = series[name], float(sensor.std)
            if readings.residual.shape[1] != readings.measured.shape[1]:
                continue  # an orientation: its readings and its errors are different things
            left, spread = readings.rmse(), _spread(readings.measured)
            where = name if len(estimate.problem.tracks) == 1 else f"{name} in {track.recording.name}"
            yield from _noise(where, sensor.unit(), left, stated, spread)
            known = readings.residual[np.isfinite(readings.residual).all(axis=1), 0]
            lag = autocorrelation(known, 1)[1] if len(known) > 20 else 0.0
            if lag > NOT_WHITE:
                yield Notice(
                    "amber",
                    f"residuals of {where} are correlated in time ({lag:.2f} from sample to sample): the model lacks "
                    "something that the motion follows",
                    "Look at their curve in the report; `--intervals robust` widens the error bars for it",
                )


def _noise(where: str, unit: str, left: float, stated: float, spread: float) -> Iterator[Notice]:
    if not (math.isfinite(left) and left > LOUD * stated):
        return
    share = left / spread if spread > 0.0 else math.inf
    if share > ONLY_NOISE:
        yield Notice(
            "red",
            f"{where} is not followed: {left:.2g} {unit} are left of readings that vary by {spread:.2g} {unit}",
            "Check column, sign and unit of the channel and of the inputs: this motion is not that of the model",
        )
        return
    severity: Severity = "red" if left > TOO_LOUD * stated and share > NOISY else "amber"
    yield Notice(
        severity,
        f"{where} is followed to {left:.2g} {unit} only, {left / stated:.0f} times the stated noise of {stated:.2g}",
        f"If the sensor is that noisy say so (`--set {where.split(' ', 1)[0]}.std=…`), else the model lacks something",
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
        joint, _, number = row.name.partition(".")
        unit = "" if row.unit == "1" else f" {row.unit}"
        if row.at_bound and row.value == 0.0 and number.split("@")[0] in FRICTION:
            yield Notice(
                "amber" if joint in idle else "info",
                f"{row.name} ended at zero",
                "All friction of this joint went to zero, which no machine has: check directions and signs"
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
        yield Notice(
            "info",
            f"{len(kept)} of {len(estimate.parameters)} parameters stay near the model's values, by their priors: "
            f"{', '.join(kept)}",
            "The data tell less about them than the priors do",
        )
    unknown = [row for row in estimate.parameters if not row.at_bound and not row.identifiable]
    groups = [finding for finding in estimate.findings if len(finding.names) > 1]
    if len(unknown) + len(groups) > MOST_UNKNOWN and np.isfinite(estimate.cost):
        yield _combined(estimate, len(unknown))
        return
    if unknown:
        names, one = listed([row.name for row in unknown]), len(unknown) == 1
        yield Notice(
            "amber",
            f"{names} {'is' if one else 'are'} not identifiable: {'its' if one else 'their'} standard "
            f"deviation{' exceeds its size' if one else 's exceed their sizes'}",
            f"Fix {'it' if one else 'them'} (no `--free`), or record a motion that depends on "
            f"{'it' if one else 'them'}",
        )
    for finding in groups:
        yield Notice("amber", f"not identifiable: {finding.text.rstrip('.')}", "Fix one of them")


def _combined(estimate: Estimate, unknown: int) -> Notice:
    """Many parameters that are not told by themselves, in one sentence."""
    base = estimate.base_parameters
    return Notice(
        "amber",
        f"{unknown} of {len(estimate.parameters)} parameters are not identifiable by themselves: the motion determines "
        f"{len(base.combinations)} base parameters, {len(base.grouped)} of them combinations, and does not see "
        f"{len(base.unseen)} parameters at all",
        "The table of base parameters says which; use those, or give the others priors (`--prior`)",
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
            "the search for the errors of the dynamics ended at its limit, not by what the data say",
            "Check the stated noise of the sensors, or give `--force-noise JOINT=STD`",
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
    for row in sorted(wide, key=lambda one: -one.wider)[:MOST_PIECES]:
        unit = "" if row.unit == "1" else f" {row.unit}"
        low, high = row.extremes()
        yield Notice(
            "amber",
            f"{'recordings' if row.of_recordings else 'pieces of the data'} disagree about {row.name}: "
            f"{_piece(estimate, row, low)} has {row.values[low]:.4g}, {_piece(estimate, row, high)} "
            f"{row.values[high]:.4g}{unit}; from one to the next it differs by {row.spread:.2g} beyond noise, and its "
            f"error bar is {row.wider:.3g} times wider for it",
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
        "amber" if named else "info",
        f"{'; '.join(found)}. Error bars include what that may do to the parameters"
        + (f", and are wider for it: {named}" if named else ""),
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
    changed = estimate.followers()
    hidden = {solid.body for solid in estimate.problem.parameters.solids if solid.hidden}
    for body in dict.fromkeys(name.partition(".")[0] for name in changed):
        values = ", ".join(f"{name} = {value:.4g}" for name, value in changed.items() if name.startswith(f"{body}."))
        if body in hidden:
            yield Notice("info", f"{values}: held, without effect on this motion, and as near as a body can have it")
        else:
            yield Notice(
                "amber",
                f"{values}: held at another value in the model, which no body has beside the estimate; the fit went on "
                "with the nearest possible",
                "Free these as well if the motion tells them",
            )


def joints(estimate: Estimate) -> Iterator[Notice]:
    """Joints that the fit took for rigid, and that give."""
    for text in giving_joints(estimate) if estimate.parameters else ():
        yield Notice("amber", text.rstrip("."))


RULES: tuple[Rule, ...] = (
    *(ending, forces, sensors, levels, unlike_noise, pieces),
    *(colours, parameters, directions, pairs, bodies, joints),
)


def _spread(measured: np.ndarray) -> float:
    """Standard deviation of a sensor's readings about their mean, the largest of its channels."""
    known = measured[np.isfinite(measured).all(axis=1)]
    return float(np.max(np.std(known, axis=0))) if len(known) else 0.0


def _times(share: float) -> str:
    return f"{share:.0%} of" if share < 2.0 else f"{share:.0f} times"
