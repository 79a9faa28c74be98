"""Ends of motions: driven joints come to rest and stay there, shown on machines whose motion is known otherwise."""

import dataclasses

import numpy as np
import pytest

from designs.test_information import sled
from shadowfit.designs.drives import Signals
from shadowfit.designs.ending import HUMPS, Ending, braking_time, hump_shapes, resting
from shadowfit.designs.experiment import Sampling, experiment
from shadowfit.designs.waves import Waves
from shadowfit.mechanism import Input
from shadowfit.mechanism.leaves import Parts
from shadowfit.models import Start, read_model


def driven(mechanism, ending, amplitude, duration=4.0):
    """A machine with one input, and three random signals for it."""
    own = experiment(mechanism, Start(), (), Sampling(duration, 0.01, 0.01))
    drive = Signals(Waves(1, duration, 2.0, 5, 0.1), np.zeros(1), np.array([amplitude]), ending)
    random = np.random.default_rng(5)
    return own, drive, np.array([drive.drawn(random) for _ in range(3)])


def largest_at_end(own, motions, place):
    return np.max(np.abs(motions.speeds[:, resting(own), place]), axis=1)


@pytest.mark.parametrize("part", [Input(unit="N"), Input(unit="N", gain=0.5, delay=0.034), Input(hold="linear")])
def test_a_sled_stops_by_its_equation_of_motion(part):
    """2 v̇ + v = gain·u(t − delay), integrated on a grid of a tenth of a millisecond from the inputs alone."""
    mechanism = sled().having(inputs=Parts({"u": part}))
    own, drive, coefficients = driven(mechanism, Ending((0,), (0.01,)), 4.0)
    motions = drive.motions(own, coefficients)
    fine = np.arange(0.0, 4.0, 1e-4)
    delayed = np.maximum(fine - float(part.delay), 0.0)
    for inputs in motions.inputs[:, :, 0]:
        held = inputs[np.floor(delayed / 0.01 * (1 + 1e-12)).astype(int)]
        signal = np.interp(delayed, motions.time, inputs) if part.hold == "linear" else held
        speed = np.zeros(len(fine))
        for k in range(1, len(fine)):
            speed[k] = speed[k - 1] + 1e-4 * (float(part.gain) * signal[k - 1] - speed[k - 1]) / 2.0
        assert np.max(np.abs(speed)) > 0.2
        assert np.max(np.abs(speed[fine > 3.82])) < 0.01


def test_a_cart_is_held_while_its_pole_swings():
    """The same inputs without an end leave it rolling; the force that holds it is not zero."""
    own, drive, coefficients = driven(read_model("cartpole"), Ending((0,), (0.017,)), 2.0)
    free = dataclasses.replace(drive, ending=Ending((), ()))
    rolling, braked = (largest_at_end(own, one.motions(own, coefficients), 0) for one in (free, drive))
    motions = drive.motions(own, coefficients)
    assert np.all(rolling > 0.05)
    assert np.all(braked < 0.017)
    assert np.all(largest_at_end(own, motions, 1) > 0.1)
    assert np.all(np.abs(motions.inputs[:, -1, 0]) > 1e-3)


def test_a_pole_that_nothing_drives_comes_to_rest_where_that_is_asked_for():
    """Through the cart: of the speed of its last swing less than a tenth is left, of the angle less than a fifth."""
    own, drive, coefficients = driven(read_model("cartpole"), Ending((0, 1), (0.017, 0.057)), 2.0, 12.0)
    free = dataclasses.replace(drive, ending=Ending((), ()))
    rolling, braked = (one.motions(own, 0.1 * coefficients) for one in (free, drive))
    assert np.all(largest_at_end(own, rolling, 1) > 0.5)
    assert np.all(largest_at_end(own, braked, 1) < 0.1 * largest_at_end(own, rolling, 1))
    assert np.all(largest_at_end(own, braked, 0) < largest_at_end(own, rolling, 0))
    swings = np.max(np.abs(rolling.coordinates[:, -120:, 1]), axis=1)
    assert np.all(np.abs(braked.coordinates[:, -1, 1]) < 0.2 * swings)


def test_what_comes_to_rest_by_itself_is_left_alone():
    """Each motion by itself: the sled's speeds at the end decide, and inputs of others stay as they are."""
    own, drive, coefficients = driven(sled(), Ending((0,), (0.01,)), 4.0)
    coefficients[1] *= 1e-3
    free = dataclasses.replace(drive, ending=Ending((), ())).motions(own, coefficients)
    changed = np.any(drive.motions(own, coefficients).inputs != free.inputs, axis=(1, 2))
    assert changed.tolist() == (largest_at_end(own, free, 0) > 0.005).tolist() == [True, False, True]


def test_humps_begin_smoothly_in_the_last_part():
    own = experiment(sled(), Start(), (), Sampling(10.0, 0.005, 0.005))
    shapes, time = hump_shapes(own, np.array([2.0, 3.0])), own.sampling.times
    assert not np.any(shapes[:, time <= 10.0 - braking_time(own)])
    for order in range(1, 4):
        # Splines of third degree: peaks of 2/3, and derivatives up to the second are continuous.
        assert np.max(np.abs(np.diff(shapes, order, axis=1))) < 12.0 * (0.005 * HUMPS / braking_time(own)) ** order
    assert np.linalg.matrix_rank(shapes.reshape(len(shapes), -1)) == len(shapes)
    assert [np.max(np.abs(shapes[..., i])) for i in range(2)] == pytest.approx([4 / 3, 2.0], rel=1e-3)


def test_a_long_recording_takes_no_longer_to_come_to_rest():
    """Nor a short one more than a fifth of it."""
    short, usual, long = (
        experiment(read_model("cartpole"), Start(), (), Sampling(duration, 0.01, 0.01))
        for duration in (3.0, 10.0, 60.0)
    )
    assert braking_time(short) == pytest.approx(0.6)
    assert 1.0 < braking_time(usual) == braking_time(long) < 2.0
