"""Errors of the discretisation: the curve through the states, the joints' share, the order of corrected estimates."""

import dataclasses

import numpy as np
import pytest

from estimation.scenes import POSES, problem_of, stiff_fourbar, twin
from quick import quick
from reference.reduced_ode import Furuta, Pendulum, solve
from shadowfit.estimation import Options, fit
from shadowfit.estimation.fit import start_point
from shadowfit.estimation.problem.options import ProblemError
from shadowfit.estimation.problem.weights import default_weights
from shadowfit.estimation.refits.bootstrap import bootstrap
from shadowfit.estimation.refits.profile import profile
from shadowfit.estimation.solve.chunks import RecordingRows
from shadowfit.estimation.solve.truncation import _nearest, curves, renewed, truncation
from shadowfit.evaluation.rollout import fineness, roll_out, start_states, stepping
from shadowfit.geometry import Pose
from shadowfit.geometry.differences import differences
from shadowfit.mechanism import JointSpeed, Mechanism
from shadowfit.models import builtin
from shadowfit.recordings import Recording

RIGID = 1e-9  # m/N, rad/(N m)
CORRECTIONS = ("none", "deferred")


def rigid(mechanism, values):
    stiff = {f"{name}.compliance.{kind}": RIGID for name in mechanism.joints for kind in ("linear", "rotational")}
    return mechanism.set({**stiff, **values})


PENDULUM = rigid(
    builtin.pendulum(friction=False),
    {"pendulum.mass": 0.428, "pendulum.inertia.yy": 0.0039, "hinge.viscous": 2e-4},
)
FURUTA = rigid(
    builtin.furuta(friction=False),
    {
        **{"arm.inertia.xx": 1e-4, "arm.inertia.yy": 3e-3, "arm.inertia.zz": 3e-3},
        **{"pendulum.inertia.xx": 1e-4, "pendulum.inertia.yy": 4e-3, "pendulum.inertia.zz": 4e-3},
        **{
            "hinge1.viscous": 1e-3,
            "hinge2.viscous": 1e-4,
            "hinge1.motor.shaft_inertia": 1e-4,
            "hinge1.motor.gain": 0.1,
        },
    },
)


def pendulum_recording(interval):
    """The reduced equation, solved tightly: no noise."""
    time = interval * np.arange(round(3.0 / interval) + 1)
    return Recording(time, {"theta": solve(Pendulum(viscous=2e-4), [2.0], [0.0], time).q[:, 0]})


def furuta_recording(interval):
    """Driven by a held input that jumps between the samples of a coarse step."""
    time = interval * np.arange(round(2.0 / interval) + 1)
    jumps = [0.152, 0.396, 0.718, 1.034, 1.466]
    signal = np.array([1.0, -1.0, 0.0, 1.5, -1.0, 0.5])[np.searchsorted(jumps, time + 1e-9)]
    model = Furuta(viscous=(1e-3, 1e-4))
    q = solve(model, [0.0, 2.0], [0.0, 0.0], time, lambda t: signal[int(t / interval + 1e-9)], jumps).q
    return Recording(time, {"theta1": q[:, 0], "theta2": q[:, 1], "u": signal})


def errors(mechanism, recording, free, **options):
    """Relative errors of the estimates, which start a tenth off."""
    found = fit(
        mechanism,
        recording,
        {name: 1.1 * mechanism.get(name) for name in free},
        options=Options(**{**POSES, "state_weight": 1e6, **options}),
    )
    assert found.converged
    return np.array([row.value / mechanism.get(row.name) - 1.0 for row in found.parameters])


def test_curve_through_the_states_is_of_eighth_order():
    recording = pendulum_recording(0.005)
    problem = problem_of(PENDULUM, recording, timestep=0.005, correction="deferred")
    nodes = start_point(problem).nodes[0]
    (same,) = curves(problem, nodes, [np.arange(40.0)])
    np.testing.assert_allclose(same.position, nodes.pose.position[:40], atol=1e-14)
    worst = []
    for stride in (4, 8):
        # Some of the states, and the curve through these half-way to the next ones.
        some = dataclasses.replace(nodes, pose=Pose(nodes.pose.position[::stride], nodes.pose.orientation[::stride]))
        (between,) = curves(problem, some, [np.arange(10.0, 30.0) + 0.5])
        half = slice(10 * stride + stride // 2, 30 * stride, stride)
        left = differences(between, Pose(nodes.pose.position[half], nodes.pose.orientation[half]))
        worst.append(np.max(np.abs(left)))
    assert worst[0] < 1e-6
    assert np.log2(worst[1] / worst[0]) > 7.0


def test_curve_has_polynomials_through_the_nearest_states():
    """Of seventh degree where there are states to both sides, of fifth at the ends."""
    states, at = np.arange(20.0) / 10.0 - 1.0, np.linspace(0.0, 19.0, 77)
    index, weights = _nearest(at, len(states))
    inside = (at >= 3.0) & (at < 16.0)
    for degree in range(8):
        found, exact = np.sum(weights * states[index] ** degree, axis=1), (at / 10.0 - 1.0) ** degree
        there = inside if degree > 5 else slice(None)
        np.testing.assert_allclose(found[there], exact[there], atol=1e-13)
    assert np.max(np.sum(np.abs(weights), axis=1)) < 4.0


@pytest.mark.slow
def test_correction_of_the_pendulum_raises_the_order():
    """From two to four in the time-step, on data of the reduced equation."""
    recording = pendulum_recording(0.005)
    found = {
        c: [
            np.abs(errors(PENDULUM, recording, ["pendulum.inertia.yy"], timestep=h, correction=c))[0]
            for h in (0.02, 0.04)
        ]
        for c in CORRECTIONS
    }
    orders = {c: np.log2(coarse / fine) for c, (fine, coarse) in found.items()}
    assert orders["none"] == pytest.approx(2.0, abs=0.2)
    assert orders["deferred"] > 3.5
    assert found["deferred"][0] < found["none"][0] / 50.0


@pytest.mark.slow
def test_correction_of_the_driven_furuta():
    """Held inputs jump inside the steps; the steps hold five samples."""
    recording = furuta_recording(0.002)
    free = ["arm.inertia.zz", "pendulum.inertia.yy", "pendulum.inertia.zz", "hinge1.motor.gain"]
    plain, corrected = (np.abs(errors(FURUTA, recording, free, timestep=0.01, correction=c)) for c in CORRECTIONS)
    finer = np.abs(errors(FURUTA, recording, free, timestep=0.02, correction="deferred"))
    assert np.all(corrected < plain / 20.0)
    assert np.median(np.log2(finer / corrected)) > 3.5


@pytest.mark.slow
def test_joints_take_up_what_does_not_move_the_machine():
    """A loop with redundant rows: corrections point along what its joints allow."""
    mechanism = stiff_fourbar()
    recording = twin(mechanism, {"ground_crank": -1.0}, 60, speeds={"ground_crank": 2.0}, timestep=0.005)
    problem = problem_of(mechanism, recording, timestep=0.01, correction="deferred")
    point = start_point(problem)
    found = truncation(problem, point, 0).dynamics
    assert np.all(np.isfinite(found))
    frames = problem.at(point.values, 0).frames(point.nodes[0].pose)
    impulses = np.einsum("nrs,ns->nr", frames.weighing[1:-1], found)
    velocity = np.linalg.solve(frames.inertia[1:-1], impulses[..., None])
    closing = (frames.jacobian[2:] @ velocity)[..., 0]
    assert np.max(np.abs(closing)) < 1e-5 * np.max(np.abs(velocity))


@pytest.mark.parametrize("unknowns", quick(["configuration", "joint"], "joint"))
def test_readings_between_steps_and_speeds(unknowns):
    """The residual less its truncation is that of the smooth curve: zero for samples of the true motion."""
    sensors = {**dict(PENDULUM.sensors.items()), "speed": JointSpeed(joint="hinge", std=1e-2)}
    mechanism = Mechanism(dict(PENDULUM.bodies.items()), dict(PENDULUM.joints.items()), sensors=sensors)
    time = 0.0025 * np.arange(401)
    motion = solve(Pendulum(viscous=2e-4), [2.0], [0.0], time)
    recording = Recording(time, {"theta": motion.q[:, 0], "speed": motion.qd[:, 0]})
    problem = problem_of(mechanism, recording, timestep=0.02, correction="deferred", cutoff=1e3, unknowns=unknowns)
    track = problem.tracks[0]
    assert problem.plan.window == 3
    assert np.max(np.abs(track.fraction)) <= 0.5
    point, weights = start_point(problem), default_weights(problem, 1.0)
    raw, left = (
        RecordingRows(problem, at, weights, 0).tables(0)[1].wide[: track.steps, :, -1].reshape(*track.fraction.shape, 2)
        for at in (point, renewed(problem, point))
    )
    for sensor in range(2):
        assert np.max(np.abs(left[5:-5, :, sensor])) < 0.05 * np.max(np.abs(raw[5:-5, :, sensor]))


def test_corrected_parameters_roll_out_with_finer_steps():
    """Started from the estimated first state, over 3 s: as good as the stepper at the finer step."""
    recording = pendulum_recording(0.005)
    options = Options(timestep=0.02, unknowns="configuration", state_weight=1e6, correction="deferred")
    estimate = fit(PENDULUM, recording, {"pendulum.inertia.yy": 0.0042}, options=options)
    finer, steps = fineness(estimate), estimate.steps - 1
    errors = []
    for parts in (1, finer):
        run = roll_out(
            estimate.mechanism(),
            start_states(estimate)[0],
            recording,
            stepping(estimate, parts),
            steps=steps * parts,
        )
        angle = np.asarray(run.readings["theta"]).ravel()[::parts]
        errors.append(np.max(np.abs(angle - recording.channel("theta")[::4])))
    assert errors[1] < errors[0] / 30.0


def test_only_physical_settings_are_corrected():
    recording = pendulum_recording(0.01)
    for changed in ({"discretization": "spook"}, {"residual": "inverse"}, {"unknowns": "full"}):
        with pytest.raises(ProblemError, match="correction 'deferred' needs"):
            problem_of(PENDULUM, recording, correction="deferred", **changed)


@pytest.mark.slow
def test_bootstrap_and_profile_keep_the_correction():
    """Replicates and profiles are centred on the corrected estimate, not on the one without correction."""
    clean = pendulum_recording(0.01)
    noise = 1e-4 * np.random.default_rng(0).standard_normal(len(clean.time))
    recording = Recording(clean.time, {"theta": clean.channel("theta") + noise})
    mechanism = PENDULUM.set({"theta.std": 1e-4})
    free = {"pendulum.inertia.yy": 0.004}
    estimate = fit(
        mechanism,
        recording,
        free,
        options=Options(timestep=0.02, unknowns="configuration", state_weight=1e6, correction="deferred"),
    )
    row = estimate.parameters[0]
    assert abs(row.value - 0.0039) < 3.0 * row.std
    replicates = bootstrap(estimate, 12, n_jobs=1).replicates[:, 0]
    assert abs(replicates.mean() - row.value) < 2.0 * row.std
    interval = profile(estimate, "pendulum.inertia.yy").interval
    assert interval.lower < row.value < interval.upper
    assert interval.upper - interval.lower == pytest.approx(2 * 1.96 * row.std, rel=0.2)
