"""Reading model files: notations agree, every mistake is named with its line, damage never gets past the reader."""

import math
import random
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from shadowfit.geometry import rotations
from shadowfit.mechanism import JointType, PlaneContact, leaves
from shadowfit.models import ModelFileError, format_model, load_model, notation, parse_model, read_model, vocabulary
from shadowfit.models.catalogue import builtin_text, library
from shadowfit.models.places import parse
from shadowfit.models.table import Table

SMALL = """\
name = "rig"

[bodies.arm]
mass = 1.0
inertia = { xx = 1.0, yy = 1.0, zz = 1.0 }

[bodies.ball]
mass = 1.0
inertia = { xx = 1.0, yy = 1.0, zz = 1.0 }

[joints.pivot]
type = "hinge"
parent = "world"
child = "arm"
axis = [0.0, 0.0, 1.0]

[joints.pivot.motor]
type = "torque"
input = "u"

[joints.rod]
type = "distance"
parent = "arm"
child = "ball"
length = 0.5

[inputs.u]

[sensors.theta]
type = "joint_position"
joint = "pivot"
"""


def line_of(text, fragment):
    """Line of a fragment, from 1."""
    return text[: text.index(fragment)].count("\n") + 1


def changed(old, new):
    assert SMALL.count(old) >= 1
    return SMALL.replace(old, new, 1)


# ---- what is right


def rotation(text):
    values, places = parse(f"turn = {text}", "rig.toml")
    return notation.rotation(Table(values, (), places, "rig.toml"), "turn")


def read(text):
    return parse_model(text, "rig.toml").mechanism


def unit_vectors():
    numbers = st.floats(-1.0, 1.0).map(lambda x: round(x, 6))
    return st.tuples(numbers, numbers, numbers).map(np.array).filter(lambda v: np.linalg.norm(v) > 0.1)


@given(axis=unit_vectors(), angle=st.floats(-3.0, 3.0))
def test_notations_of_a_rotation_agree(axis, angle):
    unit = axis / np.linalg.norm(axis)
    quaternion = np.append(math.cos(angle / 2), math.sin(angle / 2) * unit)
    matrix = Rotation.from_quat(np.roll(quaternion, -1)).as_matrix()
    by_axes = [
        {name: matrix[:, "xyz".index(name)].tolist() for name in pair} for pair in ("xy", "yz", "xz", "yx", "zx")
    ]
    texts = [str(quaternion.tolist()), f"{{ axis = {axis.tolist()}, angle = {angle!r} }}"]
    texts += ["{ " + ", ".join(f"{name} = {value}" for name, value in axes.items()) + " }" for axes in by_axes]
    for text in texts:
        made = Rotation.from_quat(np.roll(rotation(text), -1)).as_matrix()
        np.testing.assert_allclose(made, matrix, atol=1e-12)


def test_rough_rotations_are_put_right():
    rough = rotation("[0.7071, 0.7071, 0, 0]")
    np.testing.assert_allclose(rough, [math.sqrt(0.5), math.sqrt(0.5), 0, 0], atol=1e-9)
    exact = [0.70710678, 0.70710678, 0.0, 0.0]
    assert rotation(str(exact)).tolist() == exact, "as a mechanism takes it"
    exact = [0.9887710779360422, 0.0, -0.14943813247359922, 0.0]
    assert rotation(str(exact)).tolist() == exact


def test_axis_and_zero_rotation_are_the_frames():
    text = changed("axis = [0.0, 0.0, 1.0]", "axis = [0, 3, 0]\nzero_rotation = { axis = [1, 0, 0], angle = 0.5 }")
    joint = read(text).joints["pivot"]
    parent, child = (np.asarray(rotations.matrix(r)) for r in (joint.parent_rotation, joint.child_rotation))
    np.testing.assert_allclose(parent[:, 0], [0, 1, 0], atol=1e-15)
    turn = np.asarray(rotations.matrix(rotations.exp(np.array([0.5, 0.0, 0.0]))))
    np.testing.assert_allclose(parent, turn @ child, atol=1e-15)


def test_one_number_is_both_compliances():
    mechanism = read(changed('child = "arm"', 'child = "arm"\ncompliance = 1e-7'))
    assert mechanism.get("pivot.compliance.linear") == mechanism.get("pivot.compliance.rotational") == 1e-7


def test_joints_are_rigid_in_joint_coordinates_unless_they_are_said_to_give():
    for text, gives in (("", False), ("\ncompliant = false", False), ("\ncompliant = true", True)):
        mechanism = read(changed('child = "arm"', 'child = "arm"' + text))
        assert mechanism.joints["pivot"].compliant is gives
        assert ("compliant = true" in format_model(mechanism).splitlines()) is gives


def test_a_normal_is_the_x_axis_of_the_plane():
    contact = '\n[contacts.floor]\ntype = "plane"\nshape = "sphere"\nradius = 0.1\nbody = "ball"\n'
    for normal, expected in (("", [0, 0, 1]), ("normal = [2, 0, 0]\n", [1, 0, 0])):
        made = read(SMALL + contact + normal).contacts["floor"]
        assert isinstance(made, PlaneContact)
        np.testing.assert_allclose(rotations.matrix(made.plane_rotation)[:, 0], expected, atol=1e-15)


def test_resolution_is_a_standard_deviation_unless_one_is_given():
    coarse = changed('joint = "pivot"', 'joint = "pivot"\nresolution = 0.0012')
    assert read(coarse).get("theta.std") == 0.0012 / math.sqrt(12.0)
    assert read(coarse + "std = 0.5\n").get("theta.std") == 0.5


def test_a_law_that_is_called_like_its_type_needs_none():
    mechanism = read(SMALL + "\n[joints.pivot.spring]\nstiffness = 2.0\n[joints.pivot.cable]\ntype = 'spring'\n")
    assert mechanism.get("pivot.spring.stiffness") == 2.0
    assert list(mechanism.joints["pivot"].laws) == ["motor", "spring", "cable"]


def test_sensors_know_whether_they_measure_angles():
    slider = read(SMALL.replace('"hinge"', '"slider"'))
    assert read(SMALL).sensors["theta"].unit() == "rad"
    assert slider.sensors["theta"].unit() == "m"
    assert slider.unit("theta.std") == "m"


def test_state():
    free = SMALL + "\n[bodies.loose]\nmass = 1.0\ninertia = { xx = 1.0, yy = 1.0, zz = 1.0 }\n"
    free += "[state]\npivot = { position = 0.5, speed = 2.0 }\n"
    free += "[state.loose]\nposition = [1, 2, 3]\nangular_velocity = [0, 0, 4]\n"
    free += "orientation = { axis = [0, 0, 1], angle = 1.0 }\n"
    model = parse_model(free)
    state = model.start.state(model.mechanism)
    loose, arm = (model.mechanism.bodies.index(name) for name in ("loose", "arm"))
    np.testing.assert_allclose(state.pose.position[loose], [1, 2, 3])
    np.testing.assert_allclose(state.velocity[loose], [0, 0, 0, 0, 0, 4])
    np.testing.assert_allclose(rotations.log(state.pose.orientation[loose]), [0, 0, 1], atol=1e-15)
    np.testing.assert_allclose(rotations.log(state.pose.orientation[arm]), [0, 0, 0.5], atol=1e-15)
    np.testing.assert_allclose(state.velocity[arm, 5], 2.0, rtol=1e-12)


def test_order_of_parts_is_that_of_the_file():
    mechanism = read(SMALL)
    assert mechanism.bodies.names == ("arm", "ball")
    assert mechanism.joints.names == ("pivot", "rod")


def test_words_of_ones_own(monkeypatch):
    class Glued(JointType):
        linear_rows = 3

        def gap(self, a, b):
            return a.point - b.point

    with pytest.raises(ModelFileError, match="'glued', which is not possible"):
        read(changed('"distance"', '"glued"').replace("length = 0.5\n", ""))
    monkeypatch.setitem(vocabulary.JOINT_TYPES, "glued", Glued)
    made = read(changed('"distance"', '"glued"').replace("length = 0.5\n", ""))
    assert isinstance(made.joints["rod"].kind, Glued)


# ---- what is wrong: old text, new text, where the error is reported, what it says

MISTAKES = {
    "unknown table": (
        "[inputs.u]",
        "[input.u]",
        "[input.u]",
        "input is not a key of this table; did you mean 'inputs'",
    ),
    "unknown key": (
        "mass = 1.0",
        "mas = 1.0",
        "mas = 1.0",
        "bodies.arm.mas is not a key of this table; did you mean 'mass'",
    ),
    "key of another type": ("axis = [", "length = 1.0\naxis = [", "length = 1.0", 'it needs type = "distance"'),
    "friction without law": (
        "axis = [",
        "dry = 0.1\naxis = [",
        "dry = 0.1",
        'it needs friction = "coulomb" or friction = "stribeck"',
    ),
    "table that is no law": (
        "axis = [",
        "complience = { linear = 0 }\naxis = [",
        "complience",
        "did you mean 'compliance'",
    ),
    "key of an inline table": ("{ xx = 1.0,", "{ xxx = 1.0,", "inertia =", "inertia.xxx is not a key"),
    "missing": ("mass = 1.0\n", "", "[bodies.arm]", "bodies.arm.mass is missing"),
    "missing axis": ("axis = [0.0, 0.0, 1.0]\n", "", "[joints.pivot]", "joints.pivot.axis is missing"),
    "missing type": ('type = "hinge"\n', "", "[joints.pivot]", "joints.pivot.type is missing"),
    "law without type": (
        'type = "torque"\n',
        "",
        "[joints.pivot.motor]",
        "motor.type is missing; there are: torque, dc",
    ),
    "wrong type": ('"hinge"', '"hinj"', 'type = "hinj"', "'hinj', which is not possible; did you mean 'hinge'"),
    "number for a text": ('"hinge"', "3", "type = 3", "joints.pivot.type must be a text in quotes, not 3"),
    "text for a number": ("mass = 1.0", 'mass = "1"', "mass =", "bodies.arm.mass must be a number [kg], not '1'"),
    "truth for a number": ("mass = 1.0", "mass = true", "mass =", "must be a number [kg], not true"),
    "number for a table": (
        "inertia = { xx = 1.0, yy = 1.0, zz = 1.0 }",
        "inertia = 1",
        "inertia = 1",
        "must be a table",
    ),
    "array for a table": ("[inputs.u]", "[[inputs.u]]", "[[inputs.u]]", "inputs.u must be a table"),
    "not a number": (
        "mass = 1.0",
        "mass = nan",
        "mass = nan",
        "bodies.arm.mass is nan; it must be a finite number [kg]",
    ),
    "infinite": (
        "length = 0.5",
        "length = inf",
        "length = inf",
        "joints.rod.length is inf; it must be a finite number [m]",
    ),
    "huge": ("length = 0.5", "length = 1e200", "length = 1e200", "must be a finite number [m]"),
    "very long": ("length = 0.5", f"length = {'9' * 400}", "length = 9", "an integer has more than 64 bits"),
    "negative": ("length = 0.5", "length = -1", "length = -1", "joints.rod.length is -1; it must be at least 0 [m]"),
    "no mass": ("mass = 1.0", "mass = 0", "[bodies.arm]", "arm.mass is 0 kg; a mass must be positive"),
    "impossible inertia": ("xx = 1.0", "xx = 3.0", "[bodies.arm]", "triangle inequality"),
    "short vector": (
        "[0.0, 0.0, 1.0]",
        "[0.0, 1.0]",
        "axis =",
        "joints.pivot.axis must be an array of 3 numbers, not an array",
    ),
    "words in a vector": (
        "[0.0, 0.0, 1.0]",
        '[0.0, "0", 1.0]',
        "axis =",
        "joints.pivot.axis must be a number, not '0'",
    ),
    "zero direction": ("[0.0, 0.0, 1.0]", "[0.0, 0.0, 0.0]", "axis =", "a direction needs some length"),
    "missing body": (
        'parent = "arm"',
        'parent = "harm"',
        'parent = "harm"',
        "'harm', which is not a body; did you mean 'arm'",
    ),
    "missing input": (
        'input = "u"',
        'input = "v"',
        'input = "v"',
        "joints.pivot.motor.input is 'v', which is not an input",
    ),
    "default input is missing": ('input = "u"\n', "gain = 1.0\n[inputs.w]\n", "[joints.pivot.motor]", None),
    "joint without axis": (
        'joint = "pivot"',
        'joint = "rod"',
        'joint = "rod"',
        "'rod', which is not a joint with a free axis",
    ),
    "joint to itself": ('child = "ball"', 'child = "arm"', "[joints.rod]", "connects 'arm' to itself"),
    "friction without axis": ("length = 0.5", "length = 0.5\nviscous = 1", "[joints.rod]", "no free axis"),
    "name used twice": ("[inputs.u]", "[inputs.arm]\n[inputs.u]", "[inputs.arm]", "the name 'arm' is used twice"),
    "reserved name": ("[inputs.u]", "[inputs.world]\n[inputs.u]", "[inputs.world]", "the name 'world' is reserved"),
    "bad name": ("[inputs.u]", '[inputs."a b"]\n[inputs.u]', '[inputs."a b"]', "'a b' is not a valid name"),
    "bad name of a law": ("pivot.motor]", 'pivot."a b"]', '[joints.pivot."a b"]', "'a b' is not a valid name"),
    "both notations": (
        "axis = [0.0, 0.0, 1.0]",
        "axis = [0.0, 0.0, 1.0]\nparent_rotation = [1, 0, 0, 0]",
        "axis =",
        "joints.pivot.axis and parent_rotation say the same",
    ),
    "rotation as text": (
        "axis = [",
        'zero_rotation = "up"\naxis = [',
        "zero_rotation",
        "must be a rotation: a quaternion",
    ),
    "long quaternion": ("axis = [", "zero_rotation = [1, 1, 0, 0]\naxis = [", "zero_rotation", "has length 1.414"),
    "one axis": ("axis = [", "zero_rotation = { x = [1, 0, 0] }\naxis = [", "zero_rotation", "exactly two of the axes"),
    "oblique axes": (
        "axis = [",
        "zero_rotation = { x = [1, 0, 0], y = [1, 1, 0] }\naxis = [",
        "zero_rotation",
        "must be perpendicular; their cosine is 0.707",
    ),
    "turn without angle": (
        "axis = [",
        "zero_rotation = { axis = [1, 0, 0] }\naxis = [",
        "zero_rotation",
        "angle is missing",
    ),
    "unknown hold": (
        "[inputs.u]",
        '[inputs.u]\nhold = "first"',
        "hold =",
        "inputs.u.hold is 'first', which is not possible",
    ),
    "state of nothing": ("[inputs.u]", "[state]\npivo.position = 1\n[inputs.u]", "pivo.", "did you mean 'pivot'"),
    "unknown state": (
        "[inputs.u]",
        "[state]\npivot.angle = 1\n[inputs.u]",
        "pivot.angle",
        "there are: position, speed",
    ),
    "neither true nor false": (
        'child = "arm"',
        'child = "arm"\ncompliant = "yes"',
        "compliant",
        "joints.pivot.compliant must be true or false, not 'yes'",
    ),
    "state that is no table": (
        "[inputs.u]",
        "[state]\npivot = 1\n[inputs.u]",
        "pivot = 1",
        "state.pivot must be a table",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_named_with_their_line(case):
    old, new, where, message = MISTAKES[case]
    text = changed(old, new)
    if message is None:
        text, message = text.replace("[inputs.u]\n", ""), "joints.pivot.motor.input is 'u', which is not an input"
    with pytest.raises(ModelFileError) as caught:
        parse_model(text, "rig.toml")
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"rig.toml:{line_of(text, where)}: ")
    assert caught.value.line == line_of(text, where)
    assert caught.value.source == "rig.toml"


def test_the_unchanged_text_is_right():
    assert len(read(SMALL).joints) == 2


def test_contact_mistakes():
    contact = '\n[contacts.floor]\ntype = "plane"\nshape = "sphere"\nradius = 0.1\nbody = "ball"\n'
    for extra, message in (
        ("normal = [0, 0, 1]\nplane_rotation = [1, 0, 0, 0]\n", "normal and plane_rotation say the same"),
        ("half_size = [1, 1, 1]\n", 'it needs shape = "box"'),
        ('plane = "ball"\n', "cannot touch a plane fixed to itself"),
    ):
        with pytest.raises(ModelFileError, match=re.escape(message)):
            read(SMALL + contact + extra)
    with pytest.raises(ModelFileError, match=r"lower \(1\) must be below upper \(0\)"):
        read(SMALL + '\n[contacts.stop]\ntype = "limit"\njoint = "pivot"\nlower = 1.0\nupper = 0.0\n')


def test_an_empty_file_has_no_bodies():
    with pytest.raises(ModelFileError, match=r"rig\.toml: a mechanism needs at least one body"):
        parse_model("", "rig.toml")


# ---- files and names


def test_names_and_paths(tmp_path):
    path = tmp_path / "my_rig.toml"
    path.write_text("\ufeff" + SMALL.replace('name = "rig"\n', ""), encoding="utf-8")
    assert read_model(path).name == read_model(str(path)).name == "my_rig"
    with pytest.raises(ModelFileError, match=r"nothing\.toml: cannot be read: No such file"):
        read_model(tmp_path / "nothing.toml")
    with pytest.raises(ModelFileError, match="cannot be read"):
        read_model(tmp_path)
    with pytest.raises(
        ModelFileError, match=r"furutta: there is neither a file nor a built-in .* did you mean 'furuta'"
    ):
        read_model("furutta")
    path.write_bytes(SMALL.encode() + b"\n# \xff\n")
    with pytest.raises(ModelFileError, match=rf"my_rig\.toml:{SMALL.count(chr(10)) + 2}: not UTF-8"):
        read_model(path)


def test_a_file_without_suffix_can_be_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rig").write_text(SMALL)
    assert read_model("rig").name == "rig"


def test_chains_of_any_length():
    assert len(read_model("chain7").bodies) == 7
    assert len(load_model("chain1").start.positions) == 1
    for name in ("chain", "chain0", "chain100", "chain-1"):
        with pytest.raises(ModelFileError, match="neither a file nor a built-in model"):
            read_model(name)


# ---- damage: whatever happens to a file, it is read or refused, never more

TEXTS = [SMALL, *(builtin_text(name) for name in sorted(set(library()) - {"chain4"}))]
VALUES = [
    "nan",
    "-inf",
    "1e999",
    "-1",
    "0",
    "''",
    '"world"',
    "[]",
    "{}",
    "[1, 2, 3]",
    "true",
    "[[1]]",
    "{ x = [0, 0, 1] }",
]
VALUES += [
    "9" * 400,
    "1e-320",
    "[0, 0, 0, 0]",
    "1979-05-27",
    "[1e308, 1e308, 1e308]",
    "{ axis = [0, 0, 1], angle = 1e99 }",
]


def damage(text, chooser):
    """A text with some characters, lines or values lost, doubled, exchanged or replaced."""
    for _ in range(chooser.randint(1, 3)):
        lines = text.splitlines(keepends=True) or [""]
        i, j = chooser.randrange(len(lines)), chooser.randrange(len(lines))
        kind = chooser.randrange(5)
        if kind == 0:
            del lines[i]
        elif kind == 1:
            lines[i], lines[j] = lines[j], lines[i]
        elif kind == 2:
            lines.insert(i, lines[j])
        elif kind == 3:
            lines[i] = re.sub(r"= .*", lambda _: f"= {chooser.choice(VALUES)}", lines[i])
        else:
            at = chooser.randrange(len(text) + 1)
            lines = [text[:at], chooser.choice('[]{}".=#\n\0é0'), text[at + chooser.randint(0, 2) :]]
        text = "".join(lines)
    return text


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(text=st.sampled_from(TEXTS), seed=st.integers(0, 2**32))
def test_damaged_files_are_read_or_refused(text, seed):
    outcome = read_or_refuse(damage(text, random.Random(seed)))
    if isinstance(outcome, ModelFileError):
        assert str(outcome).startswith("rig.toml")
    else:
        numbers = {name: leaves.read(outcome, leaf) for name, leaf in outcome.leaves().items()}
        # A servo without a limit of its current has an endless one.
        assert all(np.all(np.isfinite(x)) for name, x in numbers.items() if not name.endswith("current_limit"))


def read_or_refuse(text):
    try:
        return read(text)
    except ModelFileError as error:
        return error


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text):
    with pytest.raises(ModelFileError):
        parse_model(text, "rig.toml")
