"""The same problem with other samples, boxes or settings: what was compiled for it is shared."""

from __future__ import annotations

import dataclasses
from typing import Any

from shadowfit.estimation.problem.problem import Problem


def varied(problem: Problem, **changes: Any) -> Problem:
    """The problem with other fields; plan and mechanism must stay, since the compiled functions belong to them."""
    assert not changes.keys() & {"plan", "mechanism"}
    other = dataclasses.replace(problem, **changes)
    # The cache of ``kernels``: a frozen dataclass keeps cached properties among its attributes.
    other.__dict__["kernels"] = problem.kernels
    return other
