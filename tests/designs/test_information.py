"""Information of motions: that of the dense problem, that of an actual fit, and the scatter of fits to noise."""

import dataclasses
import itertools

import numpy as np
import pytest

from quick import quick
from shadowfit.designs.drives import JointMotion, command_of_force
from shadowfit.designs.experiment import Sampling, at_rest, experiment, typical_force_noise
from shadowfit.designs.information import exactly, informations, up_to
from shadowfit.designs.led import led
from shadowfit.designs.systematic import FINER, systematic
from shadowfit.designs.waves import Waves
from shadowfit.dynamics import observe
from shadowfit.dynamics.state import State
from shadowfit.estimation import ErrorModel, Options, fit
from shadowfit.estimation.solve import objective
from shadowfit.mechanism import Body, Coulomb, Input, JointPosition, Mechanism, TorqueMotor, hinge, slider
from shadowfit.models import Start, read_model
from shadowfit.recordings import Recording

FREE = ("cart.mass", "pole.inertia.yy", "rail.viscous", "pivot.viscous")
LEVELS = {"rail": 0.05, "pivot": 0.005}


def cartpole(duration=2.0, timestep=0.01):
    return experiment(read_model("cartpole"), Start(), FREE, Sampling(duration, 0.01, timestep))


def shaken(own, count=1):
    """Motions from rest with forces that differ."""
    time = own.sampling.times
    forces = [2.0 * np.sin(2 * np.pi * (1.0 + 0.3 * i) * time) * np.sin(np.pi * time / time[-1]) for i in range(count)]
    return own.simulated(np.zeros((count, own.tree.size)), np.array(forces)[:, :, None])


def recorded(own, motions, index=0):
    """What is recorded of a motion, without noise."""
    pose = own.bodies(motions.pose[index])
    states = State(pose[1:-1], np.zeros((len(pose.position) - 2, len(own.mechanism.bodies), 6)))
    channels = observe.readings(own.mechanism, states, at_rest(own.mechanism, len(states.velocity)))
    channels |= {name: motions.inputs[index, 1:-1, i] for i, name in enumerate(own.mechanism.inputs)}
    return Recording(motions.time[1:-1], channels)


@pytest.fixture(scope="module")
def two():
    own = cartpole().with_force_noise(LEVELS)
    return own, shaken(own, 2)


def test_structured_is_dense(two):
    own, motions = two
    problem, point = own.posed(motions)
    found = informations(own, motions)
    for index in range(2):
        rows = list(objective.chunk_rows(problem, point, own.weights, index))
        steps, size = problem.tracks[index].steps, own.tree.size
        states, parameters = (
            np.concatenate([np.asarray(getattr(r, name)) for r in rows]) for name in ("states", "parameters")
        )
        count = states.shape[1]
        wide = np.zeros((steps * count, (steps + 2) * size))
        for k in range(steps):
            wide[k * count : (k + 1) * count, k * size : (k + 3) * size] = states[k].reshape(count, -1)
        table = parameters[:steps].reshape(steps * count, -1)
        left = table - wide @ np.linalg.lstsq(wide, table, rcond=None)[0]
        np.testing.assert_allclose(found[index], left.T @ left / own.weights.reference**2, rtol=1e-5)


def test_all_digits_and_few_agree(two):
    np.testing.assert_allclose(informations(*two), exactly(*two), rtol=1e-5)


def test_information_is_that_of_the_fit(two):
    own, motions = two
    options = Options(timestep=0.01, unknowns="joint", state_weight=1.0, errors=ErrorModel(LEVELS))
    estimate = fit(own.mechanism, recorded(own, motions), FREE, options=options)
    assert estimate.converged
    bars = np.sqrt(np.diagonal(np.linalg.inv(exactly(own, motions)[0])))
    np.testing.assert_allclose(bars, np.sqrt(np.diagonal(estimate.covariance)), rtol=2e-3)


def test_a_coarser_look_says_about_the_same(two):
    own, motions = two
    rough = cartpole(timestep=0.02).with_force_noise(LEVELS)
    fine, coarse = (np.linalg.inv(exactly(e, m)[0]) for e, m in ((own, motions), (rough, shaken(rough))))
    np.testing.assert_allclose(np.diagonal(coarse), np.diagonal(fine), rtol=0.1)


def test_information_grows_with_time_to_the_whole(two):
    own, motions = two
    nodes = [60, 120, len(motions.time)]
    grown = up_to(own, motions, nodes)
    np.testing.assert_allclose(grown[-1], exactly(own, motions)[0], rtol=1e-9)
    for earlier, later in itertools.pairwise(grown):
        assert np.linalg.eigvalsh((later - earlier) * np.outer(own.scale, own.scale))[0] > 0.0


def test_typical_noise_is_a_hundredth_of_the_forces(two):
    own, motions = two
    levels = typical_force_noise(own.with_force_noise({}), motions[:1])
    force = np.sqrt(np.mean((0.7 * np.gradient(motions.speeds[0, :, 0], motions.time)) ** 2))
    assert levels["rail"] == pytest.approx(0.01 * force, rel=0.5)


def test_a_motion_that_cannot_be_simulated_tells_nothing():
    own = cartpole().with_force_noise(LEVELS)
    forces = np.zeros((2, own.sampling.nodes, 1))
    forces[1, 5:] = 1e80
    motions = own.simulated(np.zeros((2, 2)), forces)
    assert motions.good.tolist() == [True, False]
    assert not informations(own, motions)[1].any()


def sled():
    return Mechanism(
        {"sled": Body(2.0, np.eye(3))},
        {
            "rail": slider(
                "world", "sled", axis=(1, 0, 0), viscous=1.0, laws={"motor": TorqueMotor(1.0)}, compliance=1e-9
            )
        },
        sensors={"x": JointPosition(joint="rail", std=1e-3, rotary=False)},
        inputs={"u": Input(unit="N")},
        name="sled",
    )


@pytest.mark.parametrize("defaults", quick([False, True], False))
def test_promised_bars_are_the_scatter_of_fits(defaults):
    """With the weights that belong to the noise, and with those that a fit finds by itself."""
    mechanism, free, level = sled(), ("sled.mass", "rail.viscous"), {"rail": 0.2}
    own = experiment(mechanism, Start(), free, Sampling(2.0, 0.02, 0.02)).with_force_noise(level)
    random, seeds = np.random.default_rng(3), 30
    clean = np.tile(4.0 * np.sin(2 * np.pi * 0.7 * own.sampling.times)[:, None], (seeds + 1, 1, 1))
    noisy = clean + np.concatenate(
        [np.zeros((1, *clean.shape[1:])), level["rail"] * random.normal(size=clean[1:].shape)]
    )
    motions = own.simulated(np.zeros((seeds + 1, 1)), noisy)
    promised = np.sqrt(np.diagonal(np.linalg.inv(exactly(own, motions[:1])[0])))
    told = Options(timestep=0.02, unknowns="joint", state_weight=1.0, errors=ErrorModel(level))
    options = Options(timestep=0.02) if defaults else told
    found = []
    for seed in range(1, seeds + 1):
        recording = recorded(own, dataclasses.replace(motions, inputs=clean), seed)
        reading = recording.channels["x"] + 1e-3 * random.normal(size=len(recording))
        noisy_recording = Recording(recording.time, {"x": reading, "u": recording.channels["u"]})
        estimate = fit(mechanism, noisy_recording, free, options=options)
        found.append([row.value for row in estimate.table("gauss-newton")])
    scatter = np.std(found, axis=0, ddof=1)
    # The standard deviation of 30 values is known to 13 %; three times that is allowed.
    np.testing.assert_allclose(scatter / promised, 1.0, atol=0.39)
    assert np.all(np.abs(np.mean(found, axis=0) - [2.0, 1.0]) < 3.5 * promised / np.sqrt(seeds))


def rubbing_arm():
    """A light arm with much dry friction, led along a path by torques that are read."""
    return Mechanism(
        {"arm": Body(1.0, np.diag([0.02, 0.02, 2e-3]), com=(0.0, 0.0, -0.1))},
        {
            "hinge": hinge(
                "world",
                "arm",
                axis=(0.0, 1.0, 0.0),
                viscous=0.05,
                friction=Coulomb(coulomb=0.2),
                laws={"motor": TorqueMotor(1.0, input="u")},
                compliance=1e-9,
            )
        },
        sensors={"q": JointPosition(joint="hinge", std=1e-4)},
        inputs={"u": Input(unit="N m", hold="linear")},
        name="rubbing_arm",
    )


def test_what_a_fit_is_off_by_without_noise_is_told_beforehand():
    """A machine that is led along the motion in fine steps, fitted: off by what was said."""
    mechanism, free, level = rubbing_arm(), ("arm.inertia.yy", "hinge.viscous", "hinge.coulomb"), {"hinge": 0.002}
    sampling = Sampling(4.0, 0.02, 0.02)
    own = experiment(mechanism, Start(), free, sampling).with_force_noise(level)
    exact = experiment(mechanism, Start(), free, dataclasses.replace(sampling, timestep=0.02 / FINER))
    drive = JointMotion(Waves(1, sampling.duration, 1.5), np.array([0.8]), command_of_force(own))
    coefficients = drive.usual()["fourier"]
    motion = drive.motions(own, coefficients[None])
    shift = systematic(own, exact, drive, coefficients, motion)
    moved = led(own, exact, drive, coefficients)
    channels = {"q": moved.coordinates[0, :, 0], "u": moved.inputs[0, :, 0]}
    options = Options(timestep=0.02, unknowns="joint", state_weight=1.0, errors=ErrorModel(level))
    estimate = fit(mechanism, Recording(moved.time, channels), free, options=options)
    off = np.array([row.value for row in estimate.parameters]) - [0.02, 0.05, 0.2]
    bars = np.sqrt(np.diagonal(np.linalg.inv(exactly(own, motion)[0])))
    assert np.max(np.abs(off / bars)) > 2.0  # there is something to tell
    np.testing.assert_allclose(shift / bars, off / bars, atol=0.1 * np.max(np.abs(off / bars)))
