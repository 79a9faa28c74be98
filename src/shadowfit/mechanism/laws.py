"""Laws on a joint's free axis: motors, springs, drag.

A law is one pure function: the torque [N m] (hinge) or force [N] (slider) along the axis as a function of position,
speed and command. The stepper decides how to evaluate it in time; derivatives follow by automatic differentiation. A
law may also carry inertia of its own (a motor's shaft) that moves with the axis.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from shadowfit.mechanism.leaves import number

Scalar = Float[Array, ""]

# The current is the voltage divided by the resistance: zero is no value for it.
SMALLEST_RESISTANCE = 1e-9


class AxisLaw(eqx.Module):
    """Interface of an axis law. Subclasses are final. ``input`` names the input that is the command, if any."""

    input: eqx.AbstractVar[str | None]

    def torque(self, position: Scalar, speed: Scalar, command: Scalar) -> Scalar:
        """Torque or force along the axis."""
        raise NotImplementedError

    def inertia(self) -> Scalar:
        """Inertia [kg m² or kg] that the law adds to the relative motion of the axis."""
        return jnp.zeros(())

    def energy(self, position: Scalar) -> Scalar:
        """Potential energy [J] stored at a position."""
        del position
        return jnp.zeros(())


class TorqueMotor(AxisLaw):
    """Torque proportional to the command, through a shaft: ``λ_m = h K u − J_shaft (Ḡ v₊ − Ḡ v)``."""

    gain: Any = number("N m/unit | N/unit", default=1.0)
    shaft_inertia: Any = number("kg m² | kg", default=0.0, lower=0.0)
    input: str | None = eqx.field(static=True, default="u")

    def torque(self, position: Scalar, speed: Scalar, command: Scalar) -> Scalar:
        del position, speed
        return self.gain * command

    def inertia(self) -> Scalar:
        return self.shaft_inertia


class DcMotor(AxisLaw):
    """DC motor under voltage: ``τ = N k_t (u − k_e N s)/R``.

    N is the ratio of motor to axis speed: a gear's, or one over a pinion's radius. The shaft inertia is the rotor's
    own; the axis feels ``N²`` times it.
    """

    resistance: Any = number("Ohm", lower=SMALLEST_RESISTANCE)
    torque_constant: Any = number("N m/A")
    back_emf: Any = number("V s/rad", lower=0.0)
    ratio: Any = number("1 | rad/m", default=1.0)
    shaft_inertia: Any = number("kg m²", default=0.0, lower=0.0)
    input: str | None = eqx.field(static=True, default="u")

    def torque(self, position: Scalar, speed: Scalar, command: Scalar) -> Scalar:
        del position
        current = (command - self.back_emf * self.ratio * speed) / self.resistance
        return self.ratio * self.torque_constant * current

    def inertia(self) -> Scalar:
        return self.ratio**2 * self.shaft_inertia


class VelocityMotor(AxisLaw):
    """Drives the axis to a speed: ``τ = gain (target + u − s)``, which is ``Ḡ v = γ`` with ``Σ = 1/(h·gain)``.

    SPOOK takes any gain. The midpoint of the exact stepper overshoots, and rings, where ``h·gain`` is more than twice
    the inertia that is driven.
    """

    gain: Any = number("N m s/rad | N s/m", lower=0.0)
    target: Any = number("rad/s | m/s", default=0.0)
    input: str | None = eqx.field(static=True, default=None)

    def torque(self, position: Scalar, speed: Scalar, command: Scalar) -> Scalar:
        del position
        return self.gain * (self.target + command - speed)


class Spring(AxisLaw):
    """Spring and damper with a rest position: ``τ = −k (x − x_0) − d s``."""

    stiffness: Any = number("N m/rad | N/m", default=0.0, lower=0.0)
    damping: Any = number("N m s/rad | N s/m", default=0.0, lower=0.0)
    rest: Any = number("rad | m", default=0.0)
    input: str | None = eqx.field(static=True, default=None)

    def torque(self, position: Scalar, speed: Scalar, command: Scalar) -> Scalar:
        del command
        return -self.stiffness * (position - self.rest) - self.damping * speed

    def energy(self, position: Scalar) -> Scalar:
        return 0.5 * self.stiffness * (position - self.rest) ** 2


class Drag(AxisLaw):
    """Quadratic (air) drag: ``τ = −c s |s|``."""

    coefficient: Any = number("N m s²/rad² | N s²/m²", default=0.0, lower=0.0)
    input: str | None = eqx.field(static=True, default=None)

    def torque(self, position: Scalar, speed: Scalar, command: Scalar) -> Scalar:
        del position, command
        return -self.coefficient * speed * jnp.abs(speed)
