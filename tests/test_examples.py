"""The example scripts run, and find what they set out to find."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from shadowfit import load_model, place, simulate
from shadowfit.models.twins import furuta_swing_up

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name):
    """An example as a module; its main part does not run."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def assert_printed(text, truths, known_to=0.2):
    """Every parameter of the last summary in a text is printed with its truth within four standard deviations.

    These are no more than a part of it, so that they say something.
    """
    rows = re.findall(r"^([\w.]+)  +(\S+) ± (\S+)", text, re.MULTILINE)
    found = {name: (float(value), float(std)) for name, value, std in rows}
    assert truths.keys() <= found.keys(), text
    found = {name: found[name] for name in truths}
    for name, (value, std) in found.items():
        assert abs(value - truths[name]) < 4.0 * std, name
        assert std < known_to * abs(truths[name]), name


def test_all_are_tested():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert len(names) >= 5
    text = Path(__file__).read_text("utf-8")
    assert all(f'load("{name}")' in text for name in names)


def test_pendulum(capsys):
    load("01_pendulum").main()
    text = capsys.readouterr().out
    assert text.startswith("green")
    assert_printed(text, {"pendulum.inertia.yy": 0.00382, "hinge.viscous": 4e-4}, known_to=0.01)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:recording .* lies on a grid")
def test_furuta(tmp_path, capsys):
    load("02_furuta").main(tmp_path / "result", duration=4.0)
    text = capsys.readouterr().out
    assert_printed(text, furuta_swing_up(4.0).truth)
    assert "theta2: prediction error 1 steps" in text
    assert (tmp_path / "result" / "report.html").exists()


def test_your_own_csv(tmp_path, capsys):
    load("03_your_own_csv").main(tmp_path / "cart")
    text = capsys.readouterr().out
    assert_printed(text, {"cart.mass": 1.3, "rail.viscous": 0.8})
    assert "data sheet" in (tmp_path / "cart" / "calibrated.toml").read_text("utf-8")


@pytest.mark.slow
def test_new_joint_type(capsys):
    load("04_new_joint_type").main()
    text = capsys.readouterr().out
    assert_printed(text, {"thread.viscous": 2e-4, "thread.pitch": 0.0105})


@pytest.mark.slow
def test_friction_models(capsys):
    found = load("05_friction_models").compare()
    (wrong, wrong_unseen), (right, right_unseen) = found["viscous"], found["viscous and dry"]
    assert right < wrong
    assert right_unseen < wrong_unseen
    assert_printed(capsys.readouterr().out, {"hinge.viscous": 1e-4, "hinge.dry": 0.0025}, known_to=2.0)


def test_possible_machines(capsys):
    """The true machine, from the other start, ends where 95 % of those that were drawn do."""
    example = load("06_possible_machines")
    example.main()
    text, planted = capsys.readouterr().out, {"pendulum.inertia.yy": 0.00382, "hinge.viscous": 4e-4}
    assert_printed(text, planted)
    low, high = map(float, re.search(r"are at (\S+) … (\S+) rad", text).groups())
    truth = load_model("pendulum").mechanism.set(planted)
    run = simulate(truth, place(truth, {"hinge": 2.0}), timestep=0.01, steps=500)
    assert low < float(run.readings["theta"][-1]) < high
    assert high - low < 0.3
