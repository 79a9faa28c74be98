"""From how far away a fit finds the minimum: random starts within a factor of the truth, on the swing-up twin.

Target: at least 95 % of 50 starts within a factor of 5 reach the same minimum. Two fits are at the same minimum if the
parameters that the data determine agree within their standard deviations; costs are not compared, because the weight of
the dynamics is the mass at the start. Run ``python benchmarks/robust_start.py [--starts 50] [--factor 5]``.
"""

from __future__ import annotations

import argparse
import statistics
from collections import Counter

import numpy as np

from shadowfit.estimation import Estimate, LevenbergMarquardt, fit
from shadowfit.models import builtin
from shadowfit.models.twins import furuta_swing_up
from shadowfit.runtime import start_jax

# Parameters within so many standard deviations of the reference fit's (and no more than a tenth off) are the same.
SAME_STD, SAME_FRACTION = 3.0, 0.1


def same_minimum(estimate: Estimate, reference: Estimate) -> bool:
    """Whether all parameters that the data determine agree."""
    for own, other in zip(estimate.parameters, reference.parameters, strict=True):
        if not other.identifiable:
            continue
        spread = 0.0 if np.isnan(other.std) else other.std
        allowed = max(SAME_STD * spread, SAME_FRACTION * abs(other.value))
        if abs(own.value - other.value) > allowed:
            return False
    return estimate.converged


def main() -> None:
    """Fit from all starts and report the fraction that agrees with the fit from the truth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=50)
    parser.add_argument("--factor", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--iterations", type=int, default=LevenbergMarquardt().max_iterations)
    arguments = parser.parse_args()
    start_jax()
    twin = furuta_swing_up()
    model = builtin.furuta().set(twin.settings)
    truth = {name: twin.truth.get(name, model.get(name)) for name in twin.free if name != "gravity.tilt"}
    optimiser = LevenbergMarquardt(max_iterations=arguments.iterations)
    reference = fit(model, twin.recording, {**truth, "gravity.tilt": None}, optimiser=optimiser)
    print("from the truth:", reference.summary(), sep="\n")
    random = np.random.default_rng(arguments.seed)
    good, iterations, seconds, ends = 0, [], [], Counter()
    for number in range(arguments.starts):
        factors = arguments.factor ** random.uniform(-1.0, 1.0, len(truth))
        start = {name: value * factor for (name, value), factor in zip(truth.items(), factors, strict=True)}
        estimate = fit(model, twin.recording, {**start, "gravity.tilt": None}, optimiser=optimiser)
        same = same_minimum(estimate, reference)
        good += same
        iterations.append(estimate.iterations)
        seconds.append(estimate.seconds.total)
        ends[estimate.status.name] += 1
        print(
            f"{number:3d} {'same ' if same else 'other'} {estimate.status.name:10} {estimate.iterations:3d} steps, "
            f"cost {estimate.cost:.4g}"
        )
    print(f"{good} of {arguments.starts} starts ({good / arguments.starts:.0%}) reach the minimum found from the truth")
    print(f"iterations: median {statistics.median(iterations)}, most {max(iterations)}; {dict(ends)}")
    print(f"seconds a fit: median {statistics.median(seconds):.2f}")


if __name__ == "__main__":
    main()
