"""Shapes of arrays are checked at every call in tests, as the annotations state them (jaxtyping, beartype).

Only annotations of arrays are looked at: what a user may get wrong is told in words of the library's own, which tests
provoke.
"""

import functools
import re
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

import jaxtyping
from beartype import beartype

from shadowfit import arrays

_ARRAY = re.compile(r"\b(Bool|Float|Int)\[")
_SYMBOLIC = re.compile(r".[-+*/]")
_jaxtyped = jaxtyping.jaxtyped
# The first two check shapes themselves, and say what is wrong. Records are also built inside `vmap`, without the axis
# that their fields have outside.
_LEFT_OUT = frozenset({"solve_lcp", "solve_mlcp", "__init__"})


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that checks its arrays, and nothing else."""
    arrays = {name: hint for name, hint in function.__annotations__.items() if _ARRAY.search(str(hint))}
    if not arrays or function.__name__ in _LEFT_OUT:
        return function
    known: set[str] = set()
    function.__annotations__ = {name: _solvable(hint, known) for name, hint in arrays.items()}
    return beartype(function)


def _solvable(hint: Any, known: set[str], listed: bool = False) -> Any:
    """The annotation with any size where an axis is an expression of sizes that no array before it has.

    Arrays that are listed have each their own sizes: only numbers of axes and sizes that are numbers are told.
    """

    def axis(text: str) -> str:
        names = set(re.findall(r"[a-z_]\w*", text, re.IGNORECASE))
        if listed and names:
            return "..." if text.startswith("*") else "_"
        if not _SYMBOLIC.search(text):
            known.update(names)
        return text if names <= known else "_"

    if isinstance(hint, type) and issubclass(hint, jaxtyping.AbstractArray):
        axes = " ".join(axis(text) for text in hint.dim_str.split())
        return getattr(jaxtyping, hint.__name__.partition("[")[0])[jaxtyping.ArrayLike, axes]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    named = origin in (typing.Union, types.UnionType) or (origin is tuple and Ellipsis not in arguments)
    inner = tuple(_solvable(part, known, listed or not named) for part in arguments)
    if origin in (typing.Union, types.UnionType):
        return typing.Union[inner]  # noqa: UP007  (of types that are known when it runs)
    return origin[inner] if isinstance(origin, type) and _ARRAY.search(str(hint)) else hint


def _at_the_first_call(typechecker: Callable[..., Any]) -> Callable[[Any], Any]:
    """Functions that begin to check when they are called with checks switched on.

    To prepare all checks of a package takes longer than to import it.
    """

    def decorate(function: Any) -> Any:
        if isinstance(function, type):
            return function
        prepared = functools.cache(lambda: _jaxtyped(function, typechecker=typechecker))

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            if jaxtyping.config.jaxtyping_disable:
                return function(*arguments, **named)
            return prepared()(*arguments, **named)

        return call

    return decorate


def check_shapes(packages: Sequence[str]) -> None:
    """Check all functions of packages that are imported from now on.

    ``Array`` stands for everything that JAX takes for one, plain numbers too.
    """
    arrays.Array = jaxtyping.ArrayLike
    for name in ("Bool", "Float", "Int", "Shaped", "UInt8"):
        setattr(arrays, name, getattr(jaxtyping, name))
    jaxtyping.jaxtyped = _at_the_first_call
    jaxtyping.install_import_hook(packages, f"{__name__}.checked")
