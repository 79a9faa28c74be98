"""Digital twins: recordings of machines whose parameters are known, made without the simulator that is fitted to them.

The Furuta pendulum swings itself up here. Its truth is an ordinary differential equation in the two joint angles,
integrated by the classical Runge–Kutta method with a step of a millisecond, in plain Python: no bodies, constraints,
compliance or complementarity. A fit that finds its parameters has therefore not merely inverted its own simulator.

Angles, axes and names are those of the built-in model ``furuta``. With ``e_r`` outward along the arm, ``e_t`` a quarter
turn ahead and ``e_z`` up, the rod hangs along ``s e_t − c e_z`` (``s, c`` sine and cosine of the second angle).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from math import copysign, cos, pi, sin, tanh
from typing import Any

import numpy as np

from shadowfit.recordings import Recording
from shadowfit.records import record

# Speed over which dry friction changes its sign [rad/s]; the truth creeps below it instead of sticking.
STICK_SPEED = 1e-3
SUBSTEP = 1e-3  # s
COUNTS = 4096  # of an encoder, in a turn
LARGEST_VOLTAGE = 20.0  # V, of the amplifier


@record(frozen=True)
class FurutaTruth:
    """Numbers of the true machine: near what the paper found for the real one (its Table 4), geometry as in ``furuta``.

    The paper's motor gain of 7.3 belongs to a control signal in units that it does not state. Here the signal is the
    amplifier's voltage of at most 20 V, and the gain a hundredth of that, which gives a motor of ordinary strength.
    """

    motor_gain: float = 0.073  # N m/V
    arm_inertia_zz: float = 0.0044  # kg m²
    rod_inertia_xx: float = 1e-4  # kg m²
    rod_inertia_yy: float = 0.00396  # kg m²
    rod_inertia_zz: float = 0.00394  # kg m²; the paper's 0.0037 breaks the triangle inequality with the other two
    viscous: tuple[float, float] = (9e-4, 1e-4)  # N m s/rad
    dry: tuple[float, float] = (6e-4, 2e-4)  # at a radius of 1 m
    tilt: tuple[float, float] = (0.010, -0.006)  # rad, rotation vector about the world's x and y axes
    arm_mass: float = 0.238  # kg
    rod_mass: float = 0.428  # kg
    arm_centre: float = 0.128  # m, from hinge 1 to the arm's centre of mass
    arm_reach: float = 0.248  # m, from there to hinge 2
    rod_centre: float = 0.092  # m, from hinge 2 to the rod's centre of mass
    shaft_inertia: float = 4e-4  # kg m²
    gravity: float = 9.82  # m/s²

    def gravity_vector(self) -> tuple[float, float, float]:
        """``R(tilt) (0, 0, −g)`` [m/s²]."""
        x, y = self.tilt
        angle = np.hypot(x, y)
        across = self.gravity * np.sinc(angle / pi)
        return -across * y, across * x, -self.gravity * cos(angle)


Angles = tuple[float, float, float, float]
"""Two joint angles [rad] and their rates [rad/s]."""


@record(frozen=True)
class Twin:
    """A recording with the truth behind it."""

    recording: Recording
    model: str
    """The built-in model to fit."""
    truth: Mapping[str, float]
    """Name of a row in the table of parameters → true value; what no data can tell (see ``free``) is absent."""
    free: tuple[str, ...]
    """The parameters to estimate."""
    settings: Mapping[str, float]
    """Known numbers that the model file has otherwise."""


def furuta_swing_up(
    duration: float = 12.0, sample_interval: float = 0.01, truth: FurutaTruth | None = None, seed: int = 7
) -> Twin:
    """A Furuta pendulum that a controller swings up from rest: two encoders and the control signal.

    The controller runs at the sampling rate on what the encoders count, its output is held in between, and the recorded
    control signal is what acted. The seed sets where the counts lie and the slow dither on the signal.

    Thirteen numbers are free, as in the paper: the gain, five inertias, four coefficients of friction and the tilt (a
    rotation). The arm never turns about its own x and y axes, and turning gravity about itself changes nothing: those
    three cannot be known from any recording.
    """
    true = truth or FurutaTruth()
    random = np.random.default_rng(seed)
    offset, phase = random.uniform(0.0, 1.0, 2), random.uniform(0.0, 2.0 * pi)
    count = round(duration / sample_interval) + 1
    control = swing_up_controller(true, sample_interval, phase)
    state: Angles = (0.0, 0.0, 0.0, 0.0)
    rows = np.zeros((count, 3))
    for row in rows:
        row[:2] = [counted(angle, shift) for angle, shift in zip(state[:2], offset, strict=True)]
        row[2] = control(row[0], row[1])
        state = advance(true, state, row[2], sample_interval)
    recording = Recording(
        np.asarray(sample_interval * np.arange(count), np.float64),
        {"theta1": rows[:, 0], "theta2": rows[:, 1], "u": rows[:, 2]},
        units={"theta1": "rad", "theta2": "rad", "u": "V"},
        name="swing_up",
        source="built-in Furuta swing-up twin",
    )
    resolution = 2.0 * pi / COUNTS / np.sqrt(12.0)
    settings = dict.fromkeys(("theta1.std", "theta2.std"), resolution)
    # The truth's bearings are rigid; softer ones would pass for inertia.
    settings |= {
        f"{hinge}.compliance.{kind}": 1e-6 for hinge in ("hinge1", "hinge2") for kind in ("linear", "rotational")
    }
    return Twin(recording, "furuta", named_truth(true), FURUTA_FREE, settings)


def demonstration() -> Twin:
    """The swing-up of a machine on a level stand, whose second bearing has no dry friction.

    What is left to be free is what this motion tells: the arm turns about one axis only, and dry and viscous friction
    of the second hinge look almost alike in it.
    """
    twin = furuta_swing_up(truth=FurutaTruth(dry=(FurutaTruth.dry[0], 0.0), tilt=(0.0, 0.0)))
    free = tuple(name for name in twin.free if name in twin.truth and name != "hinge2.dry")
    stiff = {name: 1e-9 for name in twin.settings if ".compliance." in name}
    settings = {**twin.settings, **stiff, "hinge2.dry": 0.0}
    return dataclasses.replace(twin, free=free, settings=settings, truth={name: twin.truth[name] for name in free})


FURUTA_FREE = (
    "hinge1.motor.gain",
    "arm.inertia.xx",
    "arm.inertia.yy",
    "arm.inertia.zz",
    "pendulum.inertia.yy",
    "pendulum.inertia.zz",
    "hinge1.viscous",
    "hinge2.viscous",
    "hinge1.dry",
    "hinge2.dry",
    "gravity.tilt",
)


def named_truth(true: FurutaTruth) -> dict[str, float]:
    """Name of a row in the table of parameters → true value."""
    return {
        "hinge1.motor.gain": true.motor_gain,
        "arm.inertia.zz": true.arm_inertia_zz,
        "pendulum.inertia.yy": true.rod_inertia_yy,
        "pendulum.inertia.zz": true.rod_inertia_zz,
        "hinge1.viscous": true.viscous[0],
        "hinge2.viscous": true.viscous[1],
        "hinge1.dry": true.dry[0],
        "hinge2.dry": true.dry[1],
        "gravity.tilt.x": true.tilt[0],
        "gravity.tilt.y": true.tilt[1],
    }


def counted(angle: Any, offset: float, counts: int = COUNTS) -> Any:
    """What an encoder shows for an angle (or many) [rad]: whole counts, the edges of which lie anywhere."""
    width = 2.0 * pi / counts
    return width * (np.floor(angle / width + offset) + 0.5 - offset)


def swing_up_controller(true: FurutaTruth, interval: float, phase: float) -> Callable[[float, float], float]:
    """Energy shaping: push the arm so that the rod's energy approaches that of standing upright.

    The rod's energy changes at the rate ``−m L l c θ̇₂ θ̈₁``: an arm acceleration against ``c θ̇₂`` raises it. The torque
    for a wanted acceleration follows from the equations of motion without friction; a spring keeps the arm near its
    middle, and a slow dither keeps it moving. Speeds are differences of counts, smoothed.
    """
    level = dataclasses.replace(true, viscous=(0.0, 0.0), tilt=(0.0, 0.0))
    gravity = level.gravity_vector()
    swing = true.rod_inertia_yy + true.rod_mass * true.rod_centre**2
    weight = true.rod_mass * true.gravity * true.rod_centre
    before: tuple[float, float] | None = None
    speeds = [0.0, 0.0]
    time = 0.0

    def control(theta1: float, theta2: float) -> float:
        nonlocal before, time
        for i, (now, then) in enumerate(zip((theta1, theta2), before or (theta1, theta2), strict=True)):
            speeds[i] += 0.5 * ((now - then) / interval - speeds[i])
        before, time = (theta1, theta2), time + interval
        missing = weight * (1.0 + cos(theta2)) - 0.5 * swing * speeds[1] ** 2
        pump = -100.0 * missing * tanh(2.0 * speeds[1] * cos(theta2))
        dither = 1.0 * sin(2.0 * pi * 0.35 * time + phase)
        wanted = pump + dither - 2.5 * theta1 - 0.4 * speeds[0]
        state = (theta1, theta2, speeds[0], speeds[1])
        at_rest, at_volt = (_accelerations(level, gravity, state, volt, (0.0, 0.0))[0] for volt in (0.0, 1.0))
        volt = (wanted - at_rest) / (at_volt - at_rest)
        return copysign(min(abs(volt), LARGEST_VOLTAGE), volt)

    return control


def advance(true: FurutaTruth, state: Angles, volt: float, duration: float) -> Angles:
    """The state after ``duration`` [s] at a constant signal: Runge–Kutta steps of a millisecond.

    The limit of dry friction follows the forces in the bearings, and these depend (weakly) on the friction again. It is
    that of the middle of each step, of forces with the friction of the step before. (Without friction in these forces,
    or with those of the beginning of a step, fits of many recordings find inertias 2e-5 too small.)
    """
    gravity = true.gravity_vector()
    steps = max(1, round(duration / SUBSTEP))
    h = duration / steps

    def rate(at: Angles, limits: tuple[float, float]) -> Angles:
        return (at[2], at[3], *_accelerations(true, gravity, at, volt, limits))

    limits = friction_limits(true, gravity, state, _accelerations(true, gravity, state, volt, (0.0, 0.0)))
    for _ in range(steps):
        middle = _moved(state, 0.5 * h, rate(state, limits))
        limits = friction_limits(true, gravity, middle, _accelerations(true, gravity, middle, volt, limits))
        k1 = rate(state, limits)
        k2 = rate(_moved(state, 0.5 * h, k1), limits)
        k3 = rate(_moved(state, 0.5 * h, k2), limits)
        k4 = rate(_moved(state, h, k3), limits)
        mean = tuple((a + 2.0 * b + 2.0 * c + d) / 6.0 for a, b, c, d in zip(k1, k2, k3, k4, strict=True))
        state = _moved(state, h, mean)
    return state


def _moved(state: Angles, h: float, rate: Any) -> Angles:
    return (state[0] + h * rate[0], state[1] + h * rate[1], state[2] + h * rate[2], state[3] + h * rate[3])


def _accelerations(
    true: FurutaTruth, gravity: tuple[float, float, float], state: Angles, volt: float, limits: tuple[float, float]
) -> tuple[float, float]:
    """Lagrange's equations ``M(θ₂) θ̈ = f`` solved for the angular accelerations [rad/s²]."""
    angle1, angle2, w1, w2 = state
    s, c = sin(angle2), cos(angle2)
    reach, l2, mass = true.arm_centre + true.arm_reach, true.rod_centre, true.rod_mass
    arm = true.shaft_inertia + true.arm_inertia_zz + true.arm_mass * true.arm_centre**2 + mass * reach**2
    m11 = arm + (mass * l2**2 + true.rod_inertia_zz) * s * s + true.rod_inertia_xx * c * c
    m12 = mass * reach * l2 * c
    m22 = true.rod_inertia_yy + mass * l2**2
    slope11 = 2.0 * s * c * (mass * l2**2 + true.rod_inertia_zz - true.rod_inertia_xx)
    slope12 = -mass * reach * l2 * s
    g_r = gravity[0] * cos(angle1) + gravity[1] * sin(angle1)
    g_t = -gravity[0] * sin(angle1) + gravity[1] * cos(angle1)
    weight1 = (true.arm_mass * true.arm_centre + mass * reach) * g_t - mass * l2 * s * g_r
    weight2 = mass * l2 * (c * g_t + s * gravity[2])
    friction1 = -true.viscous[0] * w1 - limits[0] * tanh(w1 / STICK_SPEED)
    friction2 = -true.viscous[1] * w2 - limits[1] * tanh(w2 / STICK_SPEED)
    f1 = weight1 + friction1 + true.motor_gain * volt - slope11 * w1 * w2 - slope12 * w2 * w2
    f2 = weight2 + friction2 + 0.5 * slope11 * w1 * w1
    determinant = m11 * m22 - m12 * m12
    return (m22 * f1 - m12 * f2) / determinant, (m11 * f2 - m12 * f1) / determinant


def friction_limits(
    true: FurutaTruth,
    gravity: tuple[float, float, float],
    state: Angles,
    acceleration: tuple[float, float],
) -> tuple[float, float]:
    """Largest dry friction torques [N m] of the two hinges: ``μ (Σ|F_i| r + Σ|T_i|)``, r = 1 m.

    F are the force in the bearing, in the world's axes, and T the two bending moments, in the axes of the body that the
    hinge carries: the sum that the simulator's friction law takes. By Newton's and Euler's equations of the rod,
    then of the arm.
    """
    angle1, angle2, w1, w2 = state
    a1, a2 = acceleration
    s, c = sin(angle2), cos(angle2)
    cos1, sin1 = cos(angle1), sin(angle1)
    l1, l2, reach = true.arm_centre, true.rod_centre, true.arm_centre + true.arm_reach
    g_r, g_t, g_z = gravity[0] * cos1 + gravity[1] * sin1, -gravity[0] * sin1 + gravity[1] * cos1, gravity[2]
    # Force on the rod, in the directions e_r, e_t, e_z.
    rod = (
        true.rod_mass * (-(reach * w1 + l2 * c * w2) * w1 - l2 * (c * w1 * w2 + s * a1) - g_r),
        true.rod_mass * (reach * a1 + l2 * (c * a2 - s * w2 * w2 - s * w1 * w1) - g_t),
        true.rod_mass * (l2 * (c * w2 * w2 + s * a2) - g_z),
    )
    # Moment on the rod about hinge 2 in its own axes (x along the rod, y = e_r, z = x × y).
    jx, jy, jz = true.rod_inertia_xx, true.rod_inertia_yy, true.rod_inertia_zz
    spin = (-c * w1, w2, -s * w1)
    along = jx * (s * w1 * w2 - c * a1) + (jz - jy) * spin[1] * spin[2]
    across = jz * (-c * w1 * w2 - s * a1) + (jy - jx) * spin[0] * spin[1] + l2 * rod[0]
    # The same on the arm: forces and moments of the rod act back on it at its end, a = e_r, e_t.
    arm = (
        rod[0] + true.arm_mass * (-l1 * w1 * w1 - g_r),
        rod[1] + true.arm_mass * (l1 * a1 - g_t),
        rod[2] - true.arm_mass * g_z,
    )
    axial = jy * a2 + (jx - jz) * spin[2] * spin[0] - l2 * (-s * rod[2] - c * rod[1])
    bend_r = axial
    bend_t = s * along - c * across - l1 * arm[2] - true.arm_reach * rod[2]
    force1 = abs(arm[0] * cos1 - arm[1] * sin1) + abs(arm[0] * sin1 + arm[1] * cos1) + abs(arm[2])
    force2 = abs(rod[0] * cos1 - rod[1] * sin1) + abs(rod[0] * sin1 + rod[1] * cos1) + abs(rod[2])
    return (
        true.dry[0] * (force1 + abs(bend_r) + abs(bend_t)),
        true.dry[1] * (force2 + abs(along) + abs(across)),
    )
