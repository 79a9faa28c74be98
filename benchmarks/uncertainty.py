"""What error bars cost: the linearised kinds against one iteration of Levenberg–Marquardt, on the swing-up twin.

Target: below one iteration (a linearisation and a damped step). Each kind with all that it needs, from a fit of which
nothing but the optimiser's result is there. Medians of several runs, in process time, so that other programs on the
machine count less. Run ``python benchmarks/uncertainty.py [--duration 10]``.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import time
from collections.abc import Callable
from typing import get_args

from shadowfit.estimation import Estimate, fit
from shadowfit.estimation.linear.threads import one_thread
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.proposal import propose
from shadowfit.estimation.uncertainty.evidence import Kind
from shadowfit.models import builtin
from shadowfit.models.twins import furuta_swing_up
from shadowfit.runtime import start_jax

RUNS = 9


def median_milliseconds(function: Callable[[], object]) -> tuple[float, float]:
    """Median process and wall time of a call, after one to warm up [ms]."""
    function()
    process, wall = [], []
    for _ in range(RUNS):
        begin = time.process_time(), time.perf_counter()
        function()
        process.append(time.process_time() - begin[0])
        wall.append(time.perf_counter() - begin[1])
    return 1e3 * statistics.median(process), 1e3 * statistics.median(wall)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--duration", type=float, default=10.0, help="of the recording [s]")
    arguments = parser.parse_args()
    start_jax()
    twin = furuta_swing_up(arguments.duration)
    estimate = fit(builtin.furuta().set(twin.settings), twin.recording, twin.free)
    problem, point = estimate.problem, estimate.outcome.linearisation.point

    def iteration() -> object:
        here = objective.linearise(problem, point, estimate.weights)
        return propose(problem, here, 1e-4, "scaled")

    def fresh() -> Estimate:
        """The estimate without anything computed from it yet."""
        return dataclasses.replace(estimate)

    with one_thread():  # as in a fit
        rows = {"one iteration": median_milliseconds(iteration)}
        for kind in get_args(Kind):
            rows[kind] = median_milliseconds(lambda kind=kind: fresh().uncertainty(kind).covariance)
        rows["states' standard deviations"] = median_milliseconds(lambda: fresh().state_std())
    print(f"{problem.mechanism.name}, {problem.parameters.size} parameters, n = {estimate.steps}")
    for name, (process, wall) in rows.items():
        print(f"{name:<34} {process:8.1f} ms process {wall:8.1f} ms wall {process / rows['one iteration'][0]:6.2f}")


if __name__ == "__main__":
    main()
