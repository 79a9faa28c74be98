"""Friction that differs by direction and losses of a gear in fits: planted truth, with all kinds of unknowns."""

import numpy as np
import pytest

from estimation.scenes import twin
from quick import quick
from shadowfit.estimation import Options, fit
from shadowfit.mechanism import Body, Coulomb, Gravity, Input, JointPosition, Mechanism, TorqueMotor, slider

TRUTH = {"block.mass": 1.5, "rail.coulomb": 0.8, "rail.asymmetry": 0.3, "rail.gear_loss": 0.15}
STEPS, FINE = 400, 5


def block():
    rail = slider(
        "world", "block", axis=(1, 0, 0), friction=Coulomb(), laws={"motor": TorqueMotor(1.0)}, compliance=1e-9
    )
    mechanism = Mechanism(
        {"block": Body(1.0, (1.0, 1.0, 1.0))},
        {"rail": rail},
        sensors={"x": JointPosition("rail", rotary=False, std=1e-4)},
        inputs={"u": Input(hold="linear")},
        gravity=Gravity(0.0),
    )
    return mechanism.set(TRUTH)


@pytest.fixture(scope="module")
def recording():
    time = 0.01 / FINE * np.arange(STEPS * FINE)
    drive = 5.0 * np.sin(5.0 * time) + 2.0 * np.sin(12.0 * time + 1.0)
    return twin(block(), {}, STEPS * FINE, timestep=0.01 / FINE, every=FINE, inputs={"u": drive})


@pytest.mark.parametrize("unknowns", quick(["joint", "configuration"], "joint"))
def test_planted_truth(recording, unknowns):
    start = {name: 1.2 * value for name, value in TRUTH.items()}
    options = Options(unknowns=unknowns, timestep=0.01, state_weight=1e6, correction="deferred")
    estimate = fit(block(), recording, start, options=options)
    assert estimate.converged
    for row in estimate.parameters:
        assert row.value == pytest.approx(TRUTH[row.name], rel=0.02), estimate.summary()
