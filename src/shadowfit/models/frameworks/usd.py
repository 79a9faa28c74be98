"""A USD layer over a user's stage: mass properties of its rigid bodies, friction and armature of its joints.

The layer has the stage as its sublayer and holds nothing else: opened in place of the stage it is the calibrated
machine, and the stage itself stays as it was. Bodies are found by name, with the frames that the fit had. UsdPhysics
has no friction in joints; it is written as PhysX (``PhysxJointAxisAPI``) and MuJoCo (``MjcJointAPI``) read it, whose
schemas need not be installed to write their attributes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from shadowfit.frames import optional
from shadowfit.models.errors import ModelFileError
from shadowfit.models.frameworks.terms import Terms
from shadowfit.models.robots.inertia import MassProperties
from shadowfit.records import record

SUFFIXES = (".usd", ".usda", ".usdc")
# Word → attributes of the schemas.
PHYSX = {
    "armature": ("armature",),
    "coulomb": ("staticFrictionEffort", "dynamicFrictionEffort"),
    "viscous": ("viscousFrictionCoefficient",),
}
MUJOCO = {"armature": "armature", "coulomb": "frictionloss", "viscous": "damping", "stiffness": "stiffness"}


@record(frozen=True)
class Layer:
    """A layer's text, and numbers that it could not hold."""

    text: str
    homeless: Mapping[str, Any]


@record(frozen=True)
class Units:
    """A stage's units: what it writes for a metre and a kilogram."""

    length: float
    mass: float

    def of(self, masses: int, lengths: int) -> float:
        """Factor for a quantity in kg^masses m^lengths."""
        return self.mass**masses * self.length**lengths


def layer(stage_file: Path, target: Path, machine: Terms) -> Layer:
    """The layer that makes a stage the machine; ``target`` is where it will lie.

    Raises:
        MissingPackageError: OpenUSD is not installed (extra ``usd``).
        ModelFileError: the stage cannot be opened, or lacks a joint or a body of the machine.
    """
    sdf = optional("pxr.Sdf", "usd")
    below, made = _opened(sdf, stage_file), sdf.Layer.CreateAnonymous(".usda")
    made.subLayerPaths.append(below.identifier)
    _write(made, below, machine, stage_file)
    made.subLayerPaths[0] = Path(os.path.relpath(stage_file.resolve(), target.resolve().parent)).as_posix()
    return Layer(made.ExportToString(), machine.others)


def _write(made: Any, below: Any, machine: Terms, stage_file: Path) -> None:
    """Put a machine into a layer above another one, with the units and axes of that, which are not inherited."""
    sdf, usd, physics, geometry = (optional(f"pxr.{name}", "usd") for name in ("Sdf", "Usd", "UsdPhysics", "UsdGeom"))
    stage, given = usd.Stage.Open(made), usd.Stage.Open(below)
    length, mass = geometry.GetStageMetersPerUnit(given), physics.GetStageKilogramsPerUnit(given)
    geometry.SetStageMetersPerUnit(stage, length)
    geometry.SetStageUpAxis(stage, geometry.GetStageUpAxis(given))
    physics.SetStageKilogramsPerUnit(stage, mass)
    if below.defaultPrim:
        made.defaultPrim = below.defaultPrim
    prims, units = list(stage.Traverse()), Units(1.0 / length, 1.0 / mass)
    joints = {prim.GetName(): prim for prim in prims if prim.IsA(physics.Joint)}
    bodies = {prim.GetName(): prim for prim in prims if prim.HasAPI(physics.RigidBodyAPI)}
    _check("joint", machine.joints, joints, stage_file)
    _check("rigid body", machine.links, bodies, stage_file)
    for name, properties in machine.links.items():
        _put_mass(physics, bodies[name], properties, units)
    for name, words in machine.joints.items():
        _put_joint(sdf, joints[name], words, joints[name].IsA(physics.PrismaticJoint), units)


def _opened(sdf: ModuleType, path: Path) -> Any:
    try:
        found = sdf.Layer.FindOrOpen(str(path.resolve()))
    except Exception as error:  # OpenUSD has one for all that can be wrong with a file
        why = str(error).strip().splitlines()[-1]
        raise ModelFileError(f"this stage cannot be opened: {why}", str(path)) from error
    if found is None:
        raise ModelFileError("this stage cannot be opened", str(path))
    return found


def _check(kind: str, wanted: Mapping[str, Any], found: Mapping[str, Any], path: Path) -> None:
    for name in wanted:
        if name not in found:
            raise ModelFileError(
                f"this stage has no {kind} {name!r}; it has {', '.join(sorted(found)) or 'none'}", str(path)
            )


def _put_mass(physics: ModuleType, prim: Any, own: MassProperties, units: Units) -> None:
    """Mass, centre and principal moments with their axes."""
    moments, axes = np.linalg.eigh(own.inertia)
    axes = axes * np.array([1.0, 1.0, np.linalg.det(axes)])
    gf = optional("pxr.Gf", "usd")
    turned = gf.Matrix3d(*axes.T.ravel().tolist()).ExtractRotation().GetQuat()  # of row vectors
    api = physics.MassAPI.Apply(prim)
    api.CreateMassAttr().Set(float(own.mass * units.of(1, 0)))
    api.CreateCenterOfMassAttr().Set(gf.Vec3f(*(own.com * units.of(0, 1)).tolist()))
    api.CreateDiagonalInertiaAttr().Set(gf.Vec3f(*(moments * units.of(1, 2)).tolist()))
    api.CreatePrincipalAxesAttr().Set(gf.Quatf(turned))


def _put_joint(sdf: ModuleType, prim: Any, words: Mapping[str, float], straight: bool, units: Units) -> None:
    """Numbers of a joint's axis in the two dialects; PhysX counts viscous friction of hinges per degree."""
    axis = "linear" if straight else "angular"
    prim.AddAppliedSchema(f"PhysxJointAxisAPI:{axis}")
    prim.AddAppliedSchema("MjcJointAPI")
    powers = {"coulomb": (1, 1 if straight else 2)}  # a force, or a torque
    for word, value in words.items():
        scaled = value * units.of(*powers.get(word, (1, 0 if straight else 2)))
        degrees = np.pi / 180.0 if word == "viscous" and not straight else 1.0
        for attribute in PHYSX.get(word, ()):
            prim.CreateAttribute(f"physxJointAxis:{axis}:{attribute}", sdf.ValueTypeNames.Float).Set(scaled * degrees)
        prim.CreateAttribute(f"mjc:{MUJOCO[word]}", sdf.ValueTypeNames.Double).Set(scaled)
