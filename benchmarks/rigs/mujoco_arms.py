"""Robots that MuJoCo simulates; the file that is fitted has other masses and inertias, and other joints.

Arms in a position loop whose torques are read with noise, 1 kHz:

* ``wrist``: seven axes in the style of vendors' files (classes of defaults, armature, damping, friction loss), a motor
  for all but the last one.
* ``palletiser``: six bodies, a crank and a rod lead the forearm through a parallelogram (``connect``).
* ``shoulder``: four axes, nothing but numbers that are off.

Robots whose targets are recorded, 200 Hz, with position loops of the file itself:

* ``legs``: two legs of three joints, targets that go on smoothly.
* ``servos``: an arm of four servos, targets that are stairs of 20 ms.
"""

from __future__ import annotations

import dataclasses

import mujoco
import numpy as np

from benchmarks.rigs.robot import FREE, TORQUES, Robot

# Of the integrator, whose errors are of first order: bars of 0.1 % are to hold [s].
STEP = 2e-5
# Dry friction as hard as the step allows: by default it creeps over some mrad/s.
HARD = f'solreffriction="{2.0 * STEP:g} 1" solimpfriction="0.999 0.999 1e-3"'
HARMONICS, BASE = 5, 0.1
# Sampling interval [s] and noise of angles [rad] where torques are read, and where targets are.
READ, LED = (1e-3, 2e-5), (5e-3, 1e-4)
# Of a file that is fitted: masses and inertias, and the joints' numbers, by the truth.
FACTORS, HALF = (0.8, 1.25, 1.1, 0.85, 1.2, 0.9, 1.15), 0.5
LED_FREE = ("*.friction", "*.armature", "*.mass")
# What the armature is called, of a joint with a motor and of another one.
ROTOR = {True: "motor.shaft_inertia", False: "rotor.shaft_inertia"}


@dataclasses.dataclass(frozen=True)
class Link:
    """A body and the joint that it hangs on, in the attributes of an MJCF."""

    name: str
    parent: str
    place: str
    mass: float
    com: str
    inertia: str
    joint: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Viscous friction, Coulomb friction, armature."""
    driven: bool = True
    axis: str = "0 0 1"
    turned: str = "1 0 0 0"


@dataclasses.dataclass(frozen=True)
class Arm:
    """Links from the base outwards, gains of the position loop, and the motion about a mean."""

    links: tuple[Link, ...]
    stiffness: tuple[float, ...]
    damping: tuple[float, ...]
    mean: tuple[float, ...]
    torque_noise: tuple[float, ...]
    amplitude: float
    seconds: float
    closing: str = ""
    overlay: str = ""
    held: int = 0
    """Samples that targets are held, which are recorded in place of torques; zero: torques are."""


BIG, LARGE, SMALL = (2.0, 0.8, 0.4), (2.5, 1.1, 0.5), (0.8, 0.4, 0.1)


def wrist(loose: tuple[float, float, float]) -> Arm:
    """Seven axes, the last of which nothing drives."""
    turned = ("1 0 0 0", "0 0 1 1", "0 0 1 1", "1 1 0 0", "0 0 1 1", "1 1 0 0", "0 0 1 1")
    numbers = (
        ("0 0 0.1575", 4.5, "0 -0.03 0.12", "0.021 0.02 0.011", BIG),
        ("0 0 0.2025", 4.2, "0.0003 0.059 0.042", "0.018 0.011 0.018", LARGE),
        ("0 0.2045 0", 3.2, "0 0.03 0.13", "0.025 0.024 0.0076", BIG),
        ("0 0 0.2155", 2.9, "0 0.067 0.034", "0.017 0.006 0.016", LARGE),
        ("0 0.1845 0", 1.9, "0.0001 0.021 0.076", "0.01 0.0087 0.0045", BIG),
        ("0 0 0.2155", 1.8, "0 0.0006 0.0004", "0.0049 0.0047 0.0036", SMALL),
        ("0 0.081 0", 0.9, "0.02 0.015 0.03", "0.0011 0.0012 0.001", loose),
    )
    links = tuple(
        Link(f"link{i}", f"link{i - 1}" if i > 1 else "base", *own, driven=i < 7, turned=turned[i - 1])
        for i, own in enumerate(numbers, 1)
    )
    gains = (3000.0, 3000.0, 2000.0, 1500.0, 800.0, 400.0), (150.0, 150.0, 100.0, 60.0, 25.0, 10.0)
    return Arm(links, *gains, (0.0, 0.4, 0.0, -1.2, 0.0, 0.0), (0.1,) * 6, 0.25, 15.0)


def palletiser() -> Arm:
    """A column, an upper arm, a forearm behind a parallelogram, and a hand."""
    across = "0 1 0"
    links = (
        Link("column", "base", "0 0 0.3", 40.0, "0.02 0 0.2", "1.2 1.1 0.9", (6.0, 5.0, 2.0)),
        Link("upper", "column", "0.1 0 0.4", 18.0, "0.01 0 0.38", "1 1.02 0.09", (9.0, 8.0, 1.5), axis=across),
        Link("forearm", "upper", "0 0 0.8", 12.0, "0.25 0.01 0.02", "0.06 0.7 0.68", driven=False, axis=across),
        Link("hand", "forearm", "0.75 0 0", 4.0, "0.03 0.02 -0.08", "0.03 0.03 0.02", (1.2, 1.0, 0.1)),
        Link("crank", "column", "0.1 0 0.4", 5.0, "-0.11 0 0", "0.01 0.05 0.05", (8.0, 7.0, 1.2), axis=across),
        Link("rod", "crank", "-0.2 0 0", 3.0, "0 0 0.4", "0.17 0.17 0.004", driven=False, axis=across),
    )
    closing = '  <equality>\n    <connect body1="rod" body2="forearm" anchor="0 0 0.8"/>\n  </equality>\n'
    unread = "\n[sensors]\nforearm_joint_position = false\nrod_joint_position = false\n"
    gains = (8000.0, 12000.0, 500.0, 12000.0), (600.0, 900.0, 25.0, 900.0)
    return Arm(links, *gains, (0.0, 0.1, 0.0, 0.1), (1.5, 1.5, 0.2, 1.5), 0.12, 20.0, closing, unread)


def shoulder() -> Arm:
    """Four axes, each with a drive of its own."""
    across = "0 1 0"
    links = (
        Link("base_link", "base", "0 0 0.2", 5.0, "0.01 0 0.08", "0.03 0.03 0.02", (4.0, 3.0, 0.8)),
        Link("upper", "base_link", "0 0 0.2", 4.0, "0.02 0 0.15", "0.06 0.06 0.01", (4.5, 3.5, 0.9), axis=across),
        Link("fore", "upper", "0 0 0.35", 2.5, "0.15 0.01 0.02", "0.008 0.03 0.03", (2.0, 1.5, 0.3), axis=across),
        Link("hand", "fore", "0.3 0 0", 1.0, "0.02 0.03 0.05", "0.003 0.003 0.002", (0.6, 0.4, 0.05), axis="1 0 0"),
    )
    gains = (3000.0, 3000.0, 1500.0, 300.0), (150.0, 150.0, 60.0, 8.0)
    return Arm(links, *gains, (0.0, 0.4, 0.2, 0.0), (0.2, 0.2, 0.1, 0.03), 0.25, 12.0)


def legs() -> Arm:
    """Two legs of three joints under a base that is held."""
    across, links = "0 1 0", []
    for side, place in (("left", 0.1), ("right", -0.1)):
        links += [
            Link(f"{side}_hip", "base", f"0 {place} 0", 0.7, "0 0 0", "1e-3 1e-3 1e-3", (0.1, 0.2, 0.01), axis="1 0 0"),
            Link(
                *(f"{side}_thigh", f"{side}_hip", f"0 {place} 0", 1.2, "0 0 -0.05", "6e-3 6e-3 1e-3"),
                (0.15, 0.3, 0.012),
                axis=across,
            ),
            Link(
                *(f"{side}_calf", f"{side}_thigh", "0 0 -0.2", 0.3, "0 0 -0.1", "1.5e-3 1.5e-3 1e-4"),
                (0.2, 0.25, 0.02),
                axis=across,
            ),
        ]
    return Arm(tuple(links), (30.0,) * 6, (1.0,) * 6, (0.0, 0.7, -1.4) * 2, (), 0.3, 12.0, held=1)


def servos() -> Arm:
    """An arm of four servos; a computer sends targets every 20 ms."""
    across = "0 1 0"
    links = (
        Link("turn", "base", "0 0 0.05", 0.3, "0.01 0 0.03", "4e-4 4e-4 3e-4", (0.3, 0.05, 0.02)),
        Link("lift", "turn", "0 0 0.06", 0.25, "0.01 0 0.06", "5e-4 5e-4 1e-4", (0.3, 0.05, 0.02), axis=across),
        Link("bend", "lift", "0 0 0.12", 0.2, "0.06 0 0", "1e-4 4e-4 4e-4", (0.25, 0.05, 0.02), axis=across),
        Link("nod", "bend", "0.13 0 0", 0.12, "0.04 0 0", "5e-5 1e-4 1e-4", (0.2, 0.04, 0.015), axis=across),
    )
    return Arm(links, (18.0,) * 4, (0.6,) * 4, (0.0, 0.2, 0.3, 0.3), (), 0.3, 12.0, held=4)


def mjcf(arm: Arm, factors: np.ndarray | None = None) -> str:
    """The file: the true one, or one with other masses and without friction."""

    def body(link: Link, depth: int) -> str:
        factor = 1.0 if factors is None else factors[arm.links.index(link)]
        # Where targets are read masses alone are free, so that nothing else may be off.
        spread = 1.0 if arm.held else factor
        inertia = " ".join(f"{spread * float(entry):.6g}" for entry in link.inertia.split())
        pad, inside = "  " * depth, [body(one, depth + 1) for one in arm.links if one.parent == link.name]
        return (
            f'{pad}<body name="{link.name}" pos="{link.place}" quat="{link.turned}">\n'
            f'{pad}  <inertial mass="{factor * link.mass:.6g}" pos="{link.com}" diaginertia="{inertia}"/>\n'
            f'{pad}  <joint name="{link.name}_joint" class="{link.name}" axis="{link.axis}"/>\n'
            f"{''.join(inside)}{pad}</body>\n"
        )

    classes = ""
    for link in arm.links:
        viscous, coulomb, armature = link.joint
        friction = f'damping="{viscous}" frictionloss="{coulomb}" armature="{armature}" {HARD}'
        own = friction if factors is None else f'armature="{0.5 * armature}"'
        classes += f'    <default class="{link.name}">\n      <joint {own}/>\n    </default>\n'
    loops = iter(zip(arm.stiffness, arm.damping, strict=True))
    motors = "".join(
        f'    <position joint="{one.name}_joint" kp="{kp}" kv="{kv}"/>\n'
        if arm.held
        else f'    <motor joint="{one.name}_joint"/>\n'
        for one, (kp, kv) in zip((one for one in arm.links if one.driven), loops, strict=True)
    )
    tree = "".join(body(one, 3) for one in arm.links if one.parent == "base")
    return (
        f'<mujoco>\n  <compiler angle="radian"/>\n  <option integrator="implicitfast" timestep="{STEP}"/>\n'
        f"  <default>\n{classes}  </default>\n  <worldbody>\n"
        f'    <body name="base">\n      <inertial mass="5" pos="0 0 0" diaginertia="0.1 0.1 0.1"/>\n{tree}    </body>\n'
        f"  </worldbody>\n{arm.closing}  <actuator>\n{motors}  </actuator>\n</mujoco>\n"
    )


def record(arm: Arm) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Angles, and torques of the drives or targets, along sines that a position loop follows."""
    model = mujoco.MjModel.from_xml_string(mjcf(arm))
    data, rng = mujoco.MjData(model), np.random.default_rng(1)
    names = [model.joint(i).name for i in range(model.njnt)]
    driven = np.array([model.actuator(i).trnid[0] for i in range(model.nu)])
    gains = {f"{one.name}_joint": i for i, one in enumerate(one for one in arm.links if one.driven)}
    order = [gains[names[joint]] for joint in driven]
    stiffness, damping, mean = (np.array(own)[order] for own in (arm.stiffness, arm.damping, arm.mean))
    sizes, phases = arm.amplitude * rng.uniform(-1, 1, (len(driven), HARMONICS)), rng.uniform(0, 6.28, HARMONICS)
    rates = 2.0 * np.pi * BASE * np.arange(1, HARMONICS + 1)

    def target(t: float) -> tuple[np.ndarray, np.ndarray]:
        # From rest, within the first second.
        part = min(t, 1.0)
        turn, begun = rates * t + phases, part**2 * (3.0 - 2.0 * part)
        wave = sizes @ (np.sin(turn) - np.sin(phases))
        return mean + begun * wave, begun * (sizes @ (rates * np.cos(turn))) + 6.0 * part * (1.0 - part) * wave

    data.qpos[driven] = mean
    if arm.closing:
        # Both ways round the parallelogram: the rod stays parallel to the upper arm, the forearm to the crank.
        angle = dict(zip(names, data.qpos, strict=True))
        data.qpos[names.index("rod_joint")] = angle["upper_joint"] - angle["crank_joint"]
        data.qpos[names.index("forearm_joint")] = angle["crank_joint"] - angle["upper_joint"]
    interval, noise = LED if arm.held else READ
    rows, commands, every = [], [], round(interval / STEP)
    for sample in range(round(arm.seconds / interval)):
        angle, speed = target(sample * interval)
        if not arm.held:
            data.ctrl[:] = stiffness * (angle - data.qpos[driven]) + damping * (speed - data.qvel[driven])
        elif sample % arm.held == 0:
            data.ctrl[:] = angle
        rows.append(data.qpos.copy())
        commands.append(data.ctrl.copy())
        mujoco.mj_step(model, data, every)
    angles, given = np.array(rows), np.array(commands)
    angles += noise * rng.standard_normal(angles.shape)
    if not arm.held:
        # A torque is held over the interval behind its sample: at the sample it is between two of them.
        given[1:] = 0.5 * (given[1:] + given[:-1])
        given += np.array(arm.torque_noise)[order] * rng.standard_normal(given.shape)
    kind = "target" if arm.held else "effort"
    channels = {f"{name}.position": angles[:, i] for i, name in enumerate(names)}
    channels |= {f"{names[joint]}.{kind}": given[:, i] for i, joint in enumerate(driven)}
    return interval * np.arange(len(rows)), channels


def robot(arm: Arm) -> Robot:
    """The robot with a file that is off."""
    time, channels = record(arm)
    truth = {
        f"{link.name}_joint.{kind}": value
        for link in arm.links
        if any(link.joint)
        for kind, value in zip(("viscous", "coulomb", ROTOR[link.driven]), link.joint, strict=True)
    }
    file = mjcf(arm, np.resize(FACTORS, len(arm.links)))
    if arm.held:
        truth |= {f"{link.name}.mass": link.mass for link in arm.links}
        overlay = 'drive = "position"\n\n[sensors."*_position"]\nstd = 1e-4\n'
        return Robot(file, overlay, time, channels, truth, LED_FREE)
    return Robot(file, TORQUES + arm.overlay, time, channels, truth, FREE, split=0.7 * arm.seconds)
