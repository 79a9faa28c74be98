"""Problems that are too large, and numbers that are: refused with a sentence before anything is allocated."""

import numpy as np
import pytest

import shadowfit.memory as memory
from shadowfit.dynamics import place
from shadowfit.errors import MechanismError
from shadowfit.estimation import Options, fit
from shadowfit.estimation.problem.options import ProblemError
from shadowfit.estimation.problem.size import check_size
from shadowfit.memory import NotEnoughMemoryError, free_memory, spoken
from shadowfit.models import load_model
from shadowfit.recordings import Recording

MECHANISM = load_model("pendulum").mechanism
TIME = np.arange(100) * 0.01
THETA = np.cos(5.0 * TIME)


def test_a_tiny_time_step_is_refused_with_the_number_of_steps():
    with pytest.raises(NotEnoughMemoryError, match=r"990,000,001 time steps of 1e-09 s would need about .* TB"):
        fit(MECHANISM, Recording(TIME, {"theta": THETA}), options=Options(timestep=1e-9))


def test_a_long_gap_is_named():
    time = np.append(TIME[:-1], 1e9)
    with pytest.raises(NotEnoughMemoryError, match=r"has a gap of 1e.09 s behind row 99: split it there"):
        fit(MECHANISM, Recording(time, {"theta": THETA}))


def test_the_limit_can_be_given(monkeypatch):
    recording = Recording(TIME, {"theta": THETA})
    with pytest.raises(NotEnoughMemoryError, match=r"the limit is 1 kB \(as given\)"):
        check_size(MECHANISM, [recording], 2, 0.01, Options(memory=1e3).resolved(MECHANISM))
    check_size(MECHANISM, [recording], 2, 0.01, Options(memory=1e9).resolved(MECHANISM))
    monkeypatch.setattr(memory, "free_memory", lambda: 2e3)
    with pytest.raises(NotEnoughMemoryError, match=r"the limit is 1 kB \(half of what is free\)"):
        check_size(MECHANISM, [recording], 2, 0.01, Options().resolved(MECHANISM))


def test_memory_is_known_and_spoken():
    assert 1e7 < free_memory() < 1e15
    assert [spoken(size) for size in (2e3, 3e6, 4.5e9, 1.46e12)] == ["2 kB", "3 MB", "4.5 GB", "1.46 TB"]


@pytest.mark.parametrize("value", [1e17, -9e49])
def test_a_reading_without_digits_for_its_noise_is_refused(value):
    theta = THETA.copy()
    theta[50] = value
    with pytest.raises(ProblemError, match=r"'theta' is .* in row 51, too large a number"):
        fit(MECHANISM, Recording(TIME, {"theta": theta}))


def test_an_angle_without_digits_is_refused():
    with pytest.raises(MechanismError, match=r"1e.50 rad is too large a number to tell an angle from"):
        place(MECHANISM, {"hinge": 1e50})
