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
# Of a winding whose resistance is stated [°C].
ROOM_TEMPERATURE = 25.0


class AxisLaw(PyTree):
    """Interface of an axis law. Subclasses are final. ``input`` names the input that is the command, if any.

    ``drives`` says that the law is a motor, whose torque goes through the joint's gear. ``channels`` are the fields
    that name inputs: a law with several is given their values in this order along the last axis of its command, zeros
    for those that it does without.
    """

    drives: ClassVar[bool] = False
    channels: ClassVar[tuple[str, ...]] = ("input",)

    if TYPE_CHECKING:
        # As a field of the interface it would be the first one of every law, and those after it need defaults.
        @property
        def input(self) -> str | None:
            """Name of the input that is the command, if any."""

    def torque(self, position: Scalar, speed: Scalar, command: Scalar) -> Scalar:
        """Torque or force along the axis."""
        raise NotImplementedError

    @property
    def sources(self) -> tuple[str | None, ...]:
        """The inputs of its channels."""
        return tuple(getattr(self, channel) for channel in self.channels)

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
        away = _away(command, position, self.rotary)
        return jnp.clip(self.kp * away - self.kd * speed, -self.limit, self.limit)

    def inertia(self) -> Scalar:
        return self.shaft_inertia


class Servo(AxisLaw):
    """A position loop that acts on the voltage of a DC motor, as those of hobby servos do:

        duty = clip(k_p (u − x) − k_d s, ± 1),    i = clip((duty U − k_t s)/R, ± limit),    τ = k_t i,

    u the target position, U the supply, and k_t the torque constant and back-EMF seen from the axis. Supply, gains and
    whether there is torque at all may be channels of the recording: gains multiply ``kp`` and ``kd``, which are then
    what one unit of the servo's own scale means. Without torque the winding is open.

    A motor that warms up gives less torque for its voltage: with the temperature T of its case as a channel the
    resistance is ``R (1 + heating (T − 25 °C))``. Of copper ``heating`` is 0.004/K; windings get warmer than cases.
    """

    drives = True
    channels = ("input", "supply_input", "kp_input", "kd_input", "enabled_input", "temperature_input")

    kp: Any = number("1/rad | 1/m", lower=0.0)
    torque_constant: Any = number("N m/A | N/A", lower=0.0)
    resistance: Any = number("Ohm", lower=SMALLEST_RESISTANCE)
    kd: Any = number("s/rad | s/m", default=0.0, lower=0.0)
    supply: Any = number("V", default=1.0, lower=0.0)
    heating: Any = number("1/K", default=0.0)
    current_limit: Any = number("A", default=math.inf, lower=0.0)
    shaft_inertia: Any = number("kg m² | kg", default=0.0, lower=0.0)
    input: str | None = field(static=True, default="u")
    supply_input: str | None = field(static=True, default=None)
    kp_input: str | None = field(static=True, default=None)
    kd_input: str | None = field(static=True, default=None)
    enabled_input: str | None = field(static=True, default=None)
    temperature_input: str | None = field(static=True, default=None)
    rotary: bool = field(static=True, default=True)

    def torque(self, position: Scalar, speed: Scalar, command: Scalar) -> Scalar:
        target, supply, kp, kd, enabled, temperature = (command[..., i] for i in range(len(self.channels)))
        kp = self.kp if self.kp_input is None else self.kp * kp
        kd = self.kd if self.kd_input is None else self.kd * kd
        supply = self.supply if self.supply_input is None else supply
        duty = jnp.clip(kp * _away(target, position, self.rotary) - kd * speed, -1.0, 1.0)
        warmer = 0.0 if self.temperature_input is None else temperature - ROOM_TEMPERATURE
        resistance = self.resistance * (1.0 + self.heating * warmer)
        current = (duty * supply - self.torque_constant * speed) / resistance
        torque = self.torque_constant * jnp.clip(current, -self.current_limit, self.current_limit)
        return torque if self.enabled_input is None else enabled * torque

    def inertia(self) -> Scalar:
        return self.shaft_inertia


def _away(target: Scalar, position: Scalar, rotary: bool) -> Scalar:
    """How far the target is away: of a hinge, by the shorter way."""
    away = target - position
    return away - 2.0 * jnp.pi * jnp.round(away / (2.0 * jnp.pi)) if rotary else away


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
