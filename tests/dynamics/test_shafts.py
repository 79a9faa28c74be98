"""Shafts that several joints turn: simulated and inverted, energy, planted truth, model files, what is refused."""

import numpy as np
import pytest

from estimation.arms import coupled, driven
from shadowfit.dynamics import place, simulate
from shadowfit.errors import MechanismError, SimulationError
from shadowfit.estimation import Options, fit
from shadowfit.estimation.problem.options import ProblemError
from shadowfit.mechanism import Mechanism, Shaft, Turns
from shadowfit.mechanism.leaves import Parts
from shadowfit.models.reader import parse_model
from shadowfit.models.writer import format_model
from shadowfit.recordings import Recording

TRUTH = {"shaft.viscous": 0.15, "shaft.coulomb": 0.2, "shaft.shaft_inertia": 0.03}


@pytest.fixture(scope="module")
def machine():
    return coupled(2)


def without_dry_friction(machine):
    """Its width depends on mobilities, in which shafts of joints count otherwise than those of several."""
    rubbing = {f"joint{i}.{name}": 0.0 for i in (1, 2) for name in ("coulomb", "dry")}
    return machine.set({**rubbing, "shaft.coulomb": 0.0})


@pytest.mark.slow
def test_a_shaft_of_one_joint_is_that_joints_own(machine):
    """With a ratio of one, friction and inertia of a shaft are those of the joint and its motor, to second order."""
    alone = Parts({"joint2": Turns(1.0)})
    bare = without_dry_friction(machine).set({"joint2.viscous": 0.0, "joint2.motor.shaft_inertia": 0.0})
    own = bare.set({"joint2.viscous": 0.15, "joint2.motor.shaft_inertia": 0.03, "shaft.viscous": 0.0})
    own = own.set({"shaft.shaft_inertia": 0.0})
    turned = Mechanism(
        dict(bare.bodies.items()),
        dict(bare.joints.items()),
        sensors=dict(bare.sensors.items()),
        inputs=dict(bare.inputs.items()),
        shafts={"shaft": Shaft(alone, viscous=0.15, shaft_inertia=0.03)},
    )
    start, apart = {"joint1": 0.3, "joint2": -1.0}, []
    for h in (0.01, 0.005):
        runs = [
            simulate(one, place(one, start), timestep=h, steps=round(0.8 / h), joints="rigid", substeps=1)
            for one in (own, turned)
        ]
        apart.append(float(np.max(np.abs(runs[0].readings["q2"] - runs[1].readings["q2"]))))
    assert apart[0] < 1e-3
    assert apart[0] / apart[1] == pytest.approx(4.0, rel=0.1)


def test_planted_shaft_is_found(machine):
    free = {name: 1.6 * value for name, value in TRUTH.items()}
    start = machine.set(free)
    found = fit(start, driven(machine, 300), tuple(free), options=Options(timestep=0.01, correction="none"))
    assert found.status.converged
    for name, value in TRUTH.items():
        assert found.mechanism().get(name) == pytest.approx(value, rel=1e-3)


def test_what_is_simulated_has_nothing_missing(machine):
    """Both directions of the same equations."""
    steps, h = 100, 0.01
    smooth = without_dry_friction(machine)
    run = simulate(smooth, place(smooth, {"joint2": 1.0}), timestep=h, steps=steps, joints="rigid", substeps=1)
    channels = {name: np.asarray(run.readings[name]).ravel() for name in ("q1", "q2")}
    recording = Recording(np.asarray(run.time), {**channels, "u1": np.zeros(steps + 1), "u2": np.zeros(steps + 1)})
    options = Options(timestep=h, correction="none", state_weight=100.0)
    found = fit(smooth.set({"shaft.viscous": 0.2}), recording, ("shaft.viscous",), options=options)
    assert found.mechanism().get("shaft.viscous") == pytest.approx(0.15, rel=1e-4)


def test_model_files(machine):
    text = format_model(machine)
    assert "[shafts.shaft]" in text
    assert parse_model(text).mechanism.get("shaft.coulomb") == machine.get("shaft.coulomb")
    assert "shaft.coulomb" in machine.match("*.friction")
    assert "shaft.shaft_inertia" in machine.match("*.armature")


def test_what_is_refused(machine):
    with pytest.raises(SimulationError, match="rigid joints"):
        simulate(machine, place(machine), timestep=0.01, steps=1, joints="compliant", substeps=1)
    recording = driven(machine, 50)
    with pytest.raises(ProblemError, match="needs the unknowns 'joint'"):
        fit(machine, recording, ("shaft.viscous",), options=Options(unknowns="configuration"))
    with pytest.raises(MechanismError, match="no joint"):
        Shaft(Parts({})).check("idle")
