"""Time that counts: a process that waits for a processor does not hang, one that sleeps or computes does."""

import os
import subprocess
import sys
import time

import pytest

from torture import patience
from torture.patience import Stopwatch


def test_sleeping_counts():
    """Of a process of its own: what the tests before have left behind in this one may wait for a processor."""
    line = "import time; print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", line], stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        began, watch = time.monotonic(), Stopwatch(child.pid)
        time.sleep(0.2)
        passed = watch.passed()
        child.kill()
    # What a busy machine adds may be taken off again, or not; the sleep is not.
    assert 0.19 < passed < time.monotonic() - began + 0.01


def test_waiting_for_a_processor_does_not_count(tmp_path, monkeypatch):
    """A child that waited 7 s, with a thread that waited 3 s: 7 s are taken off."""
    monkeypatch.setattr(patience, "PROCESSES", tmp_path)
    waits = {"40": {"40": 1.0}, "41": {"41": 7.0, "42": 3.0}, "50": {"50": 99.0}}
    parents = {"40": 1, "41": 40, "50": 1}
    watch = Stopwatch(40)
    for process, threads in waits.items():
        for thread, seconds in threads.items():
            (tmp_path / process / "task" / thread).mkdir(parents=True)
            (tmp_path / process / "task" / thread / "schedstat").write_text(f"5 {int(1e9 * seconds)} 3\n")
        (tmp_path / process / "stat").write_text(f"{process} (a (name) S) S {parents[process]} 0 0\n")
    assert watch.passed() == pytest.approx(-7.0, abs=0.5)


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="Linux counts waiting")
def test_a_process_without_a_processor_does_not_hang():
    """Two busy processes on one processor: each waits about half of the time."""
    line = f"import os; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}})\nwhile True: pass"
    children = [subprocess.Popen([sys.executable, "-c", line]) for _ in range(3)]
    try:
        watch, began = Stopwatch(children[0].pid), time.monotonic()
        time.sleep(2.0)
        assert watch.passed() < 0.7 * (time.monotonic() - began)
    finally:
        for child in children:
            child.kill()
            child.wait()
