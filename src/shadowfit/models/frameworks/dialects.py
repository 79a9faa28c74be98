"""Frameworks that take Python: what each can hold, and the code that puts ``LINKS`` and ``JOINTS`` into it.

``LINKS`` and ``JOINTS`` are those of :func:`terms.columns`: a list with one value for each machine, or for frameworks
that draw by themselves a range ``(least, greatest)``. A new framework is one more entry of ``DIALECTS``.
"""

from __future__ import annotations

from shadowfit.records import record


@record(frozen=True)
class Dialect:
    """A framework that takes Python."""

    written_for: str
    """Framework and version whose interface the code uses."""
    holds: tuple[str, ...]
    """Words that it has a place for."""
    code: str
    ranges: bool = False
    """Whether it draws numbers from ranges by itself; else it takes machines that were drawn."""
    suffixes: tuple[str, ...] = (".urdf", ".xml", ".mjcf", ".toml")
    """Files whose links and joints it knows by name."""


MJX = '''import copy

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from mujoco import mjx

FIELDS = {"viscous": "dof_damping", "coulomb": "dof_frictionloss", "armature": "dof_armature"}
CHANGED = (
    *FIELDS.values(),
    *("jnt_stiffness", "body_mass", "body_subtreemass", "body_ipos", "body_iquat", "body_inertia"),
    *("body_invweight0", "dof_invweight0", "dof_M0"),
)


def applied(model, number=0):
    """A copy of an mjModel with the numbers of one machine."""
    changed = copy.copy(model)
    for name, words in JOINTS.items():
        joint = changed.joint(name).id
        for word, field in FIELDS.items():
            if word in words:
                getattr(changed, field)[changed.jnt_dofadr[joint]] = words[word][number]
        if "stiffness" in words:
            changed.jnt_stiffness[joint] = words["stiffness"][number]
    for name, words in LINKS.items():
        body = changed.body(name).id
        moments, axes = np.linalg.eigh(np.array(words["inertia"][number]))
        moments, axes = moments[::-1], axes[:, ::-1] * np.array([1.0, 1.0, np.linalg.det(axes[:, ::-1])])
        changed.body_mass[body] = words["mass"][number]
        changed.body_ipos[body] = words["com"][number]
        changed.body_inertia[body] = moments
        mujoco.mju_mat2Quat(changed.body_iquat[body], axes.ravel())
    mujoco.mj_setConst(changed, mujoco.MjData(changed))
    return changed


def machines(model):
    """All machines as one batched mjx.Model, and ``in_axes`` of it for jax.vmap."""
    one = mjx.put_model(model)
    each = [applied(model, number) for number in range(COUNT)]
    stacked = {field: jnp.stack([jnp.asarray(getattr(m, field)) for m in each]) for field in CHANGED}
    axes = jax.tree_util.tree_map(lambda _: None, one).tree_replace(dict.fromkeys(CHANGED, 0))
    return one.tree_replace(stacked), axes
'''

GENESIS = '''import numpy as np


def apply(robot, number=0, envs_idx=None):
    """Put one of the machines into a robot (a RigidEntity of a built scene), in all environments or some.

    For different machines in different environments build the scene with ``batch_links_info`` and ``batch_dofs_info``,
    and load the robot without merging links.
    """
    setters = {"viscous": robot.set_dofs_damping, "coulomb": robot.set_dofs_frictionloss}
    setters |= {"armature": robot.set_dofs_armature, "stiffness": robot.set_dofs_stiffness}
    for name, words in JOINTS.items():
        places = robot.get_joint(name).dofs_idx_local
        for word, values in words.items():
            setters[word](np.array([values[number]]), places, envs_idx)
    for name, words in LINKS.items():
        link = robot.get_link(name)
        place, turned = [link.idx_local], rotation(link.desc.inertial_quat)
        inertia = turned.T @ np.array(words["inertia"][number]) @ turned
        robot.set_links_mass(np.array([words["mass"][number]]), place, envs_idx)
        robot.set_links_COM(np.array([words["com"][number]]), place, envs_idx)
        robot.set_links_inertia(inertia[None], place, envs_idx)


def rotation(quat):
    """Matrix of a quaternion (w, x, y, z): inertias are given in the frame that the robot's file states them in."""
    w, (x, y, z) = quat[0], quat[1:]
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + 2.0 * w * cross + 2.0 * cross @ cross
'''

NEWTON = '''import warp as wp


def apply(builder, number=0):
    """Put one of the machines into a newton.ModelBuilder that holds the robot, before it is finalised."""
    joints = {label.rpartition("/")[2]: place for place, label in enumerate(builder.joint_label)}
    bodies = {label.rpartition("/")[2]: place for place, label in enumerate(builder.body_label)}
    fields = {"coulomb": builder.joint_friction, "armature": builder.joint_armature}
    for name, words in JOINTS.items():
        for word, values in words.items():
            fields[word][builder.joint_qd_start[joints[name]]] = values[number]
    for name, words in LINKS.items():
        body = bodies[name]
        inertia = wp.mat33(*[entry for row in words["inertia"][number] for entry in row])
        builder.body_mass[body] = words["mass"][number]
        builder.body_inv_mass[body] = 1.0 / words["mass"][number]
        builder.body_com[body] = wp.vec3(*words["com"][number])
        builder.body_inertia[body] = inertia
        builder.body_inv_inertia[body] = wp.inverse(inertia)
'''

ISAACLAB = '''from isaaclab.actuators import ImplicitActuatorCfg
from isaaclab.envs import mdp
from isaaclab.managers import EventTermCfg, SceneEntityCfg


def middle(word):
    """Calibrated values of a word by joint."""
    return {name: words[word][1] for name, words in JOINTS.items() if word in words}


def actuators(stiffness, damping):
    """Actuators of an ArticulationCfg; ``stiffness`` and ``damping`` are the gains of your controller."""
    return {
        "calibrated": ImplicitActuatorCfg(
            joint_names_expr=list(JOINTS),
            stiffness=stiffness,
            damping=damping,
            armature=middle("armature") or None,
            friction=middle("coulomb") or None,
            dynamic_friction=middle("coulomb") or None,
            viscous_friction=middle("viscous") or None,
        )
    }


def events(asset="robot"):
    """Terms of an event configuration that draw friction, armatures and masses once, when environments start."""
    terms = {}
    for name, words in JOINTS.items():
        params = {"asset_cfg": SceneEntityCfg(asset, joint_names=[name]), "operation": "abs"}
        if "coulomb" in words:
            params["friction_distribution_params"] = words["coulomb"][::2]
        if "armature" in words:
            params["armature_distribution_params"] = words["armature"][::2]
        if len(params) > 2:
            terms[f"joint_{name}"] = EventTermCfg(func=mdp.randomize_joint_parameters, mode="startup", params=params)
    for name, words in LINKS.items():
        params = {"asset_cfg": SceneEntityCfg(asset, body_names=[name]), "operation": "abs"}
        params["mass_distribution_params"] = words["mass"][::2]
        terms[f"mass_{name}"] = EventTermCfg(func=mdp.randomize_rigid_body_mass, mode="startup", params=params)
    return terms
'''

MJLAB = '''from mjlab.envs.mdp import dr
from mjlab.managers.event_manager import EventTermCfg
from mjlab.managers.scene_entity_config import SceneEntityCfg

FUNCTIONS = {"viscous": dr.joint_damping, "coulomb": dr.joint_friction, "armature": dr.joint_armature}


def events(asset="robot"):
    """Terms of an event configuration that draw friction, armatures and masses once, when environments start."""
    terms = {}
    for word, function in FUNCTIONS.items():
        ranges = {name: words[word][::2] for name, words in JOINTS.items() if word in words}
        if ranges:
            params = {"asset_cfg": SceneEntityCfg(asset, joint_names=tuple(ranges)), "operation": "abs"}
            terms[f"joint_{word}"] = EventTermCfg(mode="startup", func=function, params={**params, "ranges": ranges})
    for name, words in LINKS.items():
        params = {"asset_cfg": SceneEntityCfg(asset, body_names=(name,)), "operation": "abs"}
        params["ranges"] = words["mass"][::2]
        terms[f"mass_{name}"] = EventTermCfg(mode="startup", func=dr.body_mass, params=params)
    return terms
'''

WHOLE = ("mass", "com", "inertia")
DIALECTS = {
    "mjx": Dialect(
        "MuJoCo 4.0 with MJX 3.17",
        (*WHOLE, "viscous", "coulomb", "armature", "stiffness"),
        MJX,
        suffixes=(".xml", ".mjcf"),
    ),
    "genesis": Dialect("Genesis 1.4", (*WHOLE, "viscous", "coulomb", "armature", "stiffness"), GENESIS),
    "newton": Dialect("Newton 1.0", (*WHOLE, "coulomb", "armature"), NEWTON),
    "isaaclab": Dialect("Isaac Lab 2.3", ("mass", "viscous", "coulomb", "armature"), ISAACLAB, ranges=True),
    "mjlab": Dialect(
        "mjlab 1.6", ("mass", "viscous", "coulomb", "armature"), MJLAB, ranges=True, suffixes=(".xml", ".mjcf")
    ),
}
