"""The example scripts run, and find what they set out to find."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name):
    """An example as a module; its main part does not run."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def printed(text, name):
    """Value and standard deviation of a parameter in a printed summary."""
    found = re.search(rf"^{re.escape(name)}\s+(\S+) ± (\S+)", text, re.MULTILINE)
    assert found, text
    return float(found[1]), float(found[2])


def test_all_are_tested():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert len(names) >= 5
    text = Path(__file__).read_text("utf-8")
    assert all(f'load("{name}")' in text for name in names)


def test_pendulum(capsys):
    load("01_pendulum").main()
    text = capsys.readouterr().out
    value, std = printed(text, "pendulum.inertia.yy")
    assert abs(value - 0.00382) < 5.0 * std < 5e-4


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:recording .* lies on a grid")
def test_furuta(tmp_path, capsys):
    load("02_furuta").main(tmp_path / "result", duration=4.0)
    text = capsys.readouterr().out
    value, std = printed(text, "hinge1.motor.gain")
    assert abs(value - 0.073) < 5.0 * std + 4e-4
    assert "theta2: prediction error 1 steps" in text
    assert (tmp_path / "result" / "report.html").exists()


def test_your_own_csv(tmp_path, capsys):
    load("03_your_own_csv").main(tmp_path / "cart")
    text = capsys.readouterr().out
    for name, truth in (("cart.mass", 1.3), ("rail.viscous", 0.8)):
        value, std = printed(text, name)
        assert abs(value - truth) < 5.0 * std < 0.2 * truth
    assert "data sheet" in (tmp_path / "cart" / "calibrated.toml").read_text("utf-8")


@pytest.mark.slow
def test_new_joint_type(capsys):
    load("04_new_joint_type").main()
    text = capsys.readouterr().out
    for name, truth in (("thread.viscous", 2e-4), ("thread.pitch", 0.0105)):
        value, std = printed(text, name)
        assert abs(value - truth) < 5.0 * std < 0.2 * truth


@pytest.mark.slow
def test_friction_models():
    found = load("05_friction_models").compare(duration=2.0)
    (wrong, wrong_unseen), (right, right_unseen) = found["viscous"], found["viscous and dry"]
    assert right < wrong
    assert right_unseen < wrong_unseen
