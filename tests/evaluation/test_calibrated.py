"""What of a result goes back into a file: what is told, and what is told in combinations, together."""

from types import SimpleNamespace

import pytest

from estimation.arms import arm
from shadowfit.evaluation.calibrated import calibrated

FREE = ("link1.mass", "link2.mass", "link2.com.z", "joint1.viscous", "joint1.motor.shaft_inertia")


@pytest.fixture
def before():
    return arm(2)


def result(before, combinations, bound=()):
    """A fit of which only the friction is identified by itself, with some numbers on their bounds."""
    after = before.set({name: 1.5 * before.get(name) for name in FREE})
    rows = {name: {"identifiable": name == "joint1.viscous", "at_bound": name in bound} for name in FREE}
    summary = {"parameters": rows, "base_parameters": {"combinations": combinations, "unseen": []}}
    return SimpleNamespace(summary=summary, mechanism=lambda: after), after


def test_what_is_not_told_stays(before):
    saved, after = result(before, [])
    found = calibrated(saved, before)
    assert found.values == {"joint1.viscous": after.get("joint1.viscous")}
    assert set(found.unidentified) == set(FREE) - {"joint1.viscous"}
    assert set(calibrated(saved, before, everything=True).values) == set(FREE)


def test_what_a_fit_was_set_up_with_stays_out_of_a_robots_file(before):
    """A torque behind the gear (gain one), a base that is held: the model's way to see the robot, not the robot."""
    other = before.set({"joint2.motor.gain": 50.0 * before.get("joint2.motor.gain"), "joint1.parent_point.z": 0.7})
    saved, _ = result(before, [])
    assert {"joint2.motor.gain", "joint1.parent_point.z"} <= set(calibrated(saved, other).values)
    assert set(calibrated(saved, other, own_numbers=True).values) == {"joint1.viscous"}


def test_numbers_of_a_combination_go_together(before):
    terms = {"link2.mass·com.z": 1.0, "joint1.motor.shaft_inertia": 0.3}
    saved, after = result(before, [{"coefficients": terms}])
    found = calibrated(saved, before)
    assert set(found.together) == {"link2.mass", "link2.com.z", "joint1.motor.shaft_inertia"}
    assert found.values["link2.mass"] == after.get("link2.mass")
    assert found.unidentified == ("link1.mass",)


def test_numbers_on_a_bound_go_with_the_others(before):
    """The others were found beside them: a rotor at zero, and the link that turns with it has its inertia."""
    saved, after = result(before, [], bound=("joint1.motor.shaft_inertia",))
    found = calibrated(saved, before)
    assert found.values["joint1.motor.shaft_inertia"] == after.get("joint1.motor.shaft_inertia")
    assert "joint1.motor.shaft_inertia" in found.together
