"""Laws on a joint's free axis: motors, springs, drag, constant forces.

A law is one pure function: the torque [N m] (hinge) or force [N] (slider) along the axis as a function of position,
speed and command. The stepper decides how to evaluate it in time; derivatives follow by automatic differentiation. A
law may also carry inertia of its own (a motor's shaft) that moves with the axis.
"""

import math
from typing import TYPE_CHECKING, Any, ClassVar

from shadowfit.arrays import Array, Float
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism.leaves import number
from shadowfit.pytrees import PyTree, field

Scalar = Float[Array, "..."]
"""A number of an axis, or one for each of many times."""

# The current is the voltage divided by the resistance: zero is no value for it.
SMALLEST_RESISTANCE = 1e-9


class AxisLaw(PyTree):
    """Interface of an axis law. Subclasses are final. ``input`` names the input that is the command, if any.

    ``drives`` says that the law is a motor, whose torque goes through the joint's gear.
    """

    drives: ClassVar[bool] = False

    if TYPE_CHECKING:
        # As a field of the interface it would be the first one of every law, and those after it need defaults.
        @property
        def input(self) -> str | None:
            """Name of the input that is the command, if any."""

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

    drives = True

    gain: Any = number("N m/unit | N/unit", default=1.0)
    shaft_inertia: Any = number("kg m² | kg", default=0.0, lower=0.0)
    input: str | None = field(static=True, default="u")

    def torque(self, position: Scalar, speed: Scalar, command: Scalar) -> Scalar:
        del position, speed
        return self.gain * command

    def inertia(self) -> Scalar:
        return self.shaft_inertia


class Rotor(AxisLaw):
    """Inertia that turns with an axis nobody drives: a gear's, or an idle motor's."""

    shaft_inertia: Any = number("kg m² | kg", default=0.0, lower=0.0)
    input: str | None = field(static=True, default=None)

    def torque(self, position: Scalar, speed: Scalar, command: Scalar) -> Scalar:
        del position, command
        return jnp.zeros_like(speed)

    def inertia(self) -> Scalar:
        return self.shaft_inertia


class DcMotor(AxisLaw):
    """DC motor under voltage: ``τ = N k_t (u − k_e N s)/R``.

    N is the ratio of motor to axis speed: a gear's, or one over a pinion's radius. The shaft inertia is the rotor's
    own; the axis feels ``N²`` times it.
    """

    drives = True

    resistance: Any = number("Ohm", lower=SMALLEST_RESISTANCE)
    torque_constant: Any = number("N m/A")
    back_emf: Any = number("V s/rad", lower=0.0)
    ratio: Any = number("1 | rad/m", default=1.0)
    shaft_inertia: Any = number("kg m²", default=0.0, lower=0.0)
    input: str | None = field(static=True, default="u")

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

    drives = True

    gain: Any = number("N m s/rad | N s/m", lower=0.0)
    target: Any = number("rad/s | m/s", default=0.0)
    input: str | None = field(static=True, default=None)

    def torque(self, position: Scalar, speed: Scalar, command: Scalar) -> Scalar:
        del position
        return self.gain * (self.target + command - speed)


class PositionMotor(AxisLaw):
    """A position loop: ``τ = clip(k_p (u − x) − k_d s, ± limit)``, u the target position, with the model's own x and s.

    The target's delay, gain and offset are those of its input. A hinge turns to its target by the shorter way, as
    controllers that count turns do; ``rotary`` says that the axis is a hinge's.
    """

    drives = True

    kp: Any = number("N m/rad | N/m", lower=0.0)
    kd: Any = number("N m s/rad | N s/m", default=0.0, lower=0.0)
    limit: Any = number("N m | N", default=math.inf, lower=0.0)
    shaft_inertia: Any = number("kg m² | kg", default=0.0, lower=0.0)
    input: str | None = field(static=True, default="u")
    rotary: bool = field(static=True, default=True)

    def torque(self, position: Scalar, speed: Scalar, command: Scalar) -> Scalar:
        away = command - position
        if self.rotary:
            away = away - 2.0 * jnp.pi * jnp.round(away / (2.0 * jnp.pi))
        return jnp.clip(self.kp * away - self.kd * speed, -self.limit, self.limit)

    def inertia(self) -> Scalar:
        return self.shaft_inertia


class Spring(AxisLaw):
    """Spring and damper with a rest position: ``τ = −k y − k₂ y² − k₃ y³ − d s`` with ``y = x − x₀``.

    ``quadratic`` k₂ is for what pulls more on one side than on the other (a cable that bends), ``cubic`` k₃ for what
    hardens (or, negative, softens) on both.
    """

    stiffness: Any = number("N m/rad | N/m", default=0.0, lower=0.0)
    damping: Any = number("N m s/rad | N s/m", default=0.0, lower=0.0)
    rest: Any = number("rad | m", default=0.0)
    quadratic: Any = number("N m/rad² | N/m²", default=0.0)
    cubic: Any = number("N m/rad³ | N/m³", default=0.0)
    input: str | None = field(static=True, default=None)

    def torque(self, position: Scalar, speed: Scalar, command: Scalar) -> Scalar:
        del command
        away = position - self.rest
        return -away * (self.stiffness + away * (self.quadratic + away * self.cubic)) - self.damping * speed

    def energy(self, position: Scalar) -> Scalar:
        away = position - self.rest
        return away**2 * (self.stiffness / 2.0 + away * (self.quadratic / 3.0 + away * self.cubic / 4.0))


class Drag(AxisLaw):
    """Quadratic (air) drag: ``τ = −c s |s|``."""

    coefficient: Any = number("N m s²/rad² | N s²/m²", default=0.0, lower=0.0)
    input: str | None = field(static=True, default=None)

    def torque(self, position: Scalar, speed: Scalar, command: Scalar) -> Scalar:
        del position, command
        return -self.coefficient * speed * jnp.abs(speed)


class ConstantForce(AxisLaw):
    """A constant torque or force along the axis, ``τ = F``: a cable that pulls, a bias of the drive."""

    force: Any = number("N m | N", default=0.0)
    input: str | None = field(static=True, default=None)

    def torque(self, position: Scalar, speed: Scalar, command: Scalar) -> Scalar:
        del position, command
        return self.force + jnp.zeros_like(speed)

    def energy(self, position: Scalar) -> Scalar:
        return -self.force * position
