"""Free parameters: names and patterns, boxes, rotations, values per recording, and the errors of bad requests."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimation.arms import arm
from shadowfit.errors import UnknownNameError
from shadowfit.estimation import Free
from shadowfit.estimation.problem.parameter import ParameterError
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.geometry import rotations
from shadowfit.models import builtin

FURUTA = builtin.furuta()
MIXED = {
    "hinge1.viscous": Free(per_recording=True),
    "gravity.tilt": Free(per_recording=True),
    "arm.inertia.zz": None,
    "hinge2.child_rotation": None,
    "hinge1.motor.gain": 0.2,
}


def test_start_values_come_from_the_request_or_the_mechanism():
    named = parameter_set(FURUTA, MIXED, 2).named(parameter_set(FURUTA, MIXED, 2).start())
    assert named["hinge1.motor.gain"] == 0.2
    assert named["arm.inertia.zz"] == FURUTA.get("arm.inertia.zz")
    np.testing.assert_array_equal(named["gravity.tilt"], [1.0, 0.0, 0.0, 0.0])


def test_patterns_names_and_a_single_string():
    found = parameter_set(FURUTA, ["hinge?.viscous", "arm.mass"])
    assert found.names == ("hinge1.viscous", "hinge2.viscous", "arm.mass")
    assert parameter_set(FURUTA, "hinge?.viscous").names == ("hinge1.viscous", "hinge2.viscous")
    assert parameter_set(FURUTA, ()).size == 0


def test_later_requests_refine_patterns():
    found = parameter_set(FURUTA, {"hinge?.viscous": None, "hinge2.viscous": Free(start=3e-3)})
    assert [p.start for p in found.parameters] == [FURUTA.get("hinge1.viscous"), 3e-3]


def test_labels_places_and_sizes_agree():
    found = parameter_set(FURUTA, MIXED, 2)
    labels = found.labels()
    assert len(labels) == len(set(labels)) == found.size == 2 * (1 + 3) + 1 + 3 + 1
    assert [labels[i] for i in found.places(1)] == [
        "hinge1.viscous@1",
        "gravity.tilt.x@1",
        "gravity.tilt.y@1",
        "gravity.tilt.z@1",
        "arm.inertia.zz",
        "hinge2.child_rotation.x",
        "hinge2.child_rotation.y",
        "hinge2.child_rotation.z",
        "hinge1.motor.gain",
    ]
    shared = set(found.places(0)) & set(found.places(1))
    assert {labels[i].partition("@")[2] for i in shared} == {""}
    assert set(found.places(0)) | set(found.places(1)) == set(range(found.size))


@given(st.lists(st.floats(-1.0, 1.0), min_size=13, max_size=13))
def test_plus_adds_to_numbers_turns_rotations_and_stays_in_the_box(entries):
    found = parameter_set(FURUTA, MIXED, 2)
    before, increments = found.start(), np.array(entries)
    after = found.plus(before, increments)
    lower, upper = found.lower, found.upper
    numbers = [i for i, label in enumerate(found.labels()) if "tilt" not in label and "rotation" not in label]
    expected = np.clip(found.flat(before) + increments, lower, upper)
    np.testing.assert_array_equal(found.flat(after)[numbers], expected[numbers])
    np.testing.assert_array_equal(before.numbers[:2], np.repeat(FURUTA.get("hinge1.viscous"), 2))
    for recording in (0, 1):
        own = increments[found.places(recording)][1:4]
        turned = found.named(after, recording)["gravity.tilt"]
        np.testing.assert_allclose(turned, rotations.exp(own), atol=1e-14)


def test_bounds_are_increments_that_stay_in_the_box():
    found = parameter_set(FURUTA, {"hinge1.viscous": Free(1e-3, 0.0, 5e-3), "gravity.tilt": None})
    lower, upper = found.bounds(found.start())
    np.testing.assert_allclose(lower, [-1e-3, *[-np.inf] * 3])
    np.testing.assert_allclose(upper, [4e-3, *[np.inf] * 3])


def test_masses_stay_positive_and_friction_may_be_zero():
    found = parameter_set(FURUTA, ["arm.mass", "arm.inertia.xx", "hinge1.dry", "arm.inertia.xy", "arm.com.x"])
    lowest = {p.name: p.lower for p in found.parameters}
    assert lowest["arm.mass"] == pytest.approx(1e-3 * FURUTA.get("arm.mass"))
    assert lowest["arm.inertia.xx"] > 0.0
    assert lowest["hinge1.dry"] == 0.0
    assert lowest["arm.inertia.xy"] == lowest["arm.com.x"] == -np.inf


@pytest.mark.parametrize(
    ("free", "error", "message"),
    [
        ({"hinge1.viscos": None}, UnknownNameError, "did you mean 'hinge1.viscous'"),
        (["leg.*"], UnknownNameError, "has no parameter"),
        (["hinge1.stick_time"], ParameterError, "is a setting"),
        (["theta1.std"], ParameterError, "is a setting"),
        ({"hinge1.viscous": Free(1e-3, 2e-3, 3e-3)}, ParameterError, "outside its bounds"),
        ({"hinge1.viscous": Free(1e-3, 0.0, 5e-4)}, ParameterError, "outside its bounds"),
        ({"hinge1.viscous": -1e-3}, ParameterError, "outside its bounds"),
        ({"hinge1.viscous": Free(lower=1.0, upper=0.5)}, ParameterError, "lower must be below upper"),
        ({"hinge1.viscous": Free(upper=float("nan"))}, ParameterError, "lower must be below upper"),
        ({"hinge1.viscous": Free(lower=-1.0)}, ParameterError, "may not go below 0"),
        ({"hinge1.viscous": float("nan")}, ParameterError, "must be a finite number"),
        ({"hinge1.viscous": float("inf")}, ParameterError, "must be a finite number"),
        ({"hinge1.viscous": "1e-3"}, ParameterError, "must be a number"),
        ({"hinge1.viscous": Free(upper="big")}, ParameterError, "the upper of hinge1.viscous"),
        ({"hinge1.viscous": Free(prior=0.0)}, ParameterError, "must be positive"),
        ({"gravity.tilt": Free(prior=-1.0)}, ParameterError, "must be positive"),
        ({"gravity.tilt": Free(start=0.1)}, ParameterError, "is a rotation"),
        ({"gravity.tilt": Free(upper=0.1)}, ParameterError, "is a rotation"),
    ],
)
def test_bad_requests_are_named(free, error, message):
    with pytest.raises(error, match=message):
        parameter_set(FURUTA, free)


def test_rotor_that_starts_at_zero_may_become_anything():
    """Robot files seldom state it."""
    name = "joint1.motor.shaft_inertia"
    (parameter,) = parameter_set(arm(1).set({name: 0.0}), (name,)).parameters
    assert (parameter.lower, parameter.upper) == (0.0, np.inf)
    assert parameter.scale > 0.0
