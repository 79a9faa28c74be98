"""Sensors: functions of the mechanism's state that a recording can hold.

Each sensor has a standard deviation ``std`` of its noise, in its unit, and an ``offset`` that is added to the true
value. ``residual`` is the difference between prediction and measurement: angles wrap, orientations use ⊟.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from shadowfit.arrays import Array, Float
from shadowfit.geometry import rotations
from shadowfit.lazy_jax import jnp, namespace
from shadowfit.mechanism.leaves import Parts, number, rotation, vector
from shadowfit.pytrees import PyTree, field


class View(PyTree):
    """What a sensor may look at: poses and velocities of bodies and joints, by name (see ``dynamics.kinematics``)."""

    def joint_position(self, joint: str) -> Float[Array, ""]:
        """Position of a joint's free axis [rad or m]."""
        raise NotImplementedError

    def joint_speed(self, joint: str) -> Float[Array, ""]:
        """Speed of a joint's free axis [rad/s or m/s]."""
        raise NotImplementedError

    def point(self, body: str, point: Float[Array, "3"]) -> Float[Array, "3"]:
        """World position [m] of a point given in the body's frame."""
        raise NotImplementedError

    def orientation(self, body: str) -> Float[Array, "4"]:
        """Orientation of a body, ``wxyz``."""
        raise NotImplementedError

    def velocity_of(self, body: str) -> Float[Array, "6"]:
        """Velocity of the centre of mass [m/s] and angular velocity [rad/s], world frame."""
        raise NotImplementedError

    def point_acceleration(self, body: str, point: Float[Array, "3"]) -> Float[Array, "3"]:
        """Acceleration [m/s²] of a point given in the body's frame, world axes."""
        raise NotImplementedError

    def gravity(self) -> Float[Array, "3"]:
        """Acceleration of gravity [m/s²], world axes."""
        raise NotImplementedError

    def drive_torque(self, joint: str) -> Float[Array, ""]:
        """Torque [N m] or force [N] of a joint's motors: of those of its laws that have an input."""
        raise NotImplementedError


class Sensor(PyTree):
    """Interface of a sensor. Subclasses are final. ``components`` name the channels of a sensor with several values."""

    components: ClassVar[tuple[str, ...]] = ("",)
    error_components: ClassVar[tuple[str, ...] | None] = None
    needs_velocity: ClassVar[bool] = False
    needs_acceleration: ClassVar[bool] = False
    needs_command: ClassVar[bool] = False

    if TYPE_CHECKING:
        # As a field of the interface it would be the first one of every sensor, and those after it need defaults.
        @property
        def std(self) -> Any:
            """Standard deviation of the reading's errors."""

    def unit(self) -> str:
        """Unit of the reading."""
        raise NotImplementedError

    def read(self, view: View) -> Float[Array, "d"]:
        """The noise-free reading."""
        raise NotImplementedError

    def residual(self, reading: Float[Array, "d"], measured: Float[Array, "d"]) -> Float[Array, "e"]:
        """Prediction minus measurement."""
        return reading - measured

    def follow(self, readings: Float[Array, "t d"]) -> Float[Array, "t d"]:
        """Readings over time as the sensor would record them: an encoder counts its turns."""
        return readings

    def channels(self, name: str) -> list[str]:
        """Channels of a recording that hold the readings of a sensor of this name."""
        return [f"{name}.{component}" if component else name for component in self.components]

    def error_channels(self, name: str) -> list[str]:
        """Names of its residual's components."""
        return [f"{name}.{part}" if part else name for part in self.error_components or self.components]

    def error_size(self) -> int:
        """Number of residual components."""
        return len(self.error_components or self.components)


def _unwrap(angles: Float[Array, "t d"]) -> Float[Array, "t d"]:
    """Angles over time without jumps; on the host by NumPy, for which nothing has to be compiled."""
    return namespace(angles).unwrap(angles, axis=0)


class JointPosition(Sensor):
    """Encoder of a hinge [rad] or a slider [m]: ``scale·x + offset + e_s sin x + e_c cos x``.

    Hinge angles wrap, over as many turns as there are; with a ``scale`` other than one the joint has to stay within a
    turn. ``eccentric_sin`` and ``eccentric_cos`` are of a disk whose centre is beside the axis of a hinge (by
    ``√(e_s² + e_c²)`` times its radius), and mean nothing for a slider.
    """

    joint: str = field(static=True)
    std: Any = number("rad | m", default=1e-3, lower=0.0, tunable=False)
    offset: Any = number("rad | m", default=0.0)
    rotary: bool = field(static=True, default=True)
    scale: Any = number("1", default=1.0)
    eccentric_sin: Any = number("rad", default=0.0)
    eccentric_cos: Any = number("rad", default=0.0)

    def unit(self) -> str:
        return "rad" if self.rotary else "m"

    def read(self, view: View) -> Float[Array, "1"]:
        position = view.joint_position(self.joint)
        reading = self.scale * position + self.offset
        if self.rotary:
            reading = reading + self.eccentric_sin * jnp.sin(position) + self.eccentric_cos * jnp.cos(position)
        return jnp.reshape(reading, (1,))

    def position(self, reading: float) -> float:
        """About where the joint is at a reading."""
        return (reading - float(self.offset)) / float(self.scale)

    def residual(self, reading: Float[Array, "1"], measured: Float[Array, "1"]) -> Float[Array, "1"]:
        difference = reading - measured
        if not self.rotary:
            return difference
        return difference - 2.0 * jnp.pi * jnp.round(difference / (2.0 * jnp.pi))

    def follow(self, readings: Float[Array, "t 1"]) -> Float[Array, "t 1"]:
        return _unwrap(readings) if self.rotary else readings


class BodyAngle(Sensor):
    """Angle of a body about an axis of the world [rad], as an inclinometer or an absolute encoder reads it.

    It is the turn φ about the axis n in the body's orientation q, ``tan(φ/2) = n·q_xyz/q_w`` (its twist about n), and
    zero where the body's frame is parallel to the world's. Angles wrap as those of :class:`JointPosition`.
    """

    rotary: ClassVar[bool] = True

    body: str = field(static=True)
    axis: Any = vector("1", default=(0.0, 0.0, 1.0))
    std: Any = number("rad", default=1e-3, lower=0.0, tunable=False)
    offset: Any = number("rad", default=0.0)

    def unit(self) -> str:
        return "rad"

    def read(self, view: View) -> Float[Array, "1"]:
        turn = view.orientation(self.body)
        along = turn[1:] @ self.axis / jnp.linalg.norm(self.axis)
        return jnp.reshape(2.0 * jnp.arctan2(along, turn[0]) + self.offset, (1,))

    def residual(self, reading: Float[Array, "1"], measured: Float[Array, "1"]) -> Float[Array, "1"]:
        difference = reading - measured
        return difference - 2.0 * jnp.pi * jnp.round(difference / (2.0 * jnp.pi))

    def follow(self, readings: Float[Array, "t 1"]) -> Float[Array, "t 1"]:
        return _unwrap(readings)


class JointSpeed(Sensor):
    """Speed of a hinge [rad/s] or a slider [m/s]: ``scale·s + offset``."""

    needs_velocity = True

    joint: str = field(static=True)
    std: Any = number("rad/s | m/s", default=1e-2, lower=0.0, tunable=False)
    offset: Any = number("rad/s | m/s", default=0.0)
    rotary: bool = field(static=True, default=True)
    scale: Any = number("1", default=1.0)

    def unit(self) -> str:
        return "rad/s" if self.rotary else "m/s"

    def read(self, view: View) -> Float[Array, "1"]:
        return jnp.reshape(self.scale * view.joint_speed(self.joint) + self.offset, (1,))


class JointTorque(Sensor):
    """Torque [N m] or force [N] that a joint's motors exert, as a current or a torque sensor tells.

    It reads the laws of the joint that have an input, with the model's own position and speed: of a position loop,
    what the controller asks for. (Where nothing but the torque is known of a drive, the torque is its input.)
    """

    needs_velocity = True
    needs_command = True

    joint: str = field(static=True)
    std: Any = number("N m | N", default=1e-2, lower=0.0, tunable=False)
    gain: Any = number("1", default=1.0)
    offset: Any = number("N m | N", default=0.0)
    rotary: bool = field(static=True, default=True)

    def unit(self) -> str:
        return "N m" if self.rotary else "N"

    def read(self, view: View) -> Float[Array, "1"]:
        return jnp.reshape(self.gain * view.drive_torque(self.joint) + self.offset, (1,))


class Ratio(PyTree):
    """Turns of a motor for one of a joint [1], or per metre of a slider [rad/m]."""

    ratio: Any = number("1 | rad/m")


class MotorPosition(Sensor):
    """Encoder on a motor's side of a transmission [rad]: ``Σ_i ratio_i x_i + offset`` over the joints that it drives.

    One joint behind a gear, or several where a wrist's axes are coupled. The encoder counts its turns, and joints stay
    within a turn, since an angle and the same one a turn further are not the same for a motor.
    """

    ratios: Parts
    std: Any = number("rad", default=1e-3, lower=0.0, tunable=False)
    offset: Any = number("rad", default=0.0)

    def unit(self) -> str:
        return "rad"

    def read(self, view: View) -> Float[Array, "1"]:
        turned = [part.ratio * view.joint_position(joint) for joint, part in self.ratios.items()]
        return jnp.reshape(sum(turned) + self.offset, (1,))


class MotorSpeed(Sensor):
    """Speed of a motor [rad/s] behind a gear or a coupled transmission, as :class:`MotorPosition`."""

    needs_velocity = True

    ratios: Parts
    std: Any = number("rad/s", default=1e-2, lower=0.0, tunable=False)
    offset: Any = number("rad/s", default=0.0)

    def unit(self) -> str:
        return "rad/s"

    def read(self, view: View) -> Float[Array, "1"]:
        turned = [part.ratio * view.joint_speed(joint) for joint, part in self.ratios.items()]
        return jnp.reshape(sum(turned) + self.offset, (1,))


class PointPosition(Sensor):
    """World position [m] of a point of a body, channels ``name.x``, ``name.y``, ``name.z``."""

    components = ("x", "y", "z")

    body: str = field(static=True)
    point: Any = vector("m")
    std: Any = number("m", default=1e-3, lower=0.0, tunable=False)
    offset: Any = vector("m")

    def unit(self) -> str:
        return "m"

    def read(self, view: View) -> Float[Array, "3"]:
        return view.point(self.body, self.point) + self.offset


class BodyOrientation(Sensor):
    """Orientation of a body: a quaternion, channels ``name.w`` ... ``name.z``; the residual is a vector [rad].

    ``mounting`` turns the sensor's axes against the body's. With a :class:`PointPosition` it is the pose of a marker.
    """

    components = ("w", "x", "y", "z")
    error_components = ("x", "y", "z")

    body: str = field(static=True)
    std: Any = number("rad", default=1e-2, lower=0.0, tunable=False)
    mounting: Any = rotation()

    def unit(self) -> str:
        return "1"

    def read(self, view: View) -> Float[Array, "4"]:
        return rotations.multiply(view.orientation(self.body), jnp.asarray(self.mounting))

    def residual(self, reading: Float[Array, "4"], measured: Float[Array, "4"]) -> Float[Array, "3"]:
        return rotations.minus(reading, rotations.normalise(measured))


class BodyRate(Sensor):
    """Angular rate of a body [rad/s], as a gyroscope fixed to it measures.

    ``mounting`` turns its axes in the body; what it reads is ``scale`` times the rate there, plus ``offset``.
    """

    components = ("x", "y", "z")
    needs_velocity = True

    body: str = field(static=True)
    std: Any = number("rad/s", default=1e-2, lower=0.0, tunable=False)
    offset: Any = vector("rad/s")
    mounting: Any = rotation()
    scale: Any = number("1", default=1.0)

    def unit(self) -> str:
        return "rad/s"

    def read(self, view: View) -> Float[Array, "3"]:
        spin = view.velocity_of(self.body)[3:]
        return self.scale * _in_axes(view, self.body, self.mounting, spin) + self.offset


class Accelerometer(Sensor):
    """Specific force ``Rᵀ (a − g)`` [m/s²] at a point of a body, in the sensor's axes: at rest it reads g upwards."""

    components = ("x", "y", "z")
    needs_velocity = True
    needs_acceleration = True

    body: str = field(static=True)
    point: Any = vector("m")
    std: Any = number("m/s²", default=0.1, lower=0.0, tunable=False)
    offset: Any = vector("m/s²")
    mounting: Any = rotation()

    def unit(self) -> str:
        return "m/s^2"

    def read(self, view: View) -> Float[Array, "3"]:
        specific = view.point_acceleration(self.body, self.point) - view.gravity()
        return _in_axes(view, self.body, self.mounting, specific) + self.offset


def _in_axes(view: View, body: str, mounting: Any, vector: Float[Array, "3"]) -> Float[Array, "3"]:
    """A vector of the world in the axes of a sensor on a body."""
    turn = rotations.multiply(view.orientation(body), jnp.asarray(mounting))
    return rotations.rotate(rotations.conjugate(turn), vector)


class FunctionSensor(Sensor):
    """A user's own scalar function of the :class:`View`."""

    function: Callable[[View], Float[Array, ""]] = field(static=True)
    std: Any = number("unit", default=1.0, lower=0.0, tunable=False)
    offset: Any = number("unit", default=0.0)
    label: str = field(static=True, default="1")

    def unit(self) -> str:
        return self.label

    def read(self, view: View) -> Float[Array, "1"]:
        return jnp.reshape(self.function(view) + self.offset, (1,))
