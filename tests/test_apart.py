"""Functions in a process of their own: answers, errors and reports come through, and its death is a sentence."""

import os
import signal

import numpy as np
import pytest

import shadowfit.apart as module
from shadowfit.apart import LostError, apart
from shadowfit.models.errors import ModelFileError


def answered(value, progress=None):
    for number in range(3):
        if progress is not None:
            progress(number, 3)
    print("what libraries print does not come in between")
    return value


def refused(source):
    raise ModelFileError("is wrong", source, 3)


def crashed():
    os.kill(os.getpid(), signal.SIGSEGV)


def greedy():
    return np.ones(10**10).sum()


def endless():
    while True:
        pass


def test_answers_and_reports():
    reports = []
    value = {"x": np.arange(3.0), "words": ("a", "b")}
    answer = apart(answered, value, size=1.0, progress=lambda *report: reports.append(report))
    np.testing.assert_array_equal(answer["x"], value["x"])
    assert answer["words"] == value["words"]
    assert reports[-1] == (2, 3)


def test_errors_are_those_of_the_function():
    with pytest.raises(ModelFileError, match=r"robot\.xml:3: is wrong") as caught:
        apart(refused, "robot.xml", size=1.0)
    assert (caught.value.source, caught.value.line) == ("robot.xml", 3)


@pytest.mark.parametrize("function", [crashed, greedy])
def test_a_death_is_a_sentence(function):
    with pytest.raises(LostError, match=r"made its reader give up.*SHADOWFIT_MEMORY allows more"):
        apart(function, size=1.0)


def test_what_does_not_end_is_ended(monkeypatch):
    monkeypatch.setattr(module, "SECONDS", 1.0)
    with pytest.raises(LostError, match="was not read within 1 s"):
        apart(endless, size=1.0)
