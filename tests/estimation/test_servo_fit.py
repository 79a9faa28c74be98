"""Fits through a servo's law: winding and gear of a simulated bench, from targets, gains, torque on or off."""

import numpy as np
import pytest

from shadowfit import Recording, fit, place, simulate
from shadowfit.mechanism import Body, Coulomb, Gravity, Input, JointPosition, Mechanism, Servo, hinge

STEP, COUNT, NOISE = 0.01, 300, 5e-4
TRUTH = {
    "horn.servo.torque_constant": 0.36,
    "horn.servo.resistance": 4.0,
    "horn.servo.shaft_inertia": 1.6e-3,
    "horn.coulomb": 0.012,
    "horn.load_loss": 0.25,
}
START = {
    "horn.servo.torque_constant": 0.30,
    "horn.servo.resistance": 3.0,
    "horn.servo.shaft_inertia": 2.5e-3,
    "horn.coulomb": 0.03,
    "horn.load_loss": 0.1,
}


def bench() -> Mechanism:
    servo = Servo(3e-3, 0.3, 3.0, input="u", kp_input="gain", supply_input="volt", enabled_input="on")
    horn = hinge(
        "world", "arm", axis=(0.0, 1.0, 0.0), viscous=4e-3, friction=Coulomb(coulomb=0.02), laws={"servo": servo}
    )
    return Mechanism(
        {"arm": Body(0.5, (1e-4, 1e-4, 1e-4), com=(0.0, 0.0, -0.1))},
        {"horn": horn},
        sensors={"q": JointPosition("horn", std=NOISE)},
        inputs={"u": Input(), "gain": Input(), "volt": Input(hold="linear"), "on": Input()},
        gravity=Gravity(9.81),
    )


def recording(gain: float, seed: int) -> Recording:
    """Sweeps that saturate the voltage; then, with torque off, the weight swings out."""
    time = STEP * np.arange(COUNT)
    told = {
        "u": 1.2 * np.sin(2.0 * time + 0.5 * time**2),
        "gain": np.full(COUNT, gain),
        "volt": 7.4 - 0.3 * np.sin(3.0 * time),
        "on": (time < 2.2).astype(float),
    }
    machine = bench().set(TRUTH)
    run = simulate(machine, place(machine, {"horn": 0.0}), told, timestep=STEP, steps=COUNT)
    read = np.ravel(run.readings["q"])[:COUNT] + NOISE * np.random.default_rng(seed).normal(size=COUNT)
    return Recording(time, {**told, "q": read}, name=f"gain {gain:g}")


def test_winding_and_gear_come_back() -> None:
    estimate = fit(bench().set(START), [recording(150.0, 0), recording(800.0, 1)], list(TRUTH))
    for row in estimate.parameters:
        assert row.value == pytest.approx(TRUTH[row.name], abs=4.0 * row.std), row.name
        assert row.std < 0.2 * TRUTH[row.name], row.name
