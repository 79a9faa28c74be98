"""Six axes in a position loop, torques with noise; friction of the model, or one that saturates and depends on load."""

from __future__ import annotations

import numpy as np

from benchmarks.rigs.integration import GRAVITY
from shadowfit.mechanism import Body, Coulomb, Input, JointPosition, Mechanism, TorqueMotor, hinge
from shadowfit.recordings import Recording

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


def path(rng: np.random.Generator, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Angles, speeds and accelerations of three sines in each joint."""
    rates = 2.0 * np.pi * np.array([0.1, 0.23, 0.37])
    sizes, phases = rng.uniform(0.1, 0.35, (3, 6)), rng.uniform(0.0, 6.0, (3, 6))
    waves = rates[:, None, None] * at[None, :, None] + phases[:, None]
    q, v, a = (
        np.sum(sizes[:, None] * rates[:, None, None] ** order * wave(waves), axis=0)
        for order, wave in ((0, np.sin), (1, np.cos), (2, lambda x: -np.sin(x)))
    )
    return q, v, a


def read(rng: np.random.Generator, at: np.ndarray, q: np.ndarray, torque: np.ndarray) -> Recording:
    """Angles and torques with noise."""
    angles = q + 1e-5 * rng.standard_normal(q.shape)
    told = torque + 0.02 * np.std(torque, axis=0) * rng.standard_normal(q.shape)
    channels = {f"q{i + 1}": angles[:, i] for i in range(6)} | {f"u{i + 1}": told[:, i] for i in range(6)}
    units = {name: "rad" if name[0] == "q" else "N m" for name in channels}
    return Recording(at, channels, units=units)


def led(seed: int = 0, duration: float = 12.0, interval: float = 0.008) -> Recording:
    """A path that a controller holds; friction grows less than viscous friction does, torques are read with noise."""
    rng, at = np.random.default_rng(seed), interval * np.arange(int(duration / interval))
    q, v, a = path(rng, at)
    links = np.array([inverse_dynamics(*own) for own in zip(q, v, a, strict=True)])
    rubbing = (
        ARM_VISCOUS * np.sign(v) * np.abs(v) ** 0.8
        + ARM_COULOMB * np.tanh(v / 5e-3)
        + 0.02 * np.abs(links) * np.sign(v)
    )
    return read(rng, at, q, links + ARM_ROTOR * a + rubbing)


def true(seed: int, duration: float = 12.0, interval: float = 0.002) -> Recording:
    """The same path for all seeds, with the friction of the model and nothing else."""
    at = interval * np.arange(int(duration / interval))
    q, v, a = path(np.random.default_rng(0), at)
    links = np.array([inverse_dynamics(*own) for own in zip(q, v, a, strict=True)])
    torque = links + ARM_ROTOR * a + ARM_VISCOUS * v + ARM_COULOMB * np.sign(v)
    return read(np.random.default_rng([seed, 6]), at, q, torque)


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
TRUTH = {
    f"joint{i + 1}.{kind}": float(values[i])
    for kind, values in (("viscous", ARM_VISCOUS), ("coulomb", ARM_COULOMB), ("motor.shaft_inertia", ARM_ROTOR))
    for i in range(6)
}
