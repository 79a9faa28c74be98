"""Cases of a law of which a few are tried at every change, and the others with the slow tests."""

from collections.abc import Iterable
from typing import Any

import pytest


def quick(cases: Iterable[Any], *few: Any) -> list[Any]:
    """All cases for ``parametrize``, slow but for those that are named.

    A tuple is a case of several arguments.
    """
    listed = list(cases)
    unknown = [case for case in few if case not in listed]
    if unknown:
        raise ValueError(f"no such cases: {unknown}")
    return [case if case in few else pytest.param(*_arguments(case), marks=pytest.mark.slow) for case in listed]


def _arguments(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)
