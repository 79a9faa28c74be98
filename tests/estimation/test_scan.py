"""Whether discretisation errors that a fit was made with are those of its own motion."""

import pytest

from estimation.arms import arm, driven
from shadowfit.estimation import Options
from shadowfit.estimation.fit import start_point
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.problem import build_problem
from shadowfit.estimation.scan import Scan
from shadowfit.estimation.solve.first_weights import first_weights
from shadowfit.estimation.solve.levenberg_marquardt import LevenbergMarquardt


@pytest.mark.parametrize("correction", ["none", "deferred"])
def test_errors_of_a_smooth_motion_stand(correction):
    """Without errors that are taken off nothing grows; without dry friction they change by next to nothing."""
    mechanism = arm(2)
    mechanism = mechanism.set({name: 0.0 for kind in ("*.coulomb", "*.dry") for name in mechanism.expand(kind)})
    recording = driven(mechanism, 150, noise=1e-5)
    parameters = parameter_set(mechanism, ("*.viscous",))
    problem = build_problem(mechanism, [recording], parameters, Options(correction=correction))
    scan, start = Scan(problem, LevenbergMarquardt(), None), start_point(problem)
    weights = first_weights(problem, start)
    first = scan.fitted(start, weights, first=True)
    if correction == "none":
        assert scan.unsettled(first) == pytest.approx(1.0, rel=1e-9)
        return
    second = scan.fitted(first.point, first.weights)
    assert scan.unsettled(second) < 1.1
