"""A joint type of your own: a nut on a vertical thread, and its friction and pitch found from a recording.

      | |
     [===]  the nut sinks as it turns: one turn is 2π·pitch
      | |
      | |

A joint type is one pure function, `gap(a, b)`: zero where the joint is satisfied. A `coordinate(a, b)` says how far
along its free axis it is. Derivatives, stepping and estimation follow from the two.

Run: python examples/04_new_joint_type.py
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from shadowfit import Mechanism, Recording, fit
from shadowfit.mechanism import Body, Frame, JointPosition, JointType, PointPosition, connect
from shadowfit.mechanism.leaves import number

MASS, INERTIA, GRAVITY = 0.05, 1e-5, 9.82  # kg, kg m² about the thread, m/s²


class Thread(JointType):
    """Turning about the common x axis moves the child along it: ``g = (d_x − pitch·θ, d_y, d_z, x_a·y_b, x_a·z_b)``."""

    axis_kind = "rotation"
    linear_rows = 3

    pitch: Any = number("m/rad", default=0.01)

    def gap(self, a: Frame, b: Frame) -> Float[Array, "5"]:
        apart = a.axes.T @ (b.point - a.point)
        across = [a.axes[:, 0] @ b.axes[:, 1], a.axes[:, 0] @ b.axes[:, 2]]
        # The angle is known up to whole turns: the nut sits on the turn of the thread that is nearest.
        turns = jnp.round((apart[0] / self.pitch - self.coordinate(a, b)) / (2.0 * jnp.pi))
        angle = self.coordinate(a, b) + 2.0 * jnp.pi * jax.lax.stop_gradient(turns)
        return jnp.stack([apart[0] - self.pitch * angle, apart[1], apart[2], *across])

    def coordinate(self, a: Frame, b: Frame) -> Float[Array, ""]:
        relative = a.axes.T @ b.axes
        return jnp.arctan2(relative[2, 1] - relative[1, 2], relative[1, 1] + relative[2, 2])

    def place(self, position: Float[Array, ""]) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
        along = position * jnp.array([1.0, 0.0, 0.0])
        return self.pitch * along, along


def record(viscous: float = 2e-4, pitch: float = 0.0105) -> Recording:
    """The nut's angle and height by its own equation, ``(J + m p²) θ̈ = m g p − b θ̇``, with noise."""
    time = 0.01 * np.arange(120)
    rate, limit = viscous / (INERTIA + MASS * pitch**2), MASS * GRAVITY * pitch / viscous
    angle = limit * (time - (1.0 - np.exp(-rate * time)) / rate)
    random = np.random.default_rng(4)
    channels = {"theta": angle + random.normal(0.0, 2e-3, len(time))}
    places = np.stack([np.zeros_like(angle), np.zeros_like(angle), -pitch * angle])
    for name, values in zip("xyz", places, strict=True):
        channels[f"nut_place.{name}"] = values + random.normal(0.0, 2e-4, len(time))
    return Recording(time, channels, name="sinking")


def main() -> None:
    screw = Mechanism(
        {"nut": Body(mass=MASS, inertia=(INERTIA, INERTIA, INERTIA))},
        {"thread": connect(Thread(pitch=0.01), "world", "nut", axis=(0.0, 0.0, -1.0), viscous=1e-4)},
        sensors={
            "theta": JointPosition(joint="thread", std=2e-3),
            "nut_place": PointPosition(body="nut", std=2e-4),
        },
    )
    estimate = fit(screw, record(), ["thread.viscous", "thread.pitch"])
    print(estimate.summary())


if __name__ == "__main__":
    main()
