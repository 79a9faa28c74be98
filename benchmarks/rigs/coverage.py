"""Do 95 % intervals hold the truth 95 times of a hundred? Many fits to simulated data whose truth is known.

Truth and model share their discretisation, so that nothing but what a condition adds stands between them. For each
mechanism (*study*), kind of disturbance (*condition*) and seed: simulate, disturb, fit, and note for every kind of
interval whether the truth lies inside. Each fit is one line of ``coverage.jsonl``; a run that is stopped goes on
where it was. ``coverage.csv`` and ``coverage.md`` are made from the lines.

    python -m benchmarks.rigs.coverage --out FOLDER [--seeds 40] [--study NAME]... [--condition NAME]...
        [--workers N | --scheduler ADDRESS]
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import dataclasses
import functools
import io
import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from scipy import stats

from shadowfit import parallel
from shadowfit.arrays import Float
from shadowfit.dynamics import place
from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.requests import step_commands
from shadowfit.errors import ShadowfitError
from shadowfit.estimation import Estimate, LevenbergMarquardt, Options
from shadowfit.estimation.fit import solve
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.problem import build_problem
from shadowfit.estimation.problem.variation import varied
from shadowfit.estimation.problem.weights import Weights, default_weights
from shadowfit.estimation.refits.synthetic import disturbed_readings
from shadowfit.estimation.residuals.reference_mass import reference_mass
from shadowfit.estimation.solve.levenberg_marquardt import minimise
from shadowfit.estimation.uncertainty.evidence import Kind
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism import Coulomb, Mechanism, Stribeck
from shadowfit.mechanism.friction import FrictionLaw
from shadowfit.mechanism.leaves import Parts
from shadowfit.models import builtin
from shadowfit.models.atomic import write_text
from shadowfit.recordings import Recording
from shadowfit.runtime import start_jax

TIMESTEP = 0.01  # s
STEPS = 248  # of a recording: with the states at its ends one compiled chunk
NOISE = 1e-3  # rad, of the encoders
COUNTS = 4096  # of a quantised encoder, in a turn
COLOUR = 0.8  # correlation of coloured noise from sample to sample
LEVEL = 0.95
STICK_TIME = 5e-3  # s, the same in truth and fit
# Joints so stiff that they do not sag under the load of the first step.
COMPLIANCE = 1e-8
# Fits start this far from the truth.
START_FACTOR = 1.2
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclasses.dataclass(frozen=True)
class Study:
    """A mechanism in motion, and what is estimated of it."""

    name: str
    mechanism: Mechanism
    """The truth."""
    free: tuple[str, ...]
    positions: Mapping[str, float]
    """Joint positions at the start, at rest [rad]."""
    steps: int
    signal: Float[np.ndarray, " steps"] | None = None
    """The motor's input."""


@dataclasses.dataclass(frozen=True)
class Condition:
    """What stands between truth and data, and the weight with which the fit answers."""

    name: str
    text: str
    state_weight: float | Literal["auto"]
    impulse: float = 0.0
    """Standard deviation of the impulse errors of a step, in each component [N s, N m s]."""
    sensor: Literal["white", "coloured", "counts"] = "white"
    stribeck: bool = False
    """Whether the truth's dry friction rises near rest; the model's never does."""
    studies: tuple[str, ...] = ("pendulum", "furuta_release", "furuta_driven")


PROCESS = 1e-5  # N s and N m s: matched by κ = (NOISE/PROCESS)² = 1e4
CONDITIONS = (
    Condition("nominal", "sensor noise only, κ = 1e7", 1e7),
    Condition("nominal_auto", "sensor noise only, κ estimated", "auto"),
    Condition("small_weight", "sensor noise only, κ = 100 (the default)", 100.0),
    Condition("process", "impulse noise, κ that belongs to it (1e4)", 1e4, PROCESS),
    Condition("process_auto", "impulse noise, κ estimated", "auto", PROCESS),
    Condition("process_small", "impulse noise, κ a hundred times too small", 1e2, PROCESS),
    Condition("process_large", "impulse noise, κ a hundred times too large", 1e6, PROCESS),
    Condition("coloured", "sensor noise correlated in time (0.8 from sample to sample), κ = 1e7", 1e7, 0.0, "coloured"),
    Condition("counts", "encoders of 4096 counts, κ = 1e7", 1e7, 0.0, "counts"),
    Condition("counts_auto", "encoders of 4096 counts, κ estimated", "auto", 0.0, "counts"),
    Condition("stribeck", "truth with Stribeck friction, model not, κ = 100", 1e2, 0.0, "white", True, ("pendulum",)),
    Condition(
        "stribeck_auto", "truth with Stribeck friction, model without, κ estimated", "auto", 0.0, "white", True,
        ("pendulum",),
    ),
    Condition(
        "stribeck_large", "truth with Stribeck friction, model without, κ = 1e7", 1e7, 0.0, "white", True, ("pendulum",)
    ),
)  # fmt: skip


@functools.cache
def studies() -> dict[str, Study]:
    """The mechanisms by name."""
    pendulum = _prepared(builtin.pendulum(), {"hinge.stick_time": STICK_TIME})
    furuta = _prepared(
        builtin.furuta(friction=False),
        {
            **{"arm.inertia.xx": 1e-4, "arm.inertia.yy": 3e-3, "arm.inertia.zz": 3e-3},
            **{"pendulum.inertia.yy": 4e-3, "pendulum.inertia.zz": 4e-3},
            **{"hinge1.viscous": 1e-3, "hinge2.viscous": 1e-4},
        },
    )
    four = ("arm.inertia.zz", "pendulum.inertia.yy", "hinge1.viscous", "hinge2.viscous")
    six = ("hinge1.motor.gain", "arm.inertia.zz", "pendulum.inertia.yy", "pendulum.inertia.zz", *four[2:])
    listed = (
        Study("pendulum", pendulum, ("pendulum.inertia.yy", "hinge.viscous", "hinge.dry"), {"hinge": 2.5}, STEPS),
        Study("furuta_release", furuta, four, {"hinge2": np.pi - 0.3}, STEPS),
        Study("furuta_driven", furuta, six, {"hinge2": 0.3}, STEPS, pulses(STEPS)),
    )
    return {study.name: study for study in listed}


def _prepared(mechanism: Mechanism, values: Mapping[str, float]) -> Mechanism:
    stiff = {f"{name}.compliance.{kind}": COMPLIANCE for name in mechanism.joints for kind in ("linear", "rotational")}
    noise = {f"{name}.std": NOISE for name in mechanism.sensors}
    return mechanism.set({**stiff, **noise, **values})


def pulses(steps: int) -> Float[np.ndarray, " steps"]:
    """A motor signal [V]: steps up and down of changing length."""
    t = TIMESTEP * np.arange(steps)
    return np.sign(np.sin(2 * np.pi * 0.9 * t + 0.5 * t**2)) * (1.5 - 0.5 * np.cos(2.0 * t))


def _with_stribeck(mechanism: Mechanism) -> Mechanism:
    """Dry friction that is half as large again near rest."""
    joints = dict(mechanism.joints.items())
    for name, joint in joints.items():
        law: FrictionLaw | None = joint.friction
        if isinstance(law, Coulomb):
            rising = Stribeck(
                law.dry, 0.5 * law.dry, law.coulomb, 0.5 * law.coulomb, 0.5, law.dry_radius, law.stick_time
            )
            joints[name] = dataclasses.replace(joint, friction=rising)
    return mechanism.having(joints=Parts(joints))


# --- data ---


def record(study: Study, condition: Condition, seed: int) -> Recording:
    """One disturbed recording of a study."""
    random = np.random.default_rng([seed, *condition.name.encode(), *study.name.encode()])
    truth = _with_stribeck(study.mechanism) if condition.stribeck else study.mechanism
    size = (study.steps, len(truth.bodies), 6)
    impulses = jnp.asarray(condition.impulse * random.standard_normal(size))
    signal = np.zeros(study.steps) if study.signal is None else study.signal
    signals = jnp.asarray(np.tile(signal, (len(truth.inputs), 1)))
    timestep = jnp.asarray(TIMESTEP)
    command = step_commands(truth, signals, timestep, "exact")[:-1]
    errors = impulses / reference_mass(assemble(truth).bodies)
    clean = disturbed_readings(truth, place(truth, study.positions), command, errors, timestep, "exact")
    channels = {
        name: disturbed(np.asarray(values)[:, 0], condition.sensor, random)
        for name, values in zip(truth.sensors, clean, strict=True)
    }
    channels |= {name: np.append(signal, signal[-1]) for name in truth.inputs}
    return Recording(TIMESTEP * np.arange(study.steps + 1, dtype=float), channels, name=f"{study.name}_{seed}")


def disturbed(values: Float[np.ndarray, " n"], sensor: str, random: np.random.Generator) -> Float[np.ndarray, " n"]:
    """Readings with white or coloured noise of standard deviation ``NOISE``, or in counts with a random offset."""
    if sensor == "counts":
        width = 2.0 * np.pi / COUNTS
        offset = random.uniform()
        return width * (np.floor(values / width + offset) + 0.5 - offset)
    noise = NOISE * random.standard_normal(values.shape)
    if sensor == "coloured":
        for k in range(1, len(noise)):
            noise[k] = COLOUR * noise[k - 1] + np.sqrt(1.0 - COLOUR**2) * noise[k]
    return values + noise


# --- fits ---


def fitted(study: Study, condition: Condition, recording: Recording) -> Estimate:
    """The fit of a recording; a large κ is reached in steps."""
    std = 2.0 * np.pi / COUNTS / np.sqrt(12.0) if condition.sensor == "counts" else NOISE
    model = study.mechanism.set({f"{name}.std": std for name in study.mechanism.sensors})
    # The weight of impulses is the mass at the start: where κ has a right value, masses must start there.
    starts = {
        name: study.mechanism.get(name) * (1.0 if condition.impulse and ".inertia." in name else START_FACTOR)
        for name in study.free
    }
    options = Options(unknowns="configuration", correction="none", state_weight=condition.state_weight, stick_time=None)
    problem = build_problem(model, [recording], parameter_set(model, starts), options)
    if condition.state_weight == "auto":
        estimate = solve(problem, LevenbergMarquardt()).unless_interrupted()
        return _polished(estimate, estimate.weights)
    first = varied(problem, options=dataclasses.replace(problem.options, state_weight=100.0))
    estimate = solve(first, LevenbergMarquardt()).unless_interrupted()
    for state_weight in 10.0 ** np.arange(3.5, np.log10(condition.state_weight) - 0.5, 1.5):
        estimate = _polished(estimate, default_weights(problem, state_weight), iterations=3)
    estimate = _polished(estimate, default_weights(problem, condition.state_weight))
    return dataclasses.replace(estimate, problem=problem)


def _polished(estimate: Estimate, weights: Weights, iterations: int = 10) -> Estimate:
    """Some more iterations, beyond where a fit ends for what is insignificant."""
    settings = LevenbergMarquardt(max_iterations=iterations, start_damping=1e-8, decrease_tolerance=1e-9)
    outcome = minimise(estimate.problem, estimate.outcome.linearisation.point, weights, settings)
    return dataclasses.replace(estimate, outcome=outcome.unless_interrupted(), weights=weights)


def line(study: Study, condition: Condition, seed: int) -> dict[str, Any]:
    """One fit as a line of the results."""
    began = time.perf_counter()
    estimate = fitted(study, condition, record(study, condition, seed))
    rows = estimate.parameters
    truth = {name: float(study.mechanism.get(name)) for name in study.free}
    fields: dict[str, Any] = {
        "study": study.name,
        "condition": condition.name,
        "seed": seed,
        "converged": estimate.converged,
        "state_weight": estimate.state_weight,
        "parameters": {
            row.name: {"truth": truth[row.name], "value": row.value, "at_bound": row.at_bound} for row in rows
        },
    }
    for kind in KINDS:
        spread = estimate.uncertainty(kind)
        for std, interval in zip(spread.freed_std, spread.intervals(LEVEL), strict=True):
            row = fields["parameters"][interval.name]
            row.setdefault("std", {})[kind] = float(std)
            row.setdefault("covered", {})[kind] = bool(interval.lower <= row["truth"] <= interval.upper)
    return fields | {"seconds": time.perf_counter() - began}


# --- results ---


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Lines of an earlier run; one that was cut off is left out."""
    if not path.exists():
        return []
    lines = []
    for text in path.read_text("utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            continue
    return lines


def _entry(case: tuple[str, str, int]) -> dict[str, Any]:
    """The line of a study, a condition and a seed, or why there is none."""
    start_jax()
    study, condition, seed = case
    try:
        return line(studies()[study], {one.name: one for one in CONDITIONS}[condition], seed)
    except ShadowfitError as error:
        return {"study": study, "condition": condition, "seed": seed, "error": str(error)}


def run(folder: Path, chosen: Iterable[tuple[Study, Condition]], seeds: int, n_jobs: int | None = 1) -> None:
    """Make the lines that are missing, with progress, and write the tables; Ctrl-C keeps what is done."""
    path = folder / "coverage.jsonl"
    lines = read_lines(path)
    write_text(path, "".join(json.dumps(entry) + "\n" for entry in lines))
    done = {(entry["study"], entry["condition"], entry["seed"]) for entry in lines}
    open_cases = [
        (study.name, condition.name, seed)
        for study, condition in chosen
        for seed in range(seeds)
        if (study.name, condition.name, seed) not in done
    ]
    try:
        with contextlib.closing(parallel.run(_entry, open_cases, n_jobs=n_jobs)) as finished:
            for number, (place, result) in enumerate(finished, 1):
                study, condition, seed = open_cases[place]
                lost = {"study": study, "condition": condition, "seed": seed, "error": getattr(result, "reason", "")}
                entry = lost if isinstance(result, parallel.Lost) else result
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(entry) + "\n")
                print(f"\r{number}/{len(open_cases)} {study} {condition} {seed}    ", end="", file=sys.stderr)
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on from here", file=sys.stderr)
    write_tables(folder)


@dataclasses.dataclass(frozen=True)
class Coverage:
    """Coverage of one parameter by one kind of interval."""

    study: str
    condition: str
    parameter: str
    kind: str
    fits: int
    covered: int
    bias: float
    """Mean error, in empirical standard deviations of the estimates."""
    ratio: float
    """Root mean square of the stated standard deviations over the empirical one; 1 is right."""

    @property
    def fraction(self) -> float:
        """Fraction of intervals that hold the truth."""
        return self.covered / self.fits

    def cell(self) -> str:
        """Percentage, ratio of standard deviations, and a mark where the percentage is not that of the level."""
        return f"{100.0 * self.fraction:.0f} % ({self.ratio:.2f}){'' if self.sound else ' ✗'}"

    @property
    def sound(self) -> bool:
        """Whether the fraction agrees with the level, as far as this number of fits can tell (99 % of such counts)."""
        return self.covered in _expected(self.fits)


@functools.cache
def _expected(fits: int) -> range:
    low, high = stats.binom.interval(0.99, fits, LEVEL)
    return range(int(low), int(high) + 1)


def coverages(lines: Sequence[Mapping[str, Any]]) -> list[Coverage]:
    """Coverage of each parameter under each condition by each kind; fits that did not converge count like others."""
    table = []
    cases = dict.fromkeys((entry["study"], entry["condition"]) for entry in lines)
    for study, condition in cases:
        fits = [e for e in lines if (e["study"], e["condition"]) == (study, condition) and "parameters" in e]
        for name in fits[0]["parameters"] if fits else ():
            rows = [entry["parameters"][name] for entry in fits]
            values = np.array([row["value"] for row in rows])
            spread = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
            bias = float(np.mean(values) - rows[0]["truth"]) / spread
            for kind in rows[0]["covered"]:
                stated = float(np.sqrt(np.nanmean([row["std"][kind] ** 2 for row in rows])))
                covered = sum(row["covered"][kind] for row in rows)
                table.append(Coverage(study, condition, name, kind, len(rows), covered, bias, stated / spread))
    return table


def write_tables(folder: Path) -> None:
    """``coverage.csv`` and ``coverage.md`` from the lines."""
    lines = read_lines(folder / "coverage.jsonl")
    table = coverages(lines)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in dataclasses.fields(Coverage)] + ["fraction"])
    writer.writerows([*dataclasses.astuple(entry), f"{entry.fraction:.4f}"] for entry in table)
    write_text(folder / "coverage.csv", text.getvalue())
    write_text(folder / "coverage.md", markdown(table, lines))


def markdown(table: Sequence[Coverage], lines: Sequence[Mapping[str, Any]]) -> str:
    """A table for each condition: percent of intervals that hold the truth, by kind."""
    parts = []
    for condition in CONDITIONS:
        entries = [entry for entry in table if entry.condition == condition.name]
        if not entries:
            continue
        fits = [entry for entry in lines if entry["condition"] == condition.name]
        failed = sum(not entry.get("converged", False) for entry in fits)
        parts.append(f"**{condition.name}**: {condition.text}. {len(fits)} fits, {failed} without convergence.\n")
        parts.append("| study | parameter | fits | bias/std | " + " | ".join(KINDS) + " |")
        parts.append("|---|---|---|---|" + "---|" * len(KINDS))
        for study, name in dict.fromkeys((entry.study, entry.parameter) for entry in entries):
            rows = {entry.kind: entry for entry in entries if (entry.study, entry.parameter) == (study, name)}
            cells = [
                f"{100 * rows[k].fraction:.0f} % ({rows[k].ratio:.2f}){'' if rows[k].sound else ' ✗'}" for k in KINDS
            ]
            any_row = next(iter(rows.values()))
            parts.append(f"| {study} | `{name}` | {any_row.fits} | {any_row.bias:+.1f} | " + " | ".join(cells) + " |")
        parts.append("")
    return "\n".join(parts) + "\n"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("coverage"), help="folder of the results")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--study", action="append", choices=["pendulum", "furuta_release", "furuta_driven"])
    parser.add_argument("--condition", action="append", choices=[condition.name for condition in CONDITIONS])
    parser.add_argument("--workers", type=int, help="processes; without it, this one alone")
    parser.add_argument("--scheduler", help="address of a Dask scheduler whose workers do it")
    arguments = parser.parse_args()
    start_jax()
    chosen = [
        (studies()[name], condition)
        for condition in CONDITIONS
        if condition.name in (arguments.condition or [condition.name])
        for name in condition.studies
        if name in (arguments.study or [name])
    ]
    with parallel.crew(arguments.workers, arguments.scheduler) as crew:
        run(arguments.out, chosen, arguments.seeds, crew.n_jobs)
    print((arguments.out / "coverage.md").read_text("utf-8"))


if __name__ == "__main__":
    main()
