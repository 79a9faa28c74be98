"""Built-in mechanisms as Python functions: the files of the library, with friction or sizes of one's choice."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from shadowfit.mechanism import Coulomb, FrictionLaw, Mechanism
from shadowfit.mechanism.leaves import Parts
from shadowfit.models.chain import chain
from shadowfit.models.load import read_model

__all__ = ["cartpole", "chain", "fourbar", "furuta", "incline", "pendulum"]


def pendulum(*, friction: bool = True) -> Mechanism:
    """A rod on a horizontal hinge, with the paper's compliance, damping and the estimates of its pendulum study."""
    mechanism = read_model("pendulum")
    return mechanism if friction else _with_friction(mechanism, {"hinge": None})


def furuta(*, friction: bool = True) -> Mechanism:
    """The rotary (Furuta) pendulum with the paper's default values: an arm on a vertical motor, a rod at its end.

    Both angles are zero with the rod hanging; hinge 1 points up, hinge 2 outward along the arm.
    """
    mechanism = read_model("furuta")
    return mechanism if friction else _with_friction(mechanism, {"hinge1": None, "hinge2": None})


def cartpole(*, friction: bool = False) -> Mechanism:
    """A cart on a rail (x axis) driven by a force, with a pole hanging from it (hinge along y)."""
    mechanism = read_model("cartpole")
    dry = {"rail": Coulomb(coulomb=0.05), "pivot": Coulomb(coulomb=1e-3)}
    return _with_friction(mechanism, dry) if friction else mechanism


def fourbar(
    ground: float = 0.3, crank: float = 0.1, coupler: float = 0.28, rocker: float = 0.22, *, density: float = 1.0
) -> Mechanism:
    """A planar four-bar linkage of thin rods in the x–z plane: four hinges about y, one of which closes the loop.

    All rods lie along the x axis at zero; ``density`` is the mass per length [kg/m].
    """
    values = {
        "ground_crank.child_point.x": -crank / 2,
        "crank_coupler.parent_point.x": crank / 2,
        "crank_coupler.child_point.x": -coupler / 2,
        "ground_rocker.parent_point.x": ground,
        "ground_rocker.child_point.x": -rocker / 2,
        "coupler_rocker.parent_point.x": coupler / 2,
        "coupler_rocker.child_point.x": rocker / 2,
    }
    for name, length in (("crank", crank), ("coupler", coupler), ("rocker", rocker)):
        mass = density * length
        values[f"{name}.mass"] = mass
        values[f"{name}.inertia.yy"] = mass * length**2 / 12
        values[f"{name}.inertia.zz"] = mass * length**2 / 12 + 1e-6
    return read_model("fourbar").set(values)


def incline(angle: float = 0.3, friction: float = 0.5) -> Mechanism:
    """A box on a plane; instead of the plane, gravity is tilted by ``angle`` [rad], so that it pulls along +x."""
    tilt = np.array([np.cos(angle / 2), 0.0, -np.sin(angle / 2), 0.0])
    return read_model("incline").set({"gravity.tilt": tilt, "floor.friction": friction})


def _with_friction(mechanism: Mechanism, laws: Mapping[str, FrictionLaw | None]) -> Mechanism:
    """The mechanism with other friction laws in some joints."""
    joints = {
        name: dataclasses.replace(joint, friction=laws[name]) if name in laws else joint
        for name, joint in mechanism.joints.items()
    }
    return mechanism.having(joints=Parts(joints))
