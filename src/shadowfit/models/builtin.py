"""Built-in mechanisms, with the values of the paper's tables where it has them."""

from __future__ import annotations

import numpy as np

from shadowfit.geometry import rotations
from shadowfit.mechanism import (
    Body,
    Box,
    Coulomb,
    Gravity,
    Input,
    JointPosition,
    Mechanism,
    TorqueMotor,
    hinge,
    slider,
    touch,
)

# A hanging rod: body x along the rod (down), y along the hinge axis. Columns are the rod's axes in its parent's frame,
# whose x axis is the hinge axis and whose z axis points up.
HANGING_ROD = rotations.from_matrix(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [-1.0, 0.0, 0.0]]))


def pendulum(*, friction: bool = True) -> Mechanism:
    """A rod on a horizontal hinge, with the paper's compliance, damping and the estimates of its pendulum study."""
    rod = Body(0.428, (1e-4, 0.0039, 0.0039))
    joint = hinge(
        "world",
        "pendulum",
        axis=(1.0, 0.0, 0.0),
        child_point=(-0.092, 0.0, 0.0),
        zero_rotation=HANGING_ROD,
        viscous=2e-4,
        friction=Coulomb(dry=0.0018) if friction else None,
    )
    return Mechanism(
        {"pendulum": rod}, {"hinge": joint}, sensors={"theta": JointPosition("hinge")}, name="pendulum"
    )


def furuta(*, friction: bool = True) -> Mechanism:
    """The rotary (Furuta) pendulum with the default values of the paper's table: an arm on a vertical motor, a rod at its end.

    Both angles are zero with the rod hanging; hinge 1 points up, hinge 2 outward along the arm.
    """
    l_1, l_a, l_2 = 0.128, 0.248, 0.092
    arm = Body(0.238, (0.01, 0.01, 0.01))
    rod = Body(0.428, (1e-4, 0.01, 0.01))
    dry = Coulomb(dry=1e-4) if friction else None
    hinge1 = hinge(
        "world",
        "arm",
        axis=(0.0, 0.0, 1.0),
        child_point=(-l_1, 0.0, 0.0),
        viscous=1e-4,
        friction=dry,
        laws={"motor": TorqueMotor(gain=0.1, shaft_inertia=4e-4, input="u")},
    )
    hinge2 = hinge(
        "arm",
        "pendulum",
        axis=(1.0, 0.0, 0.0),
        parent_point=(l_a, 0.0, 0.0),
        child_point=(-l_2, 0.0, 0.0),
        zero_rotation=HANGING_ROD,
        viscous=1e-4,
        friction=dry,
    )
    return Mechanism(
        {"arm": arm, "pendulum": rod},
        {"hinge1": hinge1, "hinge2": hinge2},
        sensors={"theta1": JointPosition("hinge1"), "theta2": JointPosition("hinge2")},
        inputs={"u": Input(unit="V")},
        name="furuta",
    )


def chain(links: int = 4, *, friction: bool = False) -> Mechanism:
    """A planar chain of equal rods (0.2 m, 0.1 kg) hanging from the world, an encoder on every hinge."""
    length, mass = 0.2, 0.1
    inertia = (1e-5, mass * length**2 / 12, mass * length**2 / 12)
    bodies, joints, sensors = {}, {}, {}
    for i in range(1, links + 1):
        bodies[f"link{i}"] = Body(mass, inertia)
        first = i == 1
        joints[f"hinge{i}"] = hinge(
            "world" if first else f"link{i - 1}",
            f"link{i}",
            axis=(1.0, 0.0, 0.0) if first else (0.0, 1.0, 0.0),
            parent_point=(0.0, 0.0, 0.0) if first else (length / 2, 0.0, 0.0),
            child_point=(-length / 2, 0.0, 0.0),
            zero_rotation=HANGING_ROD if first else (1.0, 0.0, 0.0, 0.0),
            viscous=1e-4,
            friction=Coulomb(coulomb=1e-3) if friction else None,
        )
        sensors[f"theta{i}"] = JointPosition(f"hinge{i}")
    return Mechanism(bodies, joints, sensors=sensors, name=f"chain{links}")


def cartpole(*, friction: bool = False) -> Mechanism:
    """A cart on a rail (x axis) driven by a force, with a pole hanging from it (hinge along y)."""
    rail = slider(
        "world",
        "cart",
        axis=(1.0, 0.0, 0.0),
        viscous=0.5,
        friction=Coulomb(coulomb=0.05) if friction else None,
        laws={"motor": TorqueMotor(gain=1.0, input="u")},
    )
    pivot = hinge(
        "cart",
        "pole",
        axis=(0.0, 1.0, 0.0),
        child_point=(0.0, 0.0, 0.3),
        viscous=1e-3,
        friction=Coulomb(coulomb=1e-3) if friction else None,
    )
    return Mechanism(
        {"cart": Body(0.5, (1e-3, 1e-3, 1e-3)), "pole": Body(0.2, (6e-3, 6e-3, 1e-4))},
        {"rail": rail, "pivot": pivot},
        sensors={"x": JointPosition("rail", rotary=False), "theta": JointPosition("pivot")},
        inputs={"u": Input(unit="N")},
        name="cartpole",
    )


def fourbar(
    ground: float = 0.3, crank: float = 0.1, coupler: float = 0.28, rocker: float = 0.22, *, density: float = 1.0
) -> Mechanism:
    """A planar four-bar linkage of thin rods in the x–z plane: four hinges about y, one of which closes the loop.

    All rods lie along the x axis at zero; ``density`` is the mass per length [kg/m].
    """
    bodies, joints = {}, {}
    for name, length in (("crank", crank), ("coupler", coupler), ("rocker", rocker)):
        mass = density * length
        bodies[name] = Body(mass, (1e-6, mass * length**2 / 12, mass * length**2 / 12 + 1e-6))

    def pin(parent: str, child: str, parent_point: float, child_point: float) -> object:
        return hinge(
            parent,
            child,
            axis=(0.0, 1.0, 0.0),
            parent_point=(parent_point, 0.0, 0.0),
            child_point=(child_point, 0.0, 0.0),
        )

    joints["ground_crank"] = pin("world", "crank", 0.0, -crank / 2)
    joints["crank_coupler"] = pin("crank", "coupler", crank / 2, -coupler / 2)
    joints["ground_rocker"] = pin("world", "rocker", ground, -rocker / 2)
    joints["coupler_rocker"] = pin("coupler", "rocker", coupler / 2, rocker / 2)
    return Mechanism(
        bodies,
        joints,
        sensors={"theta_crank": JointPosition("ground_crank"), "theta_rocker": JointPosition("ground_rocker")},
        name="fourbar",
    )


def incline(angle: float = 0.3, friction: float = 0.5) -> Mechanism:
    """A box on a plane; instead of the plane, gravity is tilted by ``angle`` [rad], so that it pulls along +x."""
    box = Body(1.0, (1e-3, 1e-3, 1e-3))
    tilt = np.array([np.cos(angle / 2), 0.0, -np.sin(angle / 2), 0.0])
    floor = touch(Box((0.1, 0.1, 0.05)), "box", friction=friction)
    return Mechanism({"box": box}, contacts={"floor": floor}, gravity=Gravity(tilt=tilt), name="incline")
