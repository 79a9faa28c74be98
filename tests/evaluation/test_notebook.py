"""An estimate in a notebook and a script: short, with its verdict, as frames and as figures."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot

from shadowfit.evaluation.notices import MEANING
from shadowfit.evaluation.plots import PlotError

mpl.use("Agg")


@pytest.fixture(autouse=True)
def figures_are_closed():
    yield
    pyplot.close("all")


def test_its_representation_is_a_line(estimate, saved):
    for one in (estimate, saved, estimate.draw(50), estimate.plot):
        assert len(repr(one)) < 300, repr(one)[:400]
        assert "\n" not in repr(one)


def test_the_summary_begins_with_the_verdict(estimate):
    assert estimate.summary().splitlines()[0] == f"{estimate.verdict}: {MEANING[estimate.verdict]}."
    assert all(row.name in estimate.summary() for row in estimate.parameters)


def test_a_cell_shows_the_verdict_and_the_table(estimate):
    page = estimate._repr_html_()
    assert MEANING[estimate.verdict] in page
    assert all(f"<td>{row.name}</td>" in page for row in estimate.parameters)
    assert page.count("<table>") == page.count("</table>") == 1


def test_the_table_of_parameters_as_frames(estimate):
    polars, pandas = estimate.to_polars(), estimate.to_pandas()
    assert polars["name"].to_list() == pandas["name"].tolist() == [row.name for row in estimate.parameters]
    np.testing.assert_array_equal(polars["std"].to_numpy(), pandas["std"].to_numpy())


@pytest.mark.filterwarnings("ignore::FutureWarning:arviz")
@pytest.mark.filterwarnings("ignore:\\s*ArviZ is undergoing:FutureWarning")
def test_draws_in_arviz(estimate):
    draws = estimate.draw(200)
    posterior = draws.to_arviz().posterior
    assert dict(posterior.sizes) == {"chain": 1, "draw": 200}
    np.testing.assert_array_equal(posterior["hinge.viscous"].values[0], draws.to_dict()["hinge.viscous"])


def test_the_fit_over_its_samples(estimate, recording):
    (panel,) = estimate.plot.fit()
    samples, line = panel.lines
    np.testing.assert_array_equal(samples.get_ydata().ravel(), recording.channel("theta"))
    assert np.std(line.get_ydata().ravel() - recording.channel("theta")) < 2e-3


def test_the_machine_is_drawn_where_it_moves(estimate):
    axes = estimate.plot.machine()
    ends = np.concatenate([np.transpose(line.get_data_3d()) for line in axes.lines])
    # A rod that turns about the x axis at the origin, 0.092 m from its centre of mass and as far again beyond.
    np.testing.assert_allclose(ends[:, 0], 0.0, atol=2e-3)
    assert np.linalg.norm(ends, axis=1).max() == pytest.approx(0.184, abs=2e-3)


def test_residuals_within_their_noise(estimate):
    (panel,) = estimate.plot.residuals()
    assert 0.5e-3 < np.std(panel.lines[0].get_ydata()) < 2e-3


@pytest.mark.parametrize("over", ["speed", "position", "time"])
def test_unexplained_forces(estimate, over):
    (panel,) = estimate.plot.forces(over)
    assert panel.get_xlabel() == over
    assert len(panel.lines[0].get_xdata()) == estimate.steps


def test_the_forest_has_a_panel_for_each_parameter(estimate):
    panels = estimate.plot.forest()
    assert [panel.get_ylabel() for panel in panels] == [row.name for row in estimate.parameters]


@pytest.mark.parametrize("name", ["machine", "fit", "residuals", "rollouts", "forces"])
def test_a_recording_that_is_not_there_is_named(estimate, name):
    with pytest.raises(PlotError, match="no recording 3; this fit has 1"):
        getattr(estimate.plot, name)(recording=3)


def test_pairs_of_draws(estimate):
    draws = estimate.draw(30)
    grid = estimate.plot.pairs(draws)
    np.testing.assert_array_equal(grid[1, 0].lines[0].get_xdata(), draws.table[:, 0])
    np.testing.assert_array_equal(grid[1, 0].lines[0].get_ydata(), draws.table[:, 1])


def test_rollouts_have_a_band_around_the_estimate(estimate):
    (panel,) = estimate.plot.rollouts(estimate.draw(12))
    (band,) = panel.collections
    own = panel.lines[1].get_ydata().ravel()
    edges = band.get_paths()[0].vertices[:, 1]
    assert edges.min() - 0.01 < own.min() < own.max() < edges.max() + 0.01
