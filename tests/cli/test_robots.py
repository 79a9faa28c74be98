"""Robot files on the command line."""

import numpy as np
import pytest

from cli.test_cli import refused, run
from models.robots.test_overlay import OVERLAY, TWO
from models.robots.test_urdf import ARM
from shadowfit.models import load_model, read_model


def test_show_and_convert(tmp_path):
    robot, model = tmp_path / "robot.urdf", tmp_path / "model.toml"
    robot.write_text(ARM.replace('ixx="0.01" iyy="0.02" izz="0.02"', 'ixx="0" iyy="0" izz="0"'), "utf-8")
    shown = run("show", robot)
    assert shown.exit_code == 0, shown.output
    assert "shoulder_position" in shown.stdout
    assert "balls of water of that mass: upper (2 kg" in shown.stderr
    converted = run("convert", robot, model)
    assert converted.exit_code == 0, converted.output
    assert "1 body, 1 joint" in converted.stdout
    first, second = read_model(robot), read_model(model)
    for name in first.leaves():
        np.testing.assert_array_equal(first.get(name), second.get(name))


def test_convert_the_file_beside_a_robot(tmp_path):
    (tmp_path / "robot.urdf").write_text(TWO, "utf-8")
    (tmp_path / "small.toml").write_text(OVERLAY, "utf-8")
    assert run("convert", tmp_path / "small.toml", tmp_path / "whole.toml").exit_code == 0
    small, whole = load_model(tmp_path / "small.toml"), load_model(tmp_path / "whole.toml")
    assert whole.mechanism.leaves() == small.mechanism.leaves()
    assert (whole.start.positions, whole.description) == (small.start.positions, small.description)


def test_mistakes(tmp_path):
    (tmp_path / "robot.urdf").write_text(ARM, "utf-8")
    assert "ends in .toml" in refused("convert", tmp_path / "robot.urdf", tmp_path / "out.urdf")
    assert "cannot be welded" in refused("show", tmp_path / "robot.urdf", "--weld", "upper")
    assert "only links of a robot file" in refused("simulate", "furuta", "--weld", "arm", "--out", tmp_path / "a.csv")


@pytest.mark.slow
def test_export_of_a_fit(tmp_path):
    """A twin of an arm with other friction: recorded, fitted, and the friction written into its own file."""
    robot, recording, result = tmp_path / "robot.urdf", tmp_path / "run.csv", tmp_path / "result"
    robot.write_text(ARM, "utf-8")
    made = run(
        "simulate", robot, "--duration", 1, "--set", "shoulder.viscous=0.5", "--set", "shoulder.coulomb=0.1",
        "--start", "shoulder=-1", "--discretization", "exact", "--out", recording,
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    free = ("--free", "shoulder.viscous", "--free", "shoulder.motor.gain", "--set", "shoulder.coulomb=0.1")
    run("fit", robot, recording, *free, "--out", result, "--quiet")
    told = run("export", result, robot)
    assert told.exit_code == 0, told.output
    assert "robot.calibrated.urdf: 2 numbers written" in told.stdout
    assert "not identified" in told.stdout, "nothing drove the motor"
    fitted, written = read_model(result / "model.toml"), read_model(tmp_path / "robot.calibrated.urdf")
    assert written.get("shoulder.viscous") == fitted.get("shoulder.viscous") != 0.2
    assert written.get("shoulder.coulomb") == 0.1
    assert robot.read_text("utf-8") == ARM
    assert "is not the folder of a result" in refused("export", tmp_path / "none", robot)
