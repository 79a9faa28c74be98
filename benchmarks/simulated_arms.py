"""Arms in a position loop that MuJoCo simulates, fitted with the plain commands of docs/robots.md.

* ``wrist``: seven axes in the style of vendors' files (classes of defaults, armature, damping, friction loss), a motor
  for all but the last one.
* ``palletiser``: six bodies, a crank and a rod lead the forearm through a parallelogram (``connect``).

Recorded are angles (noise 20 µrad) and torques of the drives with noise, 1 kHz. The file that is fitted has no friction
and other masses and inertias. ``fit`` sees the first 70 %, ``validate`` the rest, ``export`` writes the calibrated
file; printed are friction and rotors beside the truth, in error bars.

    python benchmarks/simulated_arms.py [--out FOLDER] [--wrist VISCOUS,COULOMB,ARMATURE] [wrist palletiser]
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import resource
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np

STEP, INTERVAL = 2.5e-4, 1e-3
ANGLE_NOISE = 2e-5
HARMONICS, BASE = 5, 0.1
OVERLAY = '\ndrive = "torque"\n\n[sensors."*_position"]\nstd = 1e-4\n\n[inputs."*_effort"]\nhold = "linear"\n'
FREE = ("*.inertial", "*.friction", "*.armature", "*_effort.offset")
KINDS = {"viscous": 0, "coulomb": 1, "motor.shaft_inertia": 2, "rotor.shaft_inertia": 2}


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


def mjcf(arm: Arm, factors: np.ndarray | None = None) -> str:
    """The file: the true one, or one with other masses and without friction."""

    def body(link: Link, depth: int) -> str:
        factor = 1.0 if factors is None else factors[arm.links.index(link)]
        inertia = " ".join(f"{factor * float(entry):.6g}" for entry in link.inertia.split())
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
        friction = f'damping="{viscous}" frictionloss="{coulomb}" armature="{armature}"'
        own = friction if factors is None else f'armature="{0.5 * armature}"'
        classes += f'    <default class="{link.name}">\n      <joint {own}/>\n    </default>\n'
    motors = "".join(f'    <motor joint="{one.name}_joint"/>\n' for one in arm.links if one.driven)
    tree = "".join(body(one, 3) for one in arm.links if one.parent == "base")
    return (
        f'<mujoco>\n  <compiler angle="radian"/>\n  <option integrator="implicitfast" timestep="{STEP}"/>\n'
        f"  <default>\n{classes}  </default>\n  <worldbody>\n"
        f'    <body name="base">\n      <inertial mass="5" pos="0 0 0" diaginertia="0.1 0.1 0.1"/>\n{tree}    </body>\n'
        f"  </worldbody>\n{arm.closing}  <actuator>\n{motors}  </actuator>\n</mujoco>\n"
    )


def record(arm: Arm, path: Path) -> None:
    """Angles and drives' torques along sines that a position loop follows."""
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
    rows, every = [], round(INTERVAL / STEP)
    for step in range(round(arm.seconds / STEP)):
        if step % every == 0:
            angle, speed = target(step * STEP)
            command = stiffness * (angle - data.qpos[driven]) + damping * (speed - data.qvel[driven])
            data.ctrl[:] = command
            rows.append([step * STEP, *data.qpos, *command])
        mujoco.mj_step(model, data)
    table = np.array(rows)
    # A torque is held over the interval behind its sample: at the sample it is between two of them.
    torque = table[:, 1 + model.njnt :]
    torque[1:] = 0.5 * (torque[1:] + torque[:-1])
    table[:, 1 : 1 + model.njnt] += ANGLE_NOISE * rng.standard_normal((len(table), model.njnt))
    torque += np.array(arm.torque_noise)[order] * rng.standard_normal(torque.shape)
    head = ["time", *(f"{name}.position" for name in names), *(f"{names[joint]}.effort" for joint in driven)]
    np.savetxt(path, table, delimiter=",", header=",".join(head), comments="", fmt="%.9g")


def command(*arguments: str) -> str:
    """Run ``shadowfit``; its output."""
    print("shadowfit", *arguments, flush=True)
    call = [sys.executable, "-m", "shadowfit", *arguments]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return done.stdout


def study(arm: Arm, folder: Path) -> None:
    """Fit, validate, export; friction and rotors beside the truth."""
    folder.mkdir(parents=True, exist_ok=True)
    factors = np.resize([0.8, 1.25, 1.1, 0.85, 1.2, 0.9, 1.15], len(arm.links))
    (folder / "true.xml").write_text(mjcf(arm))
    (folder / "arm.xml").write_text(mjcf(arm, factors))
    (folder / "arm.toml").write_text(f'robot = "arm.xml"{OVERLAY}{arm.overlay}')
    record(arm, folder / "run.csv")
    model, run, result, split = (
        *(str(folder / name) for name in ("arm.toml", "run.csv", "result")),
        str(0.7 * arm.seconds),
    )
    free = [part for pattern in FREE for part in ("--free", pattern)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command("fit", model, run, "--to", split, *free, "--out", result, "--quiet")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = json.loads((folder / "result" / "result.json").read_text())
    print(
        f"{found['verdict']}: {found['status']} after {found['iterations']} iterations, {spent:.0f} s of processor time"
    )
    print("parameter | truth | found | difference in bars")
    for link in arm.links:
        for kind, place in KINDS.items():
            own = found["parameters"].get(f"{link.name}_joint.{kind}")
            if own is None:
                continue
            bar = own["std"] or float(np.max(np.abs(np.array(own["interval"]) - own["value"]))) / 1.96
            away = (own["value"] - link.joint[place]) / bar
            held = " (bound)" * own["at_bound"]
            print(f"{link.name}.{kind} | {link.joint[place]} | {own['value']:.4g} ± {bar:.2g}{held} | {away:.1f}")
    print(command("validate", result, run, "--from", split))
    print(
        command("export", result, str(folder / "arm.xml"), "--out", str(folder / "arm.calibrated.xml"))[:500],
        flush=True,
    )


def main() -> None:
    """Simulate and fit the chosen arms."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("simulated_arms"))
    parser.add_argument("--wrist", default="0.03,0.01,0.002", help="viscous, Coulomb and armature of the loose wrist")
    parser.add_argument("arms", nargs="*", default=["wrist", "palletiser"])
    chosen = parser.parse_args()
    loose = tuple(float(number) for number in chosen.wrist.split(","))
    arms = {"wrist": wrist((loose[0], loose[1], loose[2])), "palletiser": palletiser()}
    for name in chosen.arms:
        study(arms[name], chosen.out / name)


if __name__ == "__main__":
    main()
