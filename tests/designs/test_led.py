"""Machines that a controller leads: their motion is what the held inputs make of them, by an equation of its own."""

import dataclasses

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from designs.test_design import lever
from shadowfit.designs.drives import JointMotion, command_of_force
from shadowfit.designs.experiment import FORCE_ERROR, Sampling, experiment, typical_force_noise
from shadowfit.designs.led import led
from shadowfit.designs.waves import Waves
from shadowfit.mechanism.leaves import Parts
from shadowfit.models import Start

SAMPLING = Sampling(3.0, 0.02, 0.02)
FINER = 16


def held_by(hold):
    """A lever whose drive holds its input, and the motion that it is to follow."""
    mechanism = lever()
    held = dataclasses.replace(mechanism.inputs["u"], hold=hold)
    mechanism = mechanism.having(inputs=Parts({"u": held}))
    own = experiment(mechanism, Start(), ("rod.inertia.yy",), SAMPLING)
    drive = JointMotion(Waves(1, 3.0, 2.0, 5), np.array([0.5]), command_of_force(own))
    return own, drive, drive.waves.usual("fourier")


@pytest.mark.parametrize("hold", ["zero", "linear"])
def test_motion_and_inputs_of_a_led_machine_belong_to_each_other(hold):
    """(J + m l²) θ̈ = u − m g l sin θ − d θ̇ with u as the drive holds it, solved sample by sample."""
    own, drive, coefficients = held_by(hold)
    exact = experiment(own.mechanism, Start(), (), dataclasses.replace(SAMPLING, timestep=0.02 / FINER))
    found = led(own, exact, drive, coefficients)
    assert found.good.all()
    wished = drive.coordinates(own, coefficients[None])[0, :, 0]
    path, inputs = found.coordinates[0, :, 0], found.inputs[0, :, 0]
    assert 0.3 < np.max(np.abs(path)) < 1.0
    assert np.max(np.abs(path - wished)) < 5e-3

    def acting(time, sample):
        after = (time - own.sampling.times[sample]) / 0.02 if hold == "linear" else 0.0
        return inputs[sample] + after * (inputs[sample + 1] - inputs[sample])

    state, angles = np.array([path[0], 0.0]), [path[0]]
    for sample in range(len(path) - 1):

        def rates(time, at, sample=sample):
            torque = acting(time, sample) - 0.5 * 9.82 * 0.2 * np.sin(at[0]) - 0.02 * at[1]
            return [at[1], torque / 0.03]

        span = own.sampling.times[sample], own.sampling.times[sample + 1]
        state = solve_ivp(rates, span, state, rtol=1e-9, atol=1e-11).y[:, -1]
        angles.append(state[0])
    np.testing.assert_allclose(angles, path, atol=2e-4)


def test_forces_are_taken_to_be_known_to_a_hundredth_of_what_the_motion_needs():
    """That of the motor in a slow motion, that of inertia where gravity swings the lever by itself."""
    own, drive, _ = held_by("linear")
    for slower in (1.0, 4.0):
        slow = dataclasses.replace(drive, waves=Waves(1, 3.0, 2.0 / slower, 5))
        motion = slow.motions(own, slow.waves.usual("fourier")[None])
        angle = motion.coordinates[0, :, 0]
        inertial, motor = 0.03 * np.diff(angle, 2) / 0.02**2, motion.inputs[0, 1:-1, 0]
        needed = max(np.sqrt(np.mean(force**2)) for force in (inertial, motor))
        assert typical_force_noise(own, motion)["pivot"] == pytest.approx(FORCE_ERROR * needed, rel=0.02)
