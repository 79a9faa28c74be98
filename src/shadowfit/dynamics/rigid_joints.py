"""Where joint coordinates describe a mechanism, so that its joints can be taken as rigid."""

from __future__ import annotations

from shadowfit.dynamics.tree import Tree, tree_of
from shadowfit.errors import MechanismError
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism.contacts import PlaneContact
from shadowfit.mechanism.mechanism import Mechanism


def rigid_tree(mechanism: Mechanism) -> Tree:
    """The tree of a mechanism whose joints are rigid.

    Raises:
        MechanismError: joint coordinates do not describe it.
    """
    tree = tree_of(mechanism)
    _check_contacts(tree, mechanism)
    _check_shafts(tree, mechanism)
    _check_geared(tree, mechanism)
    return tree


def load_geared(mechanism: Mechanism) -> list[str]:
    """Joints whose friction follows from the torque that they pass on: only joints of a tree tell it."""
    none, one = jnp.zeros(()), jnp.ones(())
    return [
        name
        for name, joint in mechanism.joints.items()
        if joint.friction is not None and float(joint.friction.gear(none, none, one)) > 0.0
    ]


def describable(mechanism: Mechanism) -> bool:
    """Whether joints are taken as rigid where nothing else is asked for, by fits and simulations alike."""
    if len(mechanism.joints) == 0 and len(mechanism.contacts):
        # The unknowns are the same; those of bodies have the stepper's own search for what touches.
        return False
    try:
        rigid_tree(mechanism)
    except MechanismError:
        return False
    return True


def is_smooth(mechanism: Mechanism) -> bool:
    """Whether speeds never jump, so that errors of a time-step can be made small by smaller ones, or computed."""
    return len(mechanism.contacts) == 0


def _check_shafts(tree: Tree, mechanism: Mechanism) -> None:
    """Raise where shafts turn with joints of a machine with loops."""
    if len(mechanism.shafts) and tree.loops:
        raise MechanismError(
            f"{mechanism.shafts.names[0]!r} is a shaft that several joints turn, and joint "
            f"{mechanism.joints.names[tree.loops[0]]!r} closes a loop: fits do not describe both"
        )


def _check_geared(tree: Tree, mechanism: Mechanism) -> None:
    """Raise where the torque that a gear passes on is not the wrench of what hangs on its joint."""
    changing = [f"contact {name!r}" for name, part in mechanism.contacts.items() if isinstance(part, PlaneContact)]
    changing += [f"the loop that joint {mechanism.joints.names[i]!r} closes" for i in tree.loops]
    geared = load_geared(mechanism) if changing else []
    if geared:
        raise MechanismError(
            f"the gear of joint {geared[0]!r} rubs with the torque that it passes on (load_loss), which {changing[0]} "
            "changes: leave load_loss out (gear_loss needs the motor's torque alone)"
        )


def _check_contacts(tree: Tree, mechanism: Mechanism) -> None:
    """Raise where contacts change the load of joints that rub in proportion to it: those with planes, or in loops.

    End stops of a tree push along the axis that two bodies share, across which nothing changes.
    """
    for name, contact in mechanism.contacts.items():
        if not (tree.loops or isinstance(contact, PlaneContact)):
            continue
        for joint, part in mechanism.joints.items():
            if part.friction is not None and float(part.friction.limit(jnp.zeros(()))[0]) > 0.0:
                raise MechanismError(
                    f"joint {joint!r} rubs in proportion to its load, which contact {name!r} changes: fits in joint "
                    "coordinates do not describe both; use the unknowns 'configuration'"
                )
