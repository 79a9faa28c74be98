"""A fit over many recordings on a real local cluster: digits, killed workers, recordings that only some can read."""

import os
import signal
import threading
import time

import joblib
import numpy as np
import pytest

from estimation.oscillators import NOISE, oscillation
from estimation.scenes import spring_slider
from shadowfit.errors import RecordingError
from shadowfit.estimation import Options, fit
from shadowfit.estimation.refits.profile import profiles
from shadowfit.estimation.spread.fleet import fit_fleet
from shadowfit.parallel import Crew

STIFFNESS, DAMPING = "rail.spring.stiffness", "rail.spring.damping"
MODEL = spring_slider(std=NOISE)
OPTIONS = Options(state_weight=1e4)
START = {STIFFNESS: 8.0, DAMPING: 0.5}


@pytest.fixture(scope="module")
def swings():
    return [oscillation(number, stiffness=8.5 + 0.2 * (number % 5)) for number in range(6)]


@pytest.fixture(scope="module")
def here(swings):
    return fit_fleet(MODEL, swings, START, scatter=(STIFFNESS,), options=OPTIONS, crew=Crew(2))


def same_digits(one, other):
    return (
        one.values == other.values
        and one.spreads == other.spreads
        and np.array_equal(one.noise_covariance, other.noise_covariance)
        and np.array_equal(one.individuals.values, other.individuals.values)
        and [entry.cost for entry in one.log] == [entry.cost for entry in other.log]
    )


def test_the_same_digits_as_in_threads(cluster, swings, here):
    found = fit_fleet(MODEL, swings, START, scatter=(STIFFNESS,), options=OPTIONS, crew=cluster)
    assert same_digits(found, here)


def test_a_killed_worker_costs_no_digit(cluster, swings, here):
    """A worker is killed outright in the middle of the fit; what it held is made again by another."""
    killed = []

    def kill_one(iteration):
        if iteration.number == 2 and not killed:
            killed.append(next(iter(cluster.client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    found = fit_fleet(MODEL, swings, START, scatter=(STIFFNESS,), options=OPTIONS, crew=cluster, progress=kill_one)
    assert killed
    assert same_digits(found, here)


def test_profiles_on_the_cluster_are_those_of_threads(cluster, swings):
    """An estimate travels, with all that belongs to it but compiled code."""
    estimate = fit(MODEL, swings[0], START, options=OPTIONS)
    alone = profiles(estimate, list(START), n_jobs=1)
    with joblib.parallel_config(backend="dask", client=cluster.client):
        together = profiles(estimate, list(START))
    assert {name: own.interval for name, own in together.items()} == {name: own.interval for name, own in alone.items()}


@pytest.mark.slow
def test_ten_kills_at_random_moments_cost_no_digit(cluster, swings, here):
    random, stop, killed = np.random.default_rng(0), threading.Event(), []

    def kill_now_and_then():
        while not stop.wait(random.uniform(0.2, 2.0)):
            cluster.client.cluster.scale(2)  # a nanny that waits too long for its new worker gives it up
            processes = list(cluster.client.run(os.getpid, on_error="ignore").values())
            if len(processes) == 2 and len(killed) < 10:
                killed.append(processes[int(random.integers(2))])
                os.kill(killed[-1], signal.SIGKILL)

    killer = threading.Thread(target=kill_now_and_then)
    killer.start()
    try:
        until = time.monotonic() + 900.0  # a worker takes a while to come back where others use the machine, too
        while len(killed) < 10 and time.monotonic() < until:
            found = fit_fleet(MODEL, swings, START, scatter=(STIFFNESS,), options=OPTIONS, crew=cluster)
            assert same_digits(found, here)
    finally:
        stop.set()
        killer.join()
    assert len(killed) == 10


class OnlyHere:
    """A recording that one of the processes cannot read."""

    name = "runs/secret.csv"

    def __init__(self, recording, unable):
        self.recording, self.unable = recording, unable

    def read(self):
        if os.getpid() == self.unable:
            raise FileNotFoundError("no such file: runs/secret.csv")
        return self.recording


def test_a_recording_that_only_some_workers_can_read_is_named(cluster, swings):
    cluster.client.wait_for_workers(2)
    unable = next(iter(cluster.client.run(os.getpid).values()))
    sources = [OnlyHere(swing, unable) for swing in swings * 3]
    with pytest.raises(
        RecordingError, match=r"'runs/secret.csv' on .*, which cannot be read by 1 of 2 workers: no such"
    ):
        fit_fleet(MODEL, sources, START, options=OPTIONS, crew=cluster)
