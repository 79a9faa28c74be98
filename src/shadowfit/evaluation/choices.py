"""What was settled without being asked for, and why: in words, for the report and ``result.json``."""

from __future__ import annotations

from shadowfit.dynamics.rigid_joints import rigid_tree
from shadowfit.errors import MechanismError
from shadowfit.estimation.noise import NoiseChoice
from shadowfit.estimation.problem.drives import is_read
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.result import Estimate
from shadowfit.evaluation.latent_words import described
from shadowfit.records import record

KINDS = {"joint": "joint coordinates", "configuration": "poses of the bodies", "full": "poses and velocities"}


@record(frozen=True)
class Choice:
    """One decision."""

    what: str
    chosen: str
    reason: str


def choices(estimate: Estimate) -> list[Choice]:
    """Decisions of a fit, in the order in which they were made."""
    problem, options = estimate.problem, estimate.problem.options
    interval = min(track.recording.sample_interval for track in problem.tracks)
    made = [
        Choice("time-step", f"{1e3 * problem.timestep:.4g} ms", f"samples come every {1e3 * interval:.4g} ms"),
        Choice("unknowns", KINDS[options.unknowns], _why_unknowns(problem)),
    ]
    if options.correction == "deferred":
        reason = "parameters are then those of the machine, not of the time-step"
        made.append(Choice("errors of the discretisation", "taken off the residuals", reason))
    else:
        reason = "speeds may jump, or the parameters of this very time-step were asked for"
        made.append(Choice("errors of the discretisation", "left in", reason))
    return made + ([] if estimate.noise_choice is None else _noise(estimate, estimate.noise_choice))


def _noise(estimate: Estimate, choice: NoiseChoice) -> list[Choice]:
    levels = ", ".join(f"{name} {value:.2g}" for name, value in estimate.unexplained.items())
    made = [
        Choice("errors of forces [N m, N]", levels or "one level for all", "most likely levels, one for each joint")
    ]
    sensors = zip(estimate.problem.sensors, choice.sensor_ratio, strict=True)
    ratios = ", ".join(f"{name} {ratio:.2g}" for name, ratio in sensors)
    made.append(
        Choice(
            "noise of sensors, times the stated one",
            ratios,
            "most likely levels, a tenth to ten times, or less where readings are smoother than that",
        )
    )
    if len(estimate.problem.parameters.unknown_bodies):
        made.append(
            Choice(
                "bodies of the model file",
                f"believed to {100.0 * estimate.weights.file_spread:.2g} % of themselves",
                "as far as the data move what they tell; the rest stays near the file's values",
            )
        )
    if choice.stick_time is not None:
        times = ", ".join(f"{name} {1e3 * time:.3g} ms" for name, time in choice.stick_time.items())
        chosen = f"creeps with a time: {times}" if times else "sticks"
        reason = "the most likely: torques through rest show whether friction jumps, or gears yield first"
        made.append(Choice("dry friction near rest", chosen, reason))
    if choice.acting is not None:
        chosen = "white forces that act" if choice.acting else "forces that were read wrongly, or have a memory"
        reason = "they are not" if choice.acting else "of some joints they are"
        made.append(Choice("errors are taken for", chosen, f"{reason} in the known forces, or alike from step to step"))
    kinds = "; ".join(described(estimate))
    reason = "most likely of smooth functions of speed, position, time and readings"
    made.append(Choice("errors that are not white", kinds or "none", f"{reason}, for error bars alone"))
    made.append(_equations(estimate, choice))
    return made


def _why_unknowns(problem: Problem) -> str:
    """Joint coordinates where they describe the machine; else what they cannot describe."""
    if problem.options.unknowns == "full":
        return "the paper's method was asked for"
    try:
        rigid_tree(problem.mechanism)
    except MechanismError as error:
        return str(error)
    if problem.options.unknowns == "joint":
        return "all joints hold rigidly, and their coordinates describe the machine"
    if len(problem.mechanism.joints) == 0:
        return "there are no joints"
    return "they were asked for, or errors of bodies or equations that joint coordinates do not have"


def _equations(estimate: Estimate, choice: NoiseChoice) -> Choice:
    """Whether the equations of motion hold exactly."""
    what = "equations of motion"
    if estimate.problem.options.errors.criterion == "parameters":
        return Choice(what, "have their most likely errors", "it was asked for")
    if choice.added_weight > 1.0:
        return Choice(what, "hold exactly", "parameters are those whose simulations follow the recordings")
    if estimate.weights.proportion is not None:
        reason = "a joint that nothing drives is measured by its own forces, whose scale the torques of the others tell"
    elif estimate.problem.options.errors.forces:
        reason = "how well forces are known was given"
    elif is_read(estimate.problem):
        reason = "the drives' forces were measured, and a simulation would add up their errors: forces count"
    elif choice.led:
        reason = "the drives' torques are known, and no simulation from them alone follows the motion: forces count"
    else:
        reason = "forces that they lack are below what the sensors tell"
    return Choice(what, "have their most likely errors", reason)
