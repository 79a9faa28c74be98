"""Designs of small machines: limits hold, nothing usual is better, and mistakes are told in words."""

import dataclasses
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from shadowfit.cli.app import app
from shadowfit.designs import DesignError, DesignSettings, Limits, design
from shadowfit.designs.constraints import violations
from shadowfit.designs.drives import JointMotion, Release, Signals
from shadowfit.designs.files import motion_table, trajectory_text
from shadowfit.designs.limits import InputLimits, JointLimits, Plane
from shadowfit.designs.page import design_page, ending, percent
from shadowfit.evaluation.columns import read_csv
from shadowfit.mechanism import Body, Input, JointPosition, Mechanism, PositionMotor, TorqueMotor, hinge
from shadowfit.models import Start, read_model
from shadowfit.recordings import read_recording

QUICK = DesignSettings(duration=3.0, interval=0.02, starts=1, evaluations=100)
RAIL = Limits({"rail": JointLimits((-0.2, 0.2))}, {"u": InputLimits((-4.0, 4.0))})
FREE = ("cart.mass", "pole.inertia.yy", "rail.viscous", "pivot.viscous")


def lever(motor=None):
    """A pendulum, with a motor at its hinge."""
    return Mechanism(
        {"rod": Body(0.5, np.diag([0.01, 0.01, 1e-3]))},
        {
            "pivot": hinge(
                "world",
                "rod",
                axis=(0, 1, 0),
                child_point=(0, 0, 0.2),
                viscous=0.02,
                compliance=1e-9,
                laws={"motor": motor or TorqueMotor(2.0, input="u")},
            )
        },
        sensors={"angle": JointPosition(joint="pivot", std=1e-3)},
        inputs={"u": Input(unit="N m", gain=0.5)},
        name="lever",
    )


@pytest.fixture(scope="module")
def cart():
    return design(read_model("cartpole"), FREE, limits=RAIL, settings=QUICK)


@pytest.fixture(scope="module")
def arm():
    limits = Limits({"pivot": JointLimits((-1.0, 1.0), 4.0, None, 1.2)})
    return design(lever(), ("rod.inertia.yy", "pivot.viscous"), limits=limits, settings=QUICK)


def test_limits_hold_and_nothing_usual_is_better(cart, arm):
    for found, kind in ((cart, Signals), (arm, JointMotion)):
        assert isinstance(found.setup.drive, kind)
        assert np.max(violations(found.experiment, found.setup.limits, found.motion)) <= 0.0
        assert found.criterion <= min(found.usual.values()) * (1.0 + 1e-9)
        assert found.criterion == pytest.approx(np.nanmax(found.relative))
        times, bars = found.growth
        assert np.all(np.diff(np.nanmax(bars, axis=1)) <= 1e-9)
        assert times[-1] == pytest.approx(3.0)
        assert 0.0 <= found.worth < 1.0


def test_a_motion_begins_and_ends_at_rest(arm):
    ends = arm.motion.coordinates[0, [0, 1, -2, -1], 0]
    assert np.max(np.abs(ends)) < 1e-3
    assert np.max(np.abs(arm.motion.coordinates)) > 0.3


def test_a_driven_cart_ends_at_rest_and_it_is_said(cart, arm):
    """A thousandth of its speed would be luck: it counts as rest below a hundredth of that of a fall."""
    limit = cart.setup.limits.joints["rail"].end_speed
    assert limit < 0.02
    assert np.max(np.abs(cart.motion.speeds[0, cart.motion.time >= 2.85, 0])) <= limit
    assert np.max(np.abs(cart.motion.speeds[0, :, 0])) > 5 * limit
    assert cart.end_speeds["rail"] <= limit
    assert ending(cart).startswith("In the last 0.15 s the inputs hold at rest: rail (below 0.017 m/s); still moving")
    assert f"pivot at {cart.end_speeds['pivot']:.2g} rad/s." in ending(cart)
    assert ending(arm) == "All joints end at rest, where they started."


def test_inputs_of_a_prescribed_motion_are_those_it_needs(arm):
    """Inverse dynamics by hand: (J + m l²) θ̈ + m g l sin θ + d θ̇ = gain·gain·u."""
    angle, step = arm.motion.coordinates[0, :, 0], arm.motion.time[1]
    acceleration, speed = np.diff(angle, 2) / step**2, (angle[2:] - angle[:-2]) / (2.0 * step)
    needed = 0.03 * acceleration + 0.5 * 9.82 * 0.2 * np.sin(angle[1:-1]) + 0.02 * speed
    np.testing.assert_allclose(arm.motion.inputs[0, 1:-1, 0], needed, atol=0.01 * np.max(np.abs(needed)))


@pytest.mark.slow
def test_released_machines_are_held_where_they_tell_most():
    limits = Limits({"hinge1": JointLimits((-2.0, 2.0)), "hinge2": JointLimits((-2.0, 2.0))})
    found = design(read_model("chain2"), ("link1.inertia.yy", "hinge2.viscous"), limits=limits, settings=QUICK)
    assert isinstance(found.setup.drive, Release)
    assert found.criterion <= min(found.usual.values()) * (1.0 + 1e-9)
    assert np.any(np.abs(found.motion.coordinates[0, 0]) > 0.5)
    assert "let go" in design_page(found)


@pytest.mark.slow
def test_position_loops_are_driven_by_targets():
    limits = Limits({"pivot": JointLimits((-0.8, 0.8))}, {"u": InputLimits((-1.2, 1.2))})
    found = design(lever(PositionMotor(20.0, 2.0)), ("rod.inertia.yy",), limits=limits, settings=QUICK)
    assert isinstance(found.setup.drive, Signals)
    assert np.max(np.abs(found.motion.speeds[0, -3:])) < 0.05 * np.max(np.abs(found.motion.speeds))


@pytest.mark.slow
def test_a_machine_that_falls_over_is_designed_for_with_its_controller():
    """Upright, where a position loop holds it: the same machine without the loop is refused in the open loop."""
    limits = Limits({"pivot": JointLimits((2.8, 3.5))}, {"u": InputLimits((5.0, 7.6))})
    upright = Start(positions={"pivot": np.pi})
    found = design(lever(PositionMotor(20.0, 2.0)), ("pivot.viscous",), start=upright, limits=limits, settings=QUICK)
    assert isinstance(found.setup.drive, Signals)
    away = found.motion.coordinates[0, :, 0] - np.pi
    assert 0.1 < np.max(np.abs(away)) < 0.4
    assert abs(away[-1]) < 0.02


@pytest.mark.slow
def test_known_from_before_is_not_asked_again(cart):
    class Before:
        folder, labels = "before", FREE
        covariance = np.diag((np.array([0.5, 6e-3, 0.5, 1e-3]) * [1.0, 1.0, 1.0, 1e-4]) ** 2)

    settings = dataclasses.replace(QUICK, starts=1, evaluations=1)
    again = design(read_model("cartpole"), FREE, limits=RAIL, settings=settings, given=[Before()])
    assert again.relative[3] < 2e-4
    assert cart.relative[3] > 2e-3


def test_files_and_page(cart, tmp_path):
    table = motion_table(cart)
    assert list(table)[:3] == ["time [s]", "u [N]", "rail.position [m]"]
    assert np.max(np.abs(table["rail.position [m]"])) <= 0.2001
    text = trajectory_text(cart)
    assert text.count("time_from_start") == len(table["time [s]"])
    assert "joint_names: [rail, pivot]" in text
    assert "{sec: 3, nanosec: 0}" in text
    page = design_page(cart)
    for part in ("Error bars to expect", "pivot.viscous", "<svg", "canvas", "one more second", "<td>N m</td>"):
        assert part in page


def test_large_and_small_error_bars_are_readable():
    assert [percent(x) for x in (7.7e-4, 0.1234, 1.16, 16.9, np.nan)] == [
        "0.077 %",
        "12 %",
        "120 %",
        "1,700 %",
        "no motion tells it",
    ]


@pytest.mark.parametrize(
    ("limits", "start", "message"),
    [
        (RAIL, {"rail": 0.5}, "starts at 0.5, outside its limits"),
        (RAIL, {"pivot": 1.0}, "does not rest at its start"),
        (RAIL, {"pivot": np.pi}, "unstable at its start"),
        (RAIL, {"pivot": 3.14159}, "unstable at its start"),
        (RAIL, {"pivot": 4.0}, "starts at 4 rad, more than half a turn from zero; write -2.283"),
        (
            Limits(planes=(Plane((0, 0, -0.1), (0, 0, 1)),)),
            {},
            "allow no motion: already at rest, at the start, plane 1 is broken",
        ),
    ],
)
def test_what_cannot_be_designed_is_told(limits, start, message):
    with pytest.raises(DesignError, match=message):
        design(read_model("cartpole"), FREE, start=Start(positions=start), limits=limits, settings=QUICK)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"duration": -1.0}, "duration of a design is -1"),
        ({"duration": 0.1}, "fewer than 50 samples"),
        ({"noise": {"rial": 1.0}}, "neither a sensor nor a joint 'rial'; did you mean 'rail'"),
        ({"noise": {"rail": -1.0}}, "noise of 'rail' is -1"),
    ],
)
def test_settings_that_make_no_sense(changes, message):
    with pytest.raises(ValueError, match=message):
        design(read_model("cartpole"), FREE, limits=RAIL, settings=dataclasses.replace(QUICK, **changes))
    with pytest.raises(DesignError, match="no parameter is wished for"):
        design(read_model("cartpole"), (), limits=RAIL, settings=QUICK)


@pytest.mark.slow
def test_command_line(tmp_path):
    (tmp_path / "limits.toml").write_text("[joints.rail]\nposition = [-0.2, 0.2]\n[inputs.u]\nrange = [-4, 4]\n")
    out = tmp_path / "motion.csv"
    words = ["design", "cartpole", "--free", "rail.viscous", "--free", "cart.mass", "--duration", "2", "--interval"]
    words += ["0.02", "--limits", str(tmp_path / "limits.toml"), "--noise", "rail=0.05", "--evaluations", "100"]
    result = CliRunner().invoke(app, [*words, "--out", str(out), "--json", "--quiet"])
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["force_noise"]["rail"] == 0.05
    assert said["end_speeds"]["rail"] < 0.02 < said["end_speeds"]["pivot"]
    assert 0.0 < said["parameters"]["rail.viscous"]["relative_std"] < 1.0
    assert set(read_csv(out)) >= {"time [s]", "u [N]", "pivot.speed [rad/s]"}
    assert read_recording(out).channel("u").max() <= 4.0
    assert (tmp_path / "motion.yaml").exists()
    assert (tmp_path / "motion.html").exists()
    wrong = CliRunner().invoke(app, [*words, "--out", str(out), "--start", "rail=3"])
    assert wrong.exit_code == 2
    assert "outside its limits" in wrong.output
