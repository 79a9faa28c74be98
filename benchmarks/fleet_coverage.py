"""Do the error bars of a fleet hold? Many simulated fleets whose truth is known.

    python -m benchmarks.fleet_coverage [--machines 50] [--fleets 20] [--seconds 1.2]

A fleet are masses on springs, each with a stiffness of its own, normal about a mean, and a damping of its own that
scatters about nothing in particular; a recording of each. One fit finds mean and spread of the stiffness, and both
numbers of each machine. Printed: errors of these in units of their standard deviations, over all fleets.
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from shadowfit.estimation import Free, Options
from shadowfit.estimation.spread.fleet import fit_fleet
from shadowfit.mechanism import Body, JointPosition, Mechanism, Spring, slider
from shadowfit.parallel import Crew
from shadowfit.recordings import Recording
from shadowfit.runtime import start_jax

MASS, NOISE, INTERVAL = 0.7, 1e-2, 0.02
MEAN, SPREAD, DAMPING = 9.0, 0.6, (0.2, 0.6)
STIFFNESS_NAME, DAMPING_NAME = "rail.spring.stiffness", "rail.spring.damping"


def model() -> Mechanism:
    """A mass on a slider with a spring."""
    rail = slider("world", "block", axis=(1.0, 0.0, 0.0), laws={"spring": Spring(MEAN, 0.4)})
    sensors = {"x": JointPosition(joint="rail", std=NOISE, rotary=False)}
    return Mechanism({"block": Body(MASS, (1e-2, 1e-2, 1e-2))}, {"rail": rail}, sensors=sensors, name="spring_slider")


def swing(stiffness: float, damping: float, seconds: float, random: np.random.Generator) -> Recording:
    """A free swing by its formula, with white noise."""
    time = INTERVAL * np.arange(round(seconds / INTERVAL))
    rate = damping / (2.0 * MASS)
    frequency = np.sqrt(stiffness / MASS - rate**2)
    amplitude, phase = random.uniform(0.2, 0.5), random.uniform(0.0, 2.0 * np.pi)
    clean = amplitude * np.exp(-rate * time) * np.cos(frequency * time + phase)
    return Recording(time, {"x": clean + NOISE * random.standard_normal(len(time))}, name="swing")


def errors(machines: int, seconds: float, seed: int) -> dict[str, list[float]]:
    """Errors of one fleet in units of their standard deviations."""
    random = np.random.default_rng(seed)
    stiffness, damping = random.normal(MEAN, SPREAD, machines), random.uniform(*DAMPING, machines)
    swings = [swing(k, d, seconds, random) for k, d in zip(stiffness, damping, strict=True)]
    free = {STIFFNESS_NAME: 8.0, DAMPING_NAME: Free(start=0.5, per_recording=True)}
    options = Options(state_weight=1e4)
    found = fit_fleet(model(), swings, free, scatter=(STIFFNESS_NAME,), options=options, crew=Crew(1))
    (mean,), (spread,), each = found.parameters, found.spreads, found.individuals
    truths = {STIFFNESS_NAME: stiffness, DAMPING_NAME: damping}
    own = {
        f"{name} of each": ((each.values[:, i] - truths[name]) / each.std[:, i]).tolist()
        for i, name in enumerate(each.names)
    }
    return {"mean": [(mean.value - MEAN) / mean.std], "spread": [(spread.value - SPREAD) / spread.std], **own}


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=50)
    parser.add_argument("--fleets", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1.2)
    given = parser.parse_args()
    start_jax()
    total: dict[str, list[float]] = {}
    for seed in range(given.fleets):
        for name, values in errors(given.machines, given.seconds, seed).items():
            total.setdefault(name, []).extend(values)
        print(json.dumps({"fleets": seed + 1} | {name: _summary(np.array(own)) for name, own in total.items()}))


def _summary(errors: np.ndarray) -> dict[str, float]:
    return {
        "rms": round(float(np.sqrt(np.mean(errors**2))), 3),
        "mean": round(float(np.mean(errors)), 3),
        "within_1.96": round(float(np.mean(np.abs(errors) < 1.96)), 3),
    }


if __name__ == "__main__":
    main()
