"""Trees of hinges for benchmarks, as a mechanism and as a model of MuJoCo: a seven-axis arm and a humanoid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shadowfit.mechanism import Body, Input, Mechanism, TorqueMotor, hinge

VISCOUS = 0.05  # N m s/rad


class Part(NamedTuple):
    """A body on a hinge."""

    parent: int
    """−1: the world."""
    axis: tuple[float, float, float]
    at: tuple[float, float, float]
    """Where the hinge is, from the parent's hinge [m]; the centre of mass lies half-way to the next one."""
    mass: float


_X, _Y, _Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def arm() -> list[Part]:
    """Seven axes, alternating about z and y, as arms of this kind have them."""
    masses = (4.0, 3.5, 3.0, 2.7, 1.7, 1.6, 0.3)
    return [Part(i - 1, _Z if i % 2 == 0 else _Y, (0.0, 0.0, 0.2), mass) for i, mass in enumerate(masses)]


def humanoid() -> list[Part]:
    """32 hinges: a waist of three, two legs of six, two arms of seven, a neck of three; standing on the world."""
    parts: list[Part] = []

    def limb(root: int, axes: tuple, first: tuple[float, float, float], along: float, mass: float) -> None:
        at, parent = first, root
        for axis in axes:
            parts.append(Part(parent, axis, at, mass))
            parent, at = len(parts) - 1, (0.0, 0.0, along)

    limb(-1, (_Z, _Y, _X), (0.0, 0.0, 1.0), 0.1, 5.0)
    waist = len(parts) - 1
    for side in (-1.0, 1.0):
        limb(-1, (_Z, _X, _Y, _Y, _Y, _X), (0.0, 0.1 * side, 1.0), -0.15, 2.0)
    for side in (-1.0, 1.0):
        limb(waist, (_Y, _X, _Z, _Y, _Z, _Y, _X), (0.0, 0.2 * side, 0.4), -0.1, 1.0)
    limb(waist, (_Z, _Y, _X), (0.0, 0.0, 0.5), 0.05, 1.0)
    return parts


def _center(_: Part) -> np.ndarray:
    return np.array([0.02, 0.01, 0.05])


def _moments(part: Part) -> tuple[float, float, float]:
    return 4e-3 * part.mass, 5e-3 * part.mass, 3e-3 * part.mass


def mechanism(parts: list[Part]) -> Mechanism:
    """As a mechanism, driven by a torque at the first joint."""
    bodies = {f"b{i}": Body(part.mass, _moments(part), com=tuple(_center(part))) for i, part in enumerate(parts)}
    joints = {}
    for i, part in enumerate(parts):
        laws = {"motor": TorqueMotor(input="u")} if i == 0 else {}
        joints[f"j{i}"] = hinge(
            "world" if part.parent < 0 else f"b{part.parent}",
            f"b{i}",
            axis=part.axis,
            parent_point=part.at,
            child_point=(0.0, 0.0, 0.0),
            viscous=VISCOUS,
            laws=laws,
        )
    return Mechanism(bodies, joints, inputs={"u": Input()}, name=f"{len(parts)} hinges")


def mjcf(parts: list[Part], timestep: float) -> str:
    """As a model of MuJoCo."""

    def body(i: int) -> str:
        part = parts[i]
        moments = " ".join(map(str, _moments(part)))
        inside = "".join(body(j) for j, other in enumerate(parts) if other.parent == i)
        return (
            f'<body pos="{" ".join(map(str, part.at))}"><joint name="j{i}" type="hinge" '
            f'axis="{" ".join(map(str, part.axis))}" damping="{VISCOUS}"/>'
            f'<inertial pos="{" ".join(map(str, _center(part)))}" mass="{part.mass}" diaginertia="{moments}"/>'
            f"{inside}</body>"
        )

    roots = "".join(body(i) for i, part in enumerate(parts) if part.parent < 0)
    return (
        f'<mujoco><compiler angle="radian"/><option gravity="0 0 -9.82" timestep="{timestep}" integrator="Euler"/>'
        f'<worldbody>{roots}</worldbody><actuator><motor joint="j0"/></actuator></mujoco>'
    )
