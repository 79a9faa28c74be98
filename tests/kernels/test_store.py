"""The cache gives back what was kept, or nothing: never something damaged, foreign or half written."""

import concurrent.futures
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from shadowfit.kernels import key, store
from shadowfit.kernels.loops import Library
from tests.kernels.test_loops import FUNCTIONS, write

KEPT = store.Compiled([b"first object" * 9, b"second" * 5], ((3, 2), ()), 17)
NAME = "an-entry"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    place = tmp_path / "kernels"
    monkeypatch.setenv(store.FOLDER_VARIABLE, str(place))
    monkeypatch.setenv(key.PATH_VARIABLE, str(tmp_path / "own" / "key"))
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
        changed.setattr(store, "FORMAT", "of another kind")
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
    store.write(NAME, json.dumps(head).encode() + b"\n" + bytes(138))
    assert store.load(NAME) is None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners")
def test_what_others_could_have_written_is_not_used(folder, monkeypatch):
    store.save(NAME, KEPT)
    for bit in (0o020, 0o002):
        (folder / NAME).chmod(0o600 | bit)
        assert store.load(NAME) is None
    (folder / NAME).chmod(0o600)
    assert same(store.load(NAME))
    with monkeypatch.context() as changed:
        original = os.fstat
        changed.setattr(store.os, "fstat", lambda what: foreign(original(what)))
        assert store.load(NAME) is None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners")
@pytest.mark.parametrize("kind", ["group", "others", "another's"])
def test_folders_of_others_are_refused_with_a_sentence(folder, monkeypatch, kind):
    store.save(NAME, KEPT)
    if kind == "another's":
        original = os.stat

        def stat(what, *args, **options):
            found = original(what, *args, **options)
            return foreign(found) if os.fspath(what) == str(folder) else found

        monkeypatch.setattr(store.os, "stat", stat)
    else:
        folder.chmod(0o720 if kind == "group" else 0o702)
    with pytest.warns(UserWarning, match="neither read from nor kept in .*chmod go-w"):
        assert store.load(NAME) is None
    store.save("other", KEPT)  # which is not said again
    assert [path.name for path in folder.iterdir()] == [NAME]


def foreign(found):
    return os.stat_result((*found[:4], found.st_uid + 1, *found[5:]))


def test_only_what_was_sealed_with_the_users_key_is_used(folder, tmp_path, monkeypatch):
    store.save(NAME, KEPT)
    path = key.key_path()
    assert path.stat().st_mode & 0o777 == 0o600
    with monkeypatch.context() as changed:  # somebody else, who can write the same entry
        changed.setenv(key.PATH_VARIABLE, str(tmp_path / "another's" / "key"))
        assert store.load(NAME) is None
        store.save(NAME, KEPT)
        assert same(store.load(NAME))
    assert store.load(NAME) is None


@pytest.mark.parametrize("how", ["open", "short", "pipe", "nowhere"])
def test_without_a_key_of_ones_own_nothing_is_kept(folder, tmp_path, monkeypatch, how):
    path = tmp_path / "poor" / "key"
    if how != "nowhere":
        path.parent.mkdir()
    else:
        path.parent.write_text("a file")
    if how == "pipe":
        os.mkfifo(path, 0o600)
    elif how != "nowhere":
        path.write_bytes(bytes(key.SIZE if how == "open" else 3))
        path.chmod(0o644 if how == "open" else 0o600)
    monkeypatch.setenv(key.PATH_VARIABLE, str(path))
    store.save(NAME, KEPT)
    assert not folder.exists()
    assert store.load(NAME) is None


def test_entries_can_be_given_to_another_machine(folder, tmp_path, monkeypatch):
    store.save(NAME, KEPT)
    given = {name: whole for name, whole in store.given_away().items() if name == NAME}
    monkeypatch.setenv(store.FOLDER_VARIABLE, str(tmp_path / "elsewhere"))
    monkeypatch.setenv(key.PATH_VARIABLE, str(tmp_path / "elsewhere's" / "key"))
    store.take({NAME: given[NAME][:-1] + b"?"})
    assert store.load(NAME) is None
    store.take(given)
    assert same(store.load(NAME))


XLA = """
import sys
from shadowfit import runtime
runtime.start_jax()
import jax, jax.numpy as jnp
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event))
print(float(jax.jit(lambda x: jnp.sum(jnp.sin(x) ** 2))(jnp.arange(5.0))))
print(sum(event.endswith("cache_hits") for event in hits))
"""


def test_programs_of_xla_are_kept_and_sealed_too(folder):
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}

    def ran():
        run = subprocess.run([sys.executable, "-c", XLA], env=environment, capture_output=True, text=True, check=True)
        value, hits = run.stdout.split()
        return float(value), int(hits)

    value, hits = ran()
    assert hits == 0
    entries = [path for path in folder.iterdir() if path.name.startswith("xla-")]
    assert entries
    again, hits = ran()
    assert (again, hits > 0) == (value, True)
    for path in entries:
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(bytes(content))
    assert ran() == (value, 0)


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
from shadowfit.kernels import key, store
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
