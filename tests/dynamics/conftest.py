"""All simulations of these tests share one loop length, so that every mechanism is compiled once per stepper."""

import sys
from collections.abc import Iterator

import pytest

LOOP_LENGTH = 16384


@pytest.fixture(scope="module", autouse=True)
def _one_loop_length() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["shadowfit.dynamics.outcomes"], "SHORTEST_LOOP", LOOP_LENGTH)
        yield
