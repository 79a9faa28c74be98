"""Cases: resuming, failures, interrupts, and worker processes."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shadowfit.errors import ShadowfitError
from shadowfit.sweeps import cases as records
from shadowfit.sweeps.cases import Case
from shadowfit.sweeps.runner import run_cases


def doubling(*numbers, group=""):
    return [Case(f"double-{x}", "sweeps.tasks:double", {"x": x}, group) for x in numbers]


def runs(folder):
    return sorted(int(line) for line in (folder / "runs.txt").read_text().split())


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_results_by_name_and_on_disk(tmp_path, n_jobs):
    found = run_cases(doubling(1, 2, 3), tmp_path, n_jobs=n_jobs)
    assert {name: outcome.result["twice"] for name, outcome in found.items()} == {
        "double-1": 2,
        "double-2": 4,
        "double-3": 6,
    }
    record = json.loads((tmp_path / "cases" / "double-3.json").read_text())
    assert record["result"]["twice"] == 6
    assert record["arguments"] == {"x": 3}


def test_finished_cases_are_kept(tmp_path):
    run_cases(doubling(1, 2), tmp_path, n_jobs=1)
    kept = []
    found = run_cases(doubling(1, 2, 3), tmp_path, n_jobs=1, progress=lambda outcome, before: kept.append(before))
    assert runs(tmp_path) == [1, 2, 3]
    assert kept == [True, True, False]
    assert found["double-1"].result["twice"] == 2


def test_other_arguments_or_another_version_run_again(tmp_path, monkeypatch):
    run_cases([Case("a", "sweeps.tasks:double", {"x": 1})], tmp_path, n_jobs=1)
    assert run_cases([Case("a", "sweeps.tasks:double", {"x": 5})], tmp_path, n_jobs=1)["a"].result["twice"] == 10
    monkeypatch.setattr(records, "version", lambda: "another")
    run_cases([Case("a", "sweeps.tasks:double", {"x": 5})], tmp_path, n_jobs=1)
    assert runs(tmp_path) == [1, 5, 5]


def test_damaged_files_run_again(tmp_path):
    run_cases(doubling(1), tmp_path, n_jobs=1)
    (tmp_path / "cases" / "double-1.json").write_text('{"task": "half')
    assert run_cases(doubling(1), tmp_path, n_jobs=1)["double-1"].result["twice"] == 2
    assert runs(tmp_path) == [1, 1]


@pytest.mark.parametrize(("task", "text"), [("refuse", "7 is too large"), ("crash", "KeyError: 7")])
def test_a_failure_ends_its_case_only(tmp_path, task, text):
    bad = Case("bad", f"sweeps.tasks:{task}", {"x": 7})
    found = run_cases([bad, *doubling(1)], tmp_path, n_jobs=1)
    assert not found["bad"].done
    assert text in found["bad"].error
    assert found["double-1"].done
    assert records.load(bad, tmp_path) is None, "a failed case is tried again"


@pytest.mark.slow
def test_a_dead_worker_costs_its_case(tmp_path):
    found = run_cases([Case("dead", "sweeps.tasks:die", {}), *doubling(1, 2, 3)], tmp_path, n_jobs=2)
    assert "EXIT(3)" in found["dead"].error
    assert json.loads((tmp_path / "cases" / "dead.json").read_text())["result"] is None
    assert [found[f"double-{x}"].result["twice"] for x in (1, 2, 3)] == [2, 4, 6]


def test_cases_of_a_group_follow_each_other(tmp_path):
    mixed = [*doubling(1, group="a"), *doubling(2, group="b"), *doubling(3, group="a")]
    run_cases(mixed, tmp_path, n_jobs=1)
    assert (tmp_path / "runs.txt").read_text().split() == ["1", "3", "2"]


def test_an_interrupt_keeps_what_is_done(tmp_path):
    def stop(outcome, before):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_cases(doubling(1, 2, 3), tmp_path, n_jobs=2, progress=stop)
    finished = list((tmp_path / "cases").glob("*.json"))
    assert finished
    assert all(json.loads(file.read_text())["result"] for file in finished), "a file is whole or not there"
    assert all(outcome.done for outcome in run_cases(doubling(1, 2, 3), tmp_path, n_jobs=1).values())


def test_half_written_files_of_killed_workers_are_removed(tmp_path):
    run_cases(doubling(1), tmp_path)
    left, under_way = (tmp_path / "cases" / f".{name}.partial" for name in ("left", "under-way"))
    left.write_text("{")
    os.utime(left, (0.0, 0.0))
    under_way.write_text("{")
    run_cases(doubling(1, 2), tmp_path)
    assert not left.exists()
    assert under_way.exists(), "its writer may live, here or on another machine"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes by /proc")
def test_workers_end_when_the_program_is_killed(tmp_path):
    """A parent that is killed outright cannot stop its workers; they notice."""
    program = (
        "import sys; from pathlib import Path; from shadowfit.sweeps.cases import Case\n"
        "from shadowfit.sweeps.runner import run_cases\n"
        "if __name__ == '__main__':\n"
        "    sys.path.insert(0, sys.argv[2])\n"
        "    long = [Case(f'{x}', 'sweeps.tasks:sleep', {'x': x}) for x in (1, 2)]\n"
        "    run_cases(long, Path(sys.argv[1]), n_jobs=2)\n"
    )
    (tmp_path / "program.py").write_text(program)
    tests = str(Path(__file__).parents[1])
    with subprocess.Popen([sys.executable, str(tmp_path / "program.py"), str(tmp_path), tests]) as parent:
        workers = [int(_awaited(tmp_path / f"worker-{x}")) for x in (1, 2)]
        parent.kill()
        parent.wait()
    until = time.monotonic() + 120.0
    while any(map(_runs, workers)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(map(_runs, workers))


def _awaited(path):
    until = time.monotonic() + 240.0
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.1)
    return path.read_text()


def _runs(process):
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"


def test_two_cases_of_one_name_are_refused(tmp_path):
    with pytest.raises(ShadowfitError, match="two cases have the name 'double-1'"):
        run_cases(doubling(1, 1), tmp_path, n_jobs=1)
