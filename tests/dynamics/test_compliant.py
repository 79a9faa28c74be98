"""Compliant joints by machine code: the same trajectories as by XLA, alone or many at once, and the ways to end."""

import jax
import numpy as np
import pytest

from dynamics.scenes import with_joints
from dynamics.test_contacts import box_state
from dynamics.test_rigid_contacts import hopper, start_of
from quick import quick
from shadowfit.complementarity import Status
from shadowfit.dynamics import compliant, outcomes, place, simulate, simulate_many
from shadowfit.errors import SimulationError
from shadowfit.mechanism import Mechanism
from shadowfit.models import builtin, load_model

STEPS, H = 40, 2e-3


def of_library(name: str):
    model = load_model(name)
    return model.mechanism, model.start.state(model.mechanism)


def rubbing():
    """Friction by a level and by the load, in joints that stick, slide and turn round."""
    mechanism = with_joints(builtin.furuta(), coulomb=4e-3, dry=0.05)
    return mechanism, place(mechanism, {"hinge2": 0.3}, {"hinge1": 0.4})


def fallen():
    """A box on the corner that it falls over."""
    mechanism = builtin.incline(0.2, 0.5)
    return mechanism, box_state(mechanism, 0.085, 0.7)


def hopping():
    """A floating trunk with a leg on a floor with friction, with end stops."""
    mechanism = hopper()
    start = start_of(mechanism)
    lowered = jax.tree.map(np.array, start)
    lowered.pose.position[:, 2] -= 0.2
    return mechanism, lowered


SCENES = {
    "chain exact": (lambda: of_library("chain3"), "exact"),
    "chain spook": (lambda: of_library("chain3"), "spook"),
    "loop exact": (lambda: of_library("fourbar"), "exact"),
    "dry friction exact": (rubbing, "exact"),
    "dry friction spook": (rubbing, "spook"),
    "box exact": (fallen, "exact"),
    "box spook": (fallen, "spook"),
    "hopper exact": (hopping, "exact"),
}


def given(mechanism: Mechanism, state, discretization: str):
    signals = 0.3 * np.sin(0.2 * np.arange(STEPS)) * np.ones((len(mechanism.inputs), 1))
    how = outcomes.Steps(mechanism, H, discretization, "compliant", diagnostics=True)
    return how, outcomes.Start(state, signals)


@pytest.mark.parametrize("scene", quick(SCENES, "box exact"))
def test_trajectories_are_those_of_xla(scene):
    make, discretization = SCENES[scene]
    how, start = given(*make(), discretization)
    (ours,), theirs = outcomes.compliant_outcomes(how, [start]), outcomes.by_xla(how, start)
    assert ours is not None
    assert ours.status == theirs.status == Status.SOLVED
    own, other = (jax.tree.leaves(outcome.run) for outcome in (ours, theirs))
    assert len(own) == len(other)
    for a, b in zip(own, other, strict=True):
        scale = max(float(np.max(np.abs(b), initial=0.0)), 1.0)
        np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-10 * scale)


def test_the_scenes_stick_slide_and_touch():
    """What the comparison above is about does happen."""
    how, start = given(*rubbing(), "exact")
    (ours,) = outcomes.compliant_outcomes(how, [start])
    friction = np.asarray(ours.run.diagnostics.multipliers[0])[1:, :, -1]
    speed = np.diff(np.stack([ours.run.readings["theta1"], ours.run.readings["theta2"]], axis=1), axis=0)
    assert np.any(np.abs(speed) < 1e-7)
    assert np.any(np.abs(speed) > 1e-4)
    assert np.any(friction > 0.0)
    assert np.any(friction < 0.0)
    for make in (fallen, hopping):
        how, start = given(*make(), "exact")
        (touched,) = outcomes.compliant_outcomes(how, [start])
        (flying,) = outcomes.compliant_outcomes(how, [start._replace(state=raised(start.state))])
        parted = np.abs(touched.run.states.velocity - flying.run.states.velocity)
        assert np.max(parted) > 0.1


def raised(state):
    """Above all floors."""
    higher = jax.tree.map(np.array, state)
    higher.pose.position[:, 2] += 10.0
    return higher


@pytest.mark.usefixtures("careful_code")
@pytest.mark.parametrize("joints", ["compliant", "rigid"])
@pytest.mark.parametrize("make", quick([rubbing, hopping], rubbing), ids=["dry friction", "contacts"])
def test_many_are_what_each_is_alone(make, joints):
    """To the last digit, also in groups that are not full."""
    mechanism, state = make()
    states = [state]
    for scale in (0.5, -0.5, 1.5, 2.0):
        other = jax.tree.map(np.array, state)
        other.velocity[:] *= scale
        states.append(other)
    inputs = [dict.fromkeys(mechanism.inputs, 0.1 * place) for place in range(len(states))]
    asked = {"timestep": H, "steps": 20, "joints": joints, "diagnostics": True}
    together = simulate_many(mechanism, states, inputs, **asked, substeps=1)
    for own, start, given in zip(together, states, inputs, strict=True):
        alone = simulate(mechanism, start, given, **asked, substeps=1)
        for a, b in zip(jax.tree.leaves(own), jax.tree.leaves(alone), strict=True):
            np.testing.assert_array_equal(a, b)


def test_many_want_inputs_for_each():
    mechanism, state = of_library("chain3")
    assert simulate_many(mechanism, [], timestep=H, steps=3, joints="compliant", substeps=1) == []
    with pytest.raises(SimulationError, match="2 initial states and inputs of 1"):
        simulate_many(mechanism, [state, state], [{}], timestep=H, steps=3, joints="compliant", substeps=1)


def test_a_step_that_fails_is_named_and_what_came_before_is_kept(monkeypatch):
    mechanism, start = of_library("chain3")
    with pytest.raises(SimulationError, match="stopped at step") as caught:
        simulate(mechanism, start, timestep=2.0, steps=50, joints="compliant", substeps=1)
    (many,) = simulate_many(mechanism, [start], timestep=2.0, steps=50, joints="compliant", substeps=1)
    assert len(many) == len(caught.value.partial)
    monkeypatch.setattr(compliant, "run", lambda *_: None)
    with pytest.raises(SimulationError) as by_xla:
        simulate(mechanism, start, timestep=2.0, steps=50, joints="compliant", substeps=1)
    assert len(caught.value.partial) == len(by_xla.value.partial)


@pytest.mark.slow
def test_branches_that_are_not_found_are_left_to_lemke(monkeypatch):
    mechanism, start = rubbing()
    run = simulate(mechanism, start, timestep=H, steps=STEPS, joints="compliant", substeps=1)
    compliant._stepper.cache_clear()
    monkeypatch.setattr(compliant, "MAX_ROUNDS", 1)
    # Another name: the code of the right number of rounds must not be found.
    monkeypatch.setattr(compliant, "is_own", lambda _: False)
    how, asked = given(mechanism, start, "exact")
    assert outcomes.compliant_outcomes(how, [asked]) == [None]
    left = simulate(mechanism, start, timestep=H, steps=STEPS, joints="compliant", substeps=1)
    compliant._stepper.cache_clear()
    np.testing.assert_allclose(left.states.pose.position, run.states.pose.position, atol=1e-10)
