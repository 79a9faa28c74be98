"""New numbers in existing model files: the numbers are there, and nothing else has changed."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowfit.errors import MechanismError, UnknownNameError
from shadowfit.mechanism import leaves
from shadowfit.models import ModelFileError, load_model, parse_model, update_model
from shadowfit.models.catalogue import builtin_text, library

# The same mechanism in the layouts that TOML allows: dotted keys, inline tables, tables apart from one another.
LAYOUTS = """\
gravity.acceleration = 9.81 # here

bodies.arm = { mass = 1.0, inertia = { xx = 1, yy = 1, zz = 1 } }   # inline
[bodies.rod]
  mass = 1.0
  inertia.xx = 1
  inertia.yy = 1
  inertia.zz = 1 # last

[joints.pivot]
type = "hinge"
parent = "world"
child = "arm"
axis = [ 0.0,   # comment in an array
         0.0, 1.0 ]
compliance = 1e-4
[sensors]
theta = { type = "joint_position", joint = "pivot", resolution = 0.01 }
[inputs.u]
[joints.pivot.motor]
type = "torque"
[joints.elbow]
type = "hinge"
parent = "arm"
child = "rod"
axis = [1.0, 0.0, 0.0]
zero_rotation.x = [0.0, 0.0, 1.0] # up
zero_rotation.y = [0.0, 1.0, 0.0]
[joints.elbow.compliance]
linear = 1e-5
[contacts.floor]
type = "plane"
shape = "sphere"
radius = 0.1
body = "rod"
normal = [0.0, 0.0, 1.0] # up"""

NUMBER = re.compile(r"(?<![A-Za-z_\w])[-+]?\d[\d.]*(?:e[-+]?\d+)?")


def skeleton(text):
    """The text with every number replaced by a mark."""
    return NUMBER.sub("0", text)


def check_update(text, values):
    new = update_model(text, values, "rig.toml")
    made, wanted = parse_model(new).mechanism, parse_model(text).mechanism.set(values)
    for name, leaf in wanted.leaves().items():
        assert np.array_equal(leaves.read(made, leaf), leaves.read(wanted, leaf)), name
    return new


@pytest.mark.parametrize("name", sorted(set(library()) - {"chain4"}))
@settings(max_examples=5)
@given(data=st.data())
def test_stated_numbers_change_where_they_stand(name, data):
    text = builtin_text(name)
    mechanism = parse_model(text).mechanism
    stated = [
        leaf
        for leaf in mechanism.leaves()
        if re.search(r"\.(mass|viscous|dry|std|gain|shaft_inertia|acceleration|friction)$|point\.x$", leaf)
        and check_stated(text, leaf)
    ]
    chosen = data.draw(st.lists(st.sampled_from(stated), unique=True, min_size=1))
    values = {leaf: data.draw(st.floats(1e-9, 1e3)) for leaf in chosen}
    new = check_update(text, values)
    assert skeleton(new) == skeleton(text)


def check_stated(text, leaf):
    """Whether the key of a number is written in its part's table of a built-in file."""
    part, *_, key = leaf.removesuffix(".x").split(".")
    section = re.search(rf"^\[(?:\w+\.)?{part}\][^\[]*(?:\n(?!\[)[^\n]*)*", text, re.MULTILINE)
    return section is not None and re.search(rf"^{key} = ", section[0], re.MULTILINE) is not None


@settings(max_examples=20)
@given(data=st.data())
def test_any_number_can_be_put_into_any_layout(data):
    known = parse_model(LAYOUTS).mechanism.leaves()
    names = [name for name in known if ".inertia." not in name]
    values = {}
    for name in data.draw(st.lists(st.sampled_from(names), unique=True, max_size=6)):
        if known[name].kind == "rotation":
            angle = data.draw(st.floats(-3.0, 3.0))
            values[name] = np.array([np.cos(angle / 2), 0.0, np.sin(angle / 2), 0.0])
        else:
            values[name] = data.draw(st.floats(1e-9, 1e3))
    text = data.draw(st.sampled_from([LAYOUTS, LAYOUTS + "\n", LAYOUTS.replace("\n", "\r\n")]))
    new = check_update(text, values)
    for comment in ("# here", "# inline", "# last", "# comment in an array"):
        gone = comment == "# comment in an array" and {"pivot.parent_rotation", "pivot.child_rotation"} & set(values)
        assert (comment in new) or gone


def test_layouts_are_kept():
    new = check_update(LAYOUTS, {"arm.mass": 2.0, "arm.com.y": 0.5, "pivot.compliance.linear": 1e-7, "theta.std": 0.1})
    assert "bodies.arm = { mass = 2.0, inertia = { xx = 1, yy = 1, zz = 1 }, com = [0.0, 0.5, 0.0] }   # inline" in new
    assert "compliance = { linear = 1e-07, rotational = 0.0001 }\n" in new
    assert "resolution = 0.01, std = 0.1 }" in new
    assert "\ngravity.tilt = [1.0, 0.0, 0.0, 0.0]" not in new
    new = check_update(LAYOUTS, {"gravity.tilt": [0.8, 0.6, 0.0, 0.0]})
    assert "gravity.acceleration = 9.81 # here\ngravity.tilt = [0.8, 0.6, 0.0, 0.0]\n" in new
    new = check_update(LAYOUTS, {"elbow.compliance.rotational": 1e-3, "elbow.viscous": 2.0, "u.delay": 0.25})
    assert "[joints.elbow.compliance]\nlinear = 1e-5\nrotational = 0.001\n" in new
    assert "zero_rotation.y = [0.0, 1.0, 0.0]\nviscous = 2.0\n[joints.elbow.compliance]" in new
    assert "[inputs.u]\ndelay = 0.25\n" in new


def test_nothing_to_change_changes_nothing():
    for text in (LAYOUTS, builtin_text("furuta")):
        mechanism = parse_model(text).mechanism
        assert update_model(text, {}) == text
        stated = {"theta1.std": mechanism.get("theta1.std")} if "theta1" in mechanism.sensors else {"arm.mass": 1.0}
        assert update_model(text, stated) == text


def test_rotations_become_quaternions():
    turn = np.array([0.8, 0.0, 0.6, 0.0])
    new = check_update(builtin_text("incline"), {"gravity.tilt": turn})
    assert "tilt = [0.8, 0.0, 0.6, 0.0]" in new
    new = check_update(builtin_text("furuta"), {"hinge2.child_rotation": turn})
    assert "child_rotation = [0.8, 0.0, 0.6, 0.0]\n" in new
    assert "zero_rotation" not in new
    new = check_update(LAYOUTS, {"floor.plane_rotation": turn})
    assert "plane_rotation = [0.8, 0.0, 0.6, 0.0] # up" in new


def test_missing_tables_are_added():
    new = check_update(builtin_text("fourbar"), {"gravity.acceleration": 1.5})
    assert new.endswith("\n\n[gravity]\nacceleration = 1.5\n")


def test_what_cannot_be_put_in_is_refused():
    odd = LAYOUTS.replace(
        "[joints.pivot]\n",
        "[joints]\nweld = { type = 'lock', parent = 'arm', child = 'rod', "
        "zero_rotation.x = [1, 0, 0], zero_rotation.y = [0, 1, 0] }\n[joints.pivot]\n",
    )
    with pytest.raises(ModelFileError, match=r"rig\.toml: weld\.child_rotation cannot be put into the text"):
        update_model(odd, {"weld.child_rotation": [0.8, 0.6, 0.0, 0.0]}, "rig.toml")


def test_a_chain_can_be_calibrated_too():
    model = load_model("chain2")
    new = update_model(model.text, {"hinge2.viscous": 0.25, "theta1.offset": 0.125})
    made = parse_model(new).mechanism
    assert (made.get("hinge2.viscous"), made.get("theta1.offset")) == (0.25, 0.125)


def test_bad_values_are_refused():
    text = builtin_text("furuta")
    with pytest.raises(UnknownNameError, match=r"hinge1\.viscos.*did you mean 'hinge1.viscous'"):
        update_model(text, {"hinge1.viscos": 1.0})
    with pytest.raises(MechanismError, match=r"hinge1\.viscous is -1"):
        update_model(text, {"hinge1.viscous": -1.0})
