"""URDF files: the mechanism is the robot that other programs read from the same file, and mistakes are named."""

import contextlib
import re

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.robots.urdfs import urdfs
from reference import mujoco_files, newton_euler
from shadowfit.dynamics import energy, place, simulate
from shadowfit.dynamics.elements import assembled
from shadowfit.dynamics.kinematics import StateView
from shadowfit.errors import ShadowfitError
from shadowfit.models import ModelFileError, load_model, parse_model, read_model
from shadowfit.models.reader import Rating
from shadowfit.models.robots.inertia import nearest_possible
from shadowfit.models.robots.read import Reading, read_robot
from shadowfit.models.writer import same_numbers

ARM = """<robot name="arm">
  <link name="base"><inertial><mass value="3"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
  <joint name="shoulder" type="revolute">
    <origin xyz="0 0 0.4"/>
    <parent link="base"/>
    <child link="upper"/>
    <axis xyz="0 1 0"/>
    <limit lower="-1.5" upper="1.5" effort="10" velocity="1"/>
    <dynamics damping="0.2" friction="0.3"/>
  </joint>
  <link name="upper">
    <inertial>
      <origin xyz="0.1 0 0"/>
      <mass value="2"/>
      <inertia ixx="0.01" iyy="0.02" izz="0.02"/>
    </inertial>
  </link>
  <link name="tool"><inertial><mass value="0.5"/><inertia ixx="0.01" iyy="0.01" izz="0.01"/></inertial></link>
  <joint name="flange" type="fixed"><origin xyz="0.3 0 0"/><parent link="upper"/><child link="tool"/></joint>
</robot>
"""


def motion(names, seed):
    rng = np.random.default_rng(seed)
    return tuple(dict(zip(names, rng.normal(size=len(names)), strict=True)) for _ in range(3))


def write(folder, text, name="robot.urdf"):
    path = folder / name
    path.write_text(text, "utf-8")
    return path


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=urdfs(), seed=st.integers(0, 1000))
def test_inverse_dynamics_is_that_of_mujocos_reading(text, seed, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    mechanism = read_model(write(tmp_path, text))
    at = motion(mechanism.joints.names, seed)
    ours = newton_euler.torques(mechanism, *at)
    theirs = mujoco_files.torques(mujoco.MjModel.from_xml_string(text), *at)
    np.testing.assert_allclose(list(ours.values()), [theirs[name] for name in ours], rtol=1e-9, atol=1e-10)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=urdfs())
def test_the_text_of_the_model_file_is_the_same_mechanism(text, tmp_path):
    loaded = load_model(write(tmp_path, text))
    again = parse_model(loaded.text)
    for name in loaded.mechanism.leaves():
        np.testing.assert_array_equal(again.mechanism.get(name), loaded.mechanism.get(name))


@pytest.mark.data
@pytest.mark.parametrize("file", ["arm_tx40/tx40.urdf", "arm_ur10/ur10.urdf"])
def test_shared_arms_are_as_pinocchio_reads_them(file, data_dir):
    pinocchio = pytest.importorskip("pinocchio")
    model = pinocchio.buildModelFromUrdf(str(data_dir / file))
    mechanism = read_model(data_dir / file)
    if file.startswith("arm_tx40"):  # What Pinocchio takes as a point is a ball here.
        model.inertias[model.njoints - 1].inertia = np.diag([mechanism.get("link_6.inertia.xx")] * 3)
    for seed in range(3):
        at = motion(mechanism.joints.names, seed)
        arrays = [np.array([values[name] for name in list(model.names)[1:]]) for values in at]
        theirs = pinocchio.rnea(model, model.createData(), *arrays)
        ours = newton_euler.torques(mechanism, *at)
        np.testing.assert_allclose([ours[name] for name in list(model.names)[1:]], theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_energy_by_the_library_itself(tmp_path):
    """Energies of the placed bodies: of a double pendulum with a lumped tool, by hand."""
    mechanism = read_model(write(tmp_path, ARM))
    state = place(mechanism, positions={"shoulder": 0.5}, speeds={"shoulder": 2.0})
    assert float(StateView(mechanism, state).joint_position("shoulder")) == pytest.approx(0.5)
    about = 0.02 + 2 * 0.1**2 + 0.01 + 0.5 * 0.3**2
    assert float(jax.jit(energy.kinetic)(assembled(mechanism), state)) == pytest.approx(0.5 * about * 2.0**2, rel=1e-9)
    height = 2.5 * 0.4 - (2 * 0.1 + 0.5 * 0.3) * np.sin(0.5)
    assert float(jax.jit(energy.potential)(assembled(mechanism), state)) == pytest.approx(9.81 * height, rel=1e-9)


def test_names_and_channels(tmp_path):
    mechanism = read_model(write(tmp_path, ARM))
    assert tuple(mechanism.bodies) == ("upper",)
    assert tuple(mechanism.sensors) == ("shoulder_position",)
    assert tuple(mechanism.inputs) == ("shoulder_effort",)
    assert mechanism.get("shoulder.viscous") == 0.2
    assert mechanism.get("shoulder.coulomb") == 0.3
    assert mechanism.get("shoulder.motor.gain") == 1.0
    assert mechanism.get("shoulder.motor.shaft_inertia") == 0.0
    assert mechanism.get("upper.mass") == 2.5


def test_names_that_are_none_in_model_files(tmp_path):
    text = ARM.replace('"shoulder"', '"arm/1-joint"').replace('"upper"', '"arm/1-joint"')
    mechanism = read_model(write(tmp_path, text))
    assert tuple(mechanism.joints) == ("arm_1_joint",)
    assert tuple(mechanism.bodies) == ("arm_1_joint_link",)


def test_limits_are_stops_if_they_are_asked_for(tmp_path):
    path = write(tmp_path, ARM)
    assert len(read_model(path).contacts) == 0
    mechanism = read_robot(path, Reading(limits=True)).mechanism
    assert mechanism.get("shoulder_limits.upper") == 1.5


def test_floating_and_planar_joints(tmp_path):
    text = ARM.replace('"flange" type="fixed"', '"flange" type="continuous"')
    free = read_model(write(tmp_path, text.replace("revolute", "floating")))
    assert tuple(free.joints) == ("flange",)
    held = load_model(tmp_path / "robot.urdf", weld=["upper"]).mechanism
    assert tuple(held.bodies) == ("tool",)
    np.testing.assert_allclose(held.joints["flange"].parent_point, [0.3, 0.0, 0.4])
    with pytest.raises(ModelFileError, match="no link with a free joint"):
        load_model(tmp_path / "robot.urdf", weld=["tool"])
    plane = read_model(write(tmp_path, text.replace("revolute", "planar"))).joints["shoulder"]
    assert type(plane.kind).__name__ == "Planar"
    np.testing.assert_allclose(newton_euler.matrix(plane.parent_rotation)[:, 0], [0.0, 1.0, 0.0], atol=1e-12)


def test_a_link_without_inertia_is_a_ball_and_that_is_said(tmp_path):
    text = ARM.replace('ixx="0.01" iyy="0.02" izz="0.02"', 'ixx="0" iyy="0" izz="0"')
    loaded = load_model(write(tmp_path, text))
    assert any("upper (2 kg" in note and "balls" in note for note in loaded.notes)


def test_a_link_that_moves_without_mass(tmp_path):
    text = ARM.replace('<joint name="flange" type="fixed">', '<joint name="flange" type="continuous">')
    begin = text.index('<link name="upper">')
    text = text[:begin] + '<link name="upper"/>' + text[text.index("</link>", begin) + len("</link>") :]
    loaded = load_model(write(tmp_path, text))
    assert loaded.mechanism.get("upper.mass") == pytest.approx(0.5e-6)
    assert any("upper" in note for note in loaded.notes)


def test_a_joint_that_moves_no_mass_is_fixed(tmp_path):
    more = (
        '<link name="eye"/><joint name="pan" type="revolute"><parent link="tool"/><child link="eye"/></joint></robot>'
    )
    loaded = load_model(write(tmp_path, ARM.replace("</robot>", more)))
    assert tuple(loaded.mechanism.joints) == ("shoulder",)
    assert any("pan" in note for note in loaded.notes)


def test_an_axis_of_a_joint_that_has_none_is_not_looked_at(tmp_path):
    """Exporters write zero axes for fixed joints."""
    text = ARM.replace('<origin xyz="0.3 0 0"/>', '<origin xyz="0.3 0 0"/><axis xyz="0 0 0"/>')
    assert same_numbers(read_model(write(tmp_path, text)), read_model(write(tmp_path, ARM, "plain.urdf")))


def test_an_impossible_link_of_a_possible_body_is_told_and_counts(tmp_path):
    """What moves is the body; its inertia is the sum, whatever its links have."""
    text = ARM.replace('ixx="0.01" iyy="0.01" izz="0.01"', 'ixx="1e-3" iyy="1e-3" izz="3e-3"')
    loaded = load_model(write(tmp_path, text))
    assert any("'tool'" in note and "'upper'" in note and "as a whole" in note for note in loaded.notes)
    about = 0.02 + 2 * 0.1**2 + 1e-3 + 0.5 * 0.3**2 - 2.5 * loaded.mechanism.get("upper.com.x") ** 2
    assert loaded.mechanism.get("upper.inertia.yy") == pytest.approx(about)
    repaired = load_model(write(tmp_path, 'robot = "robot.urdf"\nrepair = true', "arm.toml"))
    assert same_numbers(repaired.mechanism, loaded.mechanism)


def test_what_is_part_of_the_world_needs_no_possible_inertia(tmp_path):
    wrong = [
        ARM.replace('ixx="1" iyy="1" izz="1"', inertia) for inertia in ('ixx="1" iyy="1" izz="3"', 'ixx="1" ixy="2"')
    ]
    for text in (*wrong, ARM.replace('mass value="3"', 'mass value="0"')):
        loaded = load_model(write(tmp_path, text))
        assert same_numbers(loaded.mechanism, read_model(write(tmp_path, ARM, "plain.urdf")))
        assert loaded.notes == ()


def test_all_impossible_links_are_named_at_once(tmp_path):
    text = ARM.replace('type="fixed"', 'type="continuous"').replace('iyy="0.02"', 'iyy="0.05"')
    text = text.replace('ixx="0.01" iyy="0.01" izz="0.01"', 'ixx="0.01" iyy="0.01" izz="0.05"')
    with pytest.raises(ModelFileError, match=r"robot\.urdf:12: .*'upper'.*Impossible as well: 'tool' \(line 18\)"):
        read_model(write(tmp_path, text))


def test_moments_of_a_fixed_link_without_mass_are_left_out(tmp_path):
    loaded = load_model(write(tmp_path, ARM.replace('mass value="0.5"', 'mass value="0"')))
    assert loaded.mechanism.get("upper.inertia.yy") == 0.02
    assert any("left out: tool" in note for note in loaded.notes)


def test_a_fixed_joint_follows_nothing_and_none_follows_it(tmp_path):
    text = ARM.replace(
        '<joint name="flange" type="fixed">', '<joint name="flange" type="fixed"><mimic joint="shoulder"/>'
    )
    assert same_numbers(read_model(write(tmp_path, text)), read_model(write(tmp_path, ARM, "plain.urdf")))
    more = '<link name="hand"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>'
    more += (
        '<joint name="grip" type="revolute"><parent link="tool"/><child link="hand"/><mimic joint="flange"/></joint>'
    )
    held = load_model(write(tmp_path, ARM.replace("</robot>", more + "</robot>")))
    assert tuple(held.mechanism.joints) == ("shoulder",)
    assert any("grip" in note for note in held.notes)


MISTAKES = {
    "not valid XML": (ARM.replace("</robot>", "</robots>"), "robot.urdf:20: not valid XML"),
    "entities": ('<!DOCTYPE r [<!ENTITY a "b">]>\n' + ARM, "robot.urdf:1: the file declares XML entities"),
    "xacro": (ARM.replace('"0 0 0.4"', '"0 0 ${height}"'), "robot.urdf:4: this is a xacro template"),
    "root": ("<sdf/>", "SDF is not read"),
    "no links": ('<robot name="a"/>', "no links"),
    "no name": (ARM.replace('name="tool"', ""), "<link> has no 'name'"),
    "second link": (ARM.replace('"tool"', '"upper"', 1), "a second link called 'upper'"),
    "second joint": (ARM.replace('"flange"', '"shoulder"'), "a second joint called 'shoulder'"),
    "unknown parent": (ARM.replace('parent link="upper"', 'parent link="uper"'), "did you mean 'upper'"),
    "no child": (ARM.replace('<child link="upper"/>', ""), "joint 'shoulder' has no <child>"),
    "two roots": (ARM.replace("</robot>", '<link name="stray"/></robot>'), "no joint holds 'base', 'stray'"),
    "two parents": (
        ARM.replace(
            "</robot>", '<joint name="x" type="fixed"><parent link="base"/><child link="tool"/></joint></robot>'
        ),
        "the child of two joints",
    ),
    "circle": (
        '<robot><link name="r"/><link name="a"/><link name="b"/>'
        '<joint name="x" type="fixed"><parent link="a"/><child link="b"/></joint>'
        '<joint name="y" type="fixed"><parent link="b"/><child link="a"/></joint></robot>',
        "in a circle: 'a', 'b'",
    ),
    "type": (ARM.replace("revolute", "rotary"), "'type' of <joint> is 'rotary'"),
    "nan": (ARM.replace('mass value="2"', 'mass value="nan"'), "must be a finite number, not 'nan'"),
    "word": (ARM.replace('"0.1 0 0"', '"0.1 0"'), "must be 3 finite numbers"),
    "axis": (ARM.replace('"0 1 0"', '"0 0 0"'), "axis of joint 'shoulder' is zero"),
    "negative mass": (ARM.replace('"2"', '"-2"'), "a mass cannot be negative"),
    "negative damping": (ARM.replace('damping="0.2"', 'damping="-0.2"'), "the damping of joint 'shoulder'"),
    "triangle": (ARM.replace('iyy="0.02"', 'iyy="0.05"'), "nearest possible one is ixx="),
    "nothing moves": (ARM.replace("revolute", "fixed"), "no joint but fixed ones, and the root 'base' is the world"),
    "no masses": (re.sub("<inertial>.*?</inertial>", "", ARM, flags=re.DOTALL), "has a mass (joints: shoulder)"),
    "inertia without mass": (ARM.replace('"2"', '"0"'), "link 'upper' has moments of inertia but no mass"),
    "declaration": (" " + '<?xml version="1.0"?>' + ARM, "must be the very first"),
    "empty": ("", "nothing in the file"),
    "commas": (ARM.replace('"0.1 0 0"', '"0.1, 0, 0"'), "3 finite numbers with spaces between them, not '0.1, 0, 0'"),
    "mimics in a circle": (
        ARM.replace('type="fixed">', 'type="continuous"><mimic joint="shoulder"/>').replace(
            '<axis xyz="0 1 0"/>', '<axis xyz="0 1 0"/><mimic joint="flange"/>'
        ),
        "robot.urdf:3: joints mimic each other in a circle: 'shoulder', 'flange'",
    ),
    "world": (ARM.replace('"upper"', '"world"'), "only the root link may be called 'world'"),
    "underscore": (ARM.replace('"2"', '"2_0"'), "must be a finite number, not '2_0'"),
    "encoding": ('<?xml version="1.0" encoding="klingon"?>' + ARM, "unknown encoding: klingon in its first line"),
    "limits": (ARM.replace('lower="-1.5"', 'lower="2"'), "above the upper one"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named_with_file_and_line(mistake, tmp_path):
    text, message = MISTAKES[mistake]
    with pytest.raises(ModelFileError) as raised:
        read_model(write(tmp_path, text))
    assert message in str(raised.value)
    assert "robot.urdf" in str(raised.value)


def test_encodings(tmp_path):
    """What names its encoding is read, with or without a mark at the start; UTF-16 is refused by its name."""
    text = ARM.replace('"tool"', '"pièce"')
    path = tmp_path / "robot.urdf"
    for declared, encoding in (("", "utf-8"), ("", "utf-8-sig"), ("latin-1", "latin-1"), ("windows-1252", "cp1252")):
        head = f'<?xml version="1.0" encoding="{declared}"?>' if declared else ""
        path.write_bytes((head + text).encode(encoding))
        assert "pièce" in read_robot(path).description.links
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        path.write_bytes(text.encode(encoding))
        with pytest.raises(ModelFileError, match="UTF-16; save the file as UTF-8"):
            read_model(path)
    path.write_bytes(
        ('<?xml version="1.0" encoding="latin-1"?>' + ARM.replace("<robot", '<robot hauteur_élevée="1"')).encode(
            "latin-1"
        )
    )
    assert read_model(path).get("upper.mass") == 2.5


def test_a_robot_file_of_another_name_is_told_from_a_model_file(tmp_path):
    with pytest.raises(ModelFileError, match=r"robot\.txt:1: this is XML .* ends in \.urdf or \.xml"):
        read_model(write(tmp_path, "\n" + ARM, "robot.txt"))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_files_raise_only_named_errors(data, tmp_path):
    content = bytearray(ARM.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        if data.draw(st.booleans()):
            content[at] = data.draw(st.integers(0, 255))
        else:
            del content[at : at + data.draw(st.integers(1, 40))]
    path = tmp_path / "robot.urdf"
    path.write_bytes(bytes(content))
    with contextlib.suppress(ShadowfitError):
        read_model(path)


@given(values=st.lists(st.floats(-1, 1), min_size=6, max_size=6).filter(lambda v: np.ptp(v) > 1e-3))
def test_the_nearest_possible_inertia(values):
    """It is possible, keeps what is possible already, and nothing possible is nearer."""
    xx, yy, zz, xy, xz, yz = values
    matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    nearest = nearest_possible(matrix)
    second = 0.5 * np.trace(nearest) * np.eye(3) - nearest
    assert np.linalg.eigvalsh(second)[0] > 0.0
    np.testing.assert_allclose(nearest_possible(nearest), nearest, atol=1e-5)
    rng = np.random.default_rng(0)
    for _ in range(20):
        points = rng.normal(size=(4, 3)) * rng.uniform(0, 1, 3)
        other = sum(p @ p * np.eye(3) - np.outer(p, p) for p in points)
        other = nearest + rng.uniform(0, 1) * (other - nearest)
        assert np.linalg.norm(other - matrix) >= np.linalg.norm(nearest - matrix) - 1e-4


def test_repair_replaces_and_says_so(tmp_path):
    path = write(tmp_path, ARM.replace('iyy="0.02"', 'iyy="0.05"'))
    robot = read_robot(path, Reading(repair=True))
    assert any("nearest possible" in note for note in robot.notes)
    assert 'iyy="0.0433333"' in robot.notes[0]


PARALLELOGRAM = ARM.replace(
    '<joint name="flange" type="fixed">',
    '<joint name="wrist" type="revolute"><axis xyz="0 {sign} 0"/>'
    '<mimic joint="shoulder" multiplier="{ratio}" offset="{c}"/>',
).replace('damping="0.2" friction="0.3"', "")


def parallelogram(folder, sign, ratio):
    text = PARALLELOGRAM.replace("{sign}", str(sign)).replace("{ratio}", str(ratio)).replace("{c}", "0.2")
    return read_model(write(folder, text))


def turned(joint, angle):
    """Matrix of a hinge's child in its parent."""
    about = newton_euler.matrix([np.cos(angle / 2), np.sin(angle / 2), 0.0, 0.0])
    return newton_euler.matrix(joint.parent_rotation) @ about @ newton_euler.matrix(joint.child_rotation).T


@pytest.mark.parametrize(("sign", "ratio"), [(1, -1), (-1, 1)])
def test_a_joint_that_mimics_as_in_a_parallelogram(sign, ratio, tmp_path):
    """The tool keeps its attitude exactly where the file's own equation holds."""
    mechanism = parallelogram(tmp_path, sign, ratio)
    assert tuple(mechanism.sensors) == ("shoulder_position",)
    assert tuple(mechanism.inputs) == ("shoulder_effort",)
    kept = mechanism.joints["wrist_mimic"]
    assert (kept.parent, kept.child) == ("world", "tool")
    # It has no axis to rub on, and is not asked for its friction.
    assert not [name for name in mechanism.match("*.friction") if name.startswith("wrist_mimic")]
    for angle in (-0.7, 0.0, 0.5):
        for off in (0.0, 0.1):
            wrist = ratio * angle + 0.2 + off
            tool = turned(mechanism.joints["shoulder"], angle) @ turned(mechanism.joints["wrist"], wrist)
            frames = newton_euler.matrix(kept.parent_rotation), tool @ newton_euler.matrix(kept.child_rotation)
            gap = frames[0][:, 1] @ frames[1][:, 2]
            assert abs(gap) == pytest.approx(abs(np.sin(off)), abs=1e-12)


@pytest.mark.slow
def test_a_parallelogram_falls_as_one(tmp_path):
    """As a pendulum to whose end the tool's mass is tied."""
    mechanism = parallelogram(tmp_path, 1, -1)
    state = place(mechanism, positions={"shoulder": 0.5})
    assert float(StateView(mechanism, state).joint_position("wrist")) == pytest.approx(-0.3, abs=1e-9)
    run = simulate(mechanism, state, timestep=1e-3, steps=100, discretization="exact", joints="compliant", substeps=1)
    inertia = 0.02 + 2.0 * 0.1**2 + 0.5 * 0.3**2
    fallen, time = float(run.readings["shoulder_position"][-1]) - 0.5, float(run.time[-1])
    start = 9.81 * (2.0 * 0.1 + 0.5 * 0.3) * np.cos(0.5) / inertia
    slope = -9.81 * (2.0 * 0.1 + 0.5 * 0.3) * np.sin(0.5) / inertia
    assert fallen == pytest.approx(start * time**2 / 2 * (1 + slope * time**2 / 12), rel=2e-3)


def test_other_joints_that_mimic_are_held(tmp_path):
    text = PARALLELOGRAM.replace("{sign}", "1").replace("{ratio}", "0.5").replace("{c}", "0.2")
    loaded = load_model(write(tmp_path, text))
    assert tuple(loaded.mechanism.joints) == ("shoulder",)
    assert any("wrist" in note for note in loaded.notes)


def test_what_joints_may_do_is_kept_for_designs(tmp_path):
    ratings = load_model(write(tmp_path, ARM)).ratings
    assert ratings == {"shoulder": Rating((-1.5, 1.5), 1.0, 10.0)}
    unknown = ARM.replace('effort="10" velocity="1"', 'effort="0" velocity="0"')
    assert load_model(write(tmp_path, unknown)).ratings == {"shoulder": Rating((-1.5, 1.5))}
    (tmp_path / "small.toml").write_text('robot = "robot.urdf"\n')
    write(tmp_path, ARM)
    assert load_model(tmp_path / "small.toml").ratings == ratings
