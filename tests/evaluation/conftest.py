"""One small fit that the tests of results share: a pendulum with noise, two parameters."""

import numpy as np
import pytest

from shadowfit.dynamics import simulate
from shadowfit.estimation import LevenbergMarquardt, Options, fit
from shadowfit.evaluation import load_result, save_estimate, write_report
from shadowfit.models import load_model
from shadowfit.recordings import Recording

TRUTH = {"pendulum.inertia.yy": 0.0035, "hinge.viscous": 4e-4}
# A rod so thick that the model stays possible when its other moment changes.
BASE = {"pendulum.inertia.xx": 5e-4}
TIMESTEP = 0.01
# Steps of the simulation between samples: the machine knows nothing of a fit's time-step.
FINER = 10


def swing(seed, start, steps=240, name="swing", viscous=TRUTH["hinge.viscous"]):
    """A recording of the built-in pendulum with the true parameters, sampled with noise."""
    model = load_model("pendulum")
    mechanism = model.mechanism.set(BASE | TRUTH | {"hinge.viscous": viscous})
    state = model.start.with_joints({"hinge": start}, {}).state(mechanism)
    # Rigid joints, as the fits take them: the model's own give by a tenth of a millimetre per newton.
    run = simulate(mechanism, state, timestep=TIMESTEP / FINER, steps=FINER * steps, joints="rigid", substeps=1)
    noise = np.random.default_rng(seed).normal(0.0, 1e-3, steps + 1)
    time, theta = np.asarray(run.time)[::FINER], np.asarray(run.readings["theta"])[::FINER]
    return Recording(time, {"theta": theta + noise}, name=name)


@pytest.fixture(scope="session")
def truth():
    return TRUTH


@pytest.fixture(scope="session")
def base():
    return BASE


@pytest.fixture(scope="session")
def make_swing():
    return swing


@pytest.fixture(scope="session")
def recording():
    return swing(1, 2.0)


@pytest.fixture(scope="session")
def estimate(recording):
    return fit(load_model("pendulum").mechanism.set(BASE), recording, list(TRUTH), options=Options())


@pytest.fixture(scope="session")
def saved(estimate, tmp_path_factory):
    folder = tmp_path_factory.mktemp("result") / "pendulum"
    settings = LevenbergMarquardt()
    save_estimate(estimate, folder, model_text=load_model("pendulum").text, optimiser=settings, truth=TRUTH)
    result = load_result(folder)
    write_report(result)
    return result
