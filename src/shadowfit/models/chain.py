"""The chain of n links: the one built-in model that is a family, written by a program instead of a file."""

from __future__ import annotations

from shadowfit.mechanism import Body, Coulomb, JointPosition, Mechanism, hinge

# A hanging rod: body x along the rod (down), y along the hinge axis x of its parent, whose z axis points up.
HANGING_ROD = (0.5, 0.5, 0.5, -0.5)


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
        sensors[f"theta{i}"] = JointPosition(joint=f"hinge{i}", std=1e-3)
    return Mechanism(bodies, joints, sensors=sensors, name=f"chain{links}")
