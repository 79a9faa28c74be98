"""Rows of the whole problem: their derivatives, samples between the steps, missing samples, wrapping, robust loss."""

import dataclasses

import numpy as np
import pytest

from dynamics.scenes import orders
from estimation.scenes import all_rows, full_furuta, problem_of, pulses, shaken, stiff_fourbar, twin
from quick import quick
from shadowfit.dynamics import place
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.weights import default_weights
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.solve import objective
from shadowfit.geometry import Pose
from shadowfit.models import builtin
from shadowfit.recordings import Recording

STEPS = 6
EVERYTHING = ["pendulum.mass", "hinge1.dry", "gravity.tilt", "push.force.x", "theta2.offset", "hinge2.child_point.x"]
# Delays away from zero, below which they may not go.
INPUTS = {"u.gain": None, "u.offset": None, "u.delay": 0.0043, "w.gain": None, "w.delay": 0.0028}
FREE = {**dict.fromkeys(EVERYTHING), **INPUTS}


def jittered(recording, size=0.3):
    """The same channels at times off the grid."""
    step = recording.sample_interval
    moved = np.random.default_rng(0).uniform(0.0, size, len(recording.time)) * step
    moved[0] = 0.0
    return dataclasses.replace(recording, time=recording.time + moved)


SCENES = {
    "furuta": (full_furuta, FREE, {}, False),
    "furuta-joint": (full_furuta, FREE, {"unknowns": "joint"}, False),
    "furuta-joint-between": (full_furuta, FREE, {"unknowns": "joint"}, True),
    "furuta-full": (full_furuta, FREE, {"unknowns": "full", "residual": "inverse"}, False),
    "furuta-between": (full_furuta, FREE, {"discretization": "spook"}, True),
    "fourbar-full-between": (stiff_fourbar, ["coupler.mass", "theta_crank.offset"], {"unknowns": "full"}, True),
}


@pytest.fixture(scope="module", params=quick(SCENES, "furuta", "furuta-joint-between"))
def scene(request):
    build, free, options, between = SCENES[request.param]
    mechanism = build()
    # Near the mechanism's own motion, where the prediction's few Newton steps suffice for exact derivatives.
    if "fourbar" in request.param:
        recording = twin(mechanism, {"ground_crank": -1.0}, STEPS, speeds={"ground_crank": 2.0})
    else:
        # Never zero: losses of a gear have a kink there.
        inputs = {"u": 0.05 + pulses(STEPS, size=0.3), "w": np.cos(np.arange(STEPS))}
        start = ({"hinge1": 0.3, "hinge2": 2.0}, {"hinge1": 1.5, "hinge2": -2.0})
        recording = twin(mechanism, start[0], STEPS, speeds=start[1], inputs=inputs)
    if between:
        with pytest.warns(UserWarning, match="uneven"):
            problem = problem_of(mechanism, jittered(recording), free, timestep=0.01, cutoff=1e3, **options)
    else:
        problem = problem_of(mechanism, recording, free, timestep=0.01, cutoff=1e3, **options)
    return problem, shaken(problem, 1e-5)


def start_count(problem):
    """Number of initial rows: rigid joints have none."""
    return 0 if problem.options.unknowns == "joint" else 12 * len(problem.mechanism.bodies)


def moved(problem, point, states, parameters):
    """The point after a step of the states ``(nodes, b)`` and of the parameters."""
    return objective.plus(problem, point, (states,), parameters)


def slope_along(problem, point, states, parameters, step=1e-6):
    ends = [all_rows(problem, moved(problem, point, k * step * states, k * step * parameters)) for k in (-2, -1, 1, 2)]
    a, b, c, d = (rows.residual for rows in ends)
    return (a - 8 * b + 8 * c - d) / (12 * step)


def test_rows_have_the_derivatives_of_their_residuals(scene):
    problem, point = scene
    rows = all_rows(problem, point)
    nodes = problem.node_count(0)
    scale = problem.parameters.scales
    still = np.zeros((nodes, rows.node_size))
    # Initial rows leave out the derivative of their projector, which is small near closed joints.
    counted = slice(0, len(rows.residual) - start_count(problem))
    for i, label in enumerate(problem.parameters.labels()):
        # Points act through stiff joints: a long step would cross kinks of friction, a short one drown the others.
        step = 1e-6 if "point" in label else 1e-4
        numeric = slope_along(problem, point, still, scale * (np.arange(len(scale)) == i), step)[counted]
        own = scale[i] * rows.parameters[counted, i]
        allowed = 2e-6 * np.max(np.abs(numeric)) + 1e-8
        np.testing.assert_allclose(own, numeric, rtol=0.0, atol=allowed, err_msg=label)
    rng = np.random.default_rng(2)
    for _ in range(6):
        states = rng.standard_normal(still.shape)
        numeric = slope_along(problem, point, states, np.zeros(len(scale)), 1e-8)[counted]
        own = (rows.states @ states.ravel())[counted]
        np.testing.assert_allclose(own, numeric, rtol=0.0, atol=2e-6 * np.max(np.abs(numeric)))


def test_initial_rows_have_the_derivatives_of_their_residuals_on_closed_joints(scene):
    problem, _ = scene
    if problem.mechanism.name == "fourbar":
        pytest.skip("constraints of a loop are redundant in the plane only; off it their projector jumps")
    if problem.options.unknowns == "joint":
        pytest.skip("rigid joints have no initial rows")
    point = Point(problem.parameters.start(), shaken(problem, 0.0).nodes)
    rows = all_rows(problem, point)
    first = len(rows.residual) - start_count(problem)
    # With ``full`` unknowns the velocity's part leaves out how the constraints turn; the configuration's is complete.
    last = first + 6 * len(problem.mechanism.bodies) if problem.options.unknowns == "full" else None
    states = np.random.default_rng(4).standard_normal((problem.node_count(0), rows.node_size))
    still = np.zeros(rows.parameters.shape[1])
    numeric = slope_along(problem, point, states, still, 1e-5)[first:last]
    own = (rows.states @ states.ravel())[first:last]
    # The first node is continued from the next two, which leaves joints open by some 1e-4 m.
    np.testing.assert_allclose(own, numeric, rtol=0.0, atol=1e-4 * np.max(np.abs(numeric)))


# --- samples between the steps --------------------------------------------------------------------------------------


def turning(time):
    """Angle of a pendulum over time: smooth, fast and not periodic in the step."""
    return 1.3 * np.sin(6.0 * time) + 2.0 * time + 0.9 * np.cos(7.0 * time + 0.3)


def placed(mechanism, times):
    """Exact configurations at given times as nodes."""
    poses = [place(mechanism, {"hinge": turning(t)}).pose for t in times]
    return Pose(np.stack([np.asarray(p.position) for p in poses]), np.stack([np.asarray(p.orientation) for p in poses]))


def test_interpolation_is_of_at_least_third_order():
    mechanism = builtin.pendulum()
    errors = []
    for timestep in (0.04, 0.02, 0.01):
        times = 0.75 * timestep * np.arange(16)
        recording = Recording(times, {"theta": turning(times)})
        problem = problem_of(mechanism, recording, timestep=timestep)
        assert problem.plan.window == 4
        nodes = placed(mechanism, timestep * (np.arange(problem.node_count(0)) - 1))
        point = Point(problem.parameters.start(), (Nodes(nodes, None),))
        cost = objective.linearise(problem, point, default_weights(problem, 1.0)).cost
        errors.append(float(np.sqrt(np.sum(cost.sensors) / len(times))))
    assert errors[-1] > 1e-12
    assert np.all(orders(errors) > 2.9), (errors, orders(errors))


# --- what counts ----------------------------------------------------------------------------------------------------


MOTION, WIDTH = 2, 4
"""Rows of a step that are about the motion, and all of them: two joints, two sensors."""


def sampled(recording, **options):
    """The problem of a chain of two, in joint coordinates: how the motion is written plays no part here."""
    return problem_of(builtin.chain(2), recording, unknowns="joint", **options)


@pytest.fixture(scope="module")
def swinging():
    return twin(builtin.chain(2), {"hinge1": 1.0, "hinge2": -0.5}, 40, noise=1e-3)


def test_missing_samples_do_not_count(swinging):
    """A fit to a recording with NaN has the rows of the samples that are there, and zeros for the others."""
    problem = sampled(swinging)
    point = shaken(problem, 1e-3)
    holed = swinging.channels["theta1"].copy()
    holed[[3, 4, 17]] = np.nan
    with pytest.warns(UserWarning, match="missing"):
        other = sampled(dataclasses.replace(swinging, channels={**swinging.channels, "theta1": holed}))
    full, cut = all_rows(problem, point), all_rows(other, point)
    lost = WIDTH * np.array([3, 4, 17]) + MOTION
    np.testing.assert_array_equal(cut.residual[lost], 0.0)
    np.testing.assert_array_equal(cut.states[lost], 0.0)
    kept = np.setdiff1d(np.arange(len(full.residual)), lost)
    np.testing.assert_array_equal(cut.residual[kept], full.residual[kept])
    assert np.all(full.residual[lost] != 0.0)


def test_angles_wrap_over_any_number_of_turns(swinging):
    problem = sampled(swinging)
    point, weights = shaken(problem, 1e-3), default_weights(problem, 100.0)
    turns = 2 * np.pi * np.random.default_rng(0).integers(-40, 40, len(swinging.time))
    wound = {**swinging.channels, "theta2": swinging.channels["theta2"] + turns}
    other = sampled(dataclasses.replace(swinging, channels=wound, units={"theta2": "rad"}))
    straight, around = (objective.linearise(one, point, weights).cost.total for one in (problem, other))
    assert around == pytest.approx(straight, rel=1e-9)


@pytest.mark.filterwarnings("ignore:.*1 outlier in row 11")  # it is planted
def test_huber_counts_far_residuals_linearly(swinging):
    """ρ(r) = r² up to k and 2k|r| − k² beyond; its rows have the gradient of ρ."""
    far = swinging.channels["theta1"].copy()
    far[10] += 0.5
    recording = dataclasses.replace(swinging, channels={**swinging.channels, "theta1": far})
    plain, robust = sampled(recording), sampled(recording, huber=3.0)
    point, weights = shaken(plain, 1e-3), default_weights(plain, 100.0)
    limit = 3.0 * weights.reference
    squared, counted = all_rows(plain, point, weights), all_rows(robust, point, weights)
    size = np.abs(squared.residual)
    seen = np.abs(squared.states).sum(axis=1) > 0.0
    observed = np.arange(len(size)) % WIDTH >= MOTION
    expected = np.where(observed & (size > limit), 2.0 * limit * size - limit**2, size**2)
    np.testing.assert_allclose(counted.residual**2, expected, rtol=1e-12)
    gradient = np.where(observed & (size > limit), limit * np.sign(squared.residual), squared.residual)
    np.testing.assert_allclose(
        counted.residual[seen, None] * counted.states[seen],
        gradient[seen, None] * squared.states[seen],
        rtol=1e-9,
        atol=1e-12,
    )
    assert size[observed].max() > 100.0 * limit
