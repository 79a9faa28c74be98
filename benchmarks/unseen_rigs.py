"""Stand-ins of machines whose models are wrong: do plain defaults find them, and do error bars hold?

Simulated with equations of their own (Runge–Kutta, nothing of the estimator) and fitted with models that lack
something, as a new user would: no option, no number that was looked at before.

* ``decay a, b, c``: free pendulums with air drag, and friction that varies over a turn; fitted with viscous and Coulomb
  friction. The encoder of *b* is eccentric.
* ``drive``: a linear drive in a position loop, its force read with noise; fitted with steps of 1 and 10 ms.
* ``furuta``: a geared rotary pendulum whose base rubs more at rest and has play, fitted with viscous and Coulomb
  friction.
* ``arm``: six axes in a position loop, friction that saturates with speed and depends on load, torques with noise.

For each: estimates with error bars beside an independent fit (output error, or least squares on inverse dynamics),
|difference|/combined standard deviation of halves, of time-steps, of repeats, and open-loop rollouts.

    python benchmarks/unseen_rigs.py [--rigs "decay a" drive ...]
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import time
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from real_machines import rollouts
from scipy.optimize import least_squares
from scipy.signal import butter, sosfiltfilt

from shadowfit.estimation import Estimate, fit
from shadowfit.estimation.problem.options import Options
from shadowfit.evaluation.latent_words import described
from shadowfit.mechanism import Body, Coulomb, Input, JointPosition, Mechanism, TorqueMotor, hinge, slider
from shadowfit.recordings import Recording
from shadowfit.runtime import start_jax

# The default of a mechanism [m/s²].
GRAVITY = 9.82
# Speed below which simulated dry friction fades [rad/s, m/s], relative to the fastest of the motion.
FADING = 1e-3


def integrated(
    slope: Callable[[float, np.ndarray], np.ndarray], state: np.ndarray, interval: float, count: int, finer: int
) -> np.ndarray:
    """States at the samples, by Runge and Kutta's method with so many steps between two of them."""
    h, found = interval / finer, [state]
    for k in range((count - 1) * finer):
        t = k * h
        a = slope(t, state)
        b = slope(t + 0.5 * h, state + 0.5 * h * a)
        c = slope(t + 0.5 * h, state + 0.5 * h * b)
        d = slope(t + h, state + h * c)
        state = state + h / 6.0 * (a + 2.0 * b + 2.0 * c + d)
        if (k + 1) % finer == 0:
            found.append(state)
    return np.array(found)


# --- free decays ---


@dataclasses.dataclass(frozen=True)
class Decay:
    """A free pendulum, its numbers divided by its inertia."""

    stiffness: float
    """m g l/J [1/s²]."""
    viscous: float
    """[1/s]."""
    coulomb: float
    """[rad/s²]."""
    drag: float
    """[1/rad]; not in the model."""
    uneven: float
    """Part of the Coulomb friction that comes and goes with the angle; not in the model."""
    eccentric: float
    """Error of the encoder over a turn [rad]; not in the model."""
    release: float
    duration: float
    interval: float


DECAYS = {
    "decay a": Decay(60.0, 0.03, 0.12, 0.004, 0.3, 0.0, 1.3, 28.0, 1 / 150),
    "decay b": Decay(40.28, 0.05, 0.10, 0.002, 0.1, 6e-4, 1.0, 40.0, 0.01),
    "decay c": Decay(90.0, 0.02, 0.25, 0.010, 0.3, 0.0, 2.0, 24.0, 1 / 200),
}
ENCODER = 3e-4
MASS, LENGTH = 0.2, 0.1


def swung(decay: Decay, seed: int = 0) -> Recording:
    """A recording of it."""
    rng, fade = np.random.default_rng(seed), FADING * decay.release * np.sqrt(decay.stiffness)

    def slope(t: float, state: np.ndarray) -> np.ndarray:
        del t
        q, v = state
        friction = decay.coulomb * (1.0 + decay.uneven * np.cos(2.0 * q + 0.7)) * np.tanh(v / fade)
        return np.array([v, -decay.stiffness * np.sin(q) - decay.viscous * v - decay.drag * v * abs(v) - friction])

    count = int(decay.duration / decay.interval) + 1
    angle = integrated(slope, np.array([decay.release, 0.0]), decay.interval, count, 10)[:, 0]
    read = angle + decay.eccentric * np.sin(angle + 0.3) + 0.02 + ENCODER * rng.standard_normal(count)
    return Recording(decay.interval * np.arange(count), {"theta": read}, units={"theta": "rad"})


def pendulum() -> Mechanism:
    """The model of all three: mass and length are taken as known, all the rest is relative to them."""
    swing = hinge(
        "world",
        "rod",
        axis=(0.0, 1.0, 0.0),
        child_point=(0.0, 0.0, LENGTH),
        viscous=1e-4,
        friction=Coulomb(coulomb=1e-4),
    )
    sensors = {"theta": JointPosition(joint="swing", std=ENCODER)}
    return Mechanism({"rod": Body(MASS, (1e-3, 1e-3, 1e-3))}, {"swing": swing}, sensors=sensors)


PENDULUM_FREE = ("rod.inertia.yy", "swing.viscous", "swing.coulomb", "theta.offset")


def output_error_of_decay(recording: Recording) -> tuple[np.ndarray, float]:
    """Stiffness, viscous and Coulomb friction [1/s², 1/s, rad/s²] by output error, and its rmse [rad]."""
    measured, interval = recording.channels["theta"], recording.sample_interval
    count, finer = len(measured), 4

    def simulated(numbers: Array) -> Array:
        k, b, c, offset, q, v = numbers
        h = interval / finer

        def slope(state: Array) -> Array:
            return jnp.stack([state[1], -k * jnp.sin(state[0]) - b * state[1] - c * jnp.tanh(state[1] / 0.01)])

        def step(state: Array, _: None) -> tuple[Array, Array]:
            d1 = slope(state)
            d2 = slope(state + 0.5 * h * d1)
            d3 = slope(state + 0.5 * h * d2)
            d4 = slope(state + h * d3)
            return state + h / 6.0 * (d1 + 2.0 * d2 + 2.0 * d3 + d4), state[0]

        _, angles = jax.lax.scan(step, jnp.stack([q, v]), None, length=(count - 1) * finer + 1)
        return angles[::finer] + offset

    crossings = np.flatnonzero(np.diff(np.sign(measured - measured.mean())))
    late = crossings[len(crossings) // 2 :]
    start = np.array([(np.pi / (interval * np.mean(np.diff(late)))) ** 2, 0.03, 0.05, 0.0, measured[0], 0.0])
    lower = np.array([0.0, 0.0, 0.0, -np.inf, -np.inf, -np.inf])
    run, slopes = jax.jit(simulated), jax.jit(jax.jacfwd(simulated))
    for part in (0.05, 0.1, 0.2, 0.5, 1.0):
        n = int(part * count)
        found = least_squares(
            lambda x, n=n: np.asarray(run(x) - measured)[:n],
            np.maximum(start, lower + 1e-6),
            lambda x, n=n: np.asarray(slopes(x))[:n],
            (lower, np.inf),
            x_scale=np.array([1.0, 0.01, 0.01, 1e-3, 1e-3, 1e-2]),
            max_nfev=30,
        )
        start = found.x
    return start[:3], float(np.sqrt(np.mean(found.fun**2)))


# --- a linear drive in a position loop ---

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


# --- a geared rotary pendulum ---

ARM, ROD_MASS, ROD, REACH = 6e-3, 0.08, 0.14, 0.16
# About the hinge and about the rod's own axis.
ROD_INERTIA, AXIAL = 1.15 * ROD_MASS * ROD**2, 0.09 * ROD_MASS * ROD**2
GAIN = 0.02


def spun(seed: int = 0, duration: float = 10.0, interval: float = 0.005) -> Recording:
    """Currents drive the base, which rubs more at rest and is pushed about by its gear."""
    rng = np.random.default_rng(seed)
    count = int(duration / interval)
    at = interval * np.arange(count)
    current = 3.0 * np.sin(2.0 * np.pi * (0.3 + 0.12 * at) * at + rng.uniform(0.0, 6.0))
    pushes = 0.006 * rng.standard_normal(count)
    coupling, weight = ROD_MASS * REACH * ROD, ROD_MASS * GRAVITY * ROD

    def slope(t: float, state: np.ndarray) -> np.ndarray:
        k = min(int(t / interval + 1e-9), count - 1)
        _, a, u, w = state
        rubbing = (0.012 + 0.008 * np.exp(-((u / 0.3) ** 2))) * np.tanh(u / 1e-2) + 4e-3 * u
        sine, cosine = np.sin(a), np.cos(a)
        tilted = (ROD_INERTIA - AXIAL) * sine * cosine
        matrix = np.array(
            [
                [ARM + ROD_MASS * REACH**2 + AXIAL + (ROD_INERTIA - AXIAL) * sine**2, coupling * cosine],
                [coupling * cosine, ROD_INERTIA],
            ]
        )
        forces = np.array(
            [
                GAIN * current[k] + pushes[k] - rubbing - 2.0 * tilted * u * w + coupling * sine * w**2,
                tilted * u**2 - weight * sine - 1e-4 * w - 2e-4 * np.tanh(w / 1e-2),
            ]
        )
        return np.concatenate([[u, w], np.linalg.solve(matrix, forces)])

    states = integrated(slope, np.array([0.0, 0.3, 0.0, 0.0]), interval, count, 4)
    step = 2.0 * np.pi / 4096
    read = np.round(states[:, :2] / step) * step
    return Recording(
        at, {"theta": read[:, 0], "alpha": read[:, 1], "i": current}, units={"theta": "rad", "alpha": "rad", "i": "A"}
    )


def furuta() -> Mechanism:
    """Viscous and Coulomb friction at both hinges; the rod is thin, its mass and length are known."""
    about = ROD_INERTIA - ROD_MASS * ROD**2
    rod = Body(ROD_MASS, (1.5 * about, about, 0.6 * about))
    base = hinge(
        "world",
        "arm",
        axis=(0.0, 0.0, 1.0),
        viscous=1e-3,
        friction=Coulomb(coulomb=5e-3),
        laws={"motor": TorqueMotor(0.01, input="i")},
    )
    swing = hinge(
        "arm",
        "rod",
        axis=(1.0, 0.0, 0.0),
        parent_point=(REACH, 0.0, 0.0),
        child_point=(0.0, 0.0, ROD),
        viscous=5e-5,
        friction=Coulomb(coulomb=1e-4),
    )
    counts = 2.0 * np.pi / 4096 / np.sqrt(12.0)
    sensors = {
        "theta": JointPosition(joint="base", std=counts),
        "alpha": JointPosition(joint="swing", std=counts),
    }
    bodies = {"arm": Body(0.1, (1e-2, 1e-2, 1e-2)), "rod": rod}
    return Mechanism(bodies, {"base": base, "swing": swing}, sensors=sensors, inputs={"i": Input(unit="A")})


FURUTA_FREE = (
    *("arm.inertia.zz", "rod.inertia.xx", "base.motor.gain"),
    *("base.viscous", "base.coulomb", "swing.viscous", "swing.coulomb"),
)


# --- a six-axis arm in a position loop ---

AXES = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
LINK_MASS = (7.0, 9.0, 4.0, 2.0, 1.5, 0.4)
LINK_LENGTH = (0.15, 0.5, 0.45, 0.1, 0.1, 0.08)
ARM_VISCOUS, ARM_COULOMB = np.array([19.7, 17.6, 8.5, 3.0, 2.6, 2.9]), np.array([13.6, 14.8, 5.9, 2.2, 2.7, 2.4])
ARM_ROTOR = np.array([4.5, 1.3, 1.9, 0.27, 0.35, 0.39])


def inverse_dynamics(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Torques of the links alone, by Newton and Euler's recursion in the world's frame."""
    turn, place = np.eye(3), np.zeros(3)
    spin, growth, linear = np.zeros(3), np.zeros(3), np.array([0.0, 0.0, GRAVITY])
    kept = []
    for i, axis in enumerate(np.array(AXES)):
        along = turn @ axis
        growth = growth + along * a[i] + np.cross(spin, along * v[i])
        spin = spin + along * v[i]
        turn = turn @ _turned(axis, q[i])
        to_centre, to_next = (turn @ np.array([0.0, 0.0, part * LINK_LENGTH[i]]) for part in (0.5, 1.0))
        centre = linear + np.cross(growth, to_centre) + np.cross(spin, np.cross(spin, to_centre))
        moments = turn @ _moments(i) @ turn.T
        torque = moments @ growth + np.cross(spin, moments @ spin)
        kept.append((along, place, place + to_centre, LINK_MASS[i] * centre, torque))
        linear = linear + np.cross(growth, to_next) + np.cross(spin, np.cross(spin, to_next))
        place = place + to_next
    return np.array(
        [
            along @ sum(torque + np.cross(centre - origin, force) for *_, centre, force, torque in kept[i:])
            for i, (along, origin, *_) in enumerate(kept)
        ]
    )


def _turned(axis: np.ndarray, angle: float) -> np.ndarray:
    cross = np.cross(np.eye(3), axis)
    return np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross


def _moments(i: int) -> np.ndarray:
    length, radius = LINK_LENGTH[i], 0.06
    side = LINK_MASS[i] * (length**2 / 12.0 + radius**2 / 4.0)
    return np.diag([side, side, LINK_MASS[i] * radius**2 / 2.0])


def led(seed: int = 0, duration: float = 12.0, interval: float = 0.008) -> tuple[Recording, np.ndarray]:
    """A path that a controller holds; friction grows less than viscous friction does, torques are read with noise."""
    rng = np.random.default_rng(seed)
    at = interval * np.arange(int(duration / interval))
    rates = 2.0 * np.pi * np.array([0.1, 0.23, 0.37])
    sizes, phases = rng.uniform(0.1, 0.35, (3, 6)), rng.uniform(0.0, 6.0, (3, 6))
    waves = rates[:, None, None] * at[None, :, None] + phases[:, None]
    q, v, a = (
        np.sum(sizes[:, None] * rates[:, None, None] ** order * wave(waves), axis=0)
        for order, wave in ((0, np.sin), (1, np.cos), (2, lambda x: -np.sin(x)))
    )
    links = np.array([inverse_dynamics(*own) for own in zip(q, v, a, strict=True)])
    rubbing = (
        ARM_VISCOUS * np.sign(v) * np.abs(v) ** 0.8
        + ARM_COULOMB * np.tanh(v / 5e-3)
        + 0.02 * np.abs(links) * np.sign(v)
    )
    torque = links + ARM_ROTOR * a + rubbing
    read = q + 1e-5 * rng.standard_normal(q.shape)
    told = torque + 0.02 * np.std(torque, axis=0) * rng.standard_normal(q.shape)
    channels = {f"q{i + 1}": read[:, i] for i in range(6)} | {f"u{i + 1}": told[:, i] for i in range(6)}
    units = {name: "rad" if name[0] == "q" else "N m" for name in channels}
    return Recording(at, channels, units=units), links


def arm() -> Mechanism:
    """Links as known; friction and rotors unknown."""
    bodies, joints, sensors, inputs = {}, {}, {}, {}
    for i, axis in enumerate(AXES):
        centre = (0.0, 0.0, 0.5 * LINK_LENGTH[i])
        bodies[f"link{i + 1}"] = Body(LINK_MASS[i], tuple(np.diagonal(_moments(i)).tolist()), com=centre)
        joints[f"joint{i + 1}"] = hinge(
            "world" if i == 0 else f"link{i}",
            f"link{i + 1}",
            axis=axis,
            parent_point=(0.0, 0.0, LINK_LENGTH[i - 1] if i else 0.0),
            viscous=5.0,
            friction=Coulomb(coulomb=3.0),
            laws={"motor": TorqueMotor(1.0, 0.5, input=f"u{i + 1}")},
        )
        sensors[f"q{i + 1}"] = JointPosition(joint=f"joint{i + 1}", std=1e-5)
        inputs[f"u{i + 1}"] = Input(unit="N m", hold="linear")
    return Mechanism(bodies, joints, sensors=sensors, inputs=inputs)


ARM_FREE = ("*.viscous", "*.coulomb", "*.motor.shaft_inertia")


def regressed_arm(recording: Recording, links: np.ndarray) -> np.ndarray:
    """Viscous, Coulomb friction and rotor of each joint by least squares, links as known, shape (3, 6)."""
    smooth = butter(4, 5.0, fs=1.0 / recording.sample_interval, output="sos")
    found = []
    for i in range(6):
        speed = np.gradient(sosfiltfilt(smooth, recording.channels[f"q{i + 1}"]), recording.sample_interval)
        columns = [speed, sosfiltfilt(smooth, np.sign(speed)), np.gradient(speed, recording.sample_interval)]
        told = sosfiltfilt(smooth, recording.channels[f"u{i + 1}"] - links[:, i])
        found.append(np.linalg.lstsq(np.stack(columns, axis=1)[50:-50], told[50:-50], rcond=None)[0])
    return np.array(found).T


# --- the study ---


def differences(first: Estimate, second: Estimate) -> list[tuple[str, float]]:
    """|difference|/combined standard deviation of the parameters that both fits tell."""
    pairs = zip(first.parameters, second.parameters, strict=True)
    return [
        (a.name, abs(a.value - b.value) / float(np.hypot(a.std, b.std)))
        for a, b in pairs
        if not (a.at_bound or b.at_bound) and a.identifiable and b.identifiable
    ]


def halves(mechanism: Mechanism, recording: Recording, free: Sequence[str]) -> list[tuple[str, float]]:
    """The same of the first and the second half of a recording."""
    middle = recording.time[0] + 0.5 * recording.duration
    spans = ((-np.inf, middle), (middle, np.inf))
    return differences(*(fit(mechanism, recording.between(*span), list(free)) for span in spans))


def told(title: str, estimate: Estimate, seconds: float) -> None:
    """Print a fit."""
    choice = estimate.noise_choice
    added = 1.0 if choice is None else choice.added_weight
    ended = f"{estimate.status.name.lower()}, {estimate.iterations} iterations"
    print(f"{title}: {ended}, {seconds:.0f} s, weight {added:.0e}")
    for text in described(estimate):
        print(f"    {text}")
    for row in estimate.parameters:
        print(f"    {row.name:28} {row.value:.5g} ± {row.std:.2g} {row.unit}{' at its bound' if row.at_bound else ''}")


def timed(
    mechanism: Mechanism, recording: Recording, free: Sequence[str], step: float | None = None
) -> tuple[Estimate, float]:
    """A fit with plain defaults, and its processor time [s]."""
    began = time.process_time()
    estimate = fit(mechanism, recording, list(free), options=Options(timestep=step))
    return estimate, time.process_time() - began


def study_decay(name: str) -> list[tuple[str, str, float]]:
    """A free decay: rollouts beside output error, halves."""
    recording = swung(DECAYS[name])
    estimate, seconds = timed(pendulum(), recording, PENDULUM_FREE)
    told(name, estimate, seconds)
    reference, rmse = output_error_of_decay(recording)
    inertia = estimate.values["rod.inertia.yy"] + MASS * LENGTH**2
    weight = MASS * GRAVITY * LENGTH
    found = weight / inertia, estimate.values["swing.viscous"] / inertia, estimate.values["swing.coulomb"] / inertia
    print(f"    per inertia: {np.round(found, 4)}, output error {np.round(reference, 4)}")
    print(f"    rollout {1e3 * rollouts(estimate, 0)['theta']:.2f} mrad, output error {1e3 * rmse:.2f}")
    return [("halves", *row) for row in halves(pendulum(), recording, PENDULUM_FREE)]


def study_drive() -> list[tuple[str, str, float]]:
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


def study_furuta() -> list[tuple[str, str, float]]:
    """The rotary pendulum: repeats, halves."""
    pair = []
    for seed in (0, 1):
        estimate, seconds = timed(furuta(), spun(seed), FURUTA_FREE)
        told(f"furuta {seed}", estimate, seconds)
        inertia = estimate.values["rod.inertia.xx"] + ROD_MASS * ROD**2
        ratio = ROD_MASS * GRAVITY * ROD / np.array([inertia, ROD_INERTIA])
        print(f"    mgl/J {ratio[0]:.2f}, truth {ratio[1]:.2f}; arm {ARM}, gain {GAIN}")
        pair.append(estimate)
    rows = [("repeats", *row) for row in differences(*pair)]
    return rows + [("halves", *row) for row in halves(furuta(), spun(0), FURUTA_FREE)]


def study_arm() -> list[tuple[str, str, float]]:
    """The arm: repeats, beside least squares."""
    pair = []
    for seed in (0, 1):
        recording, links = led(seed)
        estimate, seconds = timed(arm(), recording, ARM_FREE)
        told(f"arm {seed}", estimate, seconds)
        print(f"    least squares {np.round(regressed_arm(recording, links), 2).tolist()}")
        pair.append(estimate)
    return [("repeats", *row) for row in differences(*pair)]


STUDIES: dict[str, Callable[[], list[tuple[str, str, float]]]] = {
    **{name: functools.partial(study_decay, name) for name in DECAYS},
    "drive": study_drive,
    "furuta": study_furuta,
    "arm": study_arm,
}


def main() -> None:
    """Run all rigs and print what they say together."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rigs", nargs="*", default=list(STUDIES), choices=list(STUDIES), help="some of the rigs only")
    start_jax()
    rows = []
    for name in parser.parse_args().rigs:
        own = STUDIES[name]()
        for kind, parameter, value in own:
            print(f"  {name:10} {kind:10} {parameter:30} {value:.2f}", flush=True)
        rows += own
    values = np.array([value for *_, value in rows])
    print(f"|difference|/std: n = {len(values)}, median {np.median(values):.2f}, below 3: {np.mean(values < 3.0):.0%}")


if __name__ == "__main__":
    main()
