"""MJCF files: the mechanism moves as MuJoCo's own reading does, and what is not understood is told."""

import os
import re
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.robots.test_urdf import motion, write
from models.robots.urdfs import numbers
from reference import mujoco_files, newton_euler
from shadowfit.dynamics.placement import place
from shadowfit.errors import ShadowfitError
from shadowfit.models import ModelFileError, load_model, read_model
from shadowfit.models.robots.read import Reading, read_robot

mujoco = pytest.importorskip("mujoco")


def body(rng, index, inside, joints):
    """A body with mass, turned and shifted, and its joints off its origin."""
    moments = rng.uniform(0.01, 0.02, 3)
    inertial = (
        f'<inertial mass="{rng.uniform(0.2, 3.0)!r}" pos="{numbers(rng.normal(size=3) * 0.1)}" '
        f'quat="{numbers(rng.normal(size=4))}" diaginertia="{numbers(moments)}"/>'
    )
    own = "".join(
        f'<joint name="j{index}{place}" class="{rng.choice(["big", "small"])}" type="{rng.choice(["hinge", "slide"])}" '
        f'pos="{numbers(rng.normal(size=3) * 0.1)}" axis="{numbers(rng.normal(size=3))}" ref="{rng.normal()!r}"/>'
        for place in range(joints)
    )
    at = f'pos="{numbers(rng.normal(size=3) * 0.2)}" euler="{numbers(rng.uniform(-90, 90, 3))}"'
    return f'<body name="b{index}" {at}>{inertial}{own}{inside}</body>'


@st.composite
def mjcfs(draw, most=1):
    """Nested bodies with at most so many joints each; defaults in classes, angles in degrees."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    inside, count = "", draw(st.integers(1, 4))
    for index in range(count, 0, -1):
        inside = body(rng, index, inside, most if index == 1 else draw(st.integers(0, most)))
    return (
        '<mujoco model="made up"><option gravity="1 -2 -9"/>'
        '<default><joint damping="0.25" armature="0.125"/>'
        '<default class="big"><joint armature="0.5" frictionloss="0.75"/></default><default class="small"/></default>'
        f"<worldbody>{inside}</worldbody></mujoco>"
    )


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=mjcfs(), seed=st.integers(0, 1000))
def test_inverse_dynamics_is_mujocos(text, seed, tmp_path):
    mechanism = read_model(write(tmp_path, text, "robot.xml"))
    at = motion(mechanism.joints.names, seed)
    ours = newton_euler.torques(mechanism, *at)
    theirs = mujoco_files.torques(mujoco.MjModel.from_xml_string(text), *at)
    np.testing.assert_allclose(list(ours.values()), [theirs[name] for name in ours], rtol=1e-8, atol=1e-8)


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=mjcfs(most=3), seed=st.integers(0, 1000))
def test_several_joints_of_a_body(text, seed, tmp_path):
    """Equal but for the millionth of the robot's mass in the links between them."""
    loaded = load_model(write(tmp_path, text, "robot.xml"))
    at = motion(loaded.mechanism.joints.names, seed)
    ours = newton_euler.torques(loaded.mechanism, *at)
    theirs = mujoco_files.torques(mujoco.MjModel.from_xml_string(text), *at)
    largest = max(map(abs, theirs.values()))
    np.testing.assert_allclose(list(ours.values()), [theirs[name] for name in ours], rtol=0, atol=2e-4 * largest)
    assert any("have no mass" in note for note in loaded.notes)


@pytest.mark.data
@pytest.mark.parametrize(("file", "weld"), [("arm_panda/panda_nohand.xml", ()), ("legs_go2/go2.xml", ("base",))])
def test_shared_robots_are_as_mujoco_reads_them(file, weld, data_dir):
    mechanism = load_model(data_dir / file, weld=weld).mechanism
    spec = mujoco.MjSpec.from_file(str(data_dir / file))
    for joint in [joint for joint in spec.joints if joint.type == mujoco.mjtJoint.mjJNT_FREE]:
        spec.delete(joint)
    for key in list(spec.keys):
        spec.delete(key)
    at = motion(mechanism.joints.names, 0)
    ours = newton_euler.torques(mechanism, *at)
    theirs = mujoco_files.torques(spec.compile(), *at)
    np.testing.assert_allclose(list(ours.values()), [theirs[name] for name in ours], rtol=1e-8, atol=1e-8)


BODY = '<inertial mass="1" pos="0.1 0 0" diaginertia="0.01 0.02 0.02"/>'
FOUR_BAR = f"""<mujoco>
  <worldbody>
    <body name="crank"><joint name="a" axis="0 1 0"/>{BODY}
      <body name="coupler" pos="0.2 0 0"><joint name="b" axis="0 1 0"/>{BODY}</body>
    </body>
    <body name="rocker" pos="0 0 0.1"><joint name="c" axis="0 1 0"/>{BODY}
      <site name="tip" pos="0.2 0 -0.1"/><site name="eye" pos="0 0 0" euler="90 0 0"/></body>
  </worldbody>
  <equality><connect name="pin" body1="coupler" body2="rocker" anchor="0 0 0"/></equality>
  <sensor><jointpos name="theta" joint="a"/><framepos name="marker" objtype="site" objname="tip"/>
    <gyro name="turned" site="eye"/><clock name="clock"/></sensor>
  <actuator><motor joint="a" gear="3"/><velocity joint="b" kv="2"/></actuator>
</mujoco>
"""


def test_loops_sensors_and_motors(tmp_path):
    loaded = load_model(write(tmp_path, FOUR_BAR, "robot.xml"))
    mechanism = loaded.mechanism
    assert type(mechanism.joints["pin"].kind).__name__ == "Ball"
    np.testing.assert_allclose(mechanism.joints["pin"].child_point, [0.2, 0.0, -0.1], atol=1e-12)
    assert mechanism.sensors["theta"].joint == "a"
    assert "a_position" not in mechanism.sensors
    np.testing.assert_allclose(mechanism.get("marker.point.z"), -0.1)
    assert mechanism.get("a.motor.gain") == 3.0
    assert tuple(mechanism.inputs) == ("a_effort",)
    told = " ".join(loaded.notes)
    assert "clock" in told
    assert "turned" not in told
    assert "actuators other than" in told
    assert len(place(mechanism).pose.position) == 3


def test_a_free_body_floats_unless_it_is_welded(tmp_path):
    text = FOUR_BAR.replace('<joint name="c" axis="0 1 0"/>', '<freejoint name="c"/>')
    assert "c" not in read_model(write(tmp_path, text, "robot.xml")).joints
    welded = load_model(tmp_path / "robot.xml", weld=["rocker"]).mechanism
    assert tuple(welded.bodies) == ("crank", "coupler")
    assert welded.joints["pin"].child == "world"


def test_includes_and_missing_meshes(tmp_path):
    (tmp_path / "arm.xml").write_text(f'<mujoco><body name="arm"><joint/>{BODY}</body></mujoco>')
    text = (
        '<mujoco><asset><mesh name="m" file="nowhere.stl"/></asset><worldbody><include file="arm.xml"/>'
        f'<body name="more"><joint name="k"/>{BODY}<geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    )
    loaded = load_model(write(tmp_path, text, "robot.xml"))
    assert tuple(loaded.mechanism.joints) == ("arm_joint", "k")
    assert any("meshes" in note for note in loaded.notes)


def test_a_joint_that_follows_another_is_held(tmp_path):
    text = FOUR_BAR.replace(
        '<connect name="pin" body1="coupler" body2="rocker" anchor="0 0 0"/>',
        '<joint joint1="b" joint2="a" polycoef="0.5 1 0 0 0"/>',
    )
    loaded = load_model(write(tmp_path, text, "robot.xml"))
    assert tuple(loaded.mechanism.joints) == ("a", "c")
    assert any("follow others" in note and "b" in note for note in loaded.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FOUR_BAR.replace('mass="1"', 'mass="x"', 1), "MuJoCo refuses the file"),
        (FOUR_BAR.replace("</mujoco>", ""), "robot.xml:14: not valid XML"),
        (FOUR_BAR.replace('"0.01 0.02 0.02"', '"0.01 0.02 0.05"', 1), "the nearest possible one is diaginertia="),
        ("<mujoco/>", "nothing in this robot moves"),
        ("<mujocoinclude/>", "name the file that includes it"),
        (FOUR_BAR.replace('name="a"', 'name="a" damping="-1"'), "robot.xml: a.viscous is -1; it must be at least 0"),
    ],
)
def test_mistakes(text, message, tmp_path):
    with pytest.raises(ModelFileError) as raised:
        read_model(write(tmp_path, text, "robot.xml"))
    assert message in str(raised.value)


def test_all_impossible_bodies_are_named_at_once(tmp_path):
    text = FOUR_BAR.replace('"0.01 0.02 0.02"', '"0.01 0.02 0.05"')
    with pytest.raises(ModelFileError, match=r":3: .*'crank'.* as well: 'coupler' \(line 4\), 'rocker' \(line 6\)\."):
        read_model(write(tmp_path, text, "robot.xml"))


def test_a_point_fixed_to_a_body_is_a_part_of_it(tmp_path):
    point = '<body name="cap" pos="0 0 1"><inertial mass="0.5" pos="0 0 0" diaginertia="0 0 0"/></body>'
    text = FOUR_BAR.replace(BODY, BODY + point, 1)
    about = 0.02 + 1 * 0.5 / 1.5 * (0.1**2 + 1.0**2)
    assert read_model(write(tmp_path, text, "robot.xml")).get("crank.inertia.yy") == pytest.approx(about)


def test_flags_switch_off_what_they_say(tmp_path):
    def number(flag, name):
        option = f'<option><flag {flag}="disable"/></option>' if flag else ""
        text = FOUR_BAR.replace("<worldbody>", f"{option}<worldbody>", 1)
        text = text.replace('name="a"', 'name="a" frictionloss="2" damping="3"')
        mechanism = read_model(write(tmp_path, text, "robot.xml"))
        return len(mechanism.joints) if name == "joints" else float(mechanism.get(name))

    for flag, name, value in (
        ("gravity", "gravity.acceleration", 9.81),
        ("frictionloss", "a.coulomb", 2.0),
        ("damper", "a.viscous", 3.0),
        ("constraint", "a.coulomb", 2.0),
    ):
        assert number("", name) == value
        assert number(flag, name) == 0.0
    assert number("equality", "joints") == number("", "joints") - 1


def test_an_error_that_meshes_do_not_explain_names_both(tmp_path):
    """Without its mesh a body may lack its mass, too; what was wrong first is what the user can mend."""
    mesh = '<asset><mesh name="m" file="nowhere.stl"/></asset>'
    body = '<body><joint/><geom type="mesh" mesh="m"/></body>'
    text = f"<mujoco>{mesh}<worldbody>{body}</worldbody></mujoco>"
    with pytest.raises(ModelFileError, match=r"nowhere\.stl.*without meshes and textures: .*mass and inertia"):
        read_model(write(tmp_path, text, "robot.xml"))


def test_a_mistake_in_an_included_file_has_no_line_of_this_one(tmp_path):
    (tmp_path / "part.xml").write_text('<mujoco><worldbody><body><joint type="nut"/></body></worldbody></mujoco>')
    with pytest.raises(ModelFileError, match=r"robot\.xml: MuJoCo refuses"):
        read_model(write(tmp_path, '<mujoco><include file="part.xml"/></mujoco>', "robot.xml"))


@pytest.mark.parametrize("stated", ['diaginertia="0.01 0.02 0.05"', 'fullinertia="0.01 0.05 0.02 0.001 0 0"'])
def test_impossible_inertias_become_the_nearest_possible_if_that_is_wanted(stated, tmp_path):
    path = write(tmp_path, FOUR_BAR.replace('diaginertia="0.01 0.02 0.02"', stated, 1), "robot.xml")
    with pytest.raises(ModelFileError, match=r"robot\.xml:\d+: the inertia of body .* the nearest possible one is"):
        read_robot(path)
    robot = read_robot(path, Reading(repair=True))
    (note,) = [note for note in robot.notes if "nearest possible" in note]
    assert note.split("=")[0].endswith(stated.split("=")[0])
    possible = np.linalg.eigvalsh(next(iter(robot.mechanism.bodies.values)).inertia.rows())
    assert possible[2] < possible[0] + possible[1]


def test_without_mujoco_the_command_that_installs_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ModelFileError, match=r"pip install 'shadowfit\[mjcf\]'"):
        read_model(write(tmp_path, FOUR_BAR, "robot.xml"))


def test_all_torques_if_that_is_wanted(tmp_path):
    text = FOUR_BAR.replace('<velocity joint="b" kv="2"/>', '<position joint="b" kp="5" dampratio="1"/>')
    mechanism = read_robot(write(tmp_path, text, "robot.xml"), Reading(drive="torque")).mechanism
    assert tuple(mechanism.inputs) == ("a_effort", "b_effort")
    assert mechanism.get("a.motor.gain") == 1.0  # a measured torque is the joint's, behind the gear


@pytest.mark.parametrize(
    ("text", "driven"),
    [
        (FOUR_BAR, ("a_effort", "b_effort")),
        (re.sub("<actuator>.*</actuator>", "", FOUR_BAR), ("a_effort", "b_effort", "c_effort")),
    ],
)
def test_whatever_drives_a_joint_its_torque_can_be_the_input(text, driven, tmp_path):
    mechanism = read_robot(write(tmp_path, text, "robot.xml"), Reading(drive="torque")).mechanism
    assert tuple(mechanism.inputs) == driven


def test_position_actuators_are_position_loops(tmp_path):
    text = FOUR_BAR.replace(
        '<velocity joint="b" kv="2"/>', '<position joint="b" kp="5" kv="0.5" gear="2" forcerange="-3 3"/>'
    )
    mechanism = read_robot(write(tmp_path, text, "robot.xml")).mechanism
    assert tuple(mechanism.inputs) == ("a_effort", "b_target")
    law = mechanism.joints["b"].laws["motor"]
    assert (float(law.kp), float(law.kd), float(law.limit)) == (20.0, 2.0, 6.0)
    assert mechanism.get("b_target.gain") == 0.5
    loops = read_robot(tmp_path / "robot.xml", Reading(drive="position")).mechanism
    assert tuple(loops.inputs) == ("a_target", "b_target")
    assert np.array_equal(loops.sensors["turned"].mounting, mechanism.sensors["turned"].mounting)


@pytest.mark.parametrize(
    ("limits", "effort"),
    [
        ('ctrllimited="true" ctrlrange="-2 3"', 12.0),
        ('forcelimited="true" forcerange="-5 5"', 10.0),
        ('ctrllimited="true" ctrlrange="-2 3" forcelimited="true" forcerange="-5 5"', 10.0),
        ("", None),
    ],
)
def test_the_largest_effort_is_that_of_the_actuator(tmp_path, limits, effort):
    """Gear 2 and gain 2: a control of 3 is 12 N m, a force of 5 is 10 N m."""
    text = (
        '<mujoco><worldbody><body name="rod"><joint name="pivot" axis="0 1 0" range="-90 90"/>'
        '<inertial mass="1" pos="0 0 -0.2" diaginertia="0.01 0.01 0.01"/></body></worldbody>'
        f'<actuator><general joint="pivot" gear="2" gainprm="2" {limits}/></actuator></mujoco>'
    )
    rating = load_model(write(tmp_path, text, "rod.xml")).ratings["pivot"]
    assert rating.position == pytest.approx((-np.pi / 2, np.pi / 2))
    assert (rating.speed, rating.effort) == (None, effort)


ONE_BODY = '<worldbody><body name="b"><joint axis="0 0 1"/><geom size="0.1" mass="1"/></body></worldbody>'


def changed(old, new):
    return f"<mujoco>{ONE_BODY.replace(old, new)}</mujoco>"


def repeated(inside):
    return f"<mujoco><worldbody>{inside}</worldbody></mujoco>"


GRID = '<flexcomp type="grid" count="2000 2000 1" spacing="1 1 1" dim="2" name="f" radius="0.01" mass="1"/>'
ITSELF = (
    '<mujoco><asset><model name="m" file="robot.xml"/></asset>'
    '<worldbody><body name="a"><attach model="m" body="a" prefix="x"/></body></worldbody></mujoco>'
)
HOSTILE = {
    "attached to itself": (ITSELF, r"robot\.xml: made its reader give up \(SIG"),
    "repeated": (
        repeated(f'<replicate count="100000"><replicate count="1000">{ONE_BODY[11:-12]}</replicate></replicate>'),
        "would take about .* TB of memory",
    ),
    "fine": (repeated(f'<body name="b">{GRID}</body>'), "would take about 80 GB of memory"),
    "pipe": (
        f'<mujoco><include file="pipe.xml"/>{ONE_BODY}</mujoco>',
        r":1: .*pipe\.xml cannot be read: it is",
    ),
    "outside": (
        f'<mujoco><include file="../other.xml"/>{ONE_BODY}</mujoco>',
        r":1: .*other\.xml lies outside",
    ),
    "inside": (f'<mujoco><include file="inner.xml"/>{ONE_BODY}</mujoco>', r"inner\.xml:1: .*other\.xml lies outside"),
    "link": (f'<mujoco><include file="link.xml"/>{ONE_BODY}</mujoco>', r"robot\.xml:1: .*link\.xml lies outside"),
    "axis nan": (changed("0 0 1", "nan 0 1"), r"robot\.xml:1: 'axis' of <joint> has nan"),
    "axis inf": (changed("0 0 1", "inf 0 1"), r"robot\.xml:1: 'axis' of <joint> has inf"),
    "axis long": (changed("0 0 1", "0 1e308 1e308"), r"robot\.xml:1: 'axis' of <joint> has 1e308"),
    "axis zero": (changed("0 0 1", "0 0 0"), "axis too small"),
    "mass nan": (changed('mass="1"', 'mass="nan"'), "'mass' of <geom> has nan"),
    "gravity nan": (changed("<worldbody>", '<option gravity="0 0 nan"/><worldbody>'), "'gravity' of <option> has nan"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_with_a_sentence(name, tmp_path):
    text, message = HOSTILE[name]
    folder = tmp_path / "robot"
    folder.mkdir()
    (tmp_path / "other.xml").write_text("<mujoco/>")
    (folder / "inner.xml").write_text('<mujocoinclude><include file="../other.xml"/></mujocoinclude>')
    (folder / "link.xml").symlink_to(tmp_path / "other.xml")
    os.mkfifo(folder / "pipe.xml")
    with pytest.raises(ShadowfitError, match=message):
        read_robot(write(folder, text, "robot.xml"))


def test_parts_may_be_called_as_they_like(tmp_path):
    text = f"<mujoco>{ONE_BODY.replace('name=' + chr(34) + 'b', 'name=' + chr(34) + 'nan')}</mujoco>"
    assert read_model(write(tmp_path, text, "robot.xml")).bodies.names == ("nan",)


def test_meshes_of_other_folders_are_left_out(tmp_path):
    folder = tmp_path / "robot"
    folder.mkdir()
    (tmp_path / "part.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n")
    text = (
        '<mujoco><compiler meshdir=".."/><asset><mesh name="m" file="part.obj"/></asset><worldbody><body name="b">'
        '<joint axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><geom type="mesh" mesh="m"/>'
        "</body></worldbody></mujoco>"
    )
    path = write(folder, text, "robot.xml")
    assert any("outside of" in note and "left out" in note for note in read_robot(path).notes)
    (folder / "part.obj").write_bytes((tmp_path / "part.obj").read_bytes())
    inside = write(folder, text.replace('meshdir=".."', 'meshdir="."'), "inside.xml")
    assert not any("left out" in note for note in read_robot(inside).notes)
