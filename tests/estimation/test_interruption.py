"""Ctrl-C within the fits that other work consists of: nothing is made of half of one."""

import pytest

from estimation.scenes import STEPPER, spring_slider, twin
from shadowfit.estimation import Options, fit
from shadowfit.estimation.refits.bootstrap import bootstrap
from shadowfit.estimation.refits.profile import profile
from shadowfit.estimation.solve.levenberg_marquardt import Status
from shadowfit.estimation.solve.system import LocalSystem
from shadowfit.estimation.spread.fleet import fit_fleet
from shadowfit.evaluation.validation import validate

STIFFNESS = "rail.spring.stiffness"
OPTIONS = Options(**STEPPER, timestep=0.02)
MODEL = spring_slider()


@pytest.fixture(scope="module")
def recording():
    return twin(MODEL, {"rail": 0.3}, 40, timestep=0.02, noise=1e-2)


@pytest.fixture(scope="module")
def estimate(recording):
    return fit(MODEL, recording, {STIFFNESS: 8.0}, options=OPTIONS)


@pytest.fixture
def interrupted(estimate, monkeypatch):
    """From here on every fit is interrupted in its first iteration."""

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalSystem, "propose", stop)
    return estimate


def test_a_fit_by_itself_keeps_the_best_so_far(interrupted, recording):
    assert fit(MODEL, recording, {STIFFNESS: 8.0}, options=OPTIONS).status is Status.INTERRUPTED


def test_the_fits_that_other_work_needs_are_whole(interrupted, recording):
    with pytest.raises(KeyboardInterrupt):
        fit_fleet(MODEL, [recording] * 2, {STIFFNESS: 8.0}, options=OPTIONS)
    with pytest.raises(KeyboardInterrupt):
        validate(MODEL, recording, options=OPTIONS)


@pytest.mark.slow
def test_a_replicate_that_is_interrupted_did_not_fail(interrupted):
    found = bootstrap(interrupted, 3)
    assert (found.interrupted, len(found.replicates), found.failed) == (True, 0, 0)


def test_a_profile_has_no_value_of_a_fit_that_was_interrupted(interrupted):
    found = profile(interrupted, STIFFNESS)
    assert not found.complete
    assert found.values.tolist() == [interrupted.parameters[0].value]
