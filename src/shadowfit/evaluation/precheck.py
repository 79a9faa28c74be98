"""Before a fit: do model and recording belong together, and what could be learned from it?

The motion is taken from the sensors alone (the fit's first trajectory), and the equations of motion are evaluated once
along it with the start values. Along each joint's coordinate they ask for

    Q_inertia = g Q_gravity + u Q_input − b q̇ − c sign q̇ + Q_other

where g and u are one for the machine's own numbers. These four numbers are fitted by least squares: u < 0 is an input
with the wrong sign, u near 57 or 1000 one in another unit, g < 0 an angle that is counted from the other side. Where
nothing fits, the recording is not one of this machine. The energy of the whole machine says whether time runs backwards
(:mod:`arrow_of_time`), and the same linearisation which parameters the motion can tell.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation import Estimate, LevenbergMarquardt, Options
from shadowfit.estimation.fit import start_point
from shadowfit.estimation.linear.threads import one_thread
from shadowfit.estimation.problem.options import ProblemError
from shadowfit.estimation.problem.parameters import FreeParameters, parameter_set
from shadowfit.estimation.problem.pieces import all_pieces
from shadowfit.estimation.problem.problem import Problem, build_problem
from shadowfit.estimation.problem.weights import default_weights, unit_weights
from shadowfit.estimation.result import ParameterEstimate, Seconds
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.first_weights import first_weights
from shadowfit.estimation.solve.levenberg_marquardt import Outcome, Status
from shadowfit.evaluation.alterations import Alteration, alterations, mirrored_positions, turned_positions
from shadowfit.evaluation.arrow_of_time import direction
from shadowfit.evaluation.notices import Notice, listed, ordered
from shadowfit.evaluation.torque_balance import MISJUDGED, NO_TORQUE, POOR, TorqueBalance, torque_balance
from shadowfit.evaluation.torques import driven_joints
from shadowfit.evaluation.unexplained import Terms, coordinate_names, force_terms, tree_behind
from shadowfit.mechanism import Mechanism
from shadowfit.models.matching import matched
from shadowfit.recordings import Recording
from shadowfit.recordings.checks import looks_like_degrees
from shadowfit.recordings.smoothness import roughness
from shadowfit.records import record

# Part of the variance of the inertial force that the others explain: below, the motion is another machine's.
FOREIGN = 0.2
# What a change of sign, unit or order has to explain at each joint to be named as the remedy, and how much of what was
# unexplained it may leave.
CURED, MUCH_LESS = 0.7, 0.5
# A coefficient counts if it is this many of its standard errors from zero.
SURE = 6.0
# Columns weaker than this fraction of the inertial force are rounding.
NOTHING = 1e-6
# What is said of gravity with the wrong sign.
WRONG_WAY = "gravity pulls the other way than in the model"
# Forces whose sign is known.
SIGNED = ("input", "gravity")
# Start values may be off; a factor beyond this is one between units, and the nearest of these is named.
OFF = 20.0
# Error bars are those of the start values, and may be ten times too wide; beyond, a parameter is not told.
HOPELESS = 10.0
UNITS = {57.29578: "degrees and radians", 1000.0: "a unit and its thousandth"}
# Position samples that differ from their neighbours as much as from all others are noise, or in the wrong order.
SHUFFLED = 0.5


@record(frozen=True)
class Balance:
    """Forces along one joint's coordinate in one recording [N or N m]."""

    name: str
    unit: str
    time: Float[np.ndarray, " n"]
    needed: Float[np.ndarray, " n"]
    """Inertia less gravity: what motors and friction have to give."""
    given: Float[np.ndarray, " n"]
    """What they give with the start values."""
    explained: float
    """Part of the variance of the inertial force that gravity, inputs and friction can explain."""
    coefficients: dict[str, float]
    """``gravity``, ``input``, ``viscous`` and ``dry``, where they count."""
    torque: TorqueBalance = NO_TORQUE
    """Of a joint whose torque is an input."""
    input: str = "INPUT"
    """Name of the input that drives the joint, where there is one."""


@record(frozen=True)
class Check:
    """What was found about model and recordings."""

    notices: list[Notice]
    balances: list[list[Balance]]
    """For each recording, for each joint."""
    told: Sequence[ParameterEstimate]
    """Free parameters with their start values and the standard deviations that a fit could reach."""
    relative_std: dict[str, float]
    """Free parameter → the same standard deviation, over its size."""


def surely_wrong(mechanism: Mechanism, recordings: Sequence[Recording]) -> list[Notice]:
    """What no fit can mend; found without looking at the equations of motion."""
    notices = []
    for recording in recordings:
        for name, sensor in mechanism.sensors.items():
            if sensor.needs_velocity or name not in recording.channels:
                continue
            rough = roughness(recording.channels[name], wraps=bool(getattr(sensor, "rotary", False)))
            if rough > SHUFFLED:
                notices.append(
                    Notice(
                        "red",
                        f"recording {recording.name!r}: neighbouring samples of {name} differ as much as any two "
                        f"(ratio {rough:.2f}, smooth motion has less than 0.1)",
                        "The angle is in degrees and called radians, the rows are in the wrong order, or the column is "
                        "noise"
                        if looks_like_degrees(recording.time, recording.channels[name])
                        else "The rows are in the wrong order, the column is noise, or the sampling is far too slow",
                    )
                )
    return notices


def check(
    mechanism: Mechanism,
    recordings: Recording | Sequence[Recording],
    free: FreeParameters = (),
    *,
    options: Options | None = None,
) -> Check:
    """Look at model, recordings and wished parameters, given as to a fit, as that would at its start."""
    listed = [recordings] if isinstance(recordings, Recording) else list(recordings)
    looked = look(mechanism, [matched(mechanism, one) for one in listed], free, options)
    here = looked.here
    # What noise alone would do: pieces of the data cannot but disagree about start values.
    told = here.table("gauss-newton")
    relative = {row.name: row.std / size for row, size in zip(told, here.evidence.scale, strict=True)}
    balances = [forces.balances for forces in looked.forces]
    return Check(ordered([*looked.notices, *_untold(here, told)]), balances, told, relative)


@record(frozen=True)
class Looked:
    """What was found about a model and its recordings, whatever parameters are wished for."""

    here: Estimate
    notices: list[Notice]
    forces: list[Forces]
    """Of each recording."""


@record(frozen=True)
class Forces:
    """Forces along the joints in one recording."""

    terms: Terms
    balances: list[Balance]
    """Of each joint."""


def look(
    mechanism: Mechanism, recordings: Sequence[Recording], free: FreeParameters, options: Options | None = None
) -> Looked:
    """Whether the recordings are ones of this machine."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        recordings = all_pieces(mechanism, recordings)
        problem = build_problem(
            mechanism, recordings, parameter_set(mechanism, free, len(recordings)), options or Options()
        )
    here = at_start(problem)
    notices = surely_wrong(mechanism, recordings)
    notices += [Notice("amber", str(one.message)) for one in caught]
    notices += [Notice("amber", f"recording {one.name!r}: {text}") for one in recordings for text in one.warnings]
    along = forces_along(here)
    for index, forces in enumerate(along):
        where = f" in {recordings[index].name}" if len(recordings) > 1 else ""
        notices += [notice for balance in forces.balances for notice in _about(balance, where)]
        # Weight that pulls the wrong way gives or takes energy whichever way time runs.
        if all(balance.coefficients.get("gravity", 1.0) > 0.0 for balance in forces.balances):
            notices += _backwards(here, index, forces.terms, where)
    balances = [forces.balances for forces in along]
    turned = _upright(here, balances, options or Options())
    if turned:
        # What was tried and is right, in place of what could be.
        notices = [*turned, *(notice for notice in notices if not _is_about_gravity(notice))]
    elif balances and (_least_explained(balances) < POOR or _mirrored(here, balances, options or Options())):
        notices = [*_remedies(here, balances, options or Options()), *notices]
    return Looked(here, ordered(notices), along)


def forces_along(here: Estimate) -> list[Forces]:
    """The forces along each joint in each recording; empty for machines that are not looked at joint by joint."""
    tree = tree_behind(here.problem)
    if tree is None or tree.compliant:
        # Readings do not say by how much joints give, and so not what these carry.
        return []
    problem, point = here.problem, here.outcome.linearisation.point
    with one_thread():
        impulses = list(objective.missing_and_known(problem, point, unit_weights(problem)))
    listed_forces = []
    for index, (missing, known) in enumerate(impulses):
        terms = force_terms(here, index, missing / problem.timestep)
        listed_forces.append(Forces(terms, _balances(here, terms, known / problem.timestep, index)))
    return listed_forces


def at_start(problem: Problem) -> Estimate:
    """The problem linearised along the motion that the sensors show, as an estimate that made no step."""
    with one_thread():
        objective.prepare(problem, problem.parameters.start(), default_weights(problem, 1.0))
        point = start_point(problem)
        weights = first_weights(problem, point)
        linearisation = objective.linearise(problem, point, weights)
    outcome = Outcome(linearisation, Status.ITERATIONS, (), LevenbergMarquardt().start_damping or 0.0, None)
    return Estimate(problem, weights, outcome, Seconds(0.0, 0.0, 0.0))


def _balances(here: Estimate, now: Terms, inputs: Float[np.ndarray, "n d"], index: int) -> list[Balance]:
    """Of one recording, with the terms of its equations of motion and the forces that its inputs give."""
    names, units = coordinate_names(here)
    drives = driven_joints(here.problem)
    time = here.problem.tracks[index].times(here.problem.timestep)[: len(now.missing)]
    balances = []
    for i, (name, unit) in enumerate(zip(names, units, strict=True)):
        missing, inertia, gravity, speed = (x[:, i, 0] for x in (now.missing, now.inertia, now.gravity, now.speed))
        driven = inputs[: len(missing), i]
        needed = inertia - gravity
        explained, coefficients = _explain(inertia, gravity, driven, speed)
        torque = torque_balance(needed, driven, speed) if name in drives else NO_TORQUE
        if torque.explained > POOR:
            # What the torque is made of tells more of its sign and unit than the inertia's share of it.
            coefficients.pop("input", None)
        shown, given = max(explained, torque.explained), needed - missing
        drive = _input_of(here.problem.mechanism, name)
        balances.append(Balance(name, unit, time, needed, given, shown, coefficients, torque, drive))
    return balances


def _input_of(mechanism: Mechanism, joint: str) -> str:
    """Name of the input that drives a joint; a word for one where there is none, or where several joints share it."""
    laws = mechanism.joints[joint].laws.values if joint in mechanism.joints.names else ()
    return next((law.input for law in laws if law.input is not None), Balance.input)


def _explain(
    inertia: np.ndarray, gravity: np.ndarray, driven: np.ndarray, speed: np.ndarray
) -> tuple[float, dict[str, float]]:
    """Least squares of inertia on gravity, inputs and friction: part explained, and the coefficients that count."""
    columns = {"gravity": gravity, "input": driven, "viscous": -speed, "dry": -np.sign(speed)}
    # Ends of the motion are continued, not measured.
    inner = slice(2, -2)
    if len(inertia[inner]) <= len(columns):  # as many numbers explain any motion
        return 1.0, {}
    target = inertia[inner] - inertia[inner].mean()
    total = float(target @ target)
    columns = {name: values[inner] - values[inner].mean() for name, values in columns.items()}
    forces = ("gravity", "input")
    columns = {
        name: values
        for name, values in columns.items()
        if np.ptp(values) > 0.0 and (name not in forces or values @ values > NOTHING**2 * total)
    }
    if total == 0.0 or not columns:
        return 1.0, {}
    table = np.stack(list(columns.values()), axis=1)
    scale = np.linalg.norm(table, axis=0)
    solution, _, _, _ = np.linalg.lstsq(table / scale, target, rcond=None)
    residual = target - table / scale @ solution
    left = float(residual @ residual)
    # Residuals are correlated in time: as many samples as these count for one.
    lag = float(np.clip(residual[1:] @ residual[:-1] / max(left, 1e-300), 0.0, 0.999))
    variance = left / max(len(target) - len(solution), 1) * (1.0 + lag) / (1.0 - lag)
    spread = variance * np.diag(np.linalg.pinv((table / scale).T @ (table / scale)))
    counts = {
        name: float(value / size)
        for name, value, size, squared in zip(columns, solution, scale, spread, strict=True)
        if abs(value) > SURE * np.sqrt(squared)
    }
    return 1.0 - left / total, counts


def _about(balance: Balance, where: str) -> Iterator[Notice]:
    """What the forces of one joint say."""
    coefficients = balance.coefficients
    if balance.explained < POOR:
        yield Notice(
            "red" if balance.explained < FOREIGN else "amber",
            f"{balance.name}{where}: gravity, inputs and friction explain {max(balance.explained, 0.0):.0%} "
            "of the forces that the motion shows",
            "Compare the curves: a swapped or wrong column, a delay, noise, or something that the model does not have",
        )
    if coefficients.get("input", 0.0) < 0.0:
        yield Notice(
            "red",
            f"{balance.name}{where} moves against its input",
            f"Turn the sign of the input (or of the angle): `--set {balance.input}.gain=-1`, or another sign in the "
            "file",
        )
    yield from _about_torque(balance, where)
    for name, thing in (("input", "the input"), ("gravity", "gravity")):
        off = abs(np.log(abs(coefficients.get(name, 1.0))))
        if off > np.log(OFF) and balance.explained > POOR:
            unit = min(UNITS, key=lambda ratio: abs(off - np.log(ratio)))
            slow = name == "gravity" and off > 2.0 * np.log(OFF)
            yield Notice(
                "red" if slow else "amber",
                f"{balance.name}{where}: {thing} is {abs(coefficients[name]):.2g} times what the model says "
                "with its start values",
                "Check the unit of the times: milliseconds for seconds make accelerations a million times too small"
                if slow
                else f"Check the unit of the column ({UNITS[unit]} differ by {unit:.4g}), and the start values",
            )
    if coefficients.get("gravity", 0.0) < 0.0:
        yield Notice(
            "red",
            f"{balance.name}{where}: {WRONG_WAY}",
            "The angle is counted from another side, or the model hangs where the machine stands",
        )


def _is_about_gravity(notice: Notice) -> bool:
    return WRONG_WAY in notice.text


def _upright(here: Estimate, balances: list[list[Balance]], options: Options) -> list[Notice]:
    """The angles that gravity, which pulls the wrong way, would pull right with; nothing where none is found."""
    if not any(balance.coefficients.get("gravity", 1.0) < 0.0 for of_one in balances for balance in of_one):
        return []
    tried = [(_altered(here, alteration, options), alteration) for alteration in turned_positions(here.problem.given)]
    right = [
        (altered, alteration)
        for altered, alteration in tried
        if altered is not None
        and not any(_turned(balance) for of_one in altered for balance in of_one)
        and _least_explained(altered) > CURED
    ]
    if not right:
        return []
    least = min(_unexplained(altered) for altered, _ in right)
    # The first of those that explain as much: a sign is a likelier mistake than a sign and half a turn.
    cured, remedy = next(one for one in right if _unexplained(one[0]) <= least / MUCH_LESS)
    return [
        Notice(
            "red",
            f"{WRONG_WAY}; {remedy.text} it pulls as the model says, and explains at least "
            f"{_least_explained(cured):.0%} of the forces at each joint, with inputs and friction",
            remedy.advice,
        )
    ]


def _mirrored(here: Estimate, balances: list[list[Balance]], options: Options) -> bool:
    """Whether a position of the other sign would explain the forces between joints, whatever drives them.

    Light coupling leaves most of the forces explained with the wrong sign, too. All signs but one are turned: those of
    all positions together say nothing of what joints do to each other.
    """
    mirrored = [_altered(here, alteration, options) for alteration in mirrored_positions(here.problem.given)[1:]]
    return any(_unexplained(one) < MUCH_LESS * _unexplained(balances) for one in mirrored if one is not None)


def _remedies(here: Estimate, balances: list[list[Balance]], options: Options) -> list[Notice]:
    """What would make the recordings ones of this machine: a sign, a unit, an order of columns."""
    tried = [(_altered(here, alteration, options), alteration) for alteration in alterations(here.problem.given)]
    remedies = [(balances, alteration) for balances, alteration in tried if balances is not None]
    possible = [one for one in remedies if not any(_turned(balance) for of_one in one[0] for balance in of_one)]
    if not possible:
        return []
    cured, remedy = min(possible, key=lambda one: _unexplained(one[0]))
    now, best = _least_explained(balances), _least_explained(cured)
    if best < CURED or _unexplained(cured) > MUCH_LESS * _unexplained(balances):
        return []
    return [
        Notice(
            "red" if now < POOR else "amber",
            f"{remedy.text}, gravity, inputs and friction explain at least {best:.0%} of the forces at each joint, "
            f"instead of {max(now, 0.0):.0%}",
            remedy.advice,
        )
    ]


def _altered(here: Estimate, alteration: Alteration, options: Options) -> list[list[Balance]] | None:
    """Forces along the joints with recordings that are altered; None where the machine could not have them (loops)."""
    altered = [alteration.apply(track.recording) for track in here.problem.tracks]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # said of the recordings as they are
        try:
            other = build_problem(here.problem.given, altered, here.problem.parameters, options)
        except ProblemError:
            return None
    return [forces.balances for forces in forces_along(at_start(other))]


def _turned(balance: Balance) -> bool:
    """Whether an input or gravity acts the wrong way."""
    return balance.torque.opposite or any(balance.coefficients.get(name, 1.0) < 0.0 for name in SIGNED)


def _least_explained(balances: list[list[Balance]]) -> float:
    """Part of the forces that is explained at the worst joint."""
    return min((balance.explained for of_recording in balances for balance in of_recording), default=0.0)


def _unexplained(balances: list[list[Balance]]) -> float:
    """Part of the forces that is not explained, as the geometric mean of all joints."""
    parts = [1.0 - balance.explained for of_recording in balances for balance in of_recording]
    return float(np.exp(np.mean(np.log(np.maximum(parts, NOTHING)))))


def _backwards(here: Estimate, index: int, terms: Terms, where: str) -> list[Notice]:
    """Whether time runs backwards; a late input may look the same."""
    arrow = direction(here, index, terms)
    if not arrow.likely:
        return []
    return [
        Notice(
            "red" if arrow.certain else "amber",
            f"the motion{where} gains energy where friction should take it",
            "Does time run backwards in the recording? Has an input the wrong sign, or is it late (free INPUT.delay)? "
            "Else a drive is missing",
        )
    ]


def _about_torque(balance: Balance, where: str) -> Iterator[Notice]:
    """Sign and unit of a measured torque, from the torque that the motion needs."""
    torque = balance.torque
    if torque.opposite:
        factor = "" if torque.factor is None else f" (factor {torque.factor:.2g})"
        yield Notice(
            "red",
            f"{balance.name}{where}: the measured torque has the opposite sign of what the motion needs{factor}",
            f"Turn the sign of the torque (or of the angle): `--set {balance.input}.gain=-1`, or another sign in the "
            "file",
        )
    if torque.factor is None:
        return
    size = abs(torque.factor)
    if abs(np.log(size)) > np.log(MISJUDGED):
        unit = min(UNITS, key=lambda ratio: abs(abs(np.log(size)) - np.log(ratio)))
        near = abs(abs(np.log(size)) - np.log(unit)) < np.log(MISJUDGED)
        hint = f" ({UNITS[unit]} differ by {unit:.4g})" if near else ""
        if torque.by_inertia:
            yield Notice(
                "amber",
                f"{balance.name}{where}: the accelerations need {size:.2g} times the measured torque, friction aside",
                "Its inertia or its rotor (JOINT.armature) is not the file's, and a fit can find it; else check the "
                f"unit of the torque{hint}",
            )
            return
        yield Notice(
            "red",
            f"{balance.name}{where}: the motion needs {size:.2g} times the measured torque",
            f"Check the unit of the torque{hint}: a current, or a torque before the gear, needs its factor "
            f"(`--set {balance.input}.gain={size:.3g}`)",
        )


def _untold(here: Estimate, told: Sequence[ParameterEstimate]) -> Iterator[Notice]:
    """Wished parameters that the motion cannot tell, in one sentence, and those that it cannot tell apart."""
    sizes = dict(zip((row.name for row in told), here.evidence.scale, strict=True))
    unknown = [row for row in told if not row.at_bound and not row.identifiable]
    hopeless = [row.name for row in unknown if not row.std < HOPELESS * sizes[row.name]]
    if hopeless:
        yield Notice(
            "amber",
            f"this motion does not tell {listed(hopeless)}",
            "Leave out what you can measure otherwise, or record a motion that depends on it: other poses, faster, "
            "with more load",
        )
    weak = [row.name for row in unknown if row.name not in hopeless]
    if weak:
        yield Notice(
            "info",
            f"{listed(weak)} may come out with large error bars",
            "With the start values, and forces known to a hundredth, this motion tells little about "
            f"{'it' if len(weak) == 1 else 'them'}",
        )
    for finding in here.findings:
        if len(finding.names) > 1:
            yield Notice("amber", f"not told apart: {finding.text.rstrip('.')}", "Fix one of them")
