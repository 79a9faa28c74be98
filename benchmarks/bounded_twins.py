"""Pendulums whose viscous friction is zero, its bound: do bars of the other parameters hold, and are they too wide?

Truths have Coulomb friction alone, and white noise, or Coulomb friction that falls with the speed (a model error that
pushes viscous friction against its bound). They are simulated in steps a fortieth of the samples' and fitted with plain
defaults. Compared are rules for the spread of a parameter that would be found at −d ± s beyond its bound: noise alone
(s), d beyond three bars, d beyond one, and noise or what it does not explain, √(d² − s²), whichever is larger, which is
the library's. For each: how often inertia and Coulomb friction are within 1.96 bars of the truth, and the mean width of
the bars by that of noise alone.

    python -m benchmarks.bounded_twins [--seeds 80] [--noise 1e-3] [white falling ...]
"""

from __future__ import annotations

import argparse
import dataclasses

import numpy as np

from shadowfit.estimation import Estimate, fit
from shadowfit.mechanism import Body, Coulomb, JointPosition, Mechanism, hinge
from shadowfit.recordings import Recording

INTERVAL, COUNT, FINER = 0.01, 800, 40
MASS, LENGTH, INERTIA, COULOMB, GRAVITY = 1.0, 0.2, 0.02, 0.06, 9.82
TRUTH = {"rod.inertia.yy": INERTIA, "hinge.coulomb": COULOMB}
# Part of Coulomb's friction that is added at rest, and the speed [rad/s] over which it falls.
SCENES = {"white": (0.0, 1.0), "stribeck": (0.4, 0.6), "falling": (0.25, 1.5)}
RULES = {
    "noise": lambda s, d: s,
    "three bars": lambda s, d: np.where(d > 3.0 * s, d, s),
    "one bar": np.maximum,
    "noise or model": lambda s, d: np.maximum(s, np.sqrt(np.maximum(d**2 - s**2, 0.0))),
}


def pendulum(noise: float) -> Mechanism:
    """The model, with other friction than the truth's."""
    swings = hinge(
        "world",
        "rod",
        axis=(0.0, 1.0, 0.0),
        child_point=(0.0, 0.0, LENGTH),
        viscous=0.005,
        friction=Coulomb(coulomb=0.05),
    )
    sensors = {"angle": JointPosition("hinge", std=noise)}
    return Mechanism({"rod": Body(MASS, (INERTIA, INERTIA, INERTIA))}, {"hinge": swings}, sensors=sensors)


def swing(more: float, speed: float) -> np.ndarray:
    """Angles [rad] of a decay from 2.6 rad: half a step at the old speed, the forces, half a step at the new one."""
    h, about = INTERVAL / FINER, INERTIA + MASS * LENGTH**2
    angle, rate, angles = 2.6, 0.0, []
    for k in range(COUNT * FINER):
        if k % FINER == 0:
            angles.append(angle)
        angle += 0.5 * h * rate
        level = COULOMB * (1.0 + more * np.exp(-((rate / speed) ** 2)))
        rate -= h * MASS * GRAVITY * LENGTH * np.sin(angle) / about
        rate = np.sign(rate) * max(abs(rate) - h * level / about, 0.0)
        angle += 0.5 * h * rate
    return np.array(angles)


def bars(estimate: Estimate) -> dict[str, np.ndarray]:
    """Standard deviations of all parameters by each rule."""
    found, by_rule = estimate.uncertainty("robust"), {}
    for name, rule in RULES.items():
        own = dataclasses.replace(found)
        # A cached property of the copy, before anything follows from it.
        own.__dict__["_std_beyond"] = rule(found._noise_beyond, found._beyond)
        by_rule[name] = own.std
    return by_rule


def study(scene: str, seeds: int, noise: float) -> None:
    """Fits of one truth with many draws of noise."""
    angles, model = swing(*SCENES[scene]), pendulum(noise)
    errors: list[list[float]] = []
    spreads: dict[str, list[np.ndarray]] = {name: [] for name in RULES}
    held = 0
    for seed in range(seeds):
        read = angles + noise * np.random.default_rng(seed).standard_normal(COUNT)
        recording = Recording(INTERVAL * np.arange(COUNT), {"angle": read})
        estimate = fit(model, recording, (*TRUTH, "hinge.viscous"))
        errors.append([row.value - TRUTH[row.name] for row in estimate.parameters[: len(TRUTH)]])
        held += bool(estimate.at_bound[len(TRUTH)])
        for name, own in bars(estimate).items():
            spreads[name].append(own[: len(TRUTH)])
    print(f"{scene}, {noise:g} rad: {seeds} fits, {held} with viscous friction on its bound")
    least = np.mean(spreads["noise"], axis=0)
    for name, each in spreads.items():
        inside = np.mean(np.abs(errors) < 1.96 * np.array(each), axis=0)
        wider = np.mean(each, axis=0) / least
        cells = (f"{who} {100.0 * a:.0f} % ({b:.3f})" for who, a, b in zip(TRUTH, inside, wider, strict=True))
        print(f"  {name}:", ", ".join(cells), flush=True)


def main() -> None:
    """The scenes that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=80)
    parser.add_argument("--noise", type=float, default=1e-3)
    parser.add_argument("scenes", nargs="*", default=list(SCENES), help=f"of {', '.join(SCENES)}")
    chosen = parser.parse_args()
    for scene in chosen.scenes:
        study(scene, chosen.seeds, chosen.noise)


if __name__ == "__main__":
    main()
