"""Initial trajectories: joints closed, sensors satisfied, for trees and loops, over turns and gaps."""

import dataclasses
import functools
import itertools

import jax
import numpy as np
import pytest

from dynamics.scenes import with_joints
from estimation.scenes import all_rows, problem_of, twin
from shadowfit.dynamics.elements import assembled
from shadowfit.dynamics.kinematics import StateView, gap_values
from shadowfit.dynamics.state import State
from shadowfit.estimation.problem.initial import initial_nodes
from shadowfit.estimation.problem.point import Point
from shadowfit.mechanism import Body, BodyOrientation, Mechanism, PointPosition
from shadowfit.models import builtin
from shadowfit.recordings import Recording

SCENES = {
    "furuta": (builtin.furuta, {"hinge1": 0.4, "hinge2": 3.0}, {"hinge1": 2.0}),
    "fourbar": (builtin.fourbar, {"ground_crank": -1.0}, {"ground_crank": 9.0}),
    "chain": (lambda: builtin.chain(4), {"hinge1": 1.0, "hinge2": -0.7, "hinge3": 2.0}, None),
}


def largest_gap(problem, nodes):
    first = problem.plan.centre
    every = slice(first, first + problem.tracks[0].steps, 7)
    gaps = jax.jit(jax.vmap(gap_values, (None, 0)))(assembled(problem.mechanism), nodes.pose[every])
    return float(np.max(np.abs(gaps)))


@functools.cache
def scene(name):
    build, positions, speeds = SCENES[name]
    # Soft joints of the twin would sag, and readings of a loop then contradict closed joints.
    mechanism = with_joints(build(), compliance=1e-8)
    return mechanism, twin(mechanism, positions, 60, speeds=speeds)


# Of a tree and of a loop at once; the others later.
QUICK = {("furuta", "full"), ("fourbar", "configuration")}
CASES = [
    pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow)
    for case in itertools.product(SCENES, ("configuration", "full"))
]


@pytest.mark.parametrize(("name", "unknowns"), CASES)
def test_joints_are_closed_and_sensors_satisfied(name, unknowns):
    mechanism, recording = scene(name)
    problem = problem_of(mechanism, recording, unknowns=unknowns, cutoff=1e3)
    nodes = initial_nodes(problem, problem.parameters.start(), 0)
    assert len(nodes.pose.position) == problem.node_count(0)
    assert largest_gap(problem, nodes) < 1e-6
    first = problem.plan.centre
    zero = np.zeros((len(mechanism.bodies), 6))

    @jax.jit
    def errors(pose, measured):
        view = StateView(mechanism, State(pose, zero))
        return {name: s.residual(s.read(view), measured[name]) for name, s in mechanism.sensors.items()}

    for step in (0, 17, 60):
        measured = {name: recording.channels[name][step : step + 1] for name in mechanism.sensors}
        for name, error in errors(nodes.pose[first + step], measured).items():
            assert np.max(np.abs(error)) < 1e-6, name


@pytest.mark.filterwarnings("ignore:recording")
def test_orientations_may_flip_their_signs_and_be_missing():
    """A body that turns steadily; the flips of its quaternions mean nothing."""
    mechanism = Mechanism(
        {"stone": Body(1.0, (1e-2, 1e-2, 1e-2))},
        {},
        sensors={"p": PointPosition("stone", std=1e-3), "r": BodyOrientation("stone", std=1e-3)},
    )
    time = 0.01 * np.arange(60)
    turned = np.stack([np.cos(1.5 * time), np.sin(1.5 * time), 0.0 * time, 0.0 * time])
    given = turned * np.where(np.arange(60) % 7 < 3, -1.0, 1.0)
    given[:, 20] = np.nan
    channels = {f"p.{c}": 0.1 * time for c in "xyz"} | {f"r.{c}": given[i] for i, c in enumerate("wxyz")}
    problem = problem_of(mechanism, Recording(time, channels))
    nodes = initial_nodes(problem, problem.parameters.start(), 0)
    found = nodes.pose.orientation[1:-1, 0]
    assert np.abs(np.sum(found * turned.T, axis=1)).min() > 1.0 - 1e-6
    rows = all_rows(problem, Point(problem.parameters.start(), (nodes,)))
    assert np.all(np.isfinite(rows.states))


def test_velocities_are_differences_of_configurations():
    mechanism = builtin.furuta()
    recording = twin(mechanism, {"hinge2": 2.0}, 60, speeds={"hinge1": 3.0})
    problem = problem_of(mechanism, recording, unknowns="full", cutoff=1e3)
    nodes = initial_nodes(problem, problem.parameters.start(), 0)
    expected = (np.asarray(nodes.pose[1:].minus(nodes.pose[:-1]))) / problem.timestep
    np.testing.assert_allclose(nodes.velocity[1:], expected, atol=1e-9)


def test_gaps_and_turns_do_not_disturb_the_trajectory():
    mechanism = builtin.pendulum()
    recording = twin(mechanism, {"hinge": 0.0}, 60, speeds={"hinge": 25.0})
    wrapped = np.mod(recording.channels["theta"], 2 * np.pi)
    wrapped[20:23] = np.nan
    plain = problem_of(mechanism, recording, cutoff=1e3)
    with pytest.warns(UserWarning, match="missing"):
        holed = problem_of(mechanism, dataclasses.replace(recording, channels={"theta": wrapped}), cutoff=1e3)
    one, other = (initial_nodes(p, p.parameters.start(), 0).pose for p in (plain, holed))
    assert np.max(np.abs(np.asarray(other.minus(one))[..., 3:])) < 0.02


def test_a_low_cutoff_smooths():
    mechanism = builtin.pendulum()
    recording = twin(mechanism, {"hinge": 1.0}, 60, noise=0.05)
    rough, smooth = (
        initial_nodes(p, p.parameters.start(), 0).pose.position
        for p in (problem_of(mechanism, recording, cutoff=cutoff) for cutoff in (1e3, 3.0))
    )
    assert np.std(np.diff(smooth, n=2, axis=0)) < 0.1 * np.std(np.diff(rough, n=2, axis=0))
