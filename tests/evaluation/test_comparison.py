"""Nested models, cross-validation, missing axis forces, cautions."""

import dataclasses

import numpy as np
import pytest

from shadowfit.estimation import Options, fit
from shadowfit.evaluation.axis_forces import axis_forces
from shadowfit.evaluation.comparison import ComparisonError, compare_models, markdown
from shadowfit.evaluation.cross_validation import cross_validate
from shadowfit.models import load_model

pytestmark = pytest.mark.slow
WEIGHED = Options(state_weight=100.0)


@pytest.fixture(scope="module")
def model(base):
    return load_model("pendulum").mechanism.set({**base, "hinge.compliance.linear": 1e-6})


def test_the_data_ask_for_the_friction_that_is_there(model, recording):
    """The truth has viscous and dry friction: without the dry part the cost is higher, with it that is settled."""
    options = Options(unknowns="configuration", correction="none", state_weight=1e4)
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
    others = fit(
        model, recording, names, options=Options(unknowns="configuration", correction="none", state_weight=1e3)
    )
    with pytest.raises(ComparisonError, match="different weights"):
        compare_models({"one": fits["dry"], "two": others})


def test_what_a_model_without_friction_lacks_opposes_the_motion(model, recording):
    without = model.set({"hinge.dry": 0.0, "hinge.viscous": 0.0})
    force = axis_forces(fit(without, recording, ()))[0]["hinge"]
    speed, mean, error = force.binned("speed", 8)
    assert np.all(np.diff(speed) > 0.0)
    along = mean * np.sign(speed)
    assert np.all(along[np.abs(speed) > 2.0] < 0.0)
    # The load of the bearing, and with it dry friction, grows with the square of the speed.
    fast = np.abs(speed) > 8.0
    assert np.all(along[fast] < -4.0 * error[fast])


def test_table_of_fits_and_recordings(model, make_swing):
    one, same = make_swing(1, 2.0, name="one"), make_swing(2, 1.2, name="same")
    other = dataclasses.replace(same, time=1.05 * same.time, name="slower")  # what a heavier rod would do
    recordings = [one, same, other]
    seen = []
    found = cross_validate(
        model,
        recordings,
        ("pendulum.inertia.yy", "hinge.viscous"),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen[-1] == (3, 3)
    np.testing.assert_allclose(found.cost[0, 1] / found.cost[1, 1], 1.0, atol=0.05)
    np.testing.assert_allclose(found.cost[1, 0] / found.cost[0, 0], 1.0, atol=0.05)
    assert np.all(found.cost[:2, 2] > 1.5 * found.cost[2, 2])
    assert np.all(found.cost[2, :2] > 1.5 * np.diagonal(found.cost)[:2])
    assert found.average[0] == pytest.approx(0.5 * (found.cost[0, 1] + found.cost[0, 2]))
    assert "| one |" in found.markdown()


def test_fits_with_default_options_are_compared_with_the_noise_of_the_largest(model, recording):
    """Friction that is there is asked for, one that is not is left alone."""
    without = model.set({"hinge.dry": 0.0, "hinge.viscous": 0.0})
    inertia = "pendulum.inertia.yy"
    fits = {
        "none": fit(without, recording, inertia),
        "viscous": fit(without, recording, [inertia, "hinge.viscous"]),
        "dry": fit(without, recording, [inertia, "hinge.viscous", "hinge.dry"]),
        "coulomb": fit(without, recording, [inertia, "hinge.viscous", "hinge.dry", "hinge.coulomb"]),
    }
    none, viscous, dry, coulomb = compare_models(fits)
    for smaller, larger in ((none, viscous), (viscous, dry)):
        assert larger.ratio > 100.0
        assert larger.probability < 1e-10
        assert larger.aic < smaller.aic
    assert coulomb.ratio < 12.0
    with pytest.raises(ComparisonError, match="different weights"):
        compare_models({"viscous": fits["viscous"], "given": fit(model, recording, inertia, options=WEIGHED)})
