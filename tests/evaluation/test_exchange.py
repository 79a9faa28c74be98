"""Folders replaced at once: old or new, never a mixture and never nothing, whatever fails and whenever it is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shadowfit.errors import WriteError
from shadowfit.evaluation import exchange
from shadowfit.evaluation.destination import check_destination, check_files
from shadowfit.evaluation.exchange import recover, replacing

LAST = "result.json"


def own(name):
    return name in (LAST, "a.csv", "b.csv")


def fill(folder, text):
    for name in ("a.csv", "b.csv", LAST):
        (folder / name).write_text(text)


def contents(folder):
    return {entry.name: entry.read_text() for entry in folder.iterdir() if entry.is_file()}


def whole(text):
    return dict.fromkeys(("a.csv", "b.csv", LAST), text)


@pytest.fixture
def no_exchange(monkeypatch):
    monkeypatch.setattr(exchange, "exchange", lambda one, other: False)


@pytest.fixture
def target(tmp_path):
    folder = tmp_path / "place" / "result"
    folder.mkdir(parents=True)
    fill(folder, "old")
    (folder / "notes.txt").write_text("mine")
    (folder / "more").mkdir()
    (folder / "more" / "deep.txt").write_text("mine too")
    return folder


def check_new(target):
    assert contents(target) == {**whole("new"), "notes.txt": "mine"}
    assert (target / "more" / "deep.txt").read_text() == "mine too"
    assert [entry.name for entry in target.parent.iterdir()] == [target.name], "nothing is left beside"
    assert sorted(entry.name for entry in target.iterdir()) == ["a.csv", "b.csv", "more", "notes.txt", LAST]


def test_files_of_others_stay(target):
    with replacing(target, own, LAST) as fresh:
        fill(fresh, "new")
        assert contents(target) == {**whole("old"), "notes.txt": "mine"}, "until the end"
    check_new(target)


@pytest.mark.usefixtures("no_exchange")
def test_so_they_do_where_folders_cannot_be_exchanged(target):
    with replacing(target, own, LAST) as fresh:
        fill(fresh, "new")
    check_new(target)


def test_the_working_directory_is_not_taken_away(target, monkeypatch):
    monkeypatch.chdir(target)
    inode = target.stat().st_ino
    with replacing(".", own, LAST) as fresh:
        fill(fresh, "new")
    check_new(target)
    assert target.stat().st_ino == inode, "a shell stands in it"


def test_a_new_folder(tmp_path):
    with replacing(tmp_path / "x" / "y", own, LAST) as fresh:
        fill(fresh, "new")
    assert contents(tmp_path / "x" / "y") == whole("new")


def test_a_link_to_a_folder_stays_one(target, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(target)
    with replacing(link, own, LAST) as fresh:
        fill(fresh, "new")
    assert link.is_symlink()
    check_new(target)


def test_a_failure_leaves_the_old_ones(target):
    with pytest.raises(FileNotFoundError), replacing(target, own, LAST) as fresh:
        (fresh / "missing" / "a.csv").write_text("new")
    assert contents(target) == {**whole("old"), "notes.txt": "mine"}
    assert [entry.name for entry in target.parent.iterdir()] == [target.name]


@pytest.mark.usefixtures("no_exchange")
@pytest.mark.parametrize("number", range(6))
def test_a_failing_move_is_taken_back(target, monkeypatch, number):
    calls, real = iter(range(100)), os.replace

    def failing(source, goal):
        if next(calls) == number:
            raise OSError(28, "No space left on device")
        real(source, goal)

    monkeypatch.setattr(exchange.os, "replace", failing)
    with pytest.raises(WriteError, match="No space left"), replacing(target, own, LAST) as fresh:
        fill(fresh, "new")
    assert contents(target) == {**whole("old"), "notes.txt": "mine"}


@pytest.mark.usefixtures("no_exchange")
@pytest.mark.parametrize("number", range(7))
def test_a_kill_between_two_moves_is_repaired(target, monkeypatch, number):
    calls, real = iter(range(100)), os.replace

    class Kill(BaseException):
        """As good as a kill: nothing runs after it, as nothing handles it."""

    def killed(source, goal):
        if next(calls) == number:
            raise Kill
        real(source, goal)

    monkeypatch.setattr(exchange.os, "replace", killed)
    monkeypatch.setattr(exchange, "_remove", lambda entry: None)
    monkeypatch.setattr(exchange.shutil, "rmtree", lambda *args, **kwargs: None)
    died = True
    try:
        with replacing(target, own, LAST) as fresh:
            fill(fresh, "new")
        died = False
    except Kill:
        pass
    monkeypatch.undo()
    recover(target, own, LAST)
    assert contents(target) == {**whole("old" if died else "new"), "notes.txt": "mine"}
    assert (target / "more" / "deep.txt").exists()


WRITER = """
import runpy, sys
replacing = runpy.run_path(sys.argv[2])["replacing"]  # alone: the package would import JAX
own = lambda name: name in ("result.json", "a.csv", "b.csv")
print("ready", flush=True)
for number in range(10**9):
    with replacing(sys.argv[1], own, "result.json") as fresh:
        for name in ("a.csv", "b.csv", "result.json"):
            (fresh / name).write_text(str(number))
"""


def test_kills_at_random_moments_leave_a_whole_one(target):
    for attempt in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(target), exchange.__file__],
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": SOURCE},
        )
        process.stdout.readline()
        time.sleep(0.01 + 0.007 * attempt)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        found = contents(target)
        assert found.pop("notes.txt") == "mine"
        assert set(found) == {"a.csv", "b.csv", LAST}
        assert len(set(found.values())) == 1, "one run's files"
    with replacing(target, own, LAST) as fresh:
        fill(fresh, "new")
    check_new(target)


SOURCE = str(Path(exchange.__file__).parents[2])


def test_a_folder_in_the_place_of_a_file_is_not_removed(target):
    (target / LAST).unlink()
    (target / LAST).mkdir()
    with pytest.raises(WriteError, match=r"result\.json is a folder"), replacing(target, own, LAST):
        pass
    with pytest.raises(WriteError, match=r"result\.json is a folder"):
        check_destination(target)


def test_destinations_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="it is a file"):
        check_destination(tmp_path / "file")
    with pytest.raises(WriteError, match="file is a file"):
        check_destination(tmp_path / "file" / "below")
    with pytest.raises(WriteError, match="has space for"):
        check_destination(tmp_path / "new", size=10**18)
    with pytest.raises(WriteError, match="File name too long"):
        check_destination(tmp_path / ("x" * 300))
    with pytest.raises(WriteError, match="it is a file"):
        check_files(tmp_path / "file" / "below.csv")
    with pytest.raises(WriteError, match="it is a folder"):
        check_files(tmp_path)
    with pytest.raises(WriteError, match="File name too long"):
        check_files(tmp_path / ("x" * 300))
    check_destination(tmp_path / "new" / "deeper", size=1)
    check_files(tmp_path / "new.csv", tmp_path / "new" / "deeper.csv")
    assert not (tmp_path / "new").exists(), "asking changes nothing"


@pytest.mark.skipif(os.geteuid() == 0, reason="an administrator may write everywhere")
def test_a_folder_that_may_not_be_written_to(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(WriteError, match="Permission denied"):
            check_destination(tmp_path / "new")
    finally:
        tmp_path.chmod(0o700)
