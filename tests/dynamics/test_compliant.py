"""Compliant joints by machine code: the same trajectories as by XLA, and what is left to XLA."""

import sys

import jax
import numpy as np
import pytest

from shadowfit.complementarity import Status
from shadowfit.dynamics import compliant, simulate
from shadowfit.dynamics.elements import assembled
from shadowfit.errors import SimulationError
from shadowfit.models import load_model

MODULE = sys.modules["shadowfit.dynamics.simulate"]
STEPS, H = 40, 2e-3


def given(name):
    model = load_model(name)
    mechanism = model.mechanism
    signals = 0.3 * np.sin(0.2 * np.arange(STEPS)) * np.ones((len(mechanism.inputs), 1))
    return mechanism, model.start.state(mechanism), signals


@pytest.mark.parametrize(("name", "discretization"), [("chain3", "exact"), ("chain3", "spook"), ("fourbar", "exact")])
def test_trajectories_are_those_of_xla(name, discretization):
    mechanism, start, signals = given(name)
    asked = (mechanism, assembled(mechanism), start, signals, H, discretization, True)
    ours, theirs = MODULE._compliant(*asked), MODULE._by_xla(*asked)
    assert ours is not None
    assert ours[1] == theirs[1] == Status.SOLVED
    own, other = (jax.tree.leaves(run) for run, _ in (ours, theirs))
    assert len(own) == len(other)
    for a, b in zip(own, other, strict=True):
        scale = max(float(np.max(np.abs(b), initial=0.0)), 1.0)
        np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-10 * scale)


def test_a_step_that_fails_is_named_and_what_came_before_is_kept(monkeypatch):
    mechanism, start, _ = given("chain3")
    with pytest.raises(SimulationError, match="stopped at step") as caught:
        simulate(mechanism, start, timestep=2.0, steps=50)
    monkeypatch.setattr(compliant, "run", lambda *_: None)
    with pytest.raises(SimulationError) as by_xla:
        simulate(mechanism, start, timestep=2.0, steps=50)
    assert len(caught.value.partial) == len(by_xla.value.partial)


def test_dry_friction_is_left_to_xla():
    mechanism, start, _ = given("furuta")
    command = np.zeros((STEPS + 1, len(mechanism.inputs)))
    assert compliant.run(mechanism, assembled(mechanism), start, command, H, "exact") is None
