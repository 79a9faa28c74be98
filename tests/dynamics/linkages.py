"""Machines with closed loops, in the x–z plane with spatial hinges about y, all rods along x at zero."""

import dataclasses

from shadowfit.mechanism import (
    Coulomb,
    Input,
    JointPosition,
    Mechanism,
    Spring,
    TorqueMotor,
    hinge,
    slider,
)
from shadowfit.mechanism.body import Body
from shadowfit.mechanism.joint import Compliance
from shadowfit.mechanism.leaves import Parts

STIFF = {"compliance": 1e-12}
Y = {"axis": (0.0, 1.0, 0.0), **STIFF}


def rod(length, density=1.0):
    mass = density * length
    inertia = mass * length**2 / 12
    return Body(mass, (1e-6, inertia, inertia + 1e-6))


def fourbar(friction=None, **joints):
    """A crank with a motor, a coupler, and a rocker; the last hinge, with a spring, closes the loop."""
    lengths = {"crank": 0.1, "coupler": 0.28, "rocker": 0.22}
    own = {name: {**Y, "viscous": 1e-3, "friction": friction, **joints.get(name, {})} for name in "abcd"}
    return Mechanism(
        {name: rod(length) for name, length in lengths.items()},
        {
            "a": hinge(
                "world",
                "crank",
                child_point=(-0.05, 0, 0),
                laws={"motor": TorqueMotor(1.0, 2e-4, input="u")},
                **own["a"],
            ),
            "b": hinge("crank", "coupler", parent_point=(0.05, 0, 0), child_point=(-0.14, 0, 0), **own["b"]),
            "c": hinge("world", "rocker", parent_point=(0.3, 0, 0), child_point=(-0.11, 0, 0), **own["c"]),
            "d": hinge(
                "coupler",
                "rocker",
                parent_point=(0.14, 0, 0),
                child_point=(0.11, 0, 0),
                laws={"spring": Spring(0.05, 1e-4, 0.3)},
                **own["d"],
            ),
        },
        sensors={"crank_angle": JointPosition("a", 1e-3), "last_angle": JointPosition("d", 1e-3)},
        inputs={"u": Input()},
        name="linkage",
    )


def rubbing_fourbar():
    return fourbar(Coulomb(dry=0.1, coulomb=1e-3, dry_radius=0.01))


def slider_crank():
    """A crank drives a piston through a rod; its slider closes the loop."""
    return Mechanism(
        {"crank": rod(0.1), "rod": rod(0.3), "piston": Body(0.4, (1e-4, 1e-4, 1e-4))},
        {
            "shaft": hinge(
                "world",
                "crank",
                child_point=(-0.05, 0, 0),
                viscous=1e-3,
                laws={"motor": TorqueMotor(1.0, input="u")},
                **Y,
            ),
            "pin": hinge("crank", "rod", parent_point=(0.05, 0, 0), child_point=(-0.15, 0, 0), **Y),
            "wrist": hinge("rod", "piston", parent_point=(0.15, 0, 0), **Y),
            "bore": slider("world", "piston", axis=(1, 0, 0), viscous=0.5, **STIFF),
        },
        sensors={"angle": JointPosition("shaft", 1e-3), "stroke": JointPosition("bore", 1e-3, rotary=False)},
        inputs={"u": Input()},
        name="slider_crank",
    )


def parallelogram(bars=2):
    """Bars of one length on the ground carry a beam; all but two of them are redundant."""
    places = {f"bar{i}": 0.3 * i / (bars - 1) for i in range(bars)}
    joints = {}
    for name, x in places.items():
        joints[f"{name}_foot"] = hinge(
            "world", name, parent_point=(x, 0, 0), child_point=(-0.1, 0, 0), viscous=2e-3, **Y
        )
        joints[f"{name}_head"] = hinge(name, "beam", parent_point=(0.1, 0, 0), child_point=(x - 0.15, 0, 0), **Y)
    sensors = {"angle": JointPosition("bar0_foot", 1e-3)}
    bodies = {**{name: rod(0.2) for name in places}, "beam": rod(0.3)}
    return Mechanism(bodies, joints, sensors=sensors, name=f"parallelogram{bars}")


def standing(mechanism, angle=-1.0):
    """Positions of a parallelogram with its bars side by side and the beam level."""
    bars = [name for name in mechanism.bodies if name.startswith("bar")]
    return {**{f"{name}_foot": angle for name in bars}, "bar0_head": -angle}


def compliant(mechanism, joint, compliance, damping=0.02):
    """The mechanism with a joint that gives in joint coordinates."""
    joints = dict(mechanism.joints.items())
    changes = {"compliance": Compliance(compliance, compliance), "damping": damping, "compliant": True}
    joints[joint] = dataclasses.replace(joints[joint], **changes)
    return mechanism.having(joints=Parts(joints))
