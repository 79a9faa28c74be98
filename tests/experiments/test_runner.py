"""Cases: resuming, failures, interrupts, and worker processes."""

import json
import multiprocessing
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from shadowfit.errors import ShadowfitError
from shadowfit.experiments import cases as records
from shadowfit.experiments.cases import Case
from shadowfit.experiments.runner import _choose, run_cases


def doubling(*numbers, group=""):
    return [Case(f"double-{x}", "experiments.tasks:double", {"x": x}, group) for x in numbers]


def runs(folder):
    return sorted(int(line) for line in (folder / "runs.txt").read_text().split())


@pytest.mark.parametrize("workers", [0, 2])
def test_results_by_name_and_on_disk(tmp_path, workers):
    found = run_cases(doubling(1, 2, 3), tmp_path, workers=workers)
    assert {name: outcome.result["twice"] for name, outcome in found.items()} == {
        "double-1": 2,
        "double-2": 4,
        "double-3": 6,
    }
    record = json.loads((tmp_path / "cases" / "double-3.json").read_text())
    assert record["result"]["twice"] == 6
    assert record["arguments"] == {"x": 3}


def test_finished_cases_are_kept(tmp_path):
    run_cases(doubling(1, 2), tmp_path, workers=0)
    kept = []
    found = run_cases(doubling(1, 2, 3), tmp_path, workers=0, progress=lambda outcome, before: kept.append(before))
    assert runs(tmp_path) == [1, 2, 3]
    assert kept == [True, True, False]
    assert found["double-1"].result["twice"] == 2


def test_other_arguments_or_another_version_run_again(tmp_path, monkeypatch):
    run_cases([Case("a", "experiments.tasks:double", {"x": 1})], tmp_path, workers=0)
    assert run_cases([Case("a", "experiments.tasks:double", {"x": 5})], tmp_path, workers=0)["a"].result["twice"] == 10
    monkeypatch.setattr(records, "version", lambda: "another")
    run_cases([Case("a", "experiments.tasks:double", {"x": 5})], tmp_path, workers=0)
    assert runs(tmp_path) == [1, 5, 5]


def test_damaged_files_run_again(tmp_path):
    run_cases(doubling(1), tmp_path, workers=0)
    (tmp_path / "cases" / "double-1.json").write_text('{"task": "half')
    assert run_cases(doubling(1), tmp_path, workers=0)["double-1"].result["twice"] == 2
    assert runs(tmp_path) == [1, 1]


@pytest.mark.parametrize(("task", "text"), [("refuse", "7 is too large"), ("crash", "KeyError: 7")])
def test_a_failure_ends_its_case_only(tmp_path, task, text):
    bad = Case("bad", f"experiments.tasks:{task}", {"x": 7})
    found = run_cases([bad, *doubling(1)], tmp_path, workers=0)
    assert not found["bad"].done
    assert text in found["bad"].error
    assert found["double-1"].done
    assert records.load(bad, tmp_path) is None, "a failed case is tried again"


def test_a_dead_worker_is_replaced(tmp_path):
    found = run_cases([Case("dead", "experiments.tasks:die", {}), *doubling(1, 2)], tmp_path, workers=1)
    assert "exit status 3" in found["dead"].error
    assert [found[f"double-{x}"].result["twice"] for x in (1, 2)] == [2, 4]


def test_a_worker_stays_with_its_group_and_then_takes_the_largest_that_is_free():
    pending = [*doubling(1, group="a"), *doubling(2, group="b"), *doubling(3, 4, group="c")]
    idle = SimpleNamespace(case=None, group=None)
    of_b = SimpleNamespace(case=None, group="b")
    busy_with_c = SimpleNamespace(case=pending[3], group="c")
    assert _choose(pending, idle, [idle]).name == "double-3"
    assert _choose(pending, of_b, [of_b]).name == "double-2"
    assert _choose(pending, idle, [idle, busy_with_c]).group in ("a", "b")
    assert _choose(pending[2:3], idle, [idle, busy_with_c]).name == "double-3", "rather than nothing"


def test_an_interrupt_keeps_what_is_done_and_leaves_no_process(tmp_path):
    def stop(outcome, before):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_cases(doubling(1, 2, 3), tmp_path, workers=2, progress=stop)
    assert not multiprocessing.active_children()
    assert list((tmp_path / "cases").glob("*.json"))
    assert not list((tmp_path / "cases").glob(".*")), "no half-written file"
    assert all(outcome.done for outcome in run_cases(doubling(1, 2, 3), tmp_path, workers=1).values())


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes by /proc")
def test_workers_end_when_the_program_is_killed(tmp_path):
    """A parent that is killed outright cannot stop its workers; they notice."""
    program = (
        "import sys, time; from pathlib import Path; from shadowfit.experiments.runner import _Worker\n"
        "if __name__ == '__main__':\n"
        "    worker = _Worker(Path(sys.argv[1]), None); print(worker.process.pid, flush=True); time.sleep(60)\n"
    )
    (tmp_path / "program.py").write_text(program)
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "program.py"), str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as parent:
        worker = int(parent.stdout.readline())
        parent.kill()
        parent.wait()
    until = time.monotonic() + 20.0
    while _runs(worker) and time.monotonic() < until:
        time.sleep(0.1)
    assert not _runs(worker)


def _runs(process):
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"


def test_two_cases_of_one_name_are_refused(tmp_path):
    with pytest.raises(ShadowfitError, match="two cases have the name 'double-1'"):
        run_cases(doubling(1, 1), tmp_path, workers=0)
