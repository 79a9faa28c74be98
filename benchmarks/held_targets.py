"""A servo whose targets are held for some samples: do 95 % intervals of friction, rotor and delay hold the truth?

One joint in a position loop, integrated exactly between the jumps of its delayed target; 4 s at 200 Hz, noise of 0.1
mrad, another delay (whole numbers of a twentieth of the sampling interval) and another phase for each seed. Fitted in
steps of two samples, which are the default, and of one.

    python -m benchmarks.held_targets [--seeds 30] [--held 3] [--damping 1.5] [--timestep 0.01 0.005]
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy import signal

from shadowfit.estimation import Options, fit
from shadowfit.mechanism import Body, Input, JointPosition, Mechanism, PositionMotor, hinge
from shadowfit.recordings import Recording

COUNT, INTERVAL, FINER, NOISE = 800, 0.005, 20, 1e-4
KP, BODY, ROTOR, VISCOUS = 20.0, 0.03, 0.02, 0.1
FREE = ("joint.viscous", "joint.motor.shaft_inertia", "target.delay")


def servo(damping: float) -> Mechanism:
    """The model, with other friction and rotor than the truth's and no delay."""
    motor = PositionMotor(kp=KP, kd=damping, shaft_inertia=0.5 * ROTOR, input="target")
    joint = hinge("world", "arm", axis=(0.0, 0.0, 1.0), viscous=2.0 * VISCOUS, laws={"motor": motor})
    return Mechanism(
        {"arm": Body(1.0, (BODY, BODY, BODY))},
        {"joint": joint},
        sensors={"angle": JointPosition("joint", std=NOISE)},
        inputs={"target": Input(unit="rad", hold="zero")},
    )


def recorded(damping: float, held: int, seed: int) -> tuple[Recording, float]:
    """What the servo does, and its delay [s]."""
    rng, h, inertia = np.random.default_rng([seed, held]), INTERVAL / FINER, BODY + ROTOR
    late = int(rng.integers(5, 60))
    rates = np.array([[0.0, 1.0], [-KP / inertia, -(damping + VISCOUS) / inertia]])
    moves, pushes, *_ = signal.cont2discrete((rates, np.array([[0.0], [KP / inertia]]), np.eye(2), 0.0), h)
    time = INTERVAL * np.arange(COUNT)
    wave = 0.5 * np.sin(2.0 * np.pi * time * (0.3 + 0.05 * time) + rng.uniform(0.0, 6.0))
    target = wave[np.arange(COUNT) // held * held]
    state, angles = np.array([target[0], 0.0]), []
    for k in range(COUNT * FINER):
        if k % FINER == 0:
            angles.append(state[0])
        state = moves @ state + pushes[:, 0] * target[max((k - late) // FINER, 0)]
    return Recording(time, {"angle": np.array(angles) + NOISE * rng.standard_normal(COUNT), "target": target}), late * h


def study(damping: float, held: int, seeds: int, timestep: float) -> None:
    """Coverage, and errors in bars (root mean square), of many fits."""
    inside, bars = [], []
    for seed in range(seeds):
        recording, delay = recorded(damping, held, seed)
        estimate = fit(servo(damping), recording, FREE, options=Options(timestep=timestep))
        truth = (VISCOUS, ROTOR, delay)
        intervals = estimate.uncertainty().intervals(0.95)
        inside.append([own.lower <= true <= own.upper for own, true in zip(intervals, truth, strict=True)])
        bars.append([(row.value - true) / row.std for row, true in zip(estimate.parameters, truth, strict=True)])
    share, off = np.mean(inside, axis=0), np.sqrt(np.nanmean(np.square(bars), axis=0))
    cells = (f"{name} {100.0 * a:.0f} % ({b:.2f} bars)" for name, a, b in zip(FREE, share, off, strict=True))
    print(f"held for {held}, damping {damping:g}, steps of {1e3 * timestep:g} ms:", ", ".join(cells), flush=True)


def main() -> None:
    """The settings that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--held", type=int, nargs="*", default=[1, 3, 6])
    parser.add_argument("--damping", type=float, default=1.5)
    parser.add_argument("--timestep", type=float, nargs="*", default=[2.0 * INTERVAL, INTERVAL])
    chosen = parser.parse_args()
    for held in chosen.held:
        for timestep in chosen.timestep:
            study(chosen.damping, held, chosen.seeds, timestep)


if __name__ == "__main__":
    main()
