"""Study: the initial trajectory (the paper's Section 4.4): filter, downsampling, configurations, velocities."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from paper import drawing, furuta
from paper.document import Figure, Results, ResultTable, Section, check
from paper.methods import PAPER, PAPER_COMPLIANCE, Size, StudyModel, fit_case
from paper.paper_twins import true_file
from shadowfit.dynamics import State
from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.kinematics import gap_values
from shadowfit.estimation.problem.initial import initial_nodes
from shadowfit.estimation.problem.options import Options
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.problem import build_problem
from shadowfit.evaluation.columns import read_csv
from shadowfit.evaluation.joint_motion import joint_positions
from shadowfit.sweeps import fitting
from shadowfit.sweeps.cases import Case, Outcome

TASK = f"{__name__}:initial_case"
SCENARIO = "furuta-swingup"


def twins(size: Size) -> list[Case]:
    """The swing-up."""
    return [case for case in furuta.twins(size) if case.name == f"twin-{SCENARIO}"]


def cases(size: Size, made: Mapping[str, Outcome]) -> list[Case]:
    """One look at the initial trajectory of the paper's method."""
    del size
    model = StudyModel("furuta", {"*.compliance.*": PAPER_COMPLIANCE}, furuta.FREE)
    fit = fit_case("initial", PAPER, model, made, [SCENARIO])
    return [Case("initial", TASK, fit.arguments, fit.group)]


def initial_case(arguments: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The initial trajectory of a fit against the truth of its twin."""
    mechanism = fitting.case_mechanism(arguments, folder)
    recordings = fitting.read_all(arguments, arguments["recordings"], folder)
    parameters = parameter_set(mechanism, fitting.free_parameters(arguments))
    problem = build_problem(mechanism, recordings, parameters, Options.of(arguments["options"]))
    nodes = initial_nodes(problem, parameters.start(), 0)
    elements = assemble(problem.mechanism)
    steps, first = problem.tracks[0].steps, problem.plan.centre
    chosen = range(first, first + steps, 7)
    gaps = [float(np.max(np.abs(gap_values(elements, nodes.pose[i])))) for i in chosen]
    poses = nodes.pose[first : first + steps]
    positions = joint_positions(problem.mechanism, _states(poses, nodes, first, steps))
    h = problem.timestep
    every = round(h / 1e-3)
    truth = read_csv(folder / true_file(arguments["recordings"][0]))
    fields: dict[str, Any] = {"largest_gap": max(gaps), "time": (h * np.arange(steps)).tolist(), "joints": {}}
    for name, joint in {"theta1": "hinge1", "theta2": "hinge2"}.items():
        exact = truth[f"{name} [rad]"][::every][:steps]
        measured = recordings[0].channel(name)[:steps]
        filtered = np.unwrap(np.asarray(positions[joint])[:steps])
        filtered = filtered + 2.0 * np.pi * np.round((exact[0] - filtered[0]) / (2.0 * np.pi))
        speed = np.diff(filtered) / h
        fields["joints"][name] = {
            "raw_rms": _rms(measured - exact),
            "filtered_rms": _rms(filtered - exact),
            "speed_rms": _rms(speed - np.diff(exact) / h),
            "raw_speed_rms": _rms(np.diff(measured) / h - np.diff(exact) / h),
            "measured": measured.tolist(),
            "filtered": filtered.tolist(),
            "true": exact.tolist(),
        }
    return fields


def _states(poses: Any, nodes: Any, first: int, steps: int) -> Any:
    return State(poses, nodes.velocity[first : first + steps])


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def report(results: Results, size: Size, folder: Path) -> Section:
    """Errors before and after, and a figure."""
    del size
    initial = results.get("initial")
    tables, figures = [], []
    if initial is not None:
        rows = [
            [name, *(f"{joint[key]:.2e}" for key in ("raw_rms", "filtered_rms", "raw_speed_rms", "speed_rms"))]
            for name, joint in initial["joints"].items()
        ]
        columns = ["angle", "samples [rad]", "initial [rad]", "differences of samples [rad/s]", "initial [rad/s]"]
        tables = [ResultTable("initialisation", "Root mean square error against the twin's true motion", columns, rows)]
        figures = [_figure(initial, folder)]

    def closed() -> tuple[bool, str]:
        gap = results["initial"]["largest_gap"]
        return gap < 1e-9, f"largest gap {gap:.1e} m or rad"

    def smoother() -> tuple[bool, str]:
        pairs = [(joint["speed_rms"], joint["raw_speed_rms"]) for joint in results["initial"]["joints"].values()]
        return all(a < b for a, b in pairs), ", ".join(f"{a:.2g} against {b:.2g} rad/s" for a, b in pairs)

    return Section(
        "Initialisation",
        [
            "A Butterworth filter of second order with 10 Hz, forward and backward, downsampled to the time-step; "
            "configurations that read the filtered angles at zero constraint violation; velocities as their "
            "differences. On the swing-up, with samples each 10 ms.",
        ],
        tables,
        figures,
        [
            check("Initial configurations have no constraint violation", closed),
            check("Initial velocities are better than differences of samples", smoother),
        ],
    )


def _figure(initial: Mapping[str, Any], folder: Path) -> Figure:
    figure, axes = drawing.panels(1, 2, height=2.6)
    time = np.array(initial["time"])
    for column, (name, joint) in enumerate(initial["joints"].items()):
        for i, (key, label) in enumerate({"measured": "samples", "filtered": "initial trajectory"}.items()):
            error = 1e3 * (np.array(joint[key]) - np.array(joint["true"]))
            axes[0, column].plot(time, error, color=drawing.COLOURS[i], lw=0.8, label=label)
        axes[0, column].set(title=name, xlabel="time [s]", ylabel="error [mrad]")
    drawing.legend(axes[0, 0])
    return Figure(drawing.save(figure, folder, "initialisation"), "Error of samples and of the initial trajectory")
