"""The task of sweeps and studies: settings by name and pattern, thinned recordings."""

import numpy as np
import pytest

from shadowfit.errors import ShadowfitError
from shadowfit.estimation.problem.options import Options
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.problem import build_problem
from shadowfit.models import read_model
from shadowfit.recordings import Recording
from shadowfit.sweeps.fitting import expand, thinned


def recording(interval=0.001, count=1001):
    time = interval * np.arange(count)
    return Recording(time, {"theta": np.sin(7.0 * time)}, units={"theta": "rad"})


def test_patterns_and_rotations():
    mechanism = read_model("furuta")
    found = expand(
        mechanism, {"*.compliance.*": 1e-6, "hinge1.compliance.linear": 1e-3, "gravity.tilt": [0.0, 0.0, np.pi]}
    )
    assert len(found) == 5
    assert found["hinge1.compliance.linear"] == 1e-3, "a later name wins over an earlier pattern"
    np.testing.assert_allclose(found["gravity.tilt"], [0.0, 0.0, 0.0, 1.0], atol=1e-15)
    with pytest.raises(ShadowfitError, match="is a rotation"):
        expand(mechanism, {"gravity.tilt": 0.1})


def test_thinned_recordings_keep_every_so_many_th_sample():
    thin = thinned(recording(), 0.01)
    np.testing.assert_allclose(thin.time, 0.01 * np.arange(101), atol=1e-12)
    np.testing.assert_array_equal(thin.channel("theta"), np.sin(7.0 * thin.time))
    with pytest.raises(ShadowfitError, match="no whole multiple"):
        thinned(recording(), 0.0015)


def test_states_can_be_estimated_with_inertias_of_no_body():
    """Fits may end with such numbers (the paper's do); cross-validation must take them."""
    calibrated = read_model("pendulum").write({"pendulum.inertia.zz": 0.02})
    problem = build_problem(calibrated, [recording()], parameter_set(calibrated, ()), Options())
    assert problem.mechanism.get("pendulum.inertia.zz") == 0.02
