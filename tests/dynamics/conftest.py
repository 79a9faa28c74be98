"""All simulations of these tests share one loop length, so that every mechanism is compiled once per stepper."""

import sys

import pytest

LOOP_LENGTH = 16384


@pytest.fixture(autouse=True)
def _one_loop_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["shadowfit.dynamics.simulate"], "SHORTEST_LOOP", LOOP_LENGTH)
