"""How long estimations take and how much memory they need: a report, in parts that can be run alone.

* ``split``: 13 parameters, Furuta swing-up, 10 s, n = 1000, poses and joint coordinates as unknowns: medians of the
  warm solve and its parts, and the time spent compiling. Targets: solve ≤ 0.30 s (stretch 0.10 s), one linearisation
  ≤ 25 ms, one factor-and-solve ≤ 15 ms.
* ``length``: cost of a linearisation and a step per time step for n = 1e3, 1e4, 1e5 (target: constant within 1.5) and
  peak memory per step (target: ≤ 40 KB).
* ``chains``: the same for chains of 1, 2, 4, 8, 16 links.
* ``cold``: a new process from start to printed answer, without and with compiled programs of an earlier run
  (targets: ≤ 8 s, ≤ 4 s).

Run ``python benchmarks/estimator.py [split] [length] [chains] [cold]``; all parts without arguments.
``--plot FILE`` draws the costs against length and bodies.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

from shadowfit.dynamics import place, simulate
from shadowfit.estimation import LevenbergMarquardt, Options, fit
from shadowfit.estimation.fit import start_point
from shadowfit.estimation.linear.threads import one_thread
from shadowfit.estimation.problem.parameters import FreeParameters, parameter_set
from shadowfit.estimation.problem.problem import Problem, build_problem
from shadowfit.estimation.problem.weights import default_weights
from shadowfit.estimation.residuals.unknowns import UnknownsName
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.proposal import propose
from shadowfit.mechanism import Mechanism
from shadowfit.models import builtin
from shadowfit.models.twins import furuta_swing_up
from shadowfit.recordings import Recording
from shadowfit.runtime import compile_seconds, start_jax

PARTS = ("split", "length", "chains", "cold")
LENGTHS = (1_000, 10_000, 100_000)
LINKS = (1, 2, 4, 8, 16)
RUNS = 7

Costs = list[tuple[int, float]]
"""Of a time step and iteration [s], against something."""


# Start values of the paper's table; the tilt starts level.
STARTS = {"inertia": 0.01, "viscous": 1e-4, "dry": 1e-4, "gain": 0.1}


def swing_up(duration: float = 10.0) -> tuple[Mechanism, Recording, FreeParameters]:
    """The model, a recording of its swing-up, and the thirteen free parameters with their start values."""
    twin = furuta_swing_up(duration)
    starts = {name: next((v for word, v in STARTS.items() if word in name), None) for name in twin.free}
    return builtin.furuta().set(twin.settings), twin.recording, starts


def median_seconds(function: Callable[[], object], runs: int = RUNS) -> float:
    """Median wall time of a call [s]."""
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def peak_memory() -> int:
    """Largest resident memory so far [bytes]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def report_split() -> None:
    """Medians of a warm fit and of its parts, for two kinds of unknowns."""
    _report_split(Options(unknowns="configuration", correction="none", state_weight=100.0))
    _report_split(Options(unknowns="joint", correction="none", state_weight=100.0))


def _report_split(options: Options) -> None:
    mechanism, recording, free = swing_up()
    begin, before = time.perf_counter(), compile_seconds()
    first = fit(mechanism, recording, free, options=options)
    cold, compiling = time.perf_counter() - begin, compile_seconds() - before
    estimates = [fit(mechanism, recording, free, options=options) for _ in range(RUNS)]
    problem = first.problem
    start = start_point(problem)
    here = objective.linearise(problem, start, first.weights)
    linearise = median_seconds(lambda: objective.linearise(problem, start, first.weights))
    step = median_seconds(lambda: propose(problem, here, 1e-4, LevenbergMarquardt().damping))
    solve = statistics.median(e.seconds.solve for e in estimates)
    initial = statistics.median(e.seconds.initial for e in estimates)
    trials = 1 + sum(line.trials for line in first.log)
    ended = f"{first.status.name}, {first.iterations} iterations"
    print(f"furuta swing-up, 13 parameters, n = {first.steps}, unknowns {options.unknowns}: {ended}")
    rows = {
        "first fit, compilation included": cold,
        "  of which compiling": compiling,
        "warm fit (initial + solve)": initial + solve,
        "  initial trajectory": initial,
        "  solve": solve,
        f"    {trials} linearisations": trials * linearise,
        f"    {trials - 1} factorisations": (trials - 1) * step,
        "    other": solve - trials * linearise - (trials - 1) * step,
        "one linearisation": linearise,
        "one factor-and-solve": step,
    }
    for name, seconds in rows.items():
        print(f"  {name:36} {1e3 * seconds:10.1f} ms")


def cost_per_step(problem: Problem) -> tuple[float, float]:
    """Time of a linearisation and of a step, each divided by the number of time steps [s]."""
    start = start_point(problem)
    weights = default_weights(problem, 100.0)
    here = objective.linearise(problem, start, weights)
    propose(problem, here, 1e-2, "scaled")
    steps = sum(track.steps for track in problem.tracks)
    runs = 5 if steps <= 10_000 else 2
    linearise = median_seconds(lambda: objective.linearise(problem, start, weights), runs)
    step = median_seconds(lambda: propose(problem, here, 1e-2, "scaled"), runs)
    return linearise / steps, step / steps


def build(
    mechanism: Mechanism, recording: Recording, free: FreeParameters, unknowns: UnknownsName = "configuration"
) -> Problem:
    """The problem of a fit."""
    options = Options(timestep=0.01, unknowns=unknowns, correction="none", state_weight=100.0)
    return build_problem(mechanism, [recording], parameter_set(mechanism, free), options)


def repeated(recording: Recording, steps: int) -> Recording:
    """A recording of the wanted length: the given one, forwards and backwards in turn, so that nothing jumps."""
    count = len(recording.time)
    place = np.arange(steps) % (2 * count - 2)
    place = np.where(place < count, place, 2 * count - 2 - place)
    channels = {name: values[place] for name, values in recording.channels.items()}
    return Recording(0.01 * np.arange(steps), channels, units=recording.units, name=f"{steps} steps")


def report_length() -> Costs:
    """Cost and memory per time step against the number of steps."""
    mechanism, recording, free = swing_up()
    print(f"{'steps':>8} {'linearise':>14} {'factor + solve':>16} {'peak memory':>14}   per time step")
    found, base = [], 0
    for steps in LENGTHS:
        before = peak_memory()
        linearise, step = cost_per_step(build(mechanism, repeated(recording, steps), free))
        base = base or before
        memory = max(peak_memory() - base, 0) / steps
        print(f"{steps:8d} {1e6 * linearise:11.1f} µs {1e6 * step:13.1f} µs {memory / 1024:11.1f} KB")
        found.append((steps, linearise + step))
    print(f"  largest over smallest cost: {max(c for _, c in found) / min(c for _, c in found):.2f}")
    return found


def report_chains(largest: int, unknowns: Unknowns) -> Costs:
    """Cost per time step against the number of bodies."""
    print(f"chains, unknowns {unknowns}")
    print(
        f"{'links':>6} {'linearise':>14} {'factor + solve':>16} {'first calls':>13}   per time step; first calls in all"
    )
    found = []
    for links in (n for n in LINKS if n <= largest):
        mechanism = builtin.chain(links)
        hanging = place(mechanism, {f"hinge{i + 1}": 0.4 * np.cos(i) for i in range(links)})
        motion = simulate(
            mechanism, hanging, {}, timestep=0.01, steps=500, discretization="exact", joints="compliant", substeps=1
        )
        recording = Recording(np.asarray(motion.time), {k: np.asarray(v) for k, v in motion.readings.items()})
        begin = time.perf_counter()
        problem = build(mechanism, recording, [f"hinge{i + 1}.viscous" for i in range(links)], unknowns)
        linearise, step = cost_per_step(problem)
        total = time.perf_counter() - begin
        print(f"{links:6d} {1e6 * linearise:11.1f} µs {1e6 * step:13.1f} µs {total:11.1f} s")
        found.append((links, linearise + step))
    return found


def answer() -> None:
    """What a cold process does: fit and print."""
    mechanism, recording, free = swing_up()
    print(fit(mechanism, recording, free).summary())


def report_cold() -> None:
    """Wall time of new processes, the first without any compiled program."""
    with tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, __file__, "--answer"]
        settings = {**os.environ, "JAX_COMPILATION_CACHE_DIR": folder}
        settings["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"
        settings["SHADOWFIT_KERNELS"] = os.path.join(folder, "kernels")
        for name in ("first time on a machine", "afterwards", "afterwards"):
            begin = time.perf_counter()
            subprocess.run(program, check=True, stdout=subprocess.DEVNULL, env=settings)
            print(f"  {name:26} {time.perf_counter() - begin:6.1f} s")


def plot(path: str, length: Costs, chains: dict[Unknowns, Costs]) -> None:
    """Costs against length and against bodies."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (not part of a fit, whose cold start is measured with this program)

    figure = Figure(figsize=(8, 3.5), layout="constrained")
    lines = ({"configuration": length}, chains)
    for axes, curves, label in zip(figure.subplots(1, 2), lines, ("time steps", "links of a chain"), strict=True):
        for name, points in curves.items():
            axes.loglog([x for x, _ in points], [1e6 * y for _, y in points], "o-", label=name)
        axes.set_xlabel(label)
        axes.set_ylabel("µs per time step and iteration")
        most = max((cost for points in curves.values() for _, cost in points), default=0.0)
        axes.set_ylim(1.0, max(100.0, 2e6 * most))
        axes.legend(title="unknowns")
    figure.savefig(path)


def main() -> None:
    """Run the wanted parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of {', '.join(PARTS)}; all without")
    parser.add_argument("--plot", metavar="FILE", help="draw costs against length and bodies")
    parser.add_argument("--links", type=int, default=max(LINKS), help="longest chain")
    parser.add_argument("--answer", action="store_true", help="fit once and print (what `cold` measures)")
    arguments = parser.parse_args()
    unknown = set(arguments.parts) - set(PARTS)
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are: {', '.join(PARTS)}")
    start_jax()
    if arguments.answer:
        answer()
        return
    wanted = arguments.parts or PARTS
    length: Costs = []
    chains: dict[Unknowns, Costs] = {}
    with one_thread():  # as in a fit
        if "split" in wanted:
            report_split()
        if "length" in wanted:
            length = report_length()
        if "chains" in wanted:
            chains["configuration"] = report_chains(arguments.links, "configuration")
            chains["joint"] = report_chains(arguments.links, "joint")
    if "cold" in wanted:
        report_cold()
    if arguments.plot:
        plot(arguments.plot, length, chains)


if __name__ == "__main__":
    main()
