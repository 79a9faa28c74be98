"""A joint in a position loop: the controller is part of the model, the recording holds the target only."""

import numpy as np
import pytest

from shadowfit.dynamics import place, simulate
from shadowfit.estimation import Free, Options, fit
from shadowfit.mechanism import Body, Input, JointPosition, Mechanism, PositionMotor, hinge
from shadowfit.recordings import Recording

TIMESTEP, STEPS, FINER = 0.01, 300, 10


def servo(limit: float = np.inf, kp: float = 4.0, kd: float = 0.3, delay: float = 0.0) -> Mechanism:
    """A pendulum that a position loop holds; the command comes late."""
    loop = PositionMotor(kp=kp, kd=kd, limit=limit, shaft_inertia=5e-3, input="target")
    joint = hinge(
        "world", "arm", axis=(0, 1, 0), child_point=(0, 0, 0.2), viscous=0.02, laws={"loop": loop}, compliance=1e-9
    )
    return Mechanism(
        {"arm": Body(0.5, (2e-2, 2e-2, 1e-3))},
        {"joint": joint},
        sensors={"q": JointPosition("joint", std=1e-4)},
        inputs={"target": Input(unit="rad", delay=delay)},
        name="servo",
    )


def recorded(truth: Mechanism, seed: int = 0) -> Recording:
    """What the servo does under a target that jumps every 10 ms, simulated with steps of 1 ms."""
    time = TIMESTEP * np.arange(STEPS + 1)
    target = 0.8 * np.sin(2.0 * np.pi * time * (0.3 + 0.6 * time)) + 0.4 * np.sign(np.sin(7.0 * time))
    held = np.repeat(target[:-1], FINER)
    start = place(truth, {"joint": 0.1})
    run = simulate(
        truth,
        start,
        {"target": held},
        timestep=TIMESTEP / FINER,
        steps=STEPS * FINER,
        discretization="exact",
        joints="compliant",
        substeps=1,
    )
    noise = 1e-4 * np.random.default_rng(seed).standard_normal(STEPS + 1)
    return Recording(time, {"q": np.asarray(run.readings["q"])[::FINER] + noise, "target": target})


@pytest.mark.parametrize("limit", [1.5, pytest.param(np.inf, marks=pytest.mark.slow)])
def test_gains_inertia_and_delay_of_a_loop_are_found_from_its_target(limit: float) -> None:
    truth = servo(limit, delay=0.013)
    start = servo(limit, kp=5.0, kd=0.2, delay=0.005)
    free = {"joint.loop.kp": None, "joint.loop.kd": None, "target.delay": Free(upper=0.05)}
    if np.isfinite(limit):
        free["joint.loop.limit"] = Free(start=1.3)
    options = Options(unknowns="joint", discretization="exact", correction="deferred", timestep=TIMESTEP)
    found = fit(start, recorded(truth), free, options=options)
    assert found.converged
    for row in found.parameters:
        wanted = truth.get(row.name)
        # Clipping is not smooth, and the step sees it at its middle only.
        assert abs(row.value - wanted) < 5.0 * row.std + 0.01 * abs(wanted), (row.name, row.value, row.std)
