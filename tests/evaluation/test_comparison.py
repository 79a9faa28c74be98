"""Nested models, cross-validation, missing axis forces, cautions."""

import dataclasses

import numpy as np
import pytest

from shadowfit.estimation import Options, fit
from shadowfit.evaluation.axis_forces import axis_forces
from shadowfit.evaluation.cautions import cautions
from shadowfit.evaluation.comparison import ComparisonError, compare_models, markdown
from shadowfit.evaluation.cross_validation import cross_validate
from shadowfit.models import load_model

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(base):
    return load_model("pendulum").mechanism.set({**base, "hinge.compliance.linear": 1e-6})


def test_the_data_ask_for_the_friction_that_is_there(model, recording):
    """The truth has viscous and dry friction: without the dry part the cost is higher, with it that is settled."""
    options = Options(state_weight=1e4)
    without = model.set({"hinge.dry": 0.0, "hinge.viscous": 4e-4})
    names = ("pendulum.inertia.yy", "hinge.viscous")
    fits = {
        "viscous": fit(without, recording, names, options=options),
        "dry": fit(without, recording, {**dict.fromkeys(names), "hinge.dry": 1e-3}, options=options),
    }
    small, large = compare_models(fits)
    assert large.parameters == small.parameters + 1
    assert large.ratio > 20.0
    assert large.probability < 1e-5
    assert large.aic < small.aic
    assert large.bic < small.bic
    assert markdown((small, large)).count("\n") == 4
    # What the small model lacks: friction in slow motion. In fast motion its viscous part is too large for that.
    force = axis_forces(fits["viscous"])["hinge"]
    along = force.force * np.sign(force.speed)
    slow = np.abs(force.speed) < np.median(np.abs(force.speed))
    assert np.mean(along[slow]) < 0.0 < np.mean(along[~slow])
    speed, mean, error = force.by_speed(6)
    assert len(speed) == len(mean) == len(error) == 6
    assert np.all(np.diff(speed) > 0.0)
    others = fit(model, recording, names, options=Options(state_weight=1e3))
    with pytest.raises(ComparisonError, match="different weights"):
        compare_models({"one": fits["dry"], "two": others})


def test_table_of_fits_and_recordings(model, make_swing):
    recordings = [make_swing(1, 2.0, name="one"), make_swing(2, 1.2, name="two")]
    seen = []
    found = cross_validate(
        model,
        recordings,
        ("pendulum.inertia.yy", "hinge.viscous"),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert found.cost.shape == (2, 2)
    assert seen[-1] == (4, 4)
    # A fit's own recording costs no more than with the parameters of the other.
    assert np.all(np.diagonal(found.cost) <= found.cost.min(axis=0) + 1e-12)
    np.testing.assert_allclose(found.average, [found.cost[0, 1], found.cost[1, 0]])
    assert "| one |" in found.markdown()


def test_cautions_speak_of_coloured_and_loud_residuals(model, make_swing, estimate):
    assert cautions(estimate) == []
    quiet = make_swing(3, 2.0)
    rng = np.random.default_rng(4)
    colour = np.zeros(len(quiet.time))
    for k in range(1, len(colour)):
        colour[k] = 0.95 * colour[k - 1] + 1e-3 * rng.standard_normal()
    loud = dataclasses.replace(quiet, channels={"theta": quiet.channels["theta"] + colour})
    found = cautions(fit(model, loud, ("pendulum.inertia.yy", "hinge.viscous"), options=Options(state_weight=1e6)))
    assert any("correlated in time" in text for text in found)
