"""Shapes of arrays are checked at every call in tests, as the annotations state them (jaxtyping, beartype).

Only annotations of arrays are looked at: what a user may get wrong is told in words of the library's own, which tests
provoke.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import jaxtyping
from beartype import beartype

from shadowfit import arrays

_ARRAY = re.compile(r"\b(Bool|Float|Int)\[")
# These check shapes themselves, and say what is wrong.
_BY_THEMSELVES = frozenset({"solve_lcp", "solve_mlcp"})


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that checks its arrays, and nothing else."""
    arrays = {name: hint for name, hint in function.__annotations__.items() if _ARRAY.search(str(hint))}
    if not arrays or function.__name__ in _BY_THEMSELVES:
        return function
    function.__annotations__ = arrays
    return beartype(function)


def check_shapes(packages: Sequence[str]) -> None:
    """Check all functions of packages that are imported from now on.

    ``Array`` stands for everything that JAX takes for one, plain numbers too.
    """
    arrays.Array = jaxtyping.ArrayLike
    jaxtyping.install_import_hook(packages, f"{__name__}.checked")
