"""Study: time-step, compliance and state weight on simulated data with four unknowns (the paper's Section 4.7).

The paper's residual with SPOOK, the implicit residual with SPOOK, and the implicit residual with the exact constraint
go through the same sweeps, so that what each of the two changes can be seen apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paper import drawing
from paper.document import Figure, Finding, Results, ResultTable, Section, check, some
from paper.methods import (
    IMPLICIT,
    OURS,
    PAPER,
    PAPER_COMPLIANCE,
    Method,
    Size,
    StudyModel,
    fit_case,
    twin_case,
)
from paper.paper_twins import COMPLIANCE, SYNTHETIC_KNOWN, SYNTHETIC_TRUTH
from shadowfit.sweeps.cases import Case, Outcome

DURATION = 10.0  # s
NOISE = 1e-3  # rad, the paper's; its encoders are exact
SEEDS = (300, 301, 302, 303, 304)
START = {"arm.inertia.zz": 0.01, "pendulum.inertia.yy": 0.01, "hinge1.viscous": 1e-4, "hinge2.viscous": 1e-4}
SYMBOLS = {
    "arm.inertia.zz": "J_Azz [kg m²]",
    "pendulum.inertia.yy": "J_Byy [kg m²]",
    "hinge1.viscous": "b₁ [N m s]",
    "hinge2.viscous": "b₂ [N m s]",
}
# Range of the figures, in units of the true values.
LIMITS = {
    "arm.inertia.zz": (0.0, 3.0),
    "pendulum.inertia.yy": (0.6, 1.4),
    "hinge1.viscous": (-0.5, 8.0),
    "hinge2.viscous": (-0.2, 4.0),
}
TIMESTEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.04)
COMPLIANCES = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
WEIGHTS = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5)
# As on the real data, the paper's method runs for 20 iterations here, whatever the gradient.
METHODS = (
    PAPER.change(optimiser={"gradient_tolerance": 0.0, "step_tolerance": 0.0}),
    IMPLICIT,
    OURS,
)
# Sweep → symbol, values, title.
SWEEPS: Mapping[str, tuple[str, Sequence[float], str]] = {
    "timestep": ("h [s]", TIMESTEPS, "time-step, at ε = 1e-4 (paper's) and 1e-6 (implicit and exact), κ = 100"),
    "compliance": ("ε [m/N]", COMPLIANCES, "compliance, at h = 10 ms, κ = 100"),
    "weight": ("κ", WEIGHTS, "state weight, at h = 10 ms, ε = 1e-4 (paper's) and 1e-6 (implicit and exact)"),
}


def _compliance(method: Method) -> float:
    """The paper's for its own method; that of the truth for the others."""
    return PAPER_COMPLIANCE if method.key == "paper" else COMPLIANCE


def twins(size: Size) -> list[Case]:
    """One motion, with several draws of noise."""
    return [
        twin_case(f"synthetic-{seed}", "synthetic", DURATION * size.duration, NOISE, seed, counts=0)
        for seed in SEEDS[: size.series]
    ]


def cases(size: Size, made: Mapping[str, Outcome]) -> list[Case]:
    """The three sweeps on the first draw, and the base settings on all draws, by each method."""
    listed = []
    for method in METHODS:
        base = _compliance(method)
        for h in size.thin(TIMESTEPS):
            listed.append(_case(_name(method, "timestep", h), method.change({"timestep": h}), made, base))
        for eps in size.thin(COMPLIANCES):
            listed.append(_case(_name(method, "compliance", eps), method, made, eps))
        for weight in size.thin(WEIGHTS):
            listed.append(_case(_name(method, "weight", weight), method.change({"state_weight": weight}), made, base))
        for seed in SEEDS[: size.series]:
            listed.append(_case(_name(method, "seed", seed), method, made, base, seed))
    return listed


def _case(name: str, method: Method, made: Mapping[str, Outcome], compliance: float, seed: int = SEEDS[0]) -> Case:
    known = {key: value for key, value in SYNTHETIC_KNOWN.items() if not key.startswith("arm")}
    # The free inertia at its true value beside the known ones makes a possible body; the fit starts elsewhere.
    settings = {**known, "pendulum.inertia.yy": SYNTHETIC_TRUTH["pendulum.inertia.yy"], "*.compliance.*": compliance}
    model = StudyModel("furuta", settings, {key: {"start": value} for key, value in START.items()})
    return fit_case(name, method, model, made, [f"synthetic-{seed}"])


def _name(method: Method, sweep: str, value: float) -> str:
    return f"synthetic-{method.key}-{sweep}-{value:g}"


def report(results: Results, size: Size, folder: Path) -> Section:
    """Sweeps with the truth marked, and the findings."""
    return Section(
        "Synthetic release: time-step, compliance and state weight",
        [
            "Release of the Furuta pendulum, 0.03 rad from upright, simulated at h = 1e-4 s and ε = 1e-6; white "
            "noise of 1e-3 rad on the angles; four unknowns, started at the paper's values. The truth is known, and "
            "marked. State error: mean square of the unweighted impulse residuals; observation error: of the "
            "angles' [rad²].",
        ],
        [_seed_table(results, size), *(_table(results, sweep, size) for sweep in SWEEPS)],
        [_figure(results, sweep, size, folder) for sweep in SWEEPS],
        _findings(results, size),
    )


def _values(sweep: str, size: Size) -> list[float]:
    return size.thin(SWEEPS[sweep][1])


def _seed_table(results: Results, size: Size) -> ResultTable:
    """Mean and scatter over draws of noise: what is bias and what is chance."""
    rows = [["truth", *(f"{value:g}" for value in SYNTHETIC_TRUTH.values())]]
    for method in METHODS:
        fits = results.existing([_name(method, "seed", seed) for seed in SEEDS[: size.series]])
        cells = []
        for name, truth in SYNTHETIC_TRUTH.items():
            values = [fit["parameters"][name]["value"] for fit in fits]
            if not values:
                cells.append("–")
                continue
            error, scatter = 100 * (np.mean(values) / truth - 1.0), 100 * np.std(values) / truth
            cells.append(f"{np.mean(values):.3e} ({error:+.1f} % ± {scatter:.1f} %)")
        rows.append([f"{method.label} ({len(fits)} draws)", *cells])
    return ResultTable(
        "synthetic_draws",
        "Mean over draws of noise at h = 10 ms, κ = 100, in brackets its error ± scatter between draws",
        ["", *SYMBOLS.values()],
        rows,
    )


def _table(results: Results, sweep: str, size: Size) -> ResultTable:
    symbol, _, title = SWEEPS[sweep]
    rows = []
    for method in METHODS:
        for value in _values(sweep, size):
            fit = results.get(_name(method, sweep, value))
            row = [method.label, f"{value:g}"]
            if fit is None:
                rows.append([*row, *["–"] * 8])
                continue
            row += [f"{fit['parameters'][name]['value']:.3e}" for name in SYMBOLS]
            row += [f"{fit['cost_dynamics'] / fit['state_weight']:.2e}", f"{fit['cost_observation']:.2e}"]
            rows.append([*row, str(fit["iterations"]), fit["status"]])
    rows.append(["truth", "", *(f"{value:.3e}" for value in SYNTHETIC_TRUTH.values()), "", "", "", ""])
    columns = ["method", symbol, *SYMBOLS.values(), "state error", "observation error", "iterations", "end"]
    return ResultTable(f"synthetic_{sweep}", f"Sweep over the {title}", columns, rows)


def _figure(results: Results, sweep: str, size: Size, folder: Path) -> Figure:
    symbol, _, title = SWEEPS[sweep]
    values = _values(sweep, size)
    figure, axes = drawing.panels(2, 3, height=2.7)
    places = [axes[0, 0], axes[0, 1], axes[1, 0], axes[1, 1]]
    for i, method in enumerate(METHODS):
        # A fit that could not even start has no values to draw.
        swept = [results.get(_name(method, sweep, value)) for value in values]
        fits = [fit if fit and fit["status"] != "numerics" else None for fit in swept]
        for panel, name in zip(places, SYMBOLS, strict=True):
            drawing.curve(
                panel, values, [fit and 1e3 * fit["parameters"][name]["value"] for fit in fits], i, method.label
            )
        errors = [fit and fit["cost_dynamics"] / fit["state_weight"] for fit in fits]
        drawing.curve(axes[0, 2], values, errors, i, method.label)
        drawing.curve(axes[1, 2], values, [fit and fit["cost_observation"] for fit in fits], i, method.label)
    for panel, name in zip(places, SYMBOLS, strict=True):
        truth = 1e3 * SYNTHETIC_TRUTH[name]
        drawing.mark_truth(panel, truth)
        unit = SYMBOLS[name].replace("[", "[1e-3 ")
        low, high = LIMITS[name]
        panel.set(xscale="log", ylabel=unit, ylim=(low * truth, high * truth))
    axes[0, 2].set(xscale="log", yscale="log", ylabel="state error")
    axes[1, 2].set(xscale="log", yscale="log", ylabel="observation error [rad²]")
    for panel in axes[1]:
        panel.set_xlabel(symbol)
    drawing.legend(axes[0, 0], fontsize=7)
    return Figure(drawing.save(figure, folder, f"synthetic-{sweep}"), f"Sweep over the {title}")


def _error(fit: Mapping[str, Any], names: Sequence[str] = ("arm.inertia.zz", "pendulum.inertia.yy")) -> float:
    """Mean relative error of some parameters."""
    return float(np.mean([abs(fit["parameters"][name]["value"] / SYNTHETIC_TRUTH[name] - 1.0) for name in names]))


def _findings(results: Results, size: Size) -> list[Finding]:
    paper, implicit, ours = METHODS

    def errors(method: Method, sweep: str) -> dict[float, float]:
        return {value: _error(results[_name(method, sweep, value)]) for value in _values(sweep, size)}

    def listed(values: Mapping[float, float]) -> str:
        return ", ".join(f"{value:g}: {100 * error:.2g} %" for value, error in values.items())

    def grows(method: Method) -> tuple[bool, str]:
        by_step = errors(method, "timestep")
        steps = some(error for h, error in by_step.items() if h <= 0.02)
        return all(a < b for a, b in itertools.pairwise(steps)), f"mean error of the inertias by h: {listed(by_step)}"

    def exact_is_better() -> tuple[bool, str]:
        pairs = {
            h: (error, errors(implicit, "timestep")[h]) for h, error in errors(ours, "timestep").items() if h >= 0.005
        }
        some(pairs)
        text = ", ".join(f"h = {h:g}: {100 * a:.2g} % against {100 * b:.2g} %" for h, (a, b) in pairs.items())
        return all(a < b for a, b in pairs.values()), f"exact against SPOOK, implicit residual: {text}"

    def costs(method: Method) -> dict[float, float]:
        return {eps: results[_name(method, "compliance", eps)]["cost"] for eps in _values("compliance", size)}

    def breaks(method: Method) -> tuple[bool, str]:
        by_compliance = costs(method)
        broken = [
            eps for eps, cost in by_compliance.items() if cost > 10.0 * min(by_compliance.values()) and eps <= 1e-6
        ]
        return bool(broken), "cost by ε: " + ", ".join(f"{eps:g}: {cost:.2e}" for eps, cost in by_compliance.items())

    def stays(method: Method) -> tuple[bool, str]:
        by_compliance = {eps: cost for eps, cost in costs(method).items() if eps <= 1e-5}
        text = ", ".join(f"{eps:g}: {cost:.3e}" for eps, cost in by_compliance.items())
        some(by_compliance)
        return max(by_compliance.values()) < 1.5 * min(by_compliance.values()), f"cost by ε: {text}"

    def small_weight_spoils(method: Method) -> tuple[bool, str]:
        by_weight = errors(method, "weight")
        low = some(error for weight, error in by_weight.items() if weight <= 0.01)
        high = some(error for weight, error in by_weight.items() if 10.0 <= weight <= 100.0)
        return min(low) > max(high), f"mean error of the inertias by κ: {listed(by_weight)}"

    def plateau(method: Method, first: float, last: float) -> tuple[bool, str]:
        values = some(weight for weight in _values("weight", size) if first <= weight <= last)
        fits = [results[_name(method, "weight", weight)] for weight in values]
        table = np.array([[fit["parameters"][name]["value"] for name in list(SYMBOLS)[:2]] for fit in fits])
        spread = float(np.max(table.max(axis=0) / table.min(axis=0)) - 1.0)
        return spread < 0.1, f"inertias vary by {100 * spread:.3g} % for κ from {values[0]:g} to {values[-1]:g}"

    def untrue() -> tuple[bool, str]:
        fits = {eps: results[_name(paper, "compliance", eps)] for eps in _values("compliance", size)}
        settled = {eps: _error(fit) for eps, fit in fits.items() if 1e-5 <= eps <= 1e-4}
        some(settled)
        return all(error > 0.02 for error in settled.values()), f"mean error of the inertias by ε: {listed(settled)}"

    return [
        check("Under SPOOK the bias grows with h up to 20 ms (paper's method)", lambda: grows(paper)),
        check("Under SPOOK the bias grows with h up to 20 ms (implicit residual)", lambda: grows(implicit)),
        check("The exact constraint has less bias than SPOOK at 5 ms and above", exact_is_better),
        check("At h = 10 ms estimates stay off the truth whatever the compliance (paper's method)", untrue),
        check("The paper's residual breaks down for stiff joints, ε ≲ 1e-6", lambda: breaks(paper)),
        check("The implicit residual with SPOOK does not, down to 1e-9", lambda: stays(implicit)),
        check("The implicit residual with the exact constraint does not, down to 1e-9", lambda: stays(ours)),
        check("Too small κ spoils the parameters (paper's method)", lambda: small_weight_spoils(paper)),
        check("Too small κ spoils the parameters (ours)", lambda: small_weight_spoils(ours)),
        check(
            "A plateau within 10 % for κ from 0.1 to 100 (paper's method)",
            lambda: plateau(paper, 0.1, 100.0),
            "what the paper calls stable is a figure that is not available; SPOOK's error at h = 10 ms exceeds the "
            "noise, and κ decides who has to explain it",
        ),
        check(
            "A plateau of stable parameters, within 10 %, for κ from 10 to 1e5 (ours)", lambda: plateau(ours, 10.0, 1e5)
        ),
    ]
