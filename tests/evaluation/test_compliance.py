"""Joints that were taken for rigid: said where the model states that they give, and only where it matters."""

from types import SimpleNamespace

import pytest

from shadowfit.estimation import Options, fit
from shadowfit.evaluation.compliance import giving_joints
from shadowfit.models import load_model


@pytest.mark.parametrize(("compliance", "said"), [(1e-2, True), (1e-9, False), (1e-4, False)])
def test_a_compliance_that_matters_is_said(recording, truth, base, compliance, said):
    """1e-4 is what a joint has of which nothing is said."""
    stiffness = {f"hinge.compliance.{kind}": compliance for kind in ("linear", "rotational")}
    mechanism = load_model("pendulum").mechanism.set({**base, **stiffness})
    estimate = fit(mechanism, recording, list(truth), options=Options(unknowns="joint", correction="deferred"))
    found = giving_joints(estimate)
    assert bool(found) is said
    if said:
        assert "the model says that hinge gives: inertias may be off by" in found[0][1]


def test_bars_of_zero_say_nothing():
    """A fit whose inertias cannot move (priors, edges of what a body can have) is written all the same."""
    row = SimpleNamespace(unit="kg", identifiable=True, at_bound=False, value=1.0, std=0.0)
    scope = SimpleNamespace(rigid=True)
    problem = SimpleNamespace(plan=SimpleNamespace(unknowns=SimpleNamespace(scope=scope)))
    assert giving_joints(SimpleNamespace(parameters=[row], problem=problem)) == []
