"""A linear drive in a position loop, its force read with noise; fitted with steps of 1 and 10 ms."""

from __future__ import annotations

import numpy as np
from scipy.signal import butter, sosfiltfilt

from benchmarks.rigs.comparison import Differences, differences, halves, timed, told
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


def regressed_drive(recording: Recording) -> np.ndarray:
    """Mass, viscous and Coulomb friction by least squares on filtered readings."""
    x, force = recording.channels["x"], recording.channels["F"]
    smooth = butter(4, 20.0, fs=1.0 / recording.sample_interval, output="sos")
    place, told = (sosfiltfilt(smooth, own) for own in (x, force))
    speed = np.gradient(place, recording.sample_interval)
    columns = [np.gradient(speed, recording.sample_interval), speed, sosfiltfilt(smooth, np.sign(speed))]
    return np.linalg.lstsq(np.stack(columns, axis=1)[200:-200], told[200:-200], rcond=None)[0]


def study() -> Differences:
    """The linear drive: time-steps, repeats, halves."""
    recording = driven()
    coarse, seconds = timed(drive(), recording, DRIVE_FREE, 0.01)
    fine, more = timed(drive(), recording, DRIVE_FREE, 0.001)
    told("drive, 10 ms", coarse, seconds)
    told("drive, 1 ms", fine, more)
    print(
        f"    least squares {np.round(regressed_drive(recording), 2)}; truth {DRIVE_MASS, DRIVE_VISCOUS, DRIVE_COULOMB}"
    )
    rows = [("time-step", *row) for row in differences(coarse, fine)]
    rows += [("repeats", *row) for row in differences(coarse, timed(drive(), driven(1), DRIVE_FREE, 0.01)[0])]
    return rows + [("halves", *row) for row in halves(drive(), recording, DRIVE_FREE)]
