"""Where ``state_weight="auto"`` lands: likelihood and errors of the parameters against κ, on Furuta twins.

Recordings of the coverage study, released and driven, with sensor noise alone and with impulse noise that κ = 1e4
belongs to. For each, fits at every decade of κ and the automatic one. Writes ``docs/record/figures/plateau.png`` and
prints the table of docs/record/error-bars.md. Run ``python -m benchmarks.plateau [--seeds 6]``.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.rigs.coverage import CONDITIONS, Condition, Study, fitted, record, studies
from shadowfit.estimation import Estimate, LevenbergMarquardt
from shadowfit.estimation.solve.levenberg_marquardt import minimise
from shadowfit.estimation.uncertainty.likelihood import deviance
from shadowfit.runtime import start_jax

FIGURE = Path("docs/record/figures/plateau.png")
SWEEP = 10.0 ** np.arange(1.0, 10.5)
NAMES = {"nominal_auto": "sensor noise alone", "process_auto": "impulse noise of κ = 1e4"}
SETTINGS = LevenbergMarquardt(max_iterations=30, start_damping=1e-9, decrease_tolerance=1e-9)


@dataclasses.dataclass(frozen=True)
class Sweep:
    """Fits of one recording: at every κ of the sweep, and the automatic one last."""

    state_weights: np.ndarray
    deviances: np.ndarray
    """−2 log L above the lowest of the sweep."""
    errors: np.ndarray
    """``(fits, parameters)``: estimate/truth − 1."""


def at(estimate: Estimate, state_weight: float) -> Estimate:
    """The fit at another κ, from where a fit ended."""
    factor = np.sqrt(state_weight / estimate.state_weight)
    weights = dataclasses.replace(estimate.weights, dynamics=factor * estimate.weights.dynamics)
    outcome = minimise(estimate.problem, estimate.outcome.linearisation.point, weights, SETTINGS)
    return dataclasses.replace(estimate, weights=weights, outcome=outcome)


def sweep(study: Study, condition: Condition, seed: int) -> Sweep:
    """All fits of one recording; each κ starts from its neighbour on the side of the automatic one."""
    automatic = fitted(study, condition, record(study, condition, seed))
    found: dict[float, Estimate] = {}
    above = np.searchsorted(SWEEP, automatic.state_weight, side="right")
    for side in (SWEEP[:above][::-1], SWEEP[above:]):
        last = automatic
        for state_weight in side:
            last = found[state_weight] = at(last, state_weight)
    fits = [*(found[state_weight] for state_weight in SWEEP), automatic]
    values = np.array([deviance(e.problem, e.outcome.linearisation, e.weights)[0] for e in fits])
    errors = [[row.value / study.mechanism.get(row.name) - 1.0 for row in e.parameters] for e in fits]
    return Sweep(np.array([e.state_weight for e in fits]), values - values.min(), np.array(errors))


def draw(panels: dict[tuple[str, str], list[Sweep]], path: Path) -> None:
    """Above the likelihood, below the errors; automatic choices as marks."""
    figure = Figure(figsize=(11.0, 5.0), layout="constrained")
    axes = figure.subplots(2, len(panels), sharex=True, squeeze=False)
    for column, ((study, condition), sweeps) in enumerate(panels.items()):
        above, below = axes[:, column]
        for own in sweeps:
            above.plot(SWEEP, own.deviances[:-1] + 0.1, color="0.6", linewidth=0.8)
            above.plot(own.state_weights[-1], own.deviances[-1] + 0.1, "v", color="C3", markersize=5)
        size = np.sqrt(np.mean([own.errors**2 for own in sweeps], axis=0))
        for i, name in enumerate(studies()[study].free):
            below.plot(SWEEP, 100.0 * size[:-1, i], linewidth=1.0, label=name)
            below.axhline(100.0 * size[-1, i], color=below.lines[-1].get_color(), linewidth=0.6, linestyle=":")
        for own in sweeps:
            below.axvline(own.state_weights[-1], color="C3", linewidth=0.6, alpha=0.5)
        above.set_title(f"{study}\n{NAMES[condition]}", fontsize=9)
        above.set_yscale("log")
        below.set_xscale("log")
        below.set_yscale("log")
        below.set_xlabel("κ")
        below.legend(fontsize=6)
    axes[0, 0].set_ylabel("−2 log L, above least, + 0.1")
    axes[1, 0].set_ylabel("rms error [%]")
    figure.savefig(path, dpi=130)


def row(study: str, condition: str, sweeps: list[Sweep]) -> str:
    """A line of the table: chosen κ, likelihood lost, errors against those of the best κ of the sweep."""
    chosen = sorted(own.state_weights[-1] for own in sweeps)
    lost = np.median([own.deviances[-1] for own in sweeps])
    size = np.sqrt(np.mean([own.errors**2 for own in sweeps], axis=0))
    ratio = size[-1] / size[:-1].min(axis=0)
    first = size[np.flatnonzero(SWEEP == 100.0)[0]] / size[:-1].min(axis=0)
    return (
        f"| {study} | {NAMES[condition]} | {chosen[0]:.0e} – {chosen[-1]:.0e} | {lost:.1f} | "
        f"{np.median(ratio):.2f} ({ratio.max():.2f}) | {np.median(first):.1f} ({first.max():.1f}) |"
    )


def main() -> None:
    """Sweep, draw, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6)
    given = parser.parse_args()
    start_jax()
    conditions = {condition.name: condition for condition in CONDITIONS}
    panels = {
        (study, condition): [sweep(studies()[study], conditions[condition], seed) for seed in range(given.seeds)]
        for condition in NAMES
        for study in ("furuta_release", "furuta_driven")
    }
    draw(panels, FIGURE)
    print("| twin | errors | κ chosen | −2 log L lost | error / least of the sweep | the same at κ = 100 |")
    print("|---|---|---|---|---|---|")
    for (study, condition), sweeps in panels.items():
        print(row(study, condition, sweeps))


if __name__ == "__main__":
    main()
