"""Calibrated numbers in a user's own file: they read back, and no other line changes."""

import difflib
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.robots.test_mjcf import FOUR_BAR
from models.robots.test_overlay import OVERLAY, TWO
from models.robots.test_urdf import ARM, write
from models.robots.urdfs import urdfs
from shadowfit.errors import MechanismError
from shadowfit.models import load_model, read_model
from shadowfit.models.robots.export import export_robot, export_tables


def edited(before, after):
    """Lines of a text that are not in another one, and the other way round."""
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    return [line[2:] for line in lines if line[0] == "-"], [line[2:] for line in lines if line[0] == "+"]


def numbers_of_the_file(mechanism):
    """All but what follows from the robot's size."""
    return [name for name in mechanism.leaves() if ".compliance." not in name]


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=urdfs(), data=st.data())
def test_new_values_read_back_and_only_their_lines_change(text, data, tmp_path):
    path = write(tmp_path, text)
    mechanism = read_model(path)
    fields = ("mass", "com.x", "inertia.xx", "inertia.xy", "viscous", "coulomb", "parent_point.y")
    names = [name for name in mechanism.leaves() if name.endswith(fields) and "_" not in name.split(".")[0]]
    chosen = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
    values = {name: mechanism.get(name) * 1.0625 + (0.0 if "inertia" in name else 1e-3) for name in chosen}
    try:
        mechanism.set(values)
    except MechanismError:
        return
    exported = export_robot(path, values)
    assert exported.written.keys() | exported.impossible.keys() == values.keys()
    path.write_bytes(exported.content)
    again = read_model(path)
    for name in numbers_of_the_file(mechanism):
        wanted = exported.written.get(name, mechanism.get(name))
        np.testing.assert_allclose(again.get(name), wanted, rtol=1e-8, atol=1e-10, err_msg=name)
    # A link has three lines of numbers, a joint two; all changes of a body go to one link.
    removed, added = edited(text, exported.content.decode())
    parts = {name.split(".")[0] for name in values}
    assert len(removed) == len(added) <= 3 * len(parts)
    assert all(line.lstrip().startswith(("<origin", "<mass", "<inertia", "<limit")) for line in removed)


def test_only_the_numbers_of_a_link_that_changed(tmp_path):
    exported = export_robot(write(tmp_path, TWO), {"upper.mass": 2.25, "shoulder.viscous": 1 / 3})
    removed, added = edited(TWO, exported.content.decode())
    assert removed == ['    <dynamics damping="0.2" friction="0.3"/>', '      <mass value="2"/>']
    assert added == ['    <dynamics damping="0.3333333333333333" friction="0.3"/>', '      <mass value="2.25"/>']


def test_the_heaviest_link_of_a_body_takes_its_changes(tmp_path):
    path = write(tmp_path, ARM)
    exported = export_robot(path, {"upper.mass": 3.0})
    path.write_bytes(exported.content)
    robot = read_model(path)
    assert b'<mass value="0.5"/>' in exported.content, "the tool keeps its mass"
    assert robot.get("upper.mass") == 3.0
    for name in ("com.x", "inertia.yy"):
        assert robot.get(f"upper.{name}") == pytest.approx(read_model(write(tmp_path, ARM)).get(f"upper.{name}"))
    refused = export_robot(path, {"upper.mass": 0.4})
    assert "fixed to 'upper'" in refused.impossible["upper.mass"]
    assert refused.content == path.read_bytes()


def test_what_is_missing_is_added_and_what_has_no_place_is_told(tmp_path):
    text = TWO.replace('<dynamics damping="0.2" friction="0.3"/>', "").replace('<origin xyz="0.1 0 0"/>', "")
    values = {
        "shoulder.viscous": 0.5,
        "shoulder.coulomb": 0.25,
        "upper.com.y": 0.01,
        "shoulder.motor.gain": 2.0,
        "shoulder_position.offset": 0.1,
        "stranger.mass": 1.0,
    }
    exported = export_robot(write(tmp_path, text), values)
    assert b'<dynamics damping="0.5" friction="0.25"/>' in exported.content
    assert b'<origin xyz="0.0 0.01 0.0"/>\n      <mass' in exported.content
    assert set(exported.homeless) == {"shoulder.motor.gain", "shoulder_position.offset", "stranger.mass"}


def test_impossible_values_are_refused(tmp_path):
    with pytest.raises(MechanismError, match="triangle"):
        export_robot(write(tmp_path, TWO), {"upper.inertia.yy": 0.5})


def test_windows_lines_quotes_and_letters_stay(tmp_path):
    text = TWO.replace("\n", "\r\n").replace('value="2"', "value = '2'").replace("<robot", "<!-- Größe µm --><robot")
    path = tmp_path / "robot.urdf"
    path.write_bytes(text.encode())
    exported = export_robot(path, {"upper.mass": 2.5})
    assert exported.content == text.replace("value = '2'", "value = '2.5'").encode()


# ---- MJCF

LEG = """<mujoco>
  <default><joint damping="0.5"/><motor gear="2"/></default>
  <worldbody>
    <!-- the leg -->
    <body name="thigh">
      <joint name="hip" axis="0 1 0"/>
      <inertial mass="1" pos="0.1 0 0" quat="1 1 0 0" diaginertia="0.01 0.02 0.025"/>
      <body name="shin" pos="0.2 0 0">
        <joint name="knee" axis="0 1 0" damping="0.1"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0.2 0 0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="hip"/></actuator>
</mujoco>
"""


def test_mjcf_inherited_values_are_written_out(tmp_path):
    pytest.importorskip("mujoco")
    path = write(tmp_path, LEG, "leg.xml")
    before = read_model(path)
    values = {
        "hip.viscous": 0.75,
        "knee.viscous": 0.125,
        "hip.coulomb": 0.3,
        "hip.motor.shaft_inertia": 0.01,
        "hip.motor.gain": 3.0,
        "thigh.mass": 1.5,
        "thigh.inertia.xy": 1e-3,
        "shin.com.x": 0.125,
        "hip_effort.delay": 0.01,
    }
    exported = export_robot(path, values)
    assert set(exported.homeless) == {"hip_effort.delay"}
    path.write_bytes(exported.content)
    again = read_model(path)
    for name in numbers_of_the_file(before):
        wanted = values.get(name, before.get(name)) if name not in exported.homeless else before.get(name)
        np.testing.assert_allclose(again.get(name), wanted, rtol=1e-9, atol=1e-12, err_msg=name)
    text = exported.content.decode()
    removed, _ = edited(LEG, text)
    assert len(removed) == 4
    assert '<default><joint damping="0.5"/>' in text
    assert "<!-- the leg -->" in text


@pytest.mark.data
def test_shared_robots(data_dir, tmp_path):
    """Every mass, one moment of inertia and the friction of each joint, in files of others."""
    for file, link in (("arm_tx40/tx40.urdf", "link_2"), ("legs_go2/go2.xml", "FL_thigh")):
        path = tmp_path / file.split("/")[1]
        path.write_bytes((data_dir / file).read_bytes())
        before = read_model(path)
        values = {
            name: 1.01 * before.get(name) + 1e-3 for name in before.leaves() if name.endswith((".viscous", ".mass"))
        }
        values[f"{link}.inertia.yy"] = 1.01 * before.get(f"{link}.inertia.yy")
        exported = export_robot(path, values)
        assert set(exported.written) == set(values)
        old, new = path.read_text().splitlines(), exported.content.decode().splitlines()
        assert len(old) == len(new)
        assert sum(a != b for a, b in zip(old, new, strict=True)) <= len(values) + 2


def test_bodies_of_included_files_are_told(tmp_path):
    pytest.importorskip("mujoco")
    inside = '<inertial mass="1" pos="0.1 0 0" diaginertia="0.01 0.02 0.02"/>'
    (tmp_path / "arm.xml").write_text(f'<mujoco><body name="arm"><joint name="j"/>{inside}</body></mujoco>')
    text = '<mujoco><worldbody><include file="arm.xml"/></worldbody></mujoco>'
    exported = export_robot(write(tmp_path, text, "robot.xml"), {"arm.mass": 2.0, "j.viscous": 1.0})
    assert exported.content == text.encode()
    assert set(exported.homeless) == {"arm.mass", "j.viscous"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["arm.xml", "robot.xml"]


def test_masses_that_the_compiler_takes_from_geoms_have_no_place(tmp_path):
    pytest.importorskip("mujoco")
    text = (
        '<mujoco><compiler inertiafromgeom="true"/><worldbody><body name="b"><joint name="j"/><geom size="0.1"/></body>'
        "</worldbody></mujoco>"
    )
    exported = export_robot(write(tmp_path, text, "robot.xml"), {"b.mass": 5.0, "j.viscous": 2.0})
    assert exported.homeless == {"b.mass": 5.0}
    assert exported.written == {"j.viscous": 2.0}
    assert b"<inertial" not in exported.content


def test_loops_do_not_disturb(tmp_path):
    pytest.importorskip("mujoco")
    exported = export_robot(write(tmp_path, FOUR_BAR, "robot.xml"), {"crank.mass": 2.0})
    assert list(exported.written) == ["crank.mass"]


# ---- model files


def test_the_file_beside_a_robot_takes_what_the_robot_cannot(tmp_path):
    (tmp_path / "robot.urdf").write_text(TWO, "utf-8")
    path = write(tmp_path, OVERLAY, "small.toml")
    values = {"shoulder_effort.delay": 0.0125, "shoulder_position.offset": 0.1, "elbow.stribeck_rate": 8.0}
    exported = export_tables(path, {**values, "stranger.mass": 1.0})
    assert set(exported.homeless) == {"stranger.mass"}
    path.write_bytes(exported.content)
    again = load_model(path).mechanism
    assert {name: again.get(name) for name in values} == values
    removed, _ = edited(OVERLAY, exported.content.decode())
    assert removed == ["stribeck_rate = 9.0", "delay = 0.01"]


def test_a_whole_model_file(tmp_path):
    text = load_model("furuta").text
    exported = export_tables(write(tmp_path, text, "rig.toml"), {"hinge1.viscous": 0.125})
    assert len(edited(text, exported.content.decode())[0]) == 1


def test_python_is_not_needed_by_urdf(monkeypatch, tmp_path):
    """A URDF is exported without MuJoCo."""
    monkeypatch.setitem(sys.modules, "mujoco", None)
    assert export_robot(write(tmp_path, TWO), {"upper.mass": 2.5}).written
