"""A joint type of your own: a bead on a straight wire, and its friction found from a recording.

    o
     \\ bead slides down, free to turn
      \\
       \\ wire at 45°

A joint type is one pure function, `gap(a, b)`: zero where the joint is satisfied. Derivatives, stepping and estimation
follow from it.

Run: python examples/04_new_joint_type.py
"""

import jax
import numpy as np
from jaxtyping import Array, Float

jax.config.update("jax_enable_x64", True)

from shadowfit import Mechanism, Recording  # noqa: E402
from shadowfit.estimation import fit  # noqa: E402
from shadowfit.mechanism import Body, Frame, JointPosition, JointType, connect  # noqa: E402


class Bead(JointType):
    """A point of the child on the parent's x axis: ``g = (y_a·d, z_a·d)`` with d = r_a − r_b."""

    axis_kind = "translation"
    linear_rows = 2

    def gap(self, a: Frame, b: Frame) -> Float[Array, "2"]:
        return a.axes[:, 1:].T @ (a.point - b.point)

    def coordinate(self, a: Frame, b: Frame) -> Float[Array, ""]:
        return a.axes[:, 0] @ (b.point - a.point)


def record(viscous: float = 0.2, mass: float = 0.1) -> Recording:
    """The bead's place over time by its own equation, ``m ẍ = m g sin 45° − b ẋ``, with noise of half a millimetre."""
    time = 0.01 * np.arange(120)
    rate, limit = viscous / mass, mass * 9.82 * np.sqrt(0.5) / viscous
    place = limit * (time - (1.0 - np.exp(-rate * time)) / rate)
    noise = np.random.default_rng(4).normal(0.0, 5e-4, len(time))
    return Recording(time, {"x": place + noise}, units={"x": "m"}, name="slide")


def main() -> None:
    wire = Mechanism(
        {"bead": Body(mass=0.1, inertia=(1e-4, 1e-4, 1e-4))},
        {"wire": connect(Bead(), "world", "bead", axis=(1.0, 0.0, -1.0), viscous=0.05)},
        sensors={"x": JointPosition(joint="wire", rotary=False, std=5e-4)},
    )
    estimate = fit(wire, record(), ["wire.viscous"])
    print(estimate.summary())


if __name__ == "__main__":
    main()
