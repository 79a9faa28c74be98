"""Given errors of joints' forces with poses as unknowns: the same estimates and bars as in joint coordinates."""

import numpy as np
import pytest

from shadowfit.errors import UnknownNameError
from shadowfit.estimation import ErrorModel, Options, fit
from shadowfit.estimation.fit import start_point
from shadowfit.estimation.problem.axis_noise import answers_at
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.problem import build_problem
from shadowfit.estimation.problem.shaping import Shaping
from shadowfit.mechanism import Body, Input, JointPosition, Mechanism, TorqueMotor, hinge
from shadowfit.recordings import Recording

MASS, INERTIA, VISCOUS = (1.0, 0.8), (0.01, 0.008), (0.05, 0.03)
UPPER, ELBOW, FORE = 0.15, 0.3, 0.12
GRAVITY, INTERVAL, COUNT, FINER = 9.82, 0.01, 400, 8
FREE = {"upper.inertia.yy": 0.015, "fore.inertia.yy": 0.012, "shoulder.viscous": 0.1, "elbow.viscous": 0.01}


def acceleration(q, v, torque):
    """Of a double pendulum with torques at both hinges."""
    h, weight = MASS[1] * ELBOW * FORE, MASS[1] * FORE * GRAVITY * np.sin(q[0] + q[1])
    own = INERTIA[1] + MASS[1] * FORE**2
    first = INERTIA[0] + MASS[0] * UPPER**2 + MASS[1] * ELBOW**2 + own + 2.0 * h * np.cos(q[1])
    cross = own + h * np.cos(q[1])
    spin = h * np.sin(q[1]) * np.array([-(2.0 * v[0] * v[1] + v[1] ** 2), v[0] ** 2])
    hung = np.array([(MASS[0] * UPPER + MASS[1] * ELBOW) * GRAVITY * np.sin(q[0]) + weight, weight])
    return np.linalg.solve([[first, cross], [cross, own]], torque - spin - hung - np.array(VISCOUS) * v)


def recorded(disturbance):
    """A driven arm whose hinges feel torques that nobody reads, held from sample to sample; 1 mrad of noise."""
    at = INTERVAL * np.arange(COUNT)
    drive = np.stack([2.0 * np.sin(2.0 * np.pi * (0.3 + 0.2 * at) * at), 0.6 * np.sin(9.0 * at + 1.0)], axis=1)
    state, h, read = np.array([0.3, -0.2, 0.0, 0.0]), INTERVAL / FINER, []

    def slope(x, torque):
        return np.concatenate([x[2:], acceleration(x[:2], x[2:], torque)])

    for torque in drive + disturbance(at):
        read.append(state[:2])
        for _ in range(FINER):
            a = slope(state, torque)
            b = slope(state + 0.5 * h * a, torque)
            c = slope(state + 0.5 * h * b, torque)
            d = slope(state + h * c, torque)
            state = state + h / 6.0 * (a + 2.0 * b + 2.0 * c + d)
    angles = np.array(read) + 1e-3 * np.random.default_rng(1).standard_normal((COUNT, 2))
    return Recording(at, {"q1": angles[:, 0], "q2": angles[:, 1], "u1": drive[:, 0], "u2": drive[:, 1]})


def arm(compliance=1e-8):
    shoulder = hinge(
        "world",
        "upper",
        axis=(0.0, 1.0, 0.0),
        child_point=(0.0, 0.0, UPPER),
        viscous=VISCOUS[0],
        laws={"motor1": TorqueMotor(1.0, input="u1")},
        compliance=compliance,
    )
    elbow = hinge(
        "upper",
        "fore",
        axis=(0.0, 1.0, 0.0),
        parent_point=(0.0, 0.0, UPPER - ELBOW),
        child_point=(0.0, 0.0, FORE),
        viscous=VISCOUS[1],
        laws={"motor2": TorqueMotor(1.0, input="u2")},
        compliance=compliance,
    )
    bodies = {"upper": Body(MASS[0], (INERTIA[0],) * 3), "fore": Body(MASS[1], (INERTIA[1],) * 3)}
    sensors = {"q1": JointPosition(joint="shoulder", std=1e-3), "q2": JointPosition(joint="elbow", std=1e-3)}
    inputs = {"u1": Input(), "u2": Input()}
    return Mechanism(bodies, {"shoulder": shoulder, "elbow": elbow}, sensors=sensors, inputs=inputs)


def fitted(recording, unknowns, noise, **changes):
    changes = {"timestep": INTERVAL, "state_weight": 1e4, **changes}
    return fit(arm(), recording, FREE, options=Options(unknowns=unknowns, errors=ErrorModel(noise or {}), **changes))


@pytest.fixture(scope="module")
def white():
    levels = np.array([0.03, 0.002])
    return recorded(lambda at: levels * np.random.default_rng(0).standard_normal((len(at), 2)))


NOISE = {"shoulder": 0.03, "elbow": 0.002}


def values_of(estimate):
    return np.array([row.value for row in estimate.parameters])


def test_stiff_bearings_make_no_difference(white):
    """Poses and joint coordinates tell the same, as far as forces that act are those that are missing.

    Held answers have the determinant of acting forces in them, which joint coordinates with given weights leave out:
    it moves an inertia by about √N σ/(its torques) of its bar, a tenth here.
    """
    own, joint = (fitted(white, unknowns, NOISE) for unknowns in ("configuration", "joint"))
    assert own.converged
    assert joint.converged
    std = joint.uncertainty("gauss-newton").std
    np.testing.assert_allclose(own.uncertainty("gauss-newton").std, std, rtol=0.02)
    assert np.all(np.abs(values_of(own) - values_of(joint)) < 0.2 * std)


@pytest.mark.slow
def test_velocities_as_unknowns_make_no_difference(white):
    """The paper's unknowns have two residuals for each impulse, and errors of the step that differ by (ωh)²/12.

    At the pace of this motion, some 10 rad/s, that is a thousandth.
    """
    own, joint = (fitted(white, unknowns, NOISE, correction="none") for unknowns in ("full", "joint"))
    assert own.converged
    assert joint.converged
    std = joint.uncertainty("gauss-newton").std
    np.testing.assert_allclose(own.uncertainty("gauss-newton").std, std, rtol=0.1)
    np.testing.assert_allclose(values_of(own), values_of(joint), rtol=3e-3)


def test_the_error_of_one_joint_does_not_leak():
    """A torque at the shoulder that no model has, as large as is said, leaves the elbow's numbers alone."""
    recording = recorded(lambda at: np.stack([0.3 * np.sin(5.0 * at), 0.0 * at], axis=1))
    told = {row.name: row for row in fitted(recording, "configuration", {"shoulder": 3.0, "elbow": 1e-3}).parameters}
    for name, truth in (("fore.inertia.yy", INERTIA[1]), ("elbow.viscous", VISCOUS[1])):
        assert abs(told[name].value - truth) < 3.0 * told[name].std
    untold = {row.name: row for row in fitted(recording, "configuration", None).parameters}
    assert abs(untold["elbow.viscous"].value - VISCOUS[1]) > 10.0 * told["elbow.viscous"].std


def test_levels_of_the_sensors_are_found_beside_given_ones(white):
    estimate = fitted(white, "configuration", NOISE, state_weight="auto")
    assert estimate.converged
    for name in ("q1", "q2"):
        assert estimate.noise[name] == pytest.approx(1e-3, rel=0.15)
    for row in estimate.parameters:
        assert abs(row.value - float(arm().get(row.name))) < 3.5 * row.std


def test_an_impulse_of_one_axis_is_that_axis_alone(white):
    """What a unit impulse leaves comes back as that impulse over its level, and everything else is left as it is."""
    machine = arm()
    options = Options(unknowns="configuration", timestep=INTERVAL, errors=ErrorModel(NOISE))
    problem = build_problem(machine, [white], parameter_set(machine, FREE, 1), options)
    answers = answers_at(problem, start_point(problem), 0)
    levels = np.array([7.0, 50.0])
    weight = 3.0 * np.eye(12)
    shaped = Shaping.of(weight, answers, levels)
    rows = shaped.times(weight @ answers)
    np.testing.assert_allclose(
        rows.mT @ rows, np.broadcast_to(np.diag(levels**2), (len(rows), 2, 2)), rtol=1e-6, atol=1e-4
    )
    np.testing.assert_allclose(shaped.undone(rows), weight @ answers, rtol=1e-7, atol=1e-9)
    apart = np.random.default_rng(0).standard_normal((len(rows), 12, 1))
    directions = np.linalg.qr(answers)[0]
    apart -= directions @ (directions.mT @ apart)
    np.testing.assert_allclose(shaped.times(apart), apart, atol=1e-9)


def test_unknown_joints_are_named(white):
    with pytest.raises(UnknownNameError, match="elbow"):
        fitted(white, "configuration", {"elbo": 1.0})
