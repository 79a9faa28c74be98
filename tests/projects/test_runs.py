"""Runs: a process of its own, known to live or to have ended whoever asks, with what it said kept."""

import subprocess
import sys
import time

import pytest

from shadowfit.projects.runs import runs, start


def ended(run, seconds=120.0):
    until = time.monotonic() + seconds
    while run.running and time.monotonic() < until:
        time.sleep(0.02)
    return not run.running


def test_a_run_says_and_ends(tmp_path):
    first = start(tmp_path, "show", lambda place: ["models"])
    assert ended(first)
    assert "furuta" in first.terminal()
    second = start(tmp_path, "fit", lambda place: ["fit", "nothing", "--out", f"{place}/result"])
    assert second.place == "runs/2"
    assert second.arguments == ("fit", "nothing", "--out", "runs/2/result")
    assert ended(second)
    assert second.summary() is None
    assert runs(tmp_path) == [second, first]
    assert runs(tmp_path, "fit") == [second]


def test_a_run_outlives_who_started_it_and_can_be_stopped(tmp_path):
    """The process is found by its lock from another process than the one that started it."""
    (tmp_path / "shadowfit").mkdir()
    (tmp_path / "shadowfit" / "__init__.py").touch()
    (tmp_path / "shadowfit" / "__main__.py").write_text("import time\nprint('here', flush=True)\ntime.sleep(600)\n")
    program = (
        "import sys, os, pathlib\n"
        "from shadowfit.projects.runs import start\n"
        # The run's own program, which looks like the package from its folder.
        f"os.environ['PYTHONPATH'] = {str(tmp_path)!r}\n"
        f"start(pathlib.Path({str(tmp_path)!r}), 'fit', lambda place: [])\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
    (run,) = runs(tmp_path)
    assert run.running
    run.stop()
    assert ended(run)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"number": 7}'])
def test_damaged_records_are_passed_over(text, tmp_path):
    (tmp_path / "runs" / "1").mkdir(parents=True)
    (tmp_path / "runs" / "1" / "run.json").write_text(text)
    assert runs(tmp_path) == []
    assert start(tmp_path, "show", lambda place: ["models"]).number == 2
