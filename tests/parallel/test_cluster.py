"""A real local Dask cluster behind joblib, and what is said when there is none that can be used."""

import asyncio
import os
import signal
import threading
import time
import uuid

import joblib
import numpy as np
import pytest

from shadowfit import parallel
from shadowfit.kernels import store
from shadowfit.parallel import ClusterError, Lost, cluster, crew, run
from shadowfit.parallel import engine as engine_module
from shadowfit.parallel.engine import Cluster, Essence, Threads


def process(item):
    return os.getpid()


def die_on_two(item):
    if item == 2:
        os._exit(5)
    return item


def start(place):
    return np.full(3, float(place))


def add(values, more):
    return values + more


def total(values, other):
    return float(values.sum() + other.sum())


@pytest.fixture
def on_cluster(cluster):
    with joblib.parallel_config(backend="dask", client=cluster.client):
        yield cluster


def test_work_is_done_by_the_workers(on_cluster):
    found = dict(run(process, range(8), n_jobs=on_cluster.n_jobs))
    assert len(found) == 8
    assert os.getpid() not in found.values()


@pytest.mark.slow
def test_what_ends_its_worker_is_given_up_and_the_rest_is_done(on_cluster):
    found = dict(run(die_on_two, range(4), n_jobs=on_cluster.n_jobs))
    assert isinstance(found.pop(2), Lost)
    assert found == {0: 0, 1: 1, 3: 3}


def test_values_stay_where_they_are_made_and_engines_agree(cluster):
    def through(engine):
        first = engine.each(start, range(5))
        second = engine.each(add, first, shared=(0.5,))
        return engine.gather(total, first, second)

    assert through(Cluster(cluster.client)) == through(Threads(2)) == [6.0 * place + 1.5 for place in range(5)]


def noted(value, folder):
    """One more, and a trace of it; what is done again takes its time, as a fit does."""
    if (folder / "again").exists():
        time.sleep(2.0)
    (folder / f"{value}-{uuid.uuid4().hex}").touch()
    return value + 1


def restored(essence):
    return int(essence)


def test_a_dead_worker_costs_what_was_made_since_values_were_kept(cluster, tmp_path, monkeypatch):
    """Ten rounds, of which each is kept; then a worker dies. One round is done again, not ten.

    Dask begins again from the origin at once; second copies take over at the first look at the workers.
    """
    monkeypatch.setattr(engine_module, "LOOK", 0.05)
    cluster.client.wait_for_workers(2)
    engine, rounds = Cluster(cluster.client), 10
    column = engine.each(int, range(4))
    for _ in range(rounds):
        column = engine.each(noted, column, shared=(tmp_path,))
        engine.keep(column, Essence(str, restored))
    beyond = engine.each(noted, column, shared=(tmp_path,))
    before = engine.gather(add, beyond, shared=(0,))
    cluster.client.gather(column.essences)
    (tmp_path / "again").touch()
    done = len(list(tmp_path.iterdir()))
    os.kill(next(iter(cluster.client.run(os.getpid).values())), signal.SIGKILL)
    assert engine.gather(add, beyond, shared=(0,)) == before
    assert len(list(tmp_path.iterdir())) - done <= 4
    cluster.client.wait_for_workers(2)  # for the next test


def ends_its_first_worker(value, folder):
    try:
        (folder / str(value)).touch(exist_ok=False)
    except FileExistsError:
        return value
    os._exit(5)


def test_what_dask_has_given_up_is_begun_again_with_what_it_hangs_on(cluster, tmp_path):
    """Also where only the scheduler still knows what that is."""
    cluster.client.wait_for_workers(2)
    scheduler, engine = cluster.client.cluster.scheduler, Cluster(cluster.client)
    patience, scheduler.allowed_failures = scheduler.allowed_failures, 0
    try:
        column = engine.each(add, engine.each(ends_its_first_worker, range(2), shared=(tmp_path,)), shared=(10,))
        engine.release(column)
        assert engine.gather(add, column, shared=(1,)) == [11, 12]
    finally:
        scheduler.allowed_failures = patience
    cluster.client.wait_for_workers(2)  # for the next test


def test_what_is_done_before_it_is_known_to_be_begun_again_is_not_waited_for(cluster, tmp_path, monkeypatch):
    """The scheduler's answer to what was begun again may come after the result."""
    cluster.client.wait_for_workers(2)
    engine, answer = Cluster(cluster.client), cluster.client.scheduler.retry

    async def late(**request):
        keys = await answer(**request)
        await asyncio.sleep(3.0)
        return keys

    monkeypatch.setattr(cluster.client.scheduler, "retry", late, raising=False)
    monkeypatch.setattr(cluster.client.cluster.scheduler, "allowed_failures", 0)
    column = engine.each(ends_its_first_worker, range(1), shared=(tmp_path,))
    gathered = []
    waiting = threading.Thread(target=lambda: gathered.extend(engine.gather(add, column, shared=(1,))), daemon=True)
    waiting.start()
    waiting.join(60.0)
    assert gathered == [1]
    cluster.client.wait_for_workers(2)  # for the next test


def test_what_one_worker_compiled_is_given_to_the_others(cluster):
    assert Cluster(cluster.client).once(add, 1, 2) == 3


def test_kernels_of_another_machine_are_taken_if_they_are_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_used", set())
    monkeypatch.setenv(store.FOLDER_VARIABLE, str(tmp_path / "one"))
    store.remembered("fact", lambda: [1, 2])
    store.remembered("other", lambda: [3])
    entries = store.given_away()
    assert set(entries) == {"fact", "other"}
    entries["other"] = entries["other"][:-1] + b"x"
    monkeypatch.setenv(store.FOLDER_VARIABLE, str(tmp_path / "two"))
    store.take(entries)
    assert store.remembered("fact", lambda: "made anew") == [1, 2]
    assert store.remembered("other", lambda: "made anew") == "made anew"


def test_an_unreachable_scheduler_is_named(monkeypatch):
    monkeypatch.setattr(cluster, "ANSWER", 0.5)
    with (
        pytest.raises(ClusterError, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:9'"),
        crew(scheduler="tcp://127.0.0.1:9"),
    ):
        pass


def test_workers_of_another_version_are_refused(cluster, monkeypatch):
    monkeypatch.setattr(parallel.cluster, "identity", lambda: ("9.9", "another"))
    with pytest.raises(ClusterError, match=r"this program is shadowfit 9\.9, but 2 of the workers have another one"):
        parallel.cluster.check_workers(cluster.client)


def test_workers_and_a_scheduler_exclude_each_other():
    with pytest.raises(ClusterError, match="started beside it"), crew(2, "tcp://127.0.0.1:9"):
        pass
