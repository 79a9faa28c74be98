"""Study: thirteen parameters of the Furuta pendulum from three scenarios (the paper's Section 4.6, Table 4)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from paper import drawing
from paper.document import Figure, Finding, Results, ResultTable, Section, check
from paper.methods import (
    OURS,
    PAPER,
    PAPER_COMPLIANCE,
    RIGID,
    Method,
    Size,
    StudyModel,
    fit_case,
    twin_case,
)
from paper.tables import percent, with_uncertainty
from shadowfit.models.twins import FURUTA_FREE, FurutaTruth, named_truth
from shadowfit.recordings import read_recording
from shadowfit.sweeps.cases import Case, Outcome

NOISE = 5e-4  # rad, beyond the encoder's steps
# Scenario → duration [s]; in the order of the paper's table.
SCENARIOS: Mapping[str, float] = {"release": 10.0, "pulse": 10.0, "swingup": 12.0}
METHODS = (PAPER, OURS)
COMPLIANCE = {"paper": PAPER_COMPLIANCE, "ours": RIGID}
# The motor does nothing in the release. The paper puts its gain to 7.0 for cross-validation, near the 7.3 of the other
# two; ours is a hundredth of that (see FurutaTruth).
NOMINAL_GAIN = {"hinge1.motor.gain": 0.070}
SYMBOLS = {
    "arm.inertia.xx": "J_Axx [kg m²]",
    "arm.inertia.yy": "J_Ayy [kg m²]",
    "arm.inertia.zz": "J_Azz [kg m²]",
    "pendulum.inertia.yy": "J_Byy [kg m²]",
    "pendulum.inertia.zz": "J_Bzz [kg m²]",
    "hinge1.viscous": "b₁ [N m s]",
    "hinge2.viscous": "b₂ [N m s]",
    "hinge1.dry": "μ₁",
    "hinge2.dry": "μ₂",
    "hinge1.motor.gain": "K [N m/V]",
    "gravity.tilt.x": "tilt x [rad]",
    "gravity.tilt.y": "tilt y [rad]",
    "gravity.tilt.z": "tilt z [rad]",
}
PAPER_TABLE = {
    "Cost": ["3.22e-05", "2.28e-06", "3.01e-05"],
    "CV": ["2.46e-05", "2.36e-04", "2.34e-05"],
    "arm.inertia.xx": ["0(200.0)", "0(2000.0)", "0(200.0)"],
    "arm.inertia.yy": ["0(50.0)", "0(3000.0)", "0(80.0)"],
    "arm.inertia.zz": ["0.00449(2)", "0.0042(2)", "0.00438(4)"],
    "pendulum.inertia.yy": ["0.003964(1)", "0.00384(2)", "0.003962(2)"],
    "pendulum.inertia.zz": ["0.00242(6)", "0.00411(2)", "0.00374(9)"],
    "hinge1.viscous": ["0.0009(2)", "0.00140(6)", "0(0.0006)"],
    "hinge2.viscous": ["0.00010(2)", "0(0.0001)", "0.00006(5)"],
    "hinge1.dry": ["0.00058(1)", "0(2e-05)", "0.00072(6)"],
    "hinge2.dry": ["0.00022(3)", "0.00009(2)", "0.00019(8)"],
    "hinge1.motor.gain": ["–", "7.29(5)", "7.28(2)"],
    "gravity.tilt.x": ["not given"] * 3,
    "gravity.tilt.y": ["not given"] * 3,
    "gravity.tilt.z": ["not given"] * 3,
}
TRUTH = named_truth(FurutaTruth())
FREE: Mapping[str, Mapping[str, Any]] = {name: {} for name in FURUTA_FREE}


def twins(size: Size) -> list[Case]:
    """The three scenarios."""
    return [
        twin_case(f"furuta-{name}", f"furuta_{name}", duration * size.duration, NOISE, seed=200 + i)
        for i, (name, duration) in enumerate(SCENARIOS.items())
    ]


def cases(size: Size, made: Mapping[str, Outcome]) -> list[Case]:
    """Each scenario fitted by both methods, and cross-validated on the other two."""
    listed = []
    for method in METHODS:
        for name in SCENARIOS:
            others = [f"furuta-{other}" for other in SCENARIOS if other != name]
            more = {"validate_set": NOMINAL_GAIN} if name == "release" else {}
            model = StudyModel(size.model("furuta"), {"*.compliance.*": COMPLIANCE[method.key]}, FREE)
            case = _name(method, name)
            listed.append(fit_case(case, method, model, made, [f"furuta-{name}"], validate=others, **more))
    return listed


def _name(method: Method, scenario: str) -> str:
    return f"furuta-{method.key}-{scenario}"


def _validation(fit: Mapping[str, Any]) -> float:
    """Mean cost on the other scenarios."""
    return float(np.mean([other["cost"] for other in fit["validation"].values()]))


def report(results: Results, size: Size, folder: Path) -> Section:
    """Table 4 with the truth, and the findings."""
    made = (
        "Release from upright, a one-second pulse of the motor, and a swing-up by an energy-shaping controller in the "
        "loop whose recorded signal is the input of the fits. Encoders of 4096 counts a turn and white noise of "
        f"{NOISE:g} rad; the stand is tilted by 0.012 rad; κ = 100, h = 10 ms."
    )
    return Section(
        "Furuta pendulum: thirteen parameters, three scenarios",
        [
            ("Three recordings of a rig; κ = 100, h = 10 ms." if size.rig else made) + " The paper's method stops "
            "at 20 iterations, ε_g = 10 or ε_δ = 1e-6, with its compliance of 1e-4; ours at its own defaults, with "
            "1e-6.",
            "Cross-validation (CV): mean cost on the other two scenarios with the states alone estimated. The "
            "motor's gain, which the release says nothing about, is put to 0.070 for that (the paper: 7.0 in units "
            "of its own). "
            "Our residual weighs errors by the inertias at a fit's start, which differ between a fit and its "
            "cross-validation: compare its CV with its CV, not with its cost.",
        ],
        [_table(results, size), *([] if size.rig else [_truth_table(results)])],
        [_data_figure(folder, size)],
        _findings(results, size),
    )


def _table(results: Results, size: Size) -> ResultTable:
    rows = []
    for quantity, paper in PAPER_TABLE.items():
        rows.append([SYMBOLS.get(quantity, quantity), "paper, its machine", *paper])
        for method in METHODS:
            cells = [_cell(results.get(_name(method, scenario)), quantity) for scenario in SCENARIOS]
            rows.append(["", f"{size.machine}, {method.label}", *cells])
        if quantity in TRUTH and not size.rig:
            rows.append(["", "twin, truth", *[f"{TRUTH[quantity]:g}"] * 3])
    for method in METHODS:
        ends = [results.get(_name(method, scenario)) for scenario in SCENARIOS]
        texts = [f"{end['iterations']}, {end['status']}" if end else "–" for end in ends]
        rows.append(["iterations, end", f"{size.machine}, {method.label}", *texts])
    return ResultTable("furuta", "Estimates from each scenario (Table 4)", ["", "", *SCENARIOS], rows)


def _cell(fit: Mapping[str, Any] | None, quantity: str) -> str:
    if fit is None:
        return "–"
    if quantity == "Cost":
        return f"{fit['cost']:.3g}"
    if quantity == "CV":
        return f"{_validation(fit):.3g}"
    row = fit["parameters"][quantity]
    return with_uncertainty(row["value"], row["std"]) + (" bound" if row["at_bound"] else "")


def _truth_table(results: Results) -> ResultTable:
    rows = []
    for name, truth in TRUTH.items():
        row = [SYMBOLS[name], f"{truth:g}"]
        for method in METHODS:
            for scenario in SCENARIOS:
                fit = results.get(_name(method, scenario))
                unknown = fit is None or not fit["parameters"][name]["identifiable"]
                row.append("–" if unknown or fit is None else percent(fit["parameters"][name]["value"], truth))
        rows.append(row)
    columns = ["parameter", "truth", *(f"{method.label}: {scenario}" for method in METHODS for scenario in SCENARIOS)]
    return ResultTable(
        "furuta_truth", "Error against the truth (–: the data say nothing, by the fit's own account)", columns, rows
    )


def _data_figure(folder: Path, size: Size) -> Figure:
    figure, axes = drawing.panels(3, 3, height=1.7)
    for column, scenario in enumerate(SCENARIOS):
        recording = read_recording(folder.parent / "twins" / f"furuta-{scenario}.csv")
        for row, (channel, label) in enumerate({"theta1": "θ₁ [rad]", "theta2": "θ₂ [rad]", "u": "u [V]"}.items()):
            axes[row, column].plot(recording.time, recording.channel(channel), color=drawing.COLOURS[row], lw=0.9)
            if column == 0:
                axes[row, column].set_ylabel(label)
        axes[0, column].set_title(scenario)
        axes[2, column].set_xlabel("time [s]")
    return Figure(drawing.save(figure, folder, "furuta-data"), f"The {size.machine}'s three scenarios")


def _findings(results: Results, size: Size) -> list[Finding]:
    def no_information(method: Method) -> tuple[bool, str]:
        texts, unknown = [], []
        for scenario in SCENARIOS:
            for name in ("arm.inertia.xx", "arm.inertia.yy"):
                row = results[_name(method, scenario)]["parameters"][name]
                unknown.append(row["at_bound"] or not row["identifiable"])
                spread = "on its bound" if row["std"] is None else f"std {row['std']:.2g}"
                texts.append(f"{scenario} {SYMBOLS[name].split()[0]} {row['value']:.2g}, {spread}")
        return all(unknown), "; ".join(texts)

    def pulse_excites_least(method: Method) -> tuple[bool, str]:
        widths = {
            s: float(
                np.mean([_relative(results[_name(method, s)], n) for n in ("arm.inertia.zz", "pendulum.inertia.yy")])
            )
            for s in SCENARIOS
        }
        text = ", ".join(f"{s} {100 * width:.2g} %" for s, width in widths.items())
        return widths["pulse"] == max(widths.values()), f"mean relative std of J_Azz and J_Byy: {text}"

    def pulse_validates_worst(method: Method) -> tuple[bool, str]:
        costs = {scenario: _validation(results[_name(method, scenario)]) for scenario in SCENARIOS}
        text = ", ".join(f"{scenario} {cost:.3g}" for scenario, cost in costs.items())
        return costs["pulse"] == max(costs.values()), f"CV: {text}; the paper: 2.46e-5, 2.36e-4, 2.34e-5"

    def best_known(method: Method) -> tuple[bool, str]:
        names = [name for name in TRUTH if "tilt" not in name and name != "hinge1.motor.gain"]
        firsts = []
        for scenario in SCENARIOS:
            widths = {name: _relative(results[_name(method, scenario)], name) for name in names}
            firsts.append(min(widths, key=lambda name: widths[name]))
        text = ", ".join(f"{s}: {SYMBOLS[n].split()[0]}" for s, n in zip(SCENARIOS, firsts, strict=True))
        return all(name == "pendulum.inertia.yy" for name in firsts), text

    findings = []
    for method in METHODS:
        by = f"({method.label})"
        findings += [
            check(
                f"J_Axx and J_Ayy are without information {by}",
                functools.partial(no_information, method),
                "the arm never turns about these axes, but soft bearings let it rock a little, which the fit uses",
            ),
            check(f"The pulse excites least {by}", functools.partial(pulse_excites_least, method)),
            check(
                f"The model tuned on the pulse cross-validates worst {by}",
                functools.partial(pulse_validates_worst, method),
                "the gain put in for the release, 0.070 instead of the true 0.073, costs its model more than weak "
                "excitation costs the pulse's",
            ),
            check(f"J_Byy is the parameter known best {by}", functools.partial(best_known, method)),
        ]

    def nearer() -> tuple[bool, str]:
        errors = {method.label: _mean_error(results[_name(method, "swingup")]) for method in METHODS}
        text = ", ".join(f"{label} {100 * error:.2g} %" for label, error in errors.items())
        return errors[OURS.label] < errors[PAPER.label], f"mean error of J_Azz, J_Byy, J_Bzz, K on the swing-up: {text}"

    if size.rig:
        return findings
    return [
        *findings,
        check("Our residual and discretisation bring the swing-up's estimates closer to the truth", nearer),
    ]


def _relative(fit: Mapping[str, Any], name: str) -> float:
    """Standard deviation over value; infinite on a bound."""
    row = fit["parameters"][name]
    return float("inf") if row["std"] is None or row["value"] == 0.0 else row["std"] / abs(row["value"])


def _mean_error(fit: Mapping[str, Any]) -> float:
    names = ("arm.inertia.zz", "pendulum.inertia.yy", "pendulum.inertia.zz", "hinge1.motor.gain")
    return float(np.mean([abs(fit["parameters"][name]["value"] / TRUTH[name] - 1.0) for name in names]))
