"""Arms with harmonic drives, by Pinocchio's inverse dynamics.

* ``seven``: seven axes; friction with a Stribeck part (half of Coulomb's), rotors, a ripple of the gears' torque.
* ``seven`` with pauses: from point to point, friction that grows over a milliradian and stays what it was at rest.
* ``parallelogram``: four axes, the forearm keeps its attitude (a URDF's ``mimic``); friction with a Stribeck part.
* ``currents``: six axes whose motor currents [A] were read; gains are known to 5 %, and free beside everything else.

Angles (noise 20 µrad) and torques with noise, 1 kHz, 20 s. The URDF that is fitted has no friction, and masses, centres
of mass and inertias that are off by up to 20 %. (Models without a Stribeck part have a little more Coulomb friction.)
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio

from benchmarks.rigs.robot import FREE, TORQUES, Robot

TIME = np.arange(0.0, 20.0, 1e-3)
ANGLE_NOISE, HARMONICS, BASE, SPLIT = 2e-5, 5, 0.1, 14.0
STRIBECK_SPEED, STICKING = 0.08, 1e-3
# Of a move and the pause behind it [s], and the way [rad] over which friction turns.
MOVE, PAUSE, TURN = 1.0, 0.5, 1e-3


@dataclasses.dataclass(frozen=True)
class Link:
    """A body and the joint that it hangs on the link before by."""

    name: str
    mass: float
    com: np.ndarray
    inertia: np.ndarray
    joint: str
    place: str
    turned: str = "0 0 0"
    axis: str = "0 0 1"
    mimic: str | None = None


def urdf(links: list[Link], mimics: bool = True) -> str:
    """A robot file."""
    parts, parent = ['<robot name="arm">\n<link name="base"/>'], "base"
    for link in links:
        com, moments = " ".join(f"{x:.6g}" for x in link.com), zip(("ixx", "iyy", "izz"), link.inertia, strict=True)
        inertia = " ".join(f'{entry}="{x:.6g}"' for entry, x in moments)
        follows = f'<mimic joint="{link.mimic}" multiplier="-1"/>' if mimics and link.mimic else ""
        parts += [
            f'<link name="{link.name}"><inertial><origin xyz="{com}"/><mass value="{link.mass:.6g}"/>'
            f'<inertia {inertia} ixy="0" ixz="0" iyz="0"/></inertial></link>',
            f'<joint name="{link.joint}" type="revolute"><parent link="{parent}"/><child link="{link.name}"/>'
            f'<origin xyz="{link.place}" rpy="{link.turned}"/><axis xyz="{link.axis}"/>'
            f'<limit lower="-3" upper="3" effort="200" velocity="5"/>{follows}</joint>',
        ]
        parent = link.name
    return "\n".join([*parts, "</robot>\n"])


def motion(
    rng: np.random.Generator, sizes: tuple[float, ...], mean: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, speeds and accelerations of random sums of harmonics."""
    q, v, a = (np.zeros((len(TIME), len(sizes))) for _ in range(3))
    for joint, size in enumerate(sizes):
        for k in range(1, HARMONICS + 1):
            w = 2.0 * np.pi * BASE * k
            sine, cosine = rng.standard_normal(2) * size / k
            q[:, joint] += sine * np.sin(w * TIME) + cosine * np.cos(w * TIME)
            v[:, joint] += w * (sine * np.cos(w * TIME) - cosine * np.sin(w * TIME))
            a[:, joint] -= w * w * (sine * np.sin(w * TIME) + cosine * np.cos(w * TIME))
    return q + np.array(mean), v, a


def moves(
    rng: np.random.Generator, sizes: tuple[float, ...], mean: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, speeds and accelerations from point to point, with pauses."""
    q, v, a = (np.zeros((len(TIME), len(sizes))) for _ in range(3))
    for begin in np.arange(PAUSE, TIME[-1], MOVE + PAUSE):
        s = np.clip((TIME - begin) / MOVE, 0.0, 1.0)[:, None]
        # Towards another point: not ever further away.
        way = rng.uniform(-1.5, 1.5, len(sizes)) * np.array(sizes) - q[-1]
        q += way * (10 * s**3 - 15 * s**4 + 6 * s**5)
        v += way / MOVE * (30 * s**2 - 60 * s**3 + 30 * s**4)
        a += way / MOVE**2 * (60 * s - 180 * s**2 + 120 * s**3)
    return q + np.array(mean), v, a


def yielding(q: np.ndarray) -> np.ndarray:
    """Direction of friction that turns over a way, and stays at rest (Dahl)."""
    direction = np.zeros_like(q)
    for k, moved in enumerate(np.diff(q, axis=0), 1):
        kept = np.exp(-np.abs(moved) / TURN)
        direction[k] = np.sign(moved) * (1.0 - kept) + kept * direction[k - 1]
    return direction


def rubbed(speed: np.ndarray, viscous: np.ndarray, coulomb: np.ndarray, stribeck: np.ndarray) -> np.ndarray:
    """Torque against friction."""
    level = coulomb + stribeck * np.exp(-((speed / STRIBECK_SPEED) ** 2))
    return viscous * speed + level * np.tanh(speed / STICKING)


def inverse_dynamics(links: list[Link], q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Torques of the joints along a motion, by Pinocchio."""
    model = pinocchio.buildModelFromXML(urdf(links, mimics=False))
    data = model.createData()
    return np.array([pinocchio.rnea(model, data, *now) for now in zip(q, v, a, strict=True)])


def read(
    rng: np.random.Generator, names: list[str], q: np.ndarray, torque: np.ndarray, noise: np.ndarray
) -> dict[str, np.ndarray]:
    """Columns of a recording with noise."""
    angles = q + ANGLE_NOISE * rng.standard_normal(q.shape)
    efforts = torque + noise * rng.standard_normal(q.shape)
    columns = {f"{name}_position": angles[:, i] for i, name in enumerate(names)}
    return columns | {f"{name}_effort": efforts[:, i] for i, name in enumerate(names)}


def seven(pausing: bool = False) -> Robot:
    """Seven axes in the style of collaborative arms."""
    rng = np.random.default_rng(11)
    turned = [f"{angle} 0 0" for angle in (0, -1.5708, 1.5708, 1.5708, -1.5708, 1.5708, -1.5708)]
    places = ("0 0 0.3", "0 0 0", "0 0 0.32", "0.05 0 0", "0 0 0.3", "0 0 0", "0.06 0 0")
    links, cad = [], []
    for i, mass in enumerate((4.2, 3.6, 3.1, 2.7, 2.2, 1.6, 0.8)):
        com = np.array([0.02, -0.03, 0.06]) * rng.uniform(0.5, 1.5, 3) * np.sign(rng.standard_normal(3))
        if i == 6:
            com = np.array([0.02, 0.01, 0.05])
        inertia = mass * np.array([0.006, 0.005, 0.004]) * rng.uniform(0.8, 1.2, 3)
        links.append(Link(f"link{i + 1}", mass, com, inertia, f"joint{i + 1}", places[i], turned[i]))
        heavier = rng.uniform(0.8, 1.2)
        moved, larger = com * rng.uniform(0.8, 1.2, 3), inertia * heavier * rng.uniform(0.9, 1.1)
        cad.append(dataclasses.replace(links[-1], mass=mass * heavier, com=moved, inertia=larger))
    path = moves if pausing else motion
    q, v, a = path(rng, (0.5, 0.4, 0.5, 0.4, 0.6, 0.6, 0.7), (0.0, 0.4, 0.0, -1.2, 0.0, 0.8, 0.0))
    viscous, coulomb = np.array([8, 8, 5, 5, 2, 2, 1.0]), np.array([6, 6, 4, 4, 1.5, 1.5, 0.8])
    rotor, ripple = (
        np.array([0.9, 0.9, 0.6, 0.6, 0.25, 0.25, 0.15]),
        np.array([0.5, 0.5, 0.3, 0.3, 0.12, 0.12, 0.06]),
    )
    # Two waves for each turn of a wave generator with the ratio 100.
    torque = inverse_dynamics(links, q, v, a) + rotor * a + ripple * np.sin(200.0 * q)
    torque += viscous * v + coulomb * yielding(q) if pausing else rubbed(v, viscous, coulomb, 0.5 * coulomb)
    torque += np.array([0.4, -0.3, 0.2, 0.0, 0.1, -0.1, 0.05])
    truth = {}
    for i, numbers in enumerate(zip(viscous, coulomb, rotor, strict=True)):
        names = (f"joint{i + 1}.{kind}" for kind in ("viscous", "coulomb", "motor.shaft_inertia"))
        truth |= dict(zip(names, numbers, strict=True))
    channels = read(rng, [link.joint for link in links], q, torque, 0.02 * coulomb)
    return Robot(urdf(cad), TORQUES, TIME, channels, truth, split=SPLIT)


def parallelogram() -> Robot:
    """A forearm that keeps its attitude; nothing drives or reads its joint."""
    rng, across = np.random.default_rng(12), "0 1 0"
    links = [
        Link("column", 12.0, np.array([0.02, 0, 0.1]), np.array([0.15, 0.15, 0.1]), "yaw", "0 0 0.4"),
        Link("upper", 9.0, np.array([0, 0.02, 0.35]), np.array([0.5, 0.5, 0.05]), "shoulder", "0.1 0 0.2", axis=across),
        Link(
            *("fore", 6.0, np.array([0.3, 0, 0.03]), np.array([0.03, 0.3, 0.3]), "elbow", "0 0 0.7"),
            axis=across,
            mimic="shoulder",
        ),
        Link("hand", 2.5, np.array([0.02, 0.03, -0.08]), np.array([0.02, 0.018, 0.01]), "turn", "0.7 0 0"),
    ]
    cad = []
    for link in links:
        heavier = rng.uniform(0.8, 1.2)
        com = link.com * rng.uniform(0.85, 1.15, 3)
        cad.append(dataclasses.replace(link, mass=link.mass * heavier, com=com, inertia=link.inertia * heavier))
    led = motion(rng, (0.5, 0.3, 0.7), (0.0, 0.1, 0.0))
    q, v, a = (np.column_stack([x[:, 0], x[:, 1], -x[:, 1], x[:, 2]]) for x in led)
    friction = np.array([12, 15, 3, 1.5]), np.array([8, 10, 2, 1.2]), np.array([2, 3, 0.5, 0.3])
    full = inverse_dynamics(links, q, v, a) + rubbed(v, *friction)
    rotors = np.array([2.0, 3.0, 0.2])
    torque = np.column_stack([full[:, 0], full[:, 1] - full[:, 2], full[:, 3]]) + rotors * led[2]
    truth = {
        "yaw.viscous": 12.0, "yaw.coulomb": 8.0, "turn.viscous": 1.5, "turn.coulomb": 1.2,
        "turn.motor.shaft_inertia": 0.2,
    }  # fmt: skip
    channels = read(rng, ["yaw", "shoulder", "turn"], led[0], torque, np.array([0.3, 0.5, 0.05]))
    return Robot(urdf(cad), TORQUES, TIME, channels, truth, split=SPLIT)


def currents() -> Robot:
    """Six axes behind gears with ripple and Stribeck friction; the torque of a current is known to 5 %."""
    rng, across = np.random.default_rng(2), "0 1 0"
    numbers = (
        ("base", "0 0 0.13", "0 0 1", 7.0, (0.02, 0.01, -0.02), (0.03, 0.03, 0.02)),
        ("shoulder", "0 0.1 0", across, 12.0, (0.0, 0.05, 0.28), (0.4, 0.4, 0.03)),
        ("elbow", "0 -0.1 0.6", across, 5.0, (0.01, 0.02, 0.25), (0.12, 0.12, 0.01)),
        ("wrist1", "0 0 0.5", across, 2.0, (0.01, 0.05, 0.02), (0.005, 0.005, 0.004)),
        ("wrist2", "0 0.1 0", "0 0 1", 2.0, (0.0, 0.02, 0.05), (0.005, 0.005, 0.004)),
        ("wrist3", "0 0 0.1", across, 0.5, (0.01, 0.01, 0.03), (5e-4, 5e-4, 6e-4)),
    )
    links = [
        Link(f"{name}_link", mass, np.array(com), np.array(inertia), name, place, axis=axis)
        for name, place, axis, mass, com, inertia in numbers
    ]
    cad = []
    for link in links:
        heavier = rng.uniform(0.85, 1.15)
        moved, larger = link.com * rng.uniform(0.9, 1.1, 3), link.inertia * heavier * rng.uniform(0.9, 1.1)
        cad.append(dataclasses.replace(link, mass=link.mass * heavier, com=moved, inertia=larger))
    q, v, a = motion(rng, (0.6, 0.4, 0.5, 0.7, 0.7, 0.8), (0.0, -0.6, 0.9, -0.3, 0.0, 0.0))
    viscous, coulomb = np.array([15, 14, 9, 2.5, 2.2, 1.8]), np.array([10, 12, 7, 1.8, 1.6, 1.2])
    rotor, gain = np.array([2.2, 2.2, 1.0, 0.15, 0.15, 0.12]), np.array([13.5, 13.2, 12.1, 9.5, 9.2, 9.1])
    torque = inverse_dynamics(links, q, v, a) + rotor * a + 0.05 * coulomb * np.sin(150.0 * q)
    torque += rubbed(v, viscous, coulomb, 0.5 * coulomb)
    current = torque / gain + np.array([0.02, -0.03, 0.01, 0.0, 0.02, -0.01])
    names = [link.joint for link in links]
    channels = read(rng, names, q, current, 0.02 * np.std(current, axis=0))
    kinds = {"viscous": viscous, "coulomb": coulomb, "motor.shaft_inertia": rotor, "motor.gain": gain}
    truth = {f"{name}.{kind}": float(own[i]) for i, name in enumerate(names) for kind, own in kinds.items()}
    stated = gain * (1.0 + 0.05 * rng.standard_normal(len(gain)))
    lines = [f"[joints.{name}.motor]\ngain = {x:.6g}\n" for name, x in zip(names, stated, strict=True)]
    overlay = "\n".join([TORQUES + 'unit = "A"\n', *lines])
    return Robot(urdf(cad), overlay, TIME, channels, truth, (*FREE, "*.motor.gain"), ("*.motor.gain=5%",), split=SPLIT)
