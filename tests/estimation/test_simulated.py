"""What is simulated and fitted, both with their defaults, comes back."""

import numpy as np
import pytest

from quick import quick
from shadowfit import Recording, fit, load_model, simulate

TIMESTEP, STEPS = 0.01, 400
TRUTHS = {
    "pendulum": {"pendulum.inertia.yy": 0.00382, "hinge.viscous": 6e-4, "hinge.dry": 0.0027},
    "cartpole": {"cart.mass": 0.6, "pivot.viscous": 0.002, "rail.viscous": 0.15},
    "furuta": {"hinge1.motor.gain": 0.075, "arm.inertia.zz": 0.0045, "hinge1.viscous": 1e-3},
}


def wave(time: float) -> float:
    return 0.5 * np.sin(7.0 * time) + 0.3 * np.sin(2.0 * time + 1.0)


@pytest.mark.parametrize("name", quick(TRUTHS, "pendulum"))
def test_a_machine_comes_back(name):
    model = load_model(name)
    truth = TRUTHS[name]
    machine = model.mechanism.set(truth)
    inputs = dict.fromkeys(machine.inputs, wave(TIMESTEP * np.arange(STEPS)))
    run = simulate(machine, model.start.state(machine), inputs, timestep=TIMESTEP, steps=STEPS)
    random = np.random.default_rng(1)
    channels = {key: np.append(values, values[-1]) for key, values in inputs.items()}
    for key, sensor in machine.sensors.items():
        channels[key] = run.readings[key] + random.normal(0.0, sensor.std, len(run))
    estimate = fit(model.mechanism, Recording(run.time, channels), list(truth))
    for row in estimate.parameters:
        assert abs(row.value - truth[row.name]) < 4.0 * row.std < 0.3 * abs(truth[row.name]), row


def test_substeps_of_a_simulation_are_steps_of_a_finer_one():
    model = load_model("cartpole")
    start, force = model.start.state(model.mechanism), wave(TIMESTEP * np.arange(40))
    run = simulate(model.mechanism, start, {"u": force}, timestep=TIMESTEP, steps=40, substeps=4)
    held = np.repeat(force, 4)
    finer = simulate(model.mechanism, start, {"u": held}, timestep=TIMESTEP / 4, steps=160, substeps=1)
    np.testing.assert_allclose(run.time, TIMESTEP * np.arange(41), atol=1e-12)
    for sensor, values in run.readings.items():
        np.testing.assert_array_equal(values, finer.readings[sensor][::4])
