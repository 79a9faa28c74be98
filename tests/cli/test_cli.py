"""The command line: what it prints and writes, its exit status, and how it speaks of mistakes."""

import subprocess
import sys

import jax
import numpy as np
import pytest
import typer
from rich.text import Text
from typer.testing import CliRunner

from quick import quick
from shadowfit.cli.app import app
from shadowfit.dynamics import simulate
from shadowfit.errors import SimulationError
from shadowfit.models import library, load_model, read_model, write_model
from shadowfit.recordings import read_recording


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def refused(*arguments):
    """The one message of a call that is wrong."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.stderr


# ---- without JAX


@pytest.mark.parametrize(
    "arguments",
    quick(
        [["--help"], ["models"], ["--version"], ["simulate", "--help"], ["fit", "--help"]],
        ["models"],
        ["fit", "--help"],
    ),
)
def test_answers_at_once(arguments):
    program = (
        "import sys; from shadowfit.cli import main; sys.argv[1:] = " + repr(arguments) + "\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "assert not {'jax', 'numpy', 'polars', 'matplotlib'} & set(sys.modules), 'heavy imports'"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300, capture_output=True)


def test_as_a_module():
    result = subprocess.run(
        [sys.executable, "-m", "shadowfit", "models"], check=True, timeout=300, capture_output=True, text=True
    )
    assert all(name in result.stdout and text in result.stdout for name, text in library().items())
    assert result.stderr == ""


def test_a_fit_imports_no_large_library_that_it_does_not_need():
    """Each of them takes a tenth of a small fit's time or more."""
    program = (
        "import sys, shadowfit.estimation.fit, shadowfit.evaluation.store, shadowfit.evaluation.report\n"
        "print([name for name in ('scipy', 'matplotlib', 'polars', 'pandas', 'joblib') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_help_lists_the_commands():
    result = run("--help")
    assert result.exit_code == 0
    assert all(
        command in result.stdout
        for command in ("demo", "design", "fit", "models", "report", "run", "show", "simulate", "validate")
    )
    assert run().exit_code == 2


def test_help_is_shown_as_it_is_written():
    """Text in square brackets would be taken for a style, and left out."""
    commands = typer.main.get_command(app).commands
    texts = [
        text for one in commands.values() for text in (one.help, *(getattr(part, "help", "") for part in one.params))
    ]
    assert len(texts) > 100
    assert [text for text in texts if text and Text.from_markup(text).plain != text] == []


# ---- show


def test_show_of_a_long_machine():
    """Thousands of rows, each in full."""
    shown = run("show", "chain99").stdout.splitlines()
    mechanism = read_model("chain99")
    assert len(mechanism.leaves()) > 2000
    rows = {words[0]: words[1:] for words in (line.split() for line in shown) if words}
    assert rows.keys() >= set(mechanism.leaves())
    assert rows["link99.mass"] == [f"{mechanism.get('link99.mass'):.6g}", "kg"]


def test_show_lists_every_number_with_unit_and_value():
    mechanism = read_model("furuta").set({"hinge2.viscous": 0.125})
    result = run("show", "furuta", "--set", "hinge2.viscous=0.125")
    assert result.exit_code == 0, result.output
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in result.stdout.splitlines() if line.split()}
    for name, leaf in mechanism.leaves().items():
        if leaf.kind == "number":
            unit = mechanism.unit(name)
            expected = f"{mechanism.get(name):.6g} {'' if unit in ('1', 'unit') else unit}".strip()
            assert rows[name].startswith(expected)
    assert rows["hinge1"] == "hinge, coulomb friction, motor (torque) world – arm"
    assert "delay [s]" in result.stdout, "brackets are not markup"


@pytest.mark.parametrize("name", ["incline", "fourbar", "chain2"])
def test_show_of_other_parts(name):
    result = run("show", name)
    assert result.exit_code == 0, result.output
    assert "Start of simulations" in result.stdout


# ---- simulate

STEPS = ("--timestep", 0.01, "--duration", 0.2)


def test_simulate_says_how_long_it_takes(tmp_path, monkeypatch):
    """By the pace of its first steps; a short one is done at once and tells nothing."""
    monkeypatch.setattr("shadowfit.cli.simulate.WORTH_SAYING", 0.0)
    assert "take about" not in run("simulate", "pendulum", "--out", tmp_path / "short.csv", *STEPS).stderr
    said = run("simulate", "pendulum", "--out", tmp_path / "long.csv", "--duration", 10, "--timestep", 0.01).stderr
    assert "1,000 rows of 1 steps each take about 0:00:0" in said


@pytest.fixture(scope="module")
def swing(tmp_path_factory):
    """Readings of a cart-pole with some numbers set."""
    out = tmp_path_factory.mktemp("swing") / "new" / "run.csv"
    result = run(
        *("simulate", "cartpole", *STEPS, "--set", "pole.mass=0.3", "--set", "gravity.tilt=0.1,0,0"),
        *("--start", "rail=0.25", "--start", "pivot.speed=2", "--out", out),
    )
    assert result.exit_code == 0, result.output
    return out


def test_simulation_is_that_of_the_library(swing):
    model = load_model("cartpole")
    turn = np.array([np.cos(0.05), np.sin(0.05), 0.0, 0.0])
    mechanism = model.mechanism.set({"pole.mass": 0.3, "gravity.tilt": turn})
    state = model.start.with_joints({"rail": 0.25}, {"pivot": 2.0}).state(mechanism)
    expected = simulate(mechanism, state, timestep=0.01, steps=20, joints="rigid", substeps=1)
    made = read_recording(swing)
    assert made.time.size == 21
    assert made.units == {"x": "m", "theta": "rad", "u": "N"}
    for name in ("x", "theta"):
        np.testing.assert_allclose(made.channel(name), expected.readings[name], rtol=1e-11, atol=1e-11)
    assert made.channel("theta")[0] == 1.0, "the model file's own start"
    np.testing.assert_allclose((made.channel("theta")[1] - 1.0) / 0.01, 2.0, rtol=0.1)


def test_recorded_inputs_drive_the_model(tmp_path):
    time = 5.0 + 0.01 * np.arange(21)
    push = np.where(time < 5.1, 3.0, -1.0)
    rows = "\n".join(f"{t:.9g},{u:.9g}" for t, u in zip(time, push, strict=True))
    recording = tmp_path / "push.csv"
    recording.write_text(f"time,force\n{rows}\n")
    out = tmp_path / "run.csv"
    result = run("simulate", "cartpole", "--recording", recording, "--channel", "u=force", "--out", out)
    assert result.exit_code == 0, result.output
    made = read_recording(out)
    np.testing.assert_allclose(made.time, time, atol=1e-9)
    np.testing.assert_allclose(made.channel("u"), np.append(push[:-1], push[-2]), atol=1e-12)
    model = load_model("cartpole")
    state = model.start.state(model.mechanism)
    fine = {"u": np.repeat(push[:-1], 8)}
    expected = simulate(model.mechanism, state, fine, timestep=0.01 / 8, steps=160, joints="rigid", substeps=1)
    np.testing.assert_allclose(made.channel("x"), expected.readings["x"][::8], atol=1e-9)
    again = tmp_path / "again.csv"
    result = run("simulate", "cartpole", "--recording", out, "--out", again)
    assert result.exit_code == 0, result.output
    np.testing.assert_allclose(read_recording(again).channel("x"), made.channel("x"), atol=1e-9)


def test_joints_may_be_as_the_model_says(tmp_path):
    out = tmp_path / "run.csv"
    result = run("simulate", "cartpole", *STEPS, "--joints", "compliant", "--out", out)
    assert result.exit_code == 0, result.output
    model = load_model("cartpole")
    expected = simulate(
        model.mechanism, model.start.state(model.mechanism), timestep=0.01, steps=20, joints="compliant", substeps=1
    )
    np.testing.assert_allclose(read_recording(out).channel("x"), expected.readings["x"], atol=1e-9)


def test_a_model_of_ones_own(tmp_path, swing):
    mechanism = read_model("cartpole").set({"pole.mass": 0.3, "gravity.tilt": [np.cos(0.05), np.sin(0.05), 0.0, 0.0]})
    write_model(mechanism, tmp_path / "mine.toml", start=load_model("cartpole").start)
    out = tmp_path / "run.csv"
    start = ("--start", "rail=0.25", "--start", "pivot.speed=2")
    result = run("simulate", tmp_path / "mine.toml", *STEPS, *start, "--out", out)
    assert result.exit_code == 0, result.output
    assert out.read_text() == swing.read_text()


def test_a_run_that_stops_early_is_kept(tmp_path, monkeypatch):
    def stop(mechanism, state, inputs, **options):
        whole = simulate(mechanism, state, inputs, **options)
        raise SimulationError("stopped at step 5", jax.tree.map(lambda x: x[:5], whole))

    monkeypatch.setattr("shadowfit.dynamics.simulate", stop)
    out = tmp_path / "run.csv"
    result = run("simulate", "cartpole", *STEPS, "--out", out)
    assert result.exit_code == 1
    assert "error: stopped at step 5" in result.stderr
    assert read_recording(out).time.size == 5


MISTAKES = {
    "unknown model": (("simulate", "furutta", "--out", "x.csv"), "did you mean 'furuta'"),
    "missing file": (("show", "nothing.toml"), "nothing.toml: cannot be read: No such file"),
    "unknown parameter": (("show", "furuta", "--set", "hinge1.viscos=1"), "did you mean 'hinge1.viscous'"),
    "no value": (("show", "furuta", "--set", "hinge1.viscous"), "--set hinge1.viscous: write NAME=VALUE"),
    "not a number": (
        ("show", "furuta", "--set", "hinge1.viscous=high"),
        "--set hinge1.viscous: 'high' is not a number",
    ),
    "impossible": (("show", "furuta", "--set", "hinge1.viscous=-1"), "hinge1.viscous is -1; it must be at least 0"),
    "not a rotation": (("show", "furuta", "--set", "gravity.tilt=1,2"), "three numbers (rotation vector) or four"),
    "long quaternion": (("show", "furuta", "--set", "gravity.tilt=1,1,0,0"), "a rotation is a unit quaternion"),
    "unknown joint": (("simulate", "furuta", "--start", "hinge3=1", "--out", "x.csv"), "there is no joint 'hinge3'"),
    "no steps": (
        ("simulate", "furuta", "--duration", "0", "--out", "x.csv"),
        "0 s in time-steps of 0.01 s are less than one step",
    ),
    "backwards": (
        ("simulate", "furuta", "--timestep", "-1", "--out", "x.csv"),
        "choose another --duration or --timestep",
    ),
    "nan": (("simulate", "furuta", "--duration", "nan", "--out", "x.csv"), "choose another --duration or --timestep"),
    "missing recording": (("simulate", "furuta", "--recording", "no.csv", "--out", "x.csv"), "no.csv"),
    "unknown discretization": (("simulate", "furuta", "--discretization", "euler", "--out", "x.csv"), "spook"),
    "nowhere to write": (("simulate", "furuta"), "--out"),
    "unknown command": (("simulat", "furuta"), "simulat"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments, message = MISTAKES[case]
    assert message in refused(*arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_recording_without_the_input(tmp_path):
    recording = tmp_path / "run.csv"
    recording.write_text("time,force\n0,1\n0.1,1\n0.2,1\n")
    message = refused("simulate", "cartpole", "--recording", recording, "--out", tmp_path / "out.csv")
    assert "error:" in message
    assert "there is no channel 'u'" in message
    assert not (tmp_path / "out.csv").exists()
