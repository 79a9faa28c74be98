"""MJCF: a file as MuJoCo itself compiles it (defaults, includes, angles, frames) to a description of the robot."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from shadowfit.apart import LostError, apart
from shadowfit.geometry.rotations import to_matrix
from shadowfit.models.errors import ModelFileError
from shadowfit.models.robots.description import (
    AXIS_KINDS,
    Actuator,
    Description,
    JointKind,
    Link,
    Loop,
    Mimic,
    RobotJoint,
    RobotSensor,
)
from shadowfit.models.robots.inertia import Flaw, MassProperties, flaw_of, matrix_of, moments_of
from shadowfit.models.robots.markup import Element
from shadowfit.models.robots.mjcf_files import named_files

ROOT = "world"
# The numbers of MuJoCo's mjtJoint.
KINDS: tuple[JointKind, ...] = ("free", "ball", "slider", "hinge")
_LINE = re.compile(r"line (\d+)")


def read_mjcf(root: Element, path: Path, content: bytes | None = None, *, repair: bool = False) -> Description:
    """The robot of an MJCF file; with ``content``, as if that stood in the file.

    MuJoCo compiles it in a process of its own: some files crash it, and some are without end.

    Args:
        root: of the file, or of the content.
        path: of the file.
        content: in place of what is in the file.
        repair: whether impossible inertias are replaced by the nearest possible.

    Raises:
        ModelFileError: MuJoCo is not installed, or refuses the file, in its own words, or does not come to an end.
    """
    if importlib.util.find_spec("mujoco") is None:
        raise ModelFileError(
            "MJCF files are read by MuJoCo, which is not installed: pip install 'shadowfit[mjcf]'", str(path)
        )
    with _at(path, content) as file:
        named = named_files(root, path, file.stat().st_size)
        try:
            return apart(compiled, path, file, repair, named.outside, size=named.size)
        except LostError as error:
            raise ModelFileError(str(error), str(path)) from error


def compiled(path: Path, file: Path, repair: bool, bare: bool) -> Description:
    """The robot as MuJoCo compiles a file, which stands for that of a path; ``bare``: without meshes and the like."""
    import mujoco  # noqa: PLC0415 - an optional dependency

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model, notes = _compile(mujoco, file, repair, bare)
    notes += [f"MuJoCo says: {text}" for text in dict.fromkeys(str(one.message) for one in told)]
    _obey_flags(mujoco, model)
    return _Reader(mujoco, model, str(path), notes).description(path.stem)


@contextlib.contextmanager
def _at(path: Path, content: bytes | None) -> Iterator[Path]:
    """The file, or one beside it with another content, where it finds what it includes."""
    if content is None:
        yield path
        return
    trial = path.with_name(f".{path.stem}.{os.getpid()}.trial{path.suffix}")
    try:
        trial.write_bytes(content)
        yield trial
    except OSError as error:
        raise ModelFileError(f"cannot be tried in its folder: {error.strerror or error}", str(path)) from error
    finally:
        trial.unlink(missing_ok=True)


def _compile(mujoco: Any, path: Path, repair: bool, bare: bool) -> tuple[Any, list[str]]:
    try:
        spec = mujoco.MjSpec.from_file(str(path))
        notes = _make_possible(spec, path, repair)
        if bare:
            _strip(mujoco, spec)
            return spec.compile(), [*notes, f"meshes, textures and height fields outside of {path.parent} are left out"]
        try:
            return spec.compile(), notes
        except ValueError as first:
            # Meshes are seldom beside a model that was copied; bodies that state their inertia do not need them.
            without = mujoco.MjSpec.from_file(str(path))
            _make_possible(without, path, repair)
            if not _strip(mujoco, without):
                raise
            try:
                return without.compile(), [*notes, "meshes, textures and height fields are left out"]
            except ValueError as second:
                if _words(second) == _words(first):
                    raise
                raise ValueError(f"{first}; and without meshes and textures: {second}") from second
    except ModelFileError:
        raise
    except ValueError as error:
        raise ModelFileError(f"MuJoCo refuses the file: {_words(error)}", str(path), _line(str(error))) from error


def _words(error: ValueError) -> str:
    """What MuJoCo says, in one line."""
    return " ".join(str(error).split())


def _line(words: str) -> int | None:
    """The line that MuJoCo names; it calls lines of included files 0."""
    match = _LINE.search(words)
    return int(match[1]) or None if match else None


def _make_possible(spec: Any, path: Path, repair: bool) -> list[str]:
    """Give bodies whose stated inertia no body can have the nearest possible one, or refuse them; what was done.

    (MuJoCo refuses them without saying what would be possible; ``balanceinertia`` makes balls of them.)
    """
    flaws: dict[str, Flaw] = {}
    lines: dict[str, int | None] = {}
    for body in spec.bodies if not spec.compiler.balanceinertia else ():
        if not body.explicitinertial or not body.mass > 0.0:
            continue
        full = bool(np.isfinite(body.fullinertia[0]))
        inertia = matrix_of(body.fullinertia) if full else np.diag(body.inertia)
        if not np.any(inertia):
            continue  # A point that is fixed to another body; MuJoCo refuses one that a joint moves.
        flaw = flaw_of(inertia, f"the inertia of body {body.name!r}", _written(full))
        if flaw is None:
            continue
        flaws[body.name] = flaw
        lines[body.name] = _line(body.info)
        if full:
            body.fullinertia = moments_of(flaw.nearest)
        else:
            body.inertia = np.diagonal(flaw.nearest)
    if flaws and not repair:
        first, *others = flaws
        listed = [f"{name!r}{f' (line {lines[name]})' if lines[name] else ''}" for name in others]
        raise ModelFileError(flaws[first].refused(listed), str(path), lines[first])
    return [flaw.repaired for flaw in flaws.values()]


def _written(full: bool) -> Callable[[np.ndarray], str]:
    """How a file states an inertia: with products, or in the axes of its frame."""

    def attribute(inertia: np.ndarray) -> str:
        numbers = moments_of(inertia) if full else np.diagonal(inertia)
        return f'{"full" if full else "diag"}inertia="{" ".join(f"{number:.6g}" for number in numbers)}"'

    return attribute


def _strip(mujoco: Any, spec: Any) -> bool:
    """Take away what needs other files; whether there was any."""
    shaped = (int(mujoco.mjtGeom.mjGEOM_MESH), int(mujoco.mjtGeom.mjGEOM_HFIELD), int(mujoco.mjtGeom.mjGEOM_SDF))
    geoms = [geom for geom in spec.geoms if int(geom.type) in shaped]
    for geom in spec.geoms:
        geom.material = ""
    files = [*spec.skins, *spec.meshes, *spec.hfields, *spec.materials, *spec.textures]
    for element in (*geoms, *files):
        spec.delete(element)
    return bool(geoms or files)


def _obey_flags(mujoco: Any, model: Any) -> None:
    """Take out of a compiled model what the flags of its ``option`` switch off."""
    numbers = {
        "GRAVITY": [model.opt.gravity],
        "SPRING": [model.jnt_stiffness],
        "DAMPER": [model.dof_damping],
        "PASSIVE": [model.jnt_stiffness, model.dof_damping],  # both in one, in older versions of MuJoCo
        "FRICTIONLOSS": [model.dof_frictionloss],
        "EQUALITY": [model.eq_active0],
        "CONSTRAINT": [model.dof_frictionloss, model.eq_active0],
    }
    for name, arrays in numbers.items():
        flag = getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}", 0)
        if int(model.opt.disableflags) & int(flag):
            for array in arrays:
                array[:] = 0


@dataclasses.dataclass
class _Reader:
    """Reads a compiled model; what is not understood is counted, and told once for each kind."""

    mujoco: Any
    model: Any
    source: str
    notes: list[str]
    skipped: Counter[str] = dataclasses.field(default_factory=Counter)

    def description(self, name: str) -> Description:
        model = self.model
        links, joints = {ROOT: Link(ROOT)}, {}
        for body in range(1, model.nbody):
            for link, joint in self._body(body):
                links[link.name] = link
                joints[joint.name] = joint
        loops, mimics = self._equalities()
        actuators, otherwise = self._actuators()
        sensors = self._sensors()
        self._look_for_more()
        ignored = ", ".join(f"{what} ({count})" if count > 1 else what for what, count in self.skipped.items())
        return Description(
            name=self._model_name() or name,
            source=self.source,
            root=ROOT,
            links=links,
            joints=joints,
            actuators=tuple(actuators),
            driven_otherwise=tuple(otherwise),
            loops=tuple(loops),
            mimics=tuple(mimics),
            sensors=tuple(sensors),
            gravity=np.array(model.opt.gravity),
            start=self._start(),
            notes=(*self.notes, *([f"not part of the model: {ignored}"] if ignored else [])),
        )

    def _model_name(self) -> str:
        return self.model.names[: self.model.names.index(b"\0")].decode("utf-8", "replace")

    # ---- names; MuJoCo's may be missing

    def _body_name(self, body: int) -> str:
        return ROOT if body == 0 else self.model.body(body).name or f"body{body}"

    def _joint_name(self, joint: int) -> str:
        body = int(self.model.jnt_bodyid[joint])
        place = joint - int(self.model.body_jntadr[body])
        return self.model.joint(joint).name or f"{self._body_name(body)}_joint{place + 1 if place else ''}"

    # ---- the tree

    def _body(self, body: int) -> list[tuple[Link, RobotJoint]]:
        """A body with its joint; one of several joints, with a link between each two of them."""
        model, name = self.model, self._body_name(body)
        first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        base = self._body_name(int(model.body_parentid[body]))
        rotation, position = to_matrix(model.body_quat[body]), np.array(model.body_pos[body])
        if model.body_gravcomp[body]:
            self.skipped["compensation of gravity"] += 1
        if count == 0:
            return [(self._link(body), RobotJoint(f"{name}_fixed", "fixed", base, name, rotation, position))]
        children = []
        for joint in range(first, first + count):
            last = joint == first + count - 1
            child = name if last else f"{name}_{joint - first + 1}"
            link = self._link(body) if last else Link(child)
            children.append((link, self._joint(joint, base, child, rotation, position)))
            base, rotation, position = child, np.eye(3), np.zeros(3)
        return children

    def _link(self, body: int) -> Link:
        model = self.model
        mass = float(model.body_mass[body])
        if mass == 0.0:
            return Link(self._body_name(body))
        principal = MassProperties(mass, np.zeros(3), np.diag(model.body_inertia[body]))
        turned = principal.moved(to_matrix(model.body_iquat[body]), np.array(model.body_ipos[body]))
        return Link(self._body_name(body), turned)

    def _joint(self, joint: int, parent: str, child: str, rotation: np.ndarray, position: np.ndarray) -> RobotJoint:
        model = self.model
        kind = KINDS[int(model.jnt_type[joint])]
        dof, place = int(model.jnt_dofadr[joint]), int(model.jnt_qposadr[joint])
        axis, anchor = np.array(model.jnt_axis[joint]), np.array(model.jnt_pos[joint])
        losses = (model.dof_damping[dof], model.dof_frictionloss[dof], model.dof_armature[dof])
        common: dict[str, Any] = {"name": self._joint_name(joint), "kind": kind, "parent": parent, "child": child}
        if kind in ("free", "ball"):
            if any(losses) or model.jnt_stiffness[joint]:
                self.skipped[f"friction, armature and springs of {kind} joints"] += 1
            return RobotJoint(**common, rotation=rotation, position=position, anchor=anchor)
        # The stated pose is at the reference position; ours is at zero.
        reference = float(model.qpos0[place])
        zero = RobotJoint(**common, rotation=rotation, position=position, axis=axis, anchor=anchor).held(-reference)
        for field, what in (("jnt_stiffnesspoly", "stiffness"), ("dof_dampingpoly", "damping")):
            if np.any(getattr(model, field, np.zeros((1 + max(joint, dof), 1)))[joint if "jnt" in field else dof]):
                self.skipped[f"polynomial {what}"] += 1
        limited = bool(model.jnt_limited[joint])
        return dataclasses.replace(
            zero,
            kind=kind,
            damping=float(losses[0]),
            friction=float(losses[1]),
            armature=float(losses[2]),
            stiffness=float(model.jnt_stiffness[joint]),
            rest=float(model.qpos_spring[place]),
            limits=(float(model.jnt_range[joint, 0]), float(model.jnt_range[joint, 1])) if limited else None,
            effort=self._effort(joint),
        )

    def _effort(self, joint: int) -> float | None:
        """Largest force of a joint's actuators [N m or N], by the range of their forces, or of a motor's control."""
        model, mujoco = self.model, self.mujoco
        bounds = [np.max(np.abs(model.jnt_actfrcrange[joint]))] if model.jnt_actfrclimited[joint] else []
        for index in np.flatnonzero(model.actuator_trnid[:, 0] == joint):
            if int(model.actuator_trntype[index]) != int(mujoco.mjtTrn.mjTRN_JOINT):
                continue
            gear = abs(float(model.actuator_gear[index, 0]))
            if model.actuator_forcelimited[index]:
                bounds.append(gear * np.max(np.abs(model.actuator_forcerange[index])))
            motor = int(model.actuator_biastype[index]) == int(mujoco.mjtBias.mjBIAS_NONE)
            if motor and model.actuator_ctrllimited[index]:
                gain = abs(float(model.actuator_gainprm[index, 0]))
                bounds.append(gear * gain * np.max(np.abs(model.actuator_ctrlrange[index])))
        largest = float(min(bounds, default=np.inf))
        return largest if 0.0 < largest < np.inf else None

    # ---- what drives it

    def _actuators(self) -> tuple[list[Actuator], list[str]]:
        """Motors and position controllers of single joints, and the joints that have others."""
        actuators: dict[str, Actuator] = {}
        otherwise: list[str] = []
        for index in range(self.model.nu):
            actuator = self._actuator(index)
            if actuator is None:
                self.skipped["actuators other than motors and position controllers of one joint"] += 1
                otherwise += self._axis_of(index)
            elif actuator.joint in actuators:
                self.skipped["further actuators of a joint"] += 1
            else:
                actuators[actuator.joint] = actuator
        return list(actuators.values()), otherwise

    def _axis_of(self, index: int) -> list[str]:
        """Name of the hinge or slider that an actuator acts on by itself, if it is one."""
        model, kinds = self.model, self.mujoco.mjtTrn
        joint = int(model.actuator_trnid[index, 0])
        alone = int(model.actuator_trntype[index]) in (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT))
        return [self._joint_name(joint)] if alone and KINDS[int(model.jnt_type[joint])] in AXIS_KINDS else []

    def _actuator(self, index: int) -> Actuator | None:
        """``τ = N f`` with ``f = g u + b₀ + b₁ N x + b₂ N s``, N the gear; None where it is nothing like that."""
        model, mujoco = self.model, self.mujoco
        axis = self._axis_of(index)
        if (
            not axis
            or int(model.actuator_dyntype[index]) != int(mujoco.mjtDyn.mjDYN_NONE)
            or int(model.actuator_gaintype[index]) != int(mujoco.mjtGain.mjGAIN_FIXED)
        ):
            return None
        name, gear = axis[0], float(model.actuator_gear[index, 0])
        gain, bias = float(model.actuator_gainprm[index, 0]), np.array(model.actuator_biasprm[index, :3])
        if int(model.actuator_biastype[index]) == int(mujoco.mjtBias.mjBIAS_NONE):
            bias = np.zeros(3)
        elif int(model.actuator_biastype[index]) != int(mujoco.mjtBias.mjBIAS_AFFINE):
            return None
        if not np.any(bias):
            return Actuator(name, gain=gear * gain, gear=gear)
        if bias[0] != 0.0 or bias[1] != -gain or bias[2] > 0.0:
            return None
        limit = np.inf
        if model.actuator_forcelimited[index]:
            limit = abs(gear) * float(np.max(np.abs(model.actuator_forcerange[index])))
        return Actuator(
            name, gain=1.0 / gear, kp=gear**2 * gain, kd=gear**2 * abs(float(bias[2])), limit=limit, gear=gear
        )

    # ---- what closes loops and couples joints

    def _equalities(self) -> tuple[list[Loop], list[Mimic]]:
        model, kinds = self.model, self.mujoco.mjtEq
        loops: list[Loop] = []
        mimics: list[Mimic] = []
        for index in range(model.neq):
            kind, data = int(model.eq_type[index]), np.array(model.eq_data[index])
            first, second = int(model.eq_obj1id[index]), int(model.eq_obj2id[index])
            name = model.equality(index).name or f"loop{index + 1}"
            if not model.eq_active0[index]:
                self.skipped["equality constraints that are switched off"] += 1
            elif kind in (int(kinds.mjEQ_CONNECT), int(kinds.mjEQ_WELD)):
                loops.append(self._loop(index, name, kind == int(kinds.mjEQ_WELD), data))
            elif kind == int(kinds.mjEQ_JOINT) and second >= 0 and not np.any(data[2:5]):
                zero = [float(model.qpos0[model.jnt_qposadr[joint]]) for joint in (first, second)]
                offset = float(data[0]) + zero[0] - float(data[1]) * zero[1]
                mimics.append(Mimic(self._joint_name(first), self._joint_name(second), float(data[1]), offset))
            else:
                self.skipped[f"equality constraints of type {str(kinds(kind)).rsplit('mjEQ_', 1)[-1].lower()}"] += 1
        return loops, mimics

    def _loop(self, index: int, name: str, weld: bool, data: np.ndarray) -> Loop:
        model = self.model
        ends = [int(model.eq_obj1id[index]), int(model.eq_obj2id[index])]
        if int(model.eq_objtype[index]) == int(self.mujoco.mjtObj.mjOBJ_SITE):
            bodies = [int(model.site_bodyid[site]) for site in ends]
            points = [np.array(model.site_pos[site]) for site in ends]
            turns = [to_matrix(model.site_quat[site]) for site in ends]
            rotation = turns[0] @ turns[1].T
        elif weld:
            # Anchor in the second body, then the pose of the second body in the first.
            bodies, rotation = ends, to_matrix(data[6:10])
            points = [data[3:6] + rotation @ data[:3], data[:3]]
        else:
            bodies, rotation, points = ends, np.eye(3), [data[:3], data[3:6]]
        parent, child = (self._body_name(body) for body in bodies)
        return Loop(name, "lock" if weld else "ball", parent, child, points[0], points[1], rotation)

    # ---- sensors and the rest

    def _sensors(self) -> list[RobotSensor]:
        model, types, objects = self.model, self.mujoco.mjtSensor, self.mujoco.mjtObj
        sensors = []
        for index in range(model.nsensor):
            kind, what = int(model.sensor_type[index]), int(model.sensor_objtype[index])
            at, name = int(model.sensor_objid[index]), model.sensor(index).name or f"sensor{index + 1}"
            if kind in (int(types.mjSENS_JOINTPOS), int(types.mjSENS_JOINTVEL)):
                word = "joint_position" if kind == int(types.mjSENS_JOINTPOS) else "joint_speed"
                sensors.append(RobotSensor(name, word, self._joint_name(at)))
                continue
            place = None
            if what == int(objects.mjOBJ_SITE):
                place = int(model.site_bodyid[at]), np.array(model.site_pos[at]), np.array(model.site_quat[at])
            elif what == int(objects.mjOBJ_XBODY):
                place = at, np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
            elif what == int(objects.mjOBJ_BODY):
                place = at, np.array(model.body_ipos[at]), np.array(model.body_iquat[at])
            word = {
                int(types.mjSENS_FRAMEPOS): "point_position",
                int(types.mjSENS_FRAMEQUAT): "body_orientation",
                int(types.mjSENS_GYRO): "body_rate",
                int(types.mjSENS_ACCELEROMETER): "accelerometer",
            }.get(kind, "")
            if place is None or not word or model.sensor_refid[index] >= 0 or place[0] == 0:
                self.skipped[f"sensors of type {str(types(kind)).rsplit('mjSENS_', 1)[-1].lower()}"] += 1
                continue
            sensors.append(RobotSensor(name, word, self._body_name(place[0]), place[1], place[2]))
        return sensors

    def _start(self) -> dict[str, float]:
        """Joint positions of the first keyframe."""
        model = self.model
        axes = [joint for joint in range(model.njnt) if KINDS[int(model.jnt_type[joint])] in ("hinge", "slider")]
        if model.nkey == 0:
            return {}
        return {self._joint_name(joint): float(model.key_qpos[0, model.jnt_qposadr[joint]]) for joint in axes}

    def _look_for_more(self) -> None:
        model = self.model
        colliding = int(np.sum((model.geom_contype != 0) | (model.geom_conaffinity != 0))) if model.ngeom else 0
        medium = int(np.any(model.opt.wind) or model.opt.density > 0 or model.opt.viscosity > 0)
        for what, count in (
            ("geoms that touch", colliding),
            ("tendons", model.ntendon),
            ("flexible bodies", model.nflex),
            ("plugins", model.nplugin),
            ("mocap bodies", model.nmocap),
            ("a surrounding medium", medium),
        ):
            if count:
                self.skipped[what] += int(count)
