"""The cache gives back what was kept, or nothing: never something damaged, foreign or half written."""

import concurrent.futures
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from shadowfit.kernels import store
from shadowfit.kernels.loops import Library
from tests.kernels.test_loops import FUNCTIONS, write

KEPT = store.Compiled([b"first object" * 9, b"second" * 5], ((3, 2), ()), 17)
NAME = "an-entry"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    place = tmp_path / "kernels"
    monkeypatch.setenv(store.FOLDER_VARIABLE, str(place))
    return place


def same(found):
    return found is not None and (list(found.objects), found.shapes, found.scratch) == (
        list(KEPT.objects),
        KEPT.shapes,
        17,
    )


def test_round_trip():
    assert store.load(NAME) is None
    store.save(NAME, KEPT)
    assert same(store.load(NAME))
    assert store.remembered("fact", lambda: {"a": [1.5, None]}) == {"a": [1.5, None]}
    assert store.remembered("fact", lambda: pytest.fail("found again")) == {"a": [1.5, None]}


def test_a_flipped_bit_anywhere_is_seen(folder):
    store.save(NAME, KEPT)
    whole = (folder / NAME).read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        (folder / NAME).write_bytes(damaged)
        assert store.load(NAME) is None
    for length in (0, 1, store.DIGEST_SIZE, len(whole) - 1):
        (folder / NAME).write_bytes(whole[:length])
        assert store.load(NAME) is None
    (folder / NAME).write_bytes(whole + b"x")
    assert store.load(NAME) is None


def test_a_damaged_fact_is_found_again(folder):
    store.remembered("fact", lambda: [1, 2])
    entry = folder / "fact"
    entry.write_bytes(entry.read_bytes().replace(b"2", b"3"))
    assert store.remembered("fact", lambda: [4]) == [4]
    assert store.remembered("fact", lambda: pytest.fail("not mended")) == [4]


def test_damaged_code_is_made_again(folder):
    Library("mended", write, FUNCTIONS).prepare().result()
    (entry,) = folder.iterdir()
    whole = bytearray(entry.read_bytes())
    whole[len(whole) // 2] ^= 4
    entry.write_bytes(whole)
    assert Library("mended", write, FUNCTIONS)("total", np.ones(5), 5) == 5.0
    assert entry.read_bytes() != bytes(whole)


def test_an_entry_belongs_to_its_name_package_processor_and_format(folder, monkeypatch):
    store.save(NAME, KEPT)
    (folder / "another").write_bytes((folder / NAME).read_bytes())
    os.chmod(folder / "another", 0o600)
    assert store.load("another") is None
    for holder, attribute in ((store, "package_digest"), (store.codegen, "processor")):
        with monkeypatch.context() as changed:
            changed.setattr(holder, attribute, lambda: "of another kind")
            assert store.load(NAME) is None
    with monkeypatch.context() as changed:
        changed.setattr(store, "FORMAT", "2")
        assert store.load(NAME) is None
    assert same(store.load(NAME))


@pytest.mark.parametrize(
    "head",
    [
        {"sizes": "138", "shapes": [], "scratch": 17},
        {"sizes": [138], "shapes": [3], "scratch": 17},
        {"sizes": [138], "shapes": [[2.5]], "scratch": 17},
        {"sizes": [138], "shapes": [], "scratch": -1},
        {"sizes": [138], "shapes": [], "scratch": True},
        {"sizes": [], "shapes": [], "scratch": 1},
        {"sizes": [138], "shapes": []},
        [138],
        None,
    ],
)
def test_a_head_of_wrong_types_is_not_used(head):
    store._write(NAME, json.dumps(head).encode() + b"\n" + bytes(138))
    assert store.load(NAME) is None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners")
def test_what_others_could_have_written_is_not_used(folder, monkeypatch):
    store.save(NAME, KEPT)
    for place in (folder, folder / NAME):
        mode = place.stat().st_mode
        for bit in (0o020, 0o002):
            place.chmod(mode | bit)
            assert store.load(NAME) is None
        place.chmod(mode)
    assert same(store.load(NAME))
    for function in ("stat", "fstat"):
        with monkeypatch.context() as changed:
            original = getattr(os, function)

            def foreign(what, *args, original=original, **options):
                found = original(what, *args, **options)
                return SimpleNamespace(st_uid=found.st_uid + 1, st_mode=found.st_mode)

            changed.setattr(store.os, function, foreign)
            assert store.load(NAME) is None
    folder.chmod(0o775)
    store.save(NAME, KEPT)
    assert same(store.load(NAME)), "a folder of the user's is closed to others when it is written to"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_pipe_in_the_place_of_an_entry_is_not_waited_for(folder):
    store.save(NAME, KEPT)
    (folder / NAME).unlink()
    os.mkfifo(folder / NAME)
    assert store.load(NAME) is None


def test_a_failed_write_leaves_nothing(folder, monkeypatch):
    store.save(NAME, KEPT)

    def full(*_):
        raise OSError(28, "No space left on device")

    for function in ("replace", "fdopen"):
        with monkeypatch.context() as changed:
            changed.setattr(store.os, function, full)
            store.save("other", KEPT)
        assert [path.name for path in folder.iterdir()] == [NAME]
    with monkeypatch.context() as changed:
        changed.setattr(store.os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            store.save("other", KEPT)
    assert [path.name for path in folder.iterdir()] == [NAME]
    assert same(store.load(NAME))


def test_the_least_recently_used_entries_go(folder, monkeypatch):
    store.save("size", KEPT)
    size = (folder / "size").stat().st_size
    monkeypatch.setattr(store, "MOST_BYTES", 3 * size)
    (folder / "size").unlink()
    for age, name in enumerate(("a", "b", "c")):
        store.save(name, KEPT)
        os.utime(folder / name, (1e9 + age, 1e9 + age))
    (folder / f"{store.UNFINISHED}old").write_bytes(b"left by the dead")
    os.utime(folder / f"{store.UNFINISHED}old", (1e9, 1e9))
    (folder / f"{store.UNFINISHED}new").write_bytes(b"of another process")
    assert same(store.load("a"))
    store.save("d", KEPT)
    assert {path.name for path in folder.iterdir()} == {"a", "c", "d", f"{store.UNFINISHED}new"}


WRITER = """
import sys
from shadowfit.kernels import store
kept = store.Compiled([bytes(200_000)], ((2,),), 5)
for i in range(60):
    store.save(f"entry{i % 3}", kept)
    found = store.load(f"entry{(i + 1) % 3}")
    if found is not None and bytes(found.objects[0]) != bytes(200_000):
        sys.exit(1)
"""


@pytest.mark.slow
def test_several_processes_share_a_folder(folder):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = pool.map(lambda _: subprocess.run([sys.executable, "-c", WRITER], check=False), range(2))
        assert [run.returncode for run in runs] == [0, 0]
    assert {path.name for path in folder.iterdir()} == {"entry0", "entry1", "entry2"}
    assert all(store.load(f"entry{i}") is not None for i in range(3))
