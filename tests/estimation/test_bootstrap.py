"""Bootstrap and profile likelihood: agree with linearised error bars where those are right; interrupts; errors."""

import numpy as np
import pytest

from estimation.scenes import STEPPER, spring_slider, twin
from shadowfit.errors import UnknownNameError
from shadowfit.estimation import Free, Options, fit
from shadowfit.estimation.refits.bootstrap import bootstrap, replicate
from shadowfit.estimation.refits.profile import profile, profiles

pytestmark = pytest.mark.slow

NAMES = ("rail.spring.stiffness", "rail.spring.damping")
# Impulse errors of 1e-3 N s against readings of 1e-2 m.
OPTIONS = Options(**STEPPER, timestep=0.02)


@pytest.fixture(scope="module")
def estimate():
    mechanism = spring_slider()
    recording = twin(mechanism, {"rail": 0.3}, 150, timestep=0.02, noise=1e-2)
    return fit(mechanism, recording, dict(zip(NAMES, (8.0, 0.5), strict=True)), options=OPTIONS)


@pytest.mark.parametrize("errors", ["parametric", "block"])
def test_replicates_scatter_as_the_linearised_kinds_say(estimate, errors):
    found = bootstrap(estimate, 60, errors, seed=1)
    kind = "gauss-newton" if errors == "parametric" else "residual"
    assert found.failed == 0
    # Sixty replicates know a standard deviation to a tenth.
    np.testing.assert_allclose(found.std / estimate.uncertainty(kind).std, 1.0, atol=0.35)
    for interval, row in zip(found.intervals(), estimate.parameters, strict=True):
        assert interval.lower < row.value < interval.upper


def test_replicates_differ_and_keep_everything_but_the_samples(estimate):
    random = np.random.default_rng(2)
    one, two = (replicate(estimate, "parametric", random).tracks[0] for _ in range(2))
    assert not np.array_equal(one.measured[0], two.measured[0])
    np.testing.assert_array_equal(one.present[0], estimate.problem.tracks[0].present[0])
    assert np.std(one.measured[0] - two.measured[0]) > np.sqrt(2.0) * 0.8e-2


def test_an_interrupt_keeps_what_is_done(estimate):
    def stop(done, total):
        assert total == 10
        if done == 2:
            raise KeyboardInterrupt

    found = bootstrap(estimate, 10, progress=stop)
    assert found.interrupted
    assert found.replicates.shape == (2, 2)


def test_profile_of_a_nearly_linear_problem_is_the_gauss_newton_interval(estimate):
    found = profile(estimate, NAMES[0])
    expected = estimate.uncertainty().intervals()[0]
    width = expected.upper - expected.lower
    assert found.complete
    assert found.interval.lower == pytest.approx(expected.lower, abs=0.05 * width)
    assert found.interval.upper == pytest.approx(expected.upper, abs=0.05 * width)
    assert found.deviance.min() == 0.0
    with pytest.raises(UnknownNameError, match="stiffness"):
        profile(estimate, "rail.spring.stiff")


def test_profile_ends_at_a_bound(estimate):
    row = estimate.parameters[1]
    near = row.value - 0.5 * row.std
    mechanism = estimate.problem.given
    recording = estimate.problem.tracks[0].recording
    free = {NAMES[0]: 8.0, NAMES[1]: Free(row.value + 0.1, near, None)}
    found = profile(fit(mechanism, recording, free, options=OPTIONS), NAMES[1])
    assert found.interval.lower == near
    assert found.complete


def test_replicates_do_not_depend_on_the_number_of_workers(estimate):
    alone, together = (bootstrap(estimate, 6, seed=3, n_jobs=n_jobs) for n_jobs in (1, 3))
    np.testing.assert_allclose(together.replicates, alone.replicates, rtol=1e-12)


def test_profiles_side_by_side_are_the_single_ones(estimate):
    told = []
    found = profiles(estimate, NAMES, n_jobs=2, progress=lambda done, whole: told.append((done, whole)))
    assert list(found) == list(NAMES)
    assert told[-1] == (len(NAMES), len(NAMES))
    single = profile(estimate, NAMES[1]).interval
    np.testing.assert_allclose(
        (found[NAMES[1]].interval.lower, found[NAMES[1]].interval.upper), (single.lower, single.upper), rtol=1e-9
    )
