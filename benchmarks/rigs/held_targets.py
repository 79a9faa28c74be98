"""A servo whose targets are held for some samples.

One joint in a position loop, integrated exactly between the jumps of its delayed target; 4 s at 200 Hz, noise of 0.1
mrad, another delay (whole numbers of a twentieth of the sampling interval) and another phase for each seed.
"""

from __future__ import annotations

import numpy as np
from scipy import signal

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
