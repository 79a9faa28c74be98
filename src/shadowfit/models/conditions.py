"""What a recording says of the conditions of its drives: supply, gains, whether there is torque, temperature.

They are no motion, and may well be the same all the time; what cannot be so is said in one sentence each.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shadowfit.mechanism import Mechanism, Servo
from shadowfit.recordings import Recording

# Full duty for a deviation of less than a hundredth of a radian (metre): a number of the servo's own units.
LARGEST_GAIN = 100.0


def strange_conditions(mechanism: Mechanism, recording: Recording) -> list[str]:
    """Sentences about conditions that no working drive has."""
    return [
        f"{joint}.{name}: {text}"
        for joint, part in mechanism.joints.items()
        for name, law in part.laws.items()
        if isinstance(law, Servo)
        for text in _of_servo(law, recording)
    ]


def _of_servo(servo: Servo, recording: Recording) -> Iterator[str]:
    supply, gain, enabled = (
        _samples(recording, channel) for channel in (servo.supply_input, servo.kp_input, servo.enabled_input)
    )
    if supply is not None and not np.any(supply > 0.0):
        yield (
            f"the supply {servo.supply_input!r} is never above zero, so that there is no torque; name the column of "
            "the voltage [V], or leave supply_input out and give `supply`"
        )
    if enabled is not None and not np.any(enabled):
        yield (
            f"torque is off all the time ({servo.enabled_input!r} is zero): the recording tells friction and inertia, "
            "nothing of the motor"
        )
    if enabled is not None and np.any((enabled < 0.0) | (enabled > 1.0)):
        yield f"{servo.enabled_input!r} says whether there is torque: 1 or 0, not {np.max(np.abs(enabled)):g}"
    largest = float(servo.kp) * (1.0 if gain is None else float(np.max(gain, initial=0.0)))
    if largest > LARGEST_GAIN:
        yield (
            f"kp is {largest:.3g}/rad: full duty at a deviation of {1.0 / largest:.1g} rad. If that is the servo's own "
            "unit, say what a unit is: Dynamixel X, position gain 1 = 4096/(2 pi)/256/885 = 0.002878/rad"
        )


def _samples(recording: Recording, channel: str | None) -> np.ndarray | None:
    if channel is None or channel not in recording.channels:
        return None
    values = recording.channels[channel]
    return values[np.isfinite(values)]
