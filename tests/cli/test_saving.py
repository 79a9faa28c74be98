"""Fits that are stopped, or cannot write their result: nothing is lost, and the exit status tells."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from shadowfit import cli
from shadowfit.cli.app import app
from shadowfit.cli.interruption import Interruption, end_on_request, interruptible, uninterrupted
from shadowfit.errors import WriteError
from shadowfit.estimation.solve.levenberg_marquardt import Iteration
from shadowfit.evaluation import exchange, load_result, store
from shadowfit.evaluation.checkpoint import UNFINISHED, Checkpoint
from shadowfit.models import atomic
from shadowfit.undisturbed import undisturbed

FIT = ("fit", "pendulum", "swing.csv", "--free", "hinge.viscous", "--quiet")
GIVEN = (*FIT, "--state-weight", "100")  # no search for noise levels
SOURCE = str(Path(exchange.__file__).parents[2])


def run(*arguments):
    return CliRunner().invoke(app, arguments)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a recording and, in ``result``, an earlier result's file."""
    monkeypatch.chdir(tmp_path)
    time = np.arange(60) * 0.01
    rows = "\n".join(f"{t:.2f},{0.3 * np.cos(6.0 * t):.6f}" for t in time)
    (tmp_path / "swing.csv").write_text(f"time,theta\n{rows}\n")
    (tmp_path / "result").mkdir()
    (tmp_path / "result" / "result.json").write_text("{}")
    return tmp_path


def test_what_cannot_be_written_is_known_before_the_fit(place):
    for out, said in (("swing.csv", "it is a file"), ("swing.csv/below", "swing.csv is a file")):
        found = run(*FIT, "--out", out)
        assert (found.exit_code, said in found.stderr) == (2, True), found.stderr
    (place / "result" / "state.npz").mkdir()
    found = run(*FIT)
    assert (found.exit_code, "state.npz is a folder" in found.stderr) == (2, True)


def test_a_disk_that_fills_up_keeps_the_old_result_and_the_new_one(place, monkeypatch, tmp_path_factory):
    real = Path.open

    def full(self, mode="r", *arguments, **keywords):
        if "x" in mode and place in self.absolute().parents:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(self, mode, *arguments, **keywords)

    monkeypatch.setattr(Path, "open", full)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("elsewhere")))
    found = run(*FIT)
    assert found.exit_code == 3
    assert "No space left on device. The result is kept in " in found.stderr
    kept = Path(found.stderr.split("kept in ")[1].strip())
    assert load_result(kept).summary["status"] in ("decrease", "step", "iterations")
    assert (kept / "report.html").exists()
    assert (place / "result" / "result.json").read_text() == "{}"
    assert [entry.name for entry in (place / "result").iterdir()] == ["result.json"]


def test_a_limit_on_the_size_of_files_keeps_the_old_result_alone_and_the_numbers(place, monkeypatch, tmp_path_factory):
    real, fits, elsewhere = atomic.write_bytes, set(), tmp_path_factory.mktemp("elsewhere")

    def limited(path, content):
        if path.name not in fits:
            raise WriteError(f"{path} cannot be written: {os.strerror(errno.EFBIG)}")
        real(path, content)

    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    monkeypatch.setattr(Path, "home", lambda: elsewhere)
    for module in (atomic, store):
        monkeypatch.setattr(module, "write_bytes", limited)

    fits |= {*store.FILES, "trajectory_swing.csv", "forces_swing.csv"} - {"report.html"}
    found = run(*GIVEN)
    kept = Path(found.stderr.split("File too large. The result is kept in ")[1].strip())
    parameters = {name: row["value"] for name, row in load_result(kept).summary["parameters"].items()}
    assert [entry.name for entry in (place / "result").iterdir()] == ["result.json"]

    fits -= fits - {UNFINISHED}
    found = run(*GIVEN)
    assert (found.exit_code, f"the parameters are in result/{UNFINISHED}" in found.stderr) == (3, True), found.stderr
    assert json.loads((place / "result" / UNFINISHED).read_text())["parameters"] == parameters
    assert list(elsewhere.iterdir()) == [kept]

    fits.clear()
    found = run(*GIVEN)
    assert f"all there is: hinge.viscous = {parameters['hinge.viscous']!r}" in found.stderr


def test_a_very_long_name_of_a_recording(place):
    name = "x" * 240 + ".csv"
    (place / "swing.csv").rename(place / name)
    found = run("fit", "pendulum", name, "--free", "hinge.viscous", "--quiet", "--out", "long")
    assert found.exit_code in (0, 1), found.stderr
    assert len(load_result("long").tables) == 1


def entry(number):
    return Iteration(number, 2.0, 1.0, 1.0, 1e-3, np.nan, np.nan, 0, {"hinge.viscous": 0.1 * number}, 0.1)


def test_a_checkpoint_holds_the_last_values(tmp_path):
    checkpoint = Checkpoint(tmp_path / "result", interval=0.0)
    for number in range(3):
        checkpoint(entry(number))
    found = json.loads((tmp_path / "result" / UNFINISHED).read_text())
    assert found["parameters"] == {"hinge.viscous": 0.2}
    assert [line["number"] for line in found["log"]] == [0, 1, 2]
    with pytest.raises(ValueError, match=r"values in unfinished\.json"):
        load_result(tmp_path / "result")


def test_a_checkpoint_is_not_written_all_the_time(tmp_path):
    checkpoint = Checkpoint(tmp_path, interval=3600.0)
    for number in range(3):
        checkpoint(entry(number))
    assert json.loads((tmp_path / UNFINISHED).read_text())["parameters"] == {"hinge.viscous": 0.0}


def test_a_signal_before_the_first_iteration_ends_at_once():
    with pytest.raises(KeyboardInterrupt, match="before the first iteration: there is no result"), interruptible():
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize("begun", [True, False], ids=["in a command", "before one"])
def test_a_signal_before_a_command_begins_leaves_no_traceback(monkeypatch, capsys, begun):
    def interrupted(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr("shadowfit.cli.interruption.end_on_request", (lambda: None) if begun else interrupted)
    monkeypatch.setattr("shadowfit.cli.app.for_arguments", lambda _: interrupted)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.fixture
def ctrl_c():
    """Ctrl-C as in a terminal: programs in the background of a shell are born without."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_signals_wait_while_libraries_load():
    loaded = []

    def load():
        with undisturbed():
            with undisturbed():
                signal.raise_signal(signal.SIGINT)
            loaded.append("all")

    with pytest.raises(KeyboardInterrupt):
        load()
    assert loaded == ["all"]


INTERRUPTED_LOADING = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)

class Interrupt:
    def find_spec(self, name, *_):
        if name in ("typer", "jax"):
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from shadowfit.cli import main
main()
"""


def test_a_signal_while_the_program_loads_leaves_no_traceback():
    line, environment = [sys.executable, "-c", INTERRUPTED_LOADING], {**os.environ, "PYTHONPATH": SOURCE}
    ended = subprocess.run(line, capture_output=True, text=True, check=False, env=environment)
    assert (ended.returncode, ended.stderr) == (130, "interrupted\n")


def test_an_interruption_that_the_interpreter_swallows_comes_again(monkeypatch):
    class Swallows:
        def __del__(self):
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    before = signal.getsignal(signal.SIGTERM)
    try:
        end_on_request()
        Swallows()
        with pytest.raises(KeyboardInterrupt):
            time.sleep(60.0)  # until it comes
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_later_signal_ends_the_fit_at_an_iteration(capsys):
    seen = []
    with interruptible() as interruption:
        report = interruption.progress([seen.append])
        report(1)
        signal.raise_signal(signal.SIGTERM)
        assert "after this iteration" in capsys.readouterr().err
        with pytest.raises(KeyboardInterrupt):
            report(2)
    assert seen == [1, 2]


def test_writing_is_not_interrupted(capsys):
    with uninterrupted():
        signal.raise_signal(signal.SIGINT)
    assert "is being written" in capsys.readouterr().err


def test_a_signal_between_the_fit_and_its_writing_loses_nothing(place, monkeypatch):
    def interrupted(*_):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("shadowfit.cli.fit._print_answer", interrupted)
    found = run(*FIT, "--out", "new", "--max-iterations", "2", "--state-weight", "100")
    assert found.exit_code in (0, 1), found.stderr
    assert load_result("new").summary["iterations"] > 0


def test_without_a_signal_nothing_happens():
    found = Interruption()
    found.progress([])(1)
    assert not found.asked


# As the command line does it; the iterations are slow, so that the signal comes between two.
PROGRAM = """
import sys, time
from shadowfit.cli import main
from shadowfit.evaluation import checkpoint
import shadowfit.evaluation.checkpoint as module
real = module.Checkpoint.__call__
def slow(self, iteration):
    real(self, iteration)
    print("iteration", flush=True)
    time.sleep(1.0)
module.Checkpoint.__call__ = slow
sys.argv[0] = "shadowfit"
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 1), (signal.SIGKILL, -9)])
def test_the_last_state_of_a_fit_that_is_ended(place, number, code):
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *FIT, "--out", "new"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": SOURCE},
    )
    process.stdout.readline()
    process.stdout.readline()
    process.send_signal(number)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == code, errors.decode()
    if number == signal.SIGTERM:
        assert load_result("new").summary["status"] == "interrupted"
        assert not (place / "new" / UNFINISHED).exists()
    else:
        assert "hinge.viscous" in json.loads((place / "new" / UNFINISHED).read_text())["parameters"]
