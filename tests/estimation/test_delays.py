"""Delays of drives: the time step that they fall into is found, and loops that lag behind their targets are seen."""

import dataclasses
import functools
import itertools

import numpy as np
import pytest
from scipy import signal

from shadowfit.estimation import Free, Options, fit
from shadowfit.estimation.fit import start_point
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.problem import build_problem
from shadowfit.estimation.solve.first_weights import first_weights
from shadowfit.estimation.uncertainty import state_functions
from shadowfit.estimation.uncertainty.delays import caught_up
from shadowfit.mechanism import Body, Input, JointPosition, Mechanism, PositionMotor, TorqueMotor, hinge
from shadowfit.mechanism.leaves import Parts
from shadowfit.recordings import Recording

COUNT, STEP, FINER, STAIR = 800, 0.005, 10, 6
KP, KD, INERTIA, VISCOUS, NOISE = 20.0, 1.5, 0.05, 0.1, 1e-4
# Whole numbers of the simulation's steps.
DELAYS = {"a": 0.0115, "b": 0.003}
FREE = tuple(f"{name}{part}" for name in DELAYS for part in (".viscous", ".motor.shaft_inertia", "_target.delay"))


def servos(hold="zero"):
    """Two joints in position loops beside each other."""
    joints = {
        name: hinge(
            "world",
            f"{name}_arm",
            axis=(0.0, 0.0, 1.0),
            viscous=2.0 * VISCOUS,
            laws={"motor": PositionMotor(kp=KP, kd=KD, shaft_inertia=0.01, input=f"{name}_target")},
        )
        for name in DELAYS
    }
    return Mechanism(
        {f"{name}_arm": Body(1.0, (0.03, 0.03, 0.03)) for name in DELAYS},
        joints,
        sensors={f"{name}_position": JointPosition(name, std=NOISE) for name in DELAYS},
        inputs={f"{name}_target": Input(unit="rad", hold=hold) for name in DELAYS},
    )


@functools.cache
def recorded(lag=0.0, seed=0):
    """What they do under targets that are staircases, late, and followed with a lag [s] that the model lacks."""
    rng, h = np.random.default_rng(seed), STEP / FINER
    at, channels = STEP * np.arange(COUNT), {}
    rates = np.array([[0.0, 1.0], [-KP / INERTIA, -(KD + VISCOUS) / INERTIA]])
    moves, pushes, *_ = signal.cont2discrete((rates, np.array([[0.0], [KP / INERTIA]]), np.eye(2), 0.0), h)
    for phase, (name, delay) in enumerate(DELAYS.items()):
        wave = 0.5 * np.sin(2.0 * np.pi * at * (0.3 + 0.05 * at) + phase)
        target = wave[np.arange(COUNT) // STAIR * STAIR]
        state, aim, places = np.array([target[0], 0.0]), target[0], []
        for k in range(COUNT * FINER):
            if k % FINER == 0:
                places.append(state[0])
            command = target[max(int(np.floor((k * h - delay) / STEP + 1e-9)), 0)]
            aim += (command - aim) * (-np.expm1(-h / lag) if lag else 1.0)
            state = moves @ state + pushes[:, 0] * aim
        channels |= {
            f"{name}_position": np.array(places) + NOISE * rng.standard_normal(COUNT),
            f"{name}_target": target,
        }
    return Recording(at, channels)


@pytest.mark.parametrize("begins", [0.0, pytest.param(0.03, marks=pytest.mark.slow)])
def test_each_delay_is_moved_to_its_own_time_step(begins):
    mechanism = servos().set({f"{name}_target.delay": begins for name in DELAYS})
    problem = build_problem(mechanism, [recorded()], parameter_set(mechanism, FREE), Options())
    start = start_point(problem)
    found = problem.parameters.named(caught_up(problem, start, first_weights(problem, start)).values)
    for name, delay in DELAYS.items():
        assert abs(found[f"{name}_target.delay"] - delay) <= problem.timestep, name


def test_a_delay_is_moved_where_a_torque_is_fed_forward_as_well():
    plain = servos()
    joints = {
        name: dataclasses.replace(
            joint, laws=Parts({**dict(joint.laws.items()), "forward": TorqueMotor(1.0, input=f"{name}_torque")})
        )
        for name, joint in plain.joints.items()
    }
    inputs = dict(plain.inputs.items()) | {f"{name}_torque": Input(unit="N m") for name in DELAYS}
    both = Mechanism(dict(plain.bodies.items()), joints, sensors=dict(plain.sensors.items()), inputs=inputs)
    channels = recorded().channels | {f"{name}_torque": np.zeros(COUNT) for name in DELAYS}
    recording = dataclasses.replace(recorded(), channels=channels)
    problem = build_problem(both, [recording], parameter_set(both, FREE), Options())
    start = start_point(problem)
    found = problem.parameters.named(caught_up(problem, start, first_weights(problem, start)).values)
    for name, delay in DELAYS.items():
        assert abs(found[f"{name}_target.delay"] - delay) <= problem.timestep, name


def test_delays_stay_where_they_are_right():
    right = servos().set({f"{name}_target.delay": delay for name, delay in DELAYS.items()})
    problem = build_problem(right, [recorded()], parameter_set(right, FREE), Options())
    start = start_point(problem)
    assert caught_up(problem, start, first_weights(problem, start)) is start


def test_delays_stay_within_their_bounds():
    bounded = dict.fromkeys(FREE) | {"a_target.delay": Free(upper=0.006)}
    problem = build_problem(servos(), [recorded()], parameter_set(servos(), bounded), Options())
    start = start_point(problem)
    moved = problem.parameters.named(caught_up(problem, start, first_weights(problem, start)).values)
    assert moved["a_target.delay"] == 0.006


def test_without_free_delays_nothing_moves():
    problem = build_problem(servos(), [recorded()], parameter_set(servos(), ("*.viscous",)), Options())
    start = start_point(problem)
    assert caught_up(problem, start, first_weights(problem, start)) is start


def test_functions_of_a_lag_are_what_a_target_is_ahead_of_a_filter():
    target = np.cumsum(np.random.default_rng(3).standard_normal(50))
    (functions,) = state_functions.of_lag([target])
    for lag, column in zip(state_functions.LAGS, functions.T, strict=True):
        kept, behind, ahead = np.exp(-1.0 / lag), target[0], [0.0]
        for before, now in itertools.pairwise(target):
            behind = behind + (1.0 - kept) * (before - behind)
            ahead.append(now - behind)
        np.testing.assert_allclose(column, ahead / np.sqrt(np.mean(np.square(ahead))), atol=1e-12)


def test_over_stairs_a_delay_is_known_by_what_a_time_step_more_or_less_does():
    begins = {f"{name}_target.delay": 0.02 + delay for name, delay in DELAYS.items()}
    problem = build_problem(servos().set(begins), [recorded()], parameter_set(servos().set(begins), FREE), Options())
    values, places = problem.parameters.start(), [i for i, name in enumerate(FREE) if name.endswith(".delay")]

    def commands(steps):
        moved = np.zeros(len(FREE))
        moved[places] = steps * problem.timestep
        return problem.commands_at(problem.parameters.plus(values, moved), 0)[0]

    expected = (commands(1.0) - commands(-1.0)) / (2.0 * problem.timestep)
    slopes = problem.over_stairs().commands_at(values, 0)[1]
    np.testing.assert_allclose(np.sum(slopes, axis=2), expected, atol=1e-9)
    # The derivative itself sees the two steps beside each stair, and the secant one more.
    seen = [
        np.count_nonzero(np.abs(one[:, 0]).sum(axis=1) > 1e-9) for one in (problem.commands_at(values, 0)[1], slopes)
    ]
    assert 3 * seen[0] == 2 * seen[1]


@pytest.mark.parametrize(("hold", "free"), [("linear", FREE), ("zero", ("*.viscous",))])
def test_without_stairs_or_free_delays_derivatives_are_what_they_are(hold, free):
    mechanism = servos(hold)
    problem = build_problem(mechanism, [recorded()], parameter_set(mechanism, free), Options())
    assert problem.over_stairs() is problem


@pytest.mark.slow
@pytest.mark.parametrize("lag", [0.0, 0.012])
def test_a_loop_that_lags_behind_its_target_is_in_the_bars_of_its_delay(lag):
    estimate = fit(servos(), recorded(lag), FREE)
    assert estimate.converged
    late = {one.name for one in estimate.evidence.latent.errors if one.kind == "late"}
    assert late == (set(DELAYS) if lag else set())
    assert (estimate.evidence.over_stairs is not None) == bool(lag)
    for row, own in zip(estimate.parameters, estimate.uncertainty().intervals(0.997), strict=True):
        name, _, kind = row.name.partition("_target.")
        if kind:
            # A filter is a delay of its time constant to slow motions, and none to what is fast.
            assert own.lower <= DELAYS[name] + lag, row
            assert own.upper >= DELAYS[name], row
            # Stairs of six samples are neither: by the one step that each falls into bars would be too narrow.
            if lag:
                place = [one.name for one in estimate.parameters].index(row.name)
                by_one_step = dataclasses.replace(estimate.evidence, over_stairs=None).covariance("robust")[0]
                assert row.std > 1.2 * np.sqrt(by_one_step[place, place]), row
        if not lag:
            others = {"viscous": VISCOUS, "shaft_inertia": INERTIA - 0.03}
            truth = DELAYS[name] if kind else others[row.name.split(".")[-1]]
            assert own.lower <= truth <= own.upper, row
