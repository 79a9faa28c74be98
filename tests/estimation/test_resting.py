"""Drives whose torque was measured: what it was at rest tells nothing, friction near rest is in error bars.

A hinge about the vertical with a rotor, viscous and Coulomb friction; torques by its equation of motion.
"""

import dataclasses
import functools

import numpy as np
import pytest

from shadowfit.estimation import fit
from shadowfit.estimation.problem.drives import is_read
from shadowfit.estimation.problem.sticking import opening, told
from shadowfit.estimation.residuals.stopping import Braked
from shadowfit.mechanism import Body, Coulomb, Input, JointPosition, Mechanism, TorqueMotor, hinge
from shadowfit.recordings import Recording

INERTIA, VISCOUS, COULOMB = 0.8, 3.0, 4.0
TRUTH = {"link.inertia.zz": INERTIA, "axis.viscous": VISCOUS, "axis.coulomb": COULOMB}
NOISE, TORQUE_NOISE = 2e-5, 0.1
TIME = 4e-3 * np.arange(3000)


def drive(hold="linear", friction=None):
    axis = hinge(
        "world",
        "link",
        axis=(0.0, 0.0, 1.0),
        viscous=2.0,
        friction=Coulomb(coulomb=2.0) if friction is None else friction,
        laws={"motor": TorqueMotor(1.0, input="torque")},
    )
    return Mechanism(
        {"link": Body(5.0, (0.5, 0.5, 0.5))},
        {"axis": axis},
        sensors={"angle": JointPosition("axis", std=1e-4)},
        inputs={"torque": Input(unit="N m", hold=hold)},
    )


def recorded(angle, speed, acceleration, friction, seed=0):
    rng = np.random.default_rng(seed)
    torque = INERTIA * acceleration + VISCOUS * speed + friction
    channels = {
        "angle": angle + NOISE * rng.standard_normal(len(TIME)),
        "torque": torque + TORQUE_NOISE * rng.standard_normal(len(TIME)),
    }
    return Recording(TIME, channels, units={"angle": "rad", "torque": "N m"})


def from_point_to_point(seed=0):
    """Smooth moves of 0.8 s with pauses of 0.7 s, in which friction stays what it was."""
    rng, pace = np.random.default_rng(seed), 1.5
    angle, speed, acceleration, held = (np.zeros(len(TIME)) for _ in range(4))
    place = 0.0
    for begin in np.arange(0.35, TIME[-1], pace):
        way = rng.uniform(0.3, 1.2) * rng.choice((-1.0, 1.0))
        s = np.clip((TIME - begin) / 0.8, 0.0, 1.0)
        inside, behind = (s > 0.0) & (s < 1.0), begin <= TIME
        angle[behind] = place + way * (10 * s**3 - 15 * s**4 + 6 * s**5)[behind]
        speed[inside] = way / 0.8 * (30 * s**2 - 60 * s**3 + 30 * s**4)[inside]
        acceleration[inside] = way / 0.8**2 * (60 * s - 180 * s**2 + 120 * s**3)[inside]
        held[behind] = np.sign(way)
        place += way
    return recorded(angle, speed, acceleration, COULOMB * held, seed)


def swinging(stribeck=0.0, seed=0):
    """Three sines; friction is larger near rest by a part, over 0.2 rad/s."""
    rates, sizes = np.array([0.9, 2.3, 4.1]), np.array([0.5, 0.25, 0.12])
    phases = np.multiply.outer(TIME, rates) + np.array([0.3, 1.1, 2.0])
    speed = np.cos(phases) @ (rates * sizes)
    level = COULOMB * (1.0 + stribeck * np.exp(-((speed / 0.2) ** 2)))
    motion = np.sin(phases) @ sizes, speed, -np.sin(phases) @ (rates**2 * sizes)
    return recorded(*motion, level * np.sign(speed), seed)


def counted(estimate):
    """How far each equation of motion counts."""
    point = estimate.outcome.linearisation.point
    weights = dataclasses.replace(estimate.weights, sticks=True)
    return told(estimate.problem, point, weights, 0)[:, 0]


def at_steps(estimate, values):
    return np.interp(estimate.problem.tracks[0].times(estimate.problem.timestep), TIME, values)


@functools.cache
def of_moves():
    return fit(drive(), from_point_to_point(), list(TRUTH))


@functools.cache
def near_rest(stribeck, seed):
    return fit(drive(), swinging(stribeck, seed), list(TRUTH))


def test_pauses_leave_friction_open_and_motions_do_not():
    speed = np.abs(np.gradient(from_point_to_point().channels["angle"], 4e-3))
    share, slow = counted(of_moves()), at_steps(of_moves(), speed)
    assert np.all(share[slow > 0.3] > 0.9)
    # Seven of fifteen parts of the time, less what begins and ends slowly.
    assert 0.3 < np.mean(share < 0.2) < 0.6
    assert np.mean(counted(near_rest(0.0, 0)) < 0.2) < 0.1


def test_a_rest_tells_friction_as_well_as_one_reading_of_it():
    """The mean of its equations has the variance of a force between −L and L, however long it lasts."""
    estimate = of_moves()
    for steps in (1, 10, 300):
        level = np.full((steps, 1), 0.7)
        braked = Braked(level, np.zeros((steps, 1)), level)
        spread = opening(estimate.problem, braked, np.ones((steps, 1)))
        assert 1.0 / np.sum(spread**-2.0) == pytest.approx(0.7**2 / 3.0)
        moving = Braked(level, np.full((steps, 1), 50.0), level)
        assert np.all(opening(estimate.problem, moving, np.ones((steps, 1))) < 0.05 * spread)


def test_without_dry_friction_torques_at_rest_count():
    without = drive(friction=Coulomb(coulomb=0.0))
    estimate = fit(without, from_point_to_point(), ["link.inertia.zz", "axis.viscous"])
    assert np.all(counted(estimate) == 1.0)


def test_friction_that_holds_at_rest_is_no_force_of_the_motion():
    for row in of_moves().parameters:
        assert abs(row.value - TRUTH[row.name]) < 3.0 * row.std < 0.1 * TRUTH[row.name], row
    assert of_moves().unexplained["axis"] < 2.0 * TORQUE_NOISE


def test_forces_that_were_measured_are_no_simulation():
    """Friction larger near rest, with which simulations follow the path: equations hold exactly by commands alone."""
    read, given = (fit(drive(hold), swinging(0.4), list(TRUTH)) for hold in ("linear", "zero"))
    assert is_read(read.problem)
    assert not is_read(given.problem)
    assert read.noise_choice.added_weight == 1.0
    assert given.noise_choice.added_weight > 1.0


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_friction_larger_near_rest_is_in_the_bars_of_coulomb_friction(seed):
    rows = {row.name: row for row in near_rest(0.4, seed).parameters}
    coulomb = rows["axis.coulomb"]
    white = near_rest(0.4, seed).uncertainty("gauss-newton").std[list(rows).index("axis.coulomb")]
    assert coulomb.value - COULOMB > 5.0 * white
    assert abs(coulomb.value - COULOMB) < 2.0 * coulomb.std
    for row in rows.values():
        assert abs(row.value - TRUTH[row.name]) < 3.5 * row.std


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_where_friction_does_not_fall_nothing_is_found(seed):
    estimate = near_rest(0.0, seed)
    assert estimate.evidence.latent.errors == ()
    for row in estimate.parameters:
        assert abs(row.value - TRUTH[row.name]) < 4.0 * row.std
