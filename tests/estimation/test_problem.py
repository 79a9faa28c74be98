"""Problems: recordings on the grid, commands of the steps, and what is refused or warned about before a fit starts."""

import numpy as np
import pytest

from estimation.scenes import blank, problem_of, with_joint
from shadowfit.dynamics.requests import step_commands
from shadowfit.errors import RecordingError, UnknownNameError
from shadowfit.estimation.problem.commands import commands
from shadowfit.estimation.problem.options import ProblemError
from shadowfit.mechanism import JointLimit, Mechanism
from shadowfit.mechanism.body import Body
from shadowfit.mechanism.joint import Compliance
from shadowfit.models import builtin
from shadowfit.recordings import Recording

PENDULUM = builtin.pendulum()
FURUTA = builtin.furuta()
TIME = 0.01 * np.arange(60)


def swinging(time=TIME, **channels):
    return Recording(time, {"theta": 0.3 * np.cos(5.0 * time), **channels}, name="run")


def commands_of(problem, mechanism, hat=False):
    track, inputs = problem.tracks[0], dict(mechanism.inputs.items())
    return commands(problem.plan, track.recording, inputs, track.times(problem.timestep), problem.timestep, hat=hat)


def test_samples_go_to_the_step_that_they_follow():
    time = np.array([0.0, 0.004, 0.012, 0.02, 0.029999999999, 0.047])
    with pytest.warns(UserWarning, match="uneven sampling"):
        problem = problem_of(PENDULUM, swinging(1.5 + time), timestep=0.01)
    track = problem.tracks[0]
    assert track.steps == 5
    assert (problem.plan.window, problem.plan.on_grid) == (4, False)
    np.testing.assert_allclose(track.times(0.01), 1.5 + 0.01 * np.arange(5))
    np.testing.assert_array_equal(track.present[0], [[1, 1], [1, 0], [1, 0], [1, 0], [1, 0]])
    np.testing.assert_allclose(track.fraction[:, 0], [0.0, 0.2, 0.0, 0.0, 0.7], atol=1e-9)
    assert problem.sample_count() == 6
    assert problem.node_count(0) == 5 + 3


def test_missing_samples_are_not_counted():
    theta = 0.3 * np.cos(5.0 * TIME)
    theta[7] = np.nan
    with pytest.warns(UserWarning, match="samples are missing"):
        problem = problem_of(PENDULUM, swinging(theta=theta))
    assert problem.sample_count() == len(TIME) - 1
    assert not problem.tracks[0].present[0][7, 0]
    assert np.all(np.isfinite(problem.tracks[0].measured[0]))


def test_sampling_faster_than_the_step_keeps_every_sample():
    problem = problem_of(PENDULUM, swinging(0.0025 * np.arange(41)))
    assert problem.timestep == pytest.approx(0.01)
    assert problem.sample_count() == 41
    assert problem.tracks[0].fraction.shape == (11, 4)


@pytest.mark.parametrize(("discretization", "hat"), [("spook", False), ("exact", False), ("exact", True)])
@pytest.mark.parametrize(("hold", "delay"), [("zero", 0.0), ("zero", 0.0137), ("linear", 0.0), ("linear", 0.004)])
def test_commands_and_their_derivatives(discretization, hat, hold, delay):
    """Derivatives by gain, offset and delay are those of the commands; from zero a delay can only grow."""
    inputs = {"u": type(FURUTA.inputs["u"])(gain=1.3, offset=0.2, delay=delay, hold=hold)}
    mechanism = Mechanism(
        dict(FURUTA.bodies.items()), dict(FURUTA.joints.items()), sensors=dict(FURUTA.sensors.items()), inputs=inputs
    )
    signal = np.random.default_rng(0).normal(size=len(TIME))
    recording = Recording(TIME, {"theta1": np.sin(9 * TIME), "theta2": np.cos(7 * TIME), "u": signal})
    free = ["u.gain", "u.offset", "u.delay"]
    problem = problem_of(mechanism, recording, free, discretization=discretization)
    _, slopes = commands_of(problem, mechanism, hat)
    for column, name in enumerate(free):
        step = 1e-8
        lowest = mechanism.leaf(name).lower
        value = mechanism.get(name)
        below = max(value - step, lowest)
        ends = [commands_of(problem, mechanism.write({name: x}), hat)[0] for x in (below, value + step)]
        numeric = (ends[1] - ends[0]) / (value + step - below)
        np.testing.assert_allclose(slopes[:, :, column], numeric, rtol=1e-5, atol=1e-3)  # of some 100


def test_commands_are_the_simulators():
    """The same signal gives the same command, whether it is simulated or recorded."""
    signal = np.random.default_rng(0).normal(size=(1, len(TIME) - 1))
    recording = Recording(TIME, {"theta1": np.sin(TIME), "theta2": np.cos(TIME), "u": np.append(signal, signal[0, -1])})
    for discretization in ("spook", "exact"):
        problem = problem_of(FURUTA, recording, discretization=discretization)
        own, _ = commands_of(problem, FURUTA)
        np.testing.assert_allclose(own, step_commands(FURUTA, signal, 0.01, discretization), atol=1e-12)


def test_bridged_inputs():
    """A missing sample of an input is bridged by its hold."""
    signal = np.arange(len(TIME), dtype=float)
    gap = signal.copy()
    gap[5] = np.nan
    held = signal.copy()
    held[5] = signal[4]
    made = [
        commands_of(problem, FURUTA)[0]
        for u in (gap, held)
        for problem in [problem_of(FURUTA, Recording(TIME, {"theta1": np.sin(TIME), "theta2": np.cos(TIME), "u": u}))]
    ]
    np.testing.assert_allclose(*made)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"timestep": 0.0}, ProblemError, "timestep is 0.0 s; it must be a positive"),
        ({"timestep": -0.01}, ProblemError, "timestep"),
        ({"timestep": float("nan")}, ProblemError, "timestep"),
        ({"timestep": 1.0}, ProblemError, "at least 3 are needed"),
        ({"state_weight": 0.0}, ProblemError, "state_weight"),
        ({"state_weight": "large"}, ProblemError, "state_weight is large; it must be a positive"),
        ({"huber": -1.0}, ProblemError, "huber"),
        ({"stick_time": 0.0}, ProblemError, "stick_time"),
        ({"cutoff": 0.0}, ProblemError, "cutoff is 0.0 Hz"),
        ({"residual": "explicit"}, UnknownNameError, "no residual 'explicit'"),
        ({"discretization": "exakt"}, UnknownNameError, "did you mean 'exact'"),
        ({"unknowns": "all"}, UnknownNameError, "no unknowns 'all'"),
    ],
)
def test_bad_options_are_named(options, error, message):
    with pytest.raises(error, match=message):
        problem_of(PENDULUM, swinging(), **options)


def seen_by_nobody():
    bodies = {**dict(PENDULUM.bodies.items()), "stone": Body(1.0, (1.0, 1.0, 1.0))}
    return Mechanism(bodies, dict(PENDULUM.joints.items()), sensors=dict(PENDULUM.sensors.items()))


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        (Mechanism(dict(PENDULUM.bodies.items()), dict(PENDULUM.joints.items())), "has no sensors"),
        (with_joint(PENDULUM, "hinge", compliance=Compliance(0.0, 1e-4)), "hinge.compliance.linear is zero"),
        (PENDULUM.set({"theta.std": 0.0}), "theta.std is 0"),
        (seen_by_nobody(), "no sensor with samples sees stone"),
    ],
)
def test_mechanisms_that_cannot_be_estimated(mechanism, message):
    with pytest.raises(ProblemError, match=message):
        problem_of(mechanism, swinging())


def test_a_contact_without_compliance_is_refused():
    mechanism = Mechanism(
        dict(PENDULUM.bodies.items()),
        dict(PENDULUM.joints.items()),
        sensors=dict(PENDULUM.sensors.items()),
        contacts={"stop": JointLimit("hinge", lower=-1.0, upper=1.0, compliance=0.0)},
    )
    with pytest.raises(ProblemError, match=r"stop\.compliance is zero"):
        problem_of(mechanism, swinging())


def test_recordings_that_do_not_fit_are_refused():
    with pytest.raises(ProblemError, match="there is no recording"):
        problem_of(PENDULUM, [])
    with pytest.raises(ProblemError, match="a dict is no recording"):
        problem_of(PENDULUM, [{"theta": TIME}])
    with pytest.raises(UnknownNameError, match="none of the sensors' channels"):
        problem_of(PENDULUM, Recording(TIME, {"angle": np.sin(TIME)}))
    with pytest.raises(UnknownNameError, match="no channel for input 'u'"):
        problem_of(FURUTA, Recording(TIME, {"theta1": np.sin(TIME), "theta2": np.cos(TIME)}))
    with pytest.raises(RecordingError, match="every sample"):
        problem_of(PENDULUM, swinging(theta=np.full(len(TIME), np.nan)))
    with pytest.raises(RecordingError, match="measures in rad"):
        problem_of(PENDULUM, Recording(TIME, {"theta": np.sin(TIME)}, units={"theta": "m"}))


@pytest.mark.parametrize(
    ("recording", "message"),
    [
        (swinging(theta=np.full(len(TIME), 0.2)), "constant"),
        (swinging(np.delete(TIME, np.arange(20, 40))), "gap"),
        (swinging(theta=90.0 * np.cos(40.0 * TIME)), "looks like degrees"),
        (swinging(TIME + 2e-3 * np.sin(2.0 * np.arange(60))), "uneven sampling"),
        (swinging(1.0 * np.arange(60)), "looks like ms"),
    ],
)
def test_suspicious_recordings_are_warned_about(recording, message):
    with pytest.warns(UserWarning, match=message):
        problem_of(PENDULUM, recording, timestep=None)


def test_sensors_without_samples_are_warned_about():
    recording = Recording(TIME, {"theta1": np.sin(TIME), "u": TIME})
    with pytest.warns(UserWarning, match="no samples of sensor 'theta2'"):
        problem_of(FURUTA, recording)


def test_good_recordings_pass_without_a_word():
    assert problem_of(FURUTA, blank(FURUTA, 100)).sample_count() == 200
