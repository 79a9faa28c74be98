"""Numbers of threads change no digit of a fit."""

import numpy as np
import pytest

from shadowfit.dynamics import simulate
from shadowfit.estimation import fit
from shadowfit.estimation.linear import threads
from shadowfit.estimation.solve import chunks
from shadowfit.kernels import processors
from shadowfit.models import load_model
from shadowfit.recordings import Recording


@pytest.fixture(scope="module")
def swing():
    """A pendulum for so long that its time is worked on in several pieces."""
    model = load_model("pendulum")
    state = model.start.with_joints({"hinge": 2.0}, {}).state(model.mechanism)
    steps = 2 * chunks.LEAST + 10
    run = simulate(model.mechanism, state, timestep=0.01, steps=steps, joints="rigid", substeps=1)
    noise = np.random.default_rng(0).normal(0.0, 1e-3, steps + 1)
    return model.mechanism, Recording(np.asarray(run.time), {"theta": np.asarray(run.readings["theta"]) + noise})


def test_any_number_of_threads_gives_the_same_digits(swing, monkeypatch):
    mechanism, recording = swing
    used: set[int] = set()
    pool = processors.pool
    monkeypatch.setattr(processors, "pool", lambda *which: (used.add(which[1]), pool(*which))[1])
    monkeypatch.setattr(chunks, "NUMBERS", 0)  # a small machine's steps would be a single piece of work
    found = []
    for count in ("1", "2", "5"):
        monkeypatch.setenv(processors.VARIABLE, count)
        estimate = fit(mechanism, recording, ("hinge.viscous", "pendulum.inertia.yy"))
        found.append((estimate.cost, estimate.values, estimate.covariance.tolist()))
    assert used == {2, 5}
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("said", ["0", "-1", "two", "1.5", "99999"])
def test_numbers_of_threads_that_are_none(monkeypatch, said):
    monkeypatch.setenv(processors.VARIABLE, said)
    with pytest.raises(processors.ThreadsError, match="SHADOWFIT_THREADS"):
        list(threads.in_threads(str, [1]))
