"""The page in a real browser: from an empty folder to a calibrated file, by what it shows and nothing else."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shadowfit.cli.app import app
from shadowfit.evaluation.columns import write_csv
from shadowfit.models import read_model
from shadowfit.projects import commands
from shadowfit.projects.project import read_project
from shadowfit.recordings import read_recording
from web.chromium import wait
from web.conftest import root, served

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def simulated(path, heading="theta [rad]"):
    """Two seconds of the built-in pendulum, with its angle under a heading."""
    line = ["simulate", "pendulum", "--out", str(path), "--duration", "2", "--timestep", "0.01", "--start", "hinge=1.2"]
    assert CliRunner().invoke(app, line).exit_code == 0
    recording = read_recording(path)
    write_csv(path, {"time [s]": recording.time, heading: recording.channels["theta"]})
    return path


def test_steps_before_a_fit(page, browser, tmp_path):
    """Machine, data with a column of another name, parameters: all in the project's file, whatever is loaded anew."""
    folder, address = page
    project = folder / "project.toml"
    project.unlink(missing_ok=True)
    browser.go(address)
    browser.click("Machine", ".q-field")
    browser.click("pendulum:", ".q-item")
    browser.see("shadowfit show pendulum")
    browser.wait("document.querySelector('iframe')")

    browser.click("2 Data")
    too_large = tmp_path / "large.csv"
    too_large.write_bytes(b"0" * 200_000)
    browser.choose_files([simulated(tmp_path / "my run.csv", "alpha [rad]")])
    browser.see("my_run.csv")
    browser.see("not found")
    browser.click("by its name", ".q-field")
    browser.click("alpha [rad]", ".q-item")
    browser.see("found: alpha [rad]")
    browser.click("Look", "button")

    def dragged():
        """Whether the curves, which draw themselves when they are loaded, have heard of it."""
        browser.drag("iframe.view", (0.4, 0.3), (0.8, 0.3))
        return re.search(r"[0-9.]+ to [0-9.]+ s", browser.text())

    wait(dragged, "the curves to be dragged over")
    browser.click("Use it for the fit", "button")
    browser.see("--from 0.")
    browser.choose_files([too_large])
    browser.see("at most 0.1 MB")
    assert not (folder / "data" / "large.csv").exists()

    browser.go(f"{root(address)}/parameters")
    browser.fill("Filter by name", "viscous")
    browser.wait("!document.body.innerText.includes('pendulum.mass')")
    browser.click("hinge.viscous", "[role=checkbox]")
    browser.fill("at most", "-1")
    browser.see("lower must be below upper")
    browser.fill("at most", "0.5")
    browser.see("--free hinge.viscous@:0.5")

    found = read_project(project)
    assert (found.model, found.fit.recordings, found.channels) == ("pendulum", ("data/my_run.csv",), "channels.toml")
    assert found.free["hinge.viscous"].upper == 0.5
    # Two seconds over the width of the frame, less its margins.
    assert 0.5 < found.fit.begin < 1.0 < found.fit.end < 1.8
    shown = commands.shown(commands.check(found))
    assert shown in browser.text()
    browser.go(f"{root(address)}/fit")
    browser.see("Nothing was fitted yet")
    browser.see(commands.shown(commands.fit(found)))


def fitted(browser, address, seconds=240):
    """Start a fit, close the page while it runs, and come back to its end."""
    browser.go(f"{root(address)}/fit")
    browser.click("Start the fit", "button")
    browser.see("Run ")
    browser.go("about:blank")
    browser.go(f"{root(address)}/fit")
    browser.see("has ended", seconds)


def downloaded(browser, text, name):
    """Contents of a file that a button gives."""
    browser.click(text, "button")
    wait((browser.downloads / name).exists, name)
    return (browser.downloads / name).read_text("utf-8")


def test_from_an_empty_page_to_a_calibrated_file(browser, tmp_path):
    """The demonstration: machine, data, check, fit, and numbers near the twin's truth in a downloaded model file."""
    from shadowfit.models.twins import demonstration  # noqa: PLC0415

    folder = tmp_path / "project"
    with served(folder) as address:
        browser.go(address)
        browser.click("Demonstration", "button")
        browser.see("shadowfit show furuta --set", 100)
        browser.click("4 Check")
        browser.click("Check", "button")
        browser.wait("document.querySelector('iframe')", 120)
        fitted(browser, address)
        browser.click("Results and downloads")
        text = downloaded(browser, "calibrated model", "model.toml")
        browser.click("Runs side by side", ".q-expansion-item .q-item__label")
        browser.see("hinge1.motor.gain")
    twin = demonstration()
    (tmp_path / "got.toml").write_text(text)
    got = read_model(tmp_path / "got.toml")
    for name in ("hinge1.motor.gain", "arm.inertia.zz", "pendulum.inertia.xx"):
        if name in twin.truth:
            assert got.get(name) == pytest.approx(twin.truth[name], rel=0.05)
    # The project's file stands for the same fit on the command line.
    line = commands.fit(read_project(folder / "project.toml"), "again")
    again = subprocess.run([sys.executable, "-m", "shadowfit", *line, "--no-report"], cwd=folder, check=False)
    assert again.returncode in (0, 1)
    assert tomllib.loads((folder / "again" / "model.toml").read_text()) == tomllib.loads(text)


def test_a_fit_is_stopped(browser, tmp_path):
    """The stop button ends a fit after an iteration, with its result kept."""
    folder = tmp_path / "project"
    with served(folder) as address:
        browser.go(address)
        browser.click("Demonstration", "button")
        browser.see("shadowfit show furuta --set", 100)
        browser.go(f"{root(address)}/fit")
        # So many steps that nobody is too late to stop it.
        browser.click("Options")
        browser.fill("time-step [s]", "0.0002")
        browser.see("--timestep 0.0002")
        browser.click("Start the fit", "button")
        browser.see("iteration 0", 120)
        browser.click("Stop", "button")
        browser.see("has ended", 120)
        assert "stopping after this iteration" in browser.text() or "the result is being written" in browser.text()
    assert (folder / "runs" / "1" / "result" / "model.toml").exists()


@pytest.mark.data
def test_a_real_pendulum(browser, tmp_path, data_dir):
    """A model file and a recording of one's own: m g l/J as published, in a calibrated copy of that model file."""
    model = Path(__file__).parents[2] / "studies" / "single_pendulum.toml"
    with served(tmp_path / "project") as address:
        browser.go(address)
        browser.choose_files([model])
        browser.see("shadowfit show models/single_pendulum.toml")
        browser.wait("document.querySelector('iframe')")
        browser.click("2 Data")
        browser.choose_files([data_dir / "pendulum_single_uw" / "single_free_swing_500Hz.csv"])
        browser.see("found: theta1_rad")
        browser.fill("to [s]", "8")
        browser.see("--to 8.0")
        browser.click("3 Parameters")
        for name in ("pendulum.inertia.yy", "hinge.viscous", "hinge.coulomb", "theta1.offset"):
            browser.click(name, "[role=checkbox]")
            browser.see(f"--free {name}")
        fitted(browser, address)
        browser.click("Results and downloads")
        text = downloaded(browser, "single_pendulum.toml, calibrated", "single_pendulum.calibrated.toml")
    assert text.startswith(model.read_text("utf-8").partition("\n")[0]), "the user's own text, with other numbers"
    (tmp_path / "got.toml").write_text(text)
    got = read_model(tmp_path / "got.toml")
    mass, length = 0.147585, 0.147755
    ratio = mass * 9.81 * length / (got.get("pendulum.inertia.yy") + mass * length**2)
    assert ratio == pytest.approx(64.22, rel=0.02)
