"""A linear drive in a position loop, its force read with noise."""

from __future__ import annotations

import numpy as np

from shadowfit.mechanism import Body, Coulomb, Input, JointPosition, Mechanism, TorqueMotor, slider
from shadowfit.recordings import Recording

DRIVE_MASS, DRIVE_VISCOUS, DRIVE_COULOMB = 95.1, 203.5, 20.4
FORCE_NOISE, MICROMETRE = 2.0, 1e-6


def driven(seed: int = 0, duration: float = 12.0, interval: float = 1e-3) -> Recording:
    """Back and forth along smooth steps; friction is larger near rest, and not the same both ways."""
    rng = np.random.default_rng(seed)
    count = int(duration / interval)
    at = interval * np.arange(count)
    path = 0.08 * np.sin(2.0 * np.pi * 0.4 * at) + 0.04 * np.sin(2.0 * np.pi * 1.1 * at + 0.5) - 0.04 * np.sin(0.5)
    rate = np.gradient(path, interval)
    x, v, places, forces = path[0], rate[0], [], []
    for k in range(count):
        force = DRIVE_MASS * (3e3 * (path[k] - x) + 110.0 * (rate[k] - v)) + DRIVE_VISCOUS * v
        places.append(x)
        forces.append(force)
        for _ in range(4):
            h = interval / 4
            rubbing = DRIVE_COULOMB * (1.0 + 0.15 * np.exp(-((v / 0.02) ** 2)) + 0.03 * np.sign(v)) * np.tanh(v / 1e-4)
            v += h * (force - DRIVE_VISCOUS * v - rubbing) / DRIVE_MASS
            x += h * v
    read = np.round(np.array(places) / MICROMETRE) * MICROMETRE
    told = np.array(forces) + FORCE_NOISE * rng.standard_normal(count)
    return Recording(at, {"x": read, "F": told}, units={"x": "m", "F": "N"})


def drive() -> Mechanism:
    """Mass, viscous and Coulomb friction; the force is held from sample to sample."""
    rail = slider(
        "world",
        "table",
        axis=(1.0, 0.0, 0.0),
        viscous=100.0,
        friction=Coulomb(coulomb=10.0),
        laws={"motor": TorqueMotor(input="F")},
    )
    sensors = {"x": JointPosition(joint="rail", std=MICROMETRE, rotary=False)}
    inputs = {"F": Input(unit="N")}
    return Mechanism({"table": Body(60.0, (1.0, 1.0, 1.0))}, {"rail": rail}, sensors=sensors, inputs=inputs)


DRIVE_FREE = ("table.mass", "rail.viscous", "rail.coulomb")
