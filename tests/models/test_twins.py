"""The built-in twin: energy, friction and reproducibility of the truth, and agreement with the simulator."""

import numpy as np
import pytest

from shadowfit.dynamics import place, simulate
from shadowfit.models import read_model
from shadowfit.models.twins import (
    FurutaTruth,
    _accelerations,
    advance,
    friction_limits,
    furuta_swing_up,
)

FRICTIONLESS = FurutaTruth(viscous=(0.0, 0.0), dry=(0.0, 0.0), tilt=(0.0, 0.0))


def energy(true, state):
    theta2, w1, w2 = state[1:]
    s, c = np.sin(theta2), np.cos(theta2)
    reach = true.arm_centre + true.arm_reach
    arm = true.shaft_inertia + true.arm_inertia_zz + true.arm_mass * true.arm_centre**2 + true.rod_mass * reach**2
    m11 = arm + (true.rod_mass * true.rod_centre**2 + true.rod_inertia_zz) * s**2 + true.rod_inertia_xx * c**2
    m12 = true.rod_mass * reach * true.rod_centre * c
    m22 = true.rod_inertia_yy + true.rod_mass * true.rod_centre**2
    kinetic = 0.5 * (m11 * w1**2 + 2 * m12 * w1 * w2 + m22 * w2**2)
    return kinetic - true.rod_mass * true.gravity * true.rod_centre * c


def test_energy_is_conserved_without_friction():
    state = (0.0, 2.0, 1.0, -2.0)
    after = advance(FRICTIONLESS, state, 0.0, 3.0)
    assert energy(FRICTIONLESS, after) == pytest.approx(energy(FRICTIONLESS, state), abs=1e-7)


def test_bearings_at_rest_carry_the_weight():
    true = FRICTIONLESS
    hanging = (0.3, 0.0, 0.0, 0.0)
    limits = friction_limits(FurutaTruth(dry=(1.0, 1.0), tilt=(0.0, 0.0)), true.gravity_vector(), hanging, (0.0, 0.0))
    rod, arm = true.rod_mass * true.gravity, true.arm_mass * true.gravity
    reach = true.arm_centre + true.arm_reach
    assert limits[1] == pytest.approx(rod), "no bending: the rod hangs below its hinge"
    assert limits[0] == pytest.approx(rod + arm + arm * true.arm_centre + rod * reach)


def test_friction_follows_the_forces_that_it_changes():
    """Limits of friction and forces in the bearings agree with each other, at every moment."""
    true, state, volt = FurutaTruth(dry=(0.006, 0.002)), (0.2, 1.0, 3.0, -4.0), 5.0
    gravity = true.gravity_vector()

    def accelerations(at):
        limits = (0.0, 0.0)
        for _ in range(20):
            found = _accelerations(true, gravity, at, volt, limits)
            limits = friction_limits(true, gravity, at, found)
        return found

    def rate(at):
        return np.array([*at[2:], *accelerations(at)])

    exact, h = np.array(state), 1e-4
    for _ in range(100):
        middle = exact + 0.5 * h * rate(exact)
        exact = exact + h * rate(middle)
    moved = np.array(advance(true, state, volt, 0.01))
    without = np.array(advance(FurutaTruth(dry=(0.0, 0.0)), state, volt, 0.01))
    np.testing.assert_allclose(moved, exact, atol=1e-4 * np.abs(exact - without).max())


def test_the_simulator_moves_as_the_twin():
    """A second of the twin's own drive, with friction and tilt, at a fine step."""
    true = FurutaTruth()
    twin = furuta_swing_up(duration=1.0)
    x, y = true.tilt
    angle = np.hypot(x, y)
    tilt = [np.cos(angle / 2), *(np.sin(angle / 2) * np.array([x, y, 0.0]) / angle)]
    known = {name: value for name, value in twin.truth.items() if "tilt" not in name}
    mechanism = read_model("furuta").set({**twin.settings, **known, "gravity.tilt": tilt})
    volts = np.repeat(twin.recording.channel("u")[:-1], 5)
    run = simulate(
        mechanism,
        place(mechanism),
        {"u": volts},
        timestep=0.002,
        steps=500,
        discretization="exact",
        joints="compliant",
        substeps=1,
    )
    for name in ("theta1", "theta2"):
        # Half a count, and what the step is too coarse for.
        np.testing.assert_allclose(
            np.asarray(run.readings[name])[::5], twin.recording.channel(name), atol=np.pi / 4096 + 5e-4
        )


@pytest.mark.slow
def test_it_swings_up_and_is_the_same_each_time():
    twin = furuta_swing_up()
    assert np.abs(twin.recording.channel("theta2")).max() > 2.4
    assert np.abs(twin.recording.channel("u")).max() <= 20.0
    assert twin.recording.fingerprint == furuta_swing_up().recording.fingerprint
    assert twin.recording.fingerprint != furuta_swing_up(seed=8).recording.fingerprint
