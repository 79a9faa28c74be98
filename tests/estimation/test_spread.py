"""One fit over many recordings: equal to a plain fit, the same digits however it is spread, fleets with known truth."""

import dataclasses

import numpy as np
import pytest

from estimation.oscillators import NOISE, oscillation
from estimation.scenes import spring_slider
from shadowfit.errors import RecordingError
from shadowfit.estimation import Free, Options, fit
from shadowfit.estimation.problem.parameter import ParameterError
from shadowfit.estimation.spread import sources
from shadowfit.estimation.spread.fleet import fit_fleet
from shadowfit.parallel import Crew
from shadowfit.recordings import RecordingFile

STIFFNESS, DAMPING = "rail.spring.stiffness", "rail.spring.damping"
MODEL = spring_slider(std=NOISE)
OPTIONS = Options(state_weight=1e4)
START = {STIFFNESS: 8.0, DAMPING: 0.5}


@pytest.fixture(scope="module")
def swings():
    return [oscillation(number) for number in range(5)]


@pytest.fixture(scope="module")
def spread(swings):
    return fit_fleet(MODEL, swings, START, options=OPTIONS, crew=Crew(1))


def test_the_same_as_a_plain_fit(swings, spread):
    plain = fit(MODEL, swings, START, options=OPTIONS)
    assert spread.converged
    for one, other in zip(spread.parameters, plain.table("gauss-newton"), strict=True):
        assert one.name == other.name
        assert one.value == pytest.approx(other.value, abs=0.02 * other.std)
    np.testing.assert_allclose(spread.information, plain.information, rtol=1e-3)
    np.testing.assert_allclose(spread.noise_covariance, plain.covariance, rtol=1e-3)


def test_the_same_digits_in_several_threads(swings, spread):
    again = fit_fleet(MODEL, swings, START, options=OPTIONS, crew=Crew(3))
    assert again.values == spread.values
    np.testing.assert_array_equal(again.noise_covariance, spread.noise_covariance)
    np.testing.assert_array_equal(again.individuals.chi, spread.individuals.chi)
    assert [entry.cost for entry in again.log] == [entry.cost for entry in spread.log]


def test_recordings_are_explained_to_their_noise(spread):
    assert np.all(spread.individuals.chi > 0.3)
    assert np.all(spread.individuals.chi < 1.7)


def test_own_parameters_are_those_of_a_plain_fit(swings):
    free = {STIFFNESS: Free(start=8.0, per_recording=True), DAMPING: 0.5}
    plain = fit(MODEL, swings, free, options=OPTIONS).table("gauss-newton")
    found = fit_fleet(MODEL, swings, free, options=OPTIONS, crew=Crew(2))
    (common,) = found.parameters
    alone = [row for row in plain if row.name.startswith(STIFFNESS)]
    assert common.value == pytest.approx(plain[-1].value, abs=0.02 * plain[-1].std)
    np.testing.assert_allclose(found.individuals.std[:, 0], [row.std for row in alone], rtol=1e-2)
    for own, row in zip(found.individuals.values[:, 0], alone, strict=True):
        assert own == pytest.approx(row.value, abs=0.02 * row.std)


def test_own_parameters_stay_in_their_boxes(swings):
    free = {STIFFNESS: Free(start=8.0, upper=8.5, per_recording=True), DAMPING: 0.5}
    found = fit_fleet(MODEL, swings, free, options=OPTIONS, crew=Crew(2))
    assert found.converged
    np.testing.assert_array_equal(found.individuals.values, np.full((5, 1), 8.5))
    assert np.all(np.isnan(found.individuals.std))


@pytest.mark.slow
def test_a_fleet_has_a_mean_and_a_spread():
    random = np.random.default_rng(7)
    stiffness = random.normal(9.0, 0.6, 40)
    fleet = [oscillation(100 + i, stiffness=own, steps=60) for i, own in enumerate(stiffness)]
    found = fit_fleet(MODEL, fleet, START, scatter=(STIFFNESS,), options=OPTIONS, crew=Crew(1))
    mean = found.parameters[0]
    (spread,) = found.spreads
    # What is known of a mean and a spread of forty: to ω/√40 and ω/√80, a little more with noise.
    planted = np.std(stiffness, ddof=1)
    assert mean.std == pytest.approx(planted / np.sqrt(40), rel=0.25)
    assert spread.std == pytest.approx(planted / np.sqrt(80), rel=0.25)
    assert mean.value == pytest.approx(np.mean(stiffness), abs=0.5 * mean.std)
    assert spread.value == pytest.approx(planted, abs=spread.std)
    # Each is drawn to the mean by as little as its own data leave open.
    np.testing.assert_allclose(found.individuals.values[:, 0], stiffness, atol=5.0 * np.max(found.individuals.std))
    assert np.corrcoef(found.individuals.values[:, 0], stiffness)[0, 1] > 0.95


def test_a_spread_is_known_as_well_as_that_of_the_values_themselves():
    """Of N values that their own recordings tell well: to ω/√(2(N − 1)), their mean to ω/√N."""
    stiffness = np.array([6.0, 8.0, 9.5, 10.0, 12.5])
    fleet = [oscillation(400 + i, stiffness=own, steps=60) for i, own in enumerate(stiffness)]
    found = fit_fleet(MODEL, fleet, START, scatter=(STIFFNESS,), options=OPTIONS, crew=Crew(1))
    (spread,) = found.spreads
    assert spread.value == pytest.approx(np.std(stiffness, ddof=1), rel=0.05)
    assert spread.std == pytest.approx(spread.value / np.sqrt(8), rel=0.02)
    assert found.parameters[0].std == pytest.approx(spread.value / np.sqrt(5), rel=0.02)


def test_a_fleet_of_equals_has_next_to_no_spread():
    fleet = [oscillation(300 + i, steps=60) for i in range(8)]
    found = fit_fleet(MODEL, fleet, START, scatter=(STIFFNESS,), options=OPTIONS, crew=Crew(1))
    plain = fit(MODEL, fleet, START, options=OPTIONS).table("gauss-newton")
    assert found.spreads[0].value < 3.0 * plain[0].std
    assert found.parameters[0].value == pytest.approx(plain[0].value, abs=plain[0].std)


def test_shards_depend_on_the_number_of_recordings_alone():
    assert [len(one) for one in sources.shards(range(5))] == [1] * 5
    assert {len(one) for one in sources.shards(range(200))} == {3, 2}
    assert max(len(one) for one in sources.shards(range(100_000))) == sources.LARGEST
    assert [x for one in sources.shards(range(200)) for x in one] == list(range(200))


def test_recordings_are_read_where_they_are_fitted(tmp_path, swings, spread):
    files = []
    for swing in swings:
        path = tmp_path / f"{swing.name}.csv"
        rows = np.column_stack([swing.time, swing.channels["x"]])
        path.write_text("time,x\n" + "".join(f"{t!r},{x!r}\n" for t, x in rows.tolist()))
        files.append(RecordingFile(str(path)))
    found = fit_fleet(MODEL, files, START, options=OPTIONS, crew=Crew(1))
    assert found.values == spread.values
    missing = [*files, RecordingFile(str(tmp_path / "none.csv"))]
    with pytest.raises(RecordingError, match=r"1 of 6 recordings cannot be read .* by any worker"):
        fit_fleet(MODEL, missing, START, options=OPTIONS)


def test_what_cannot_scatter_is_refused(swings):
    with pytest.raises(ParameterError, match="it is not free"):
        fit_fleet(MODEL, swings, {STIFFNESS: 8.0}, scatter=(DAMPING,), options=OPTIONS)


def test_levels_of_the_noise_come_from_a_pilot_fit(swings):
    found = fit_fleet(MODEL, swings, START, crew=Crew(1))
    assert found.converged
    assert found.weights.reference == pytest.approx(NOISE, rel=0.3)
    row = found.parameters[0]
    assert row.value == pytest.approx(9.0, abs=4.0 * row.std)
    assert dataclasses.astuple(row)[0] == STIFFNESS
