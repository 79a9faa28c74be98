"""Many pieces of work through joblib: order, errors, and processes that die."""

import os

import joblib
import pytest

from shadowfit.parallel import Lost, run


def add(item, constant):
    return item + constant


def fail(item):
    raise KeyError(item)


def die_on_two(item):
    if item == 2:
        os._exit(5)
    return item


@pytest.mark.parametrize(("n_jobs", "prefer"), [(1, "processes"), (2, "threads"), (2, "processes"), (None, "threads")])
def test_every_item_has_its_result(n_jobs, prefer):
    found = dict(run(add, range(6), shared=(10,), n_jobs=n_jobs, prefer=prefer))
    assert found == {place: place + 10 for place in range(6)}


def test_nothing_to_do():
    assert list(run(add, [], shared=(1,))) == []


def test_errors_of_the_work_are_raised():
    with pytest.raises(KeyError, match="3"):
        list(run(fail, [3], n_jobs=2, prefer="threads"))


@pytest.mark.slow
def test_what_ends_its_process_is_given_up_and_the_rest_is_done():
    found = dict(run(die_on_two, range(5), n_jobs=2))
    assert isinstance(found.pop(2), Lost)
    assert found == {0: 0, 1: 1, 3: 3, 4: 4}


def test_a_configuration_of_joblib_decides_where_work_is_done():
    with joblib.parallel_config(backend="threading", n_jobs=2):
        found = dict(run(_process, range(3), n_jobs=None))
    assert set(found.values()) == {os.getpid()}


def _process(item):
    return os.getpid()
