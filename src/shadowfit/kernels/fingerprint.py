"""Names of what is kept, from all that it depends on."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.metadata
import inspect
from collections.abc import Callable, Iterable, Mapping, Set
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from shadowfit.trees import LEAF, Structure

UNCOMPILED = frozenset({"recordings", "models", "evaluation", "sweeps", "cli", "web"})
"""Folders of the package that kernels are not made of: a change of a report leaves compiled code alone. What they have
compiled for themselves is kept by `named`."""


def fingerprint(*parts: Any) -> str:
    """A name for what depends on these values and on the source of this package and of JAX."""
    digest = hashlib.sha256()
    for part in (package_digest(), _version_of_jax(), *parts):
        digest.update(f"{spelt(part)}\n".encode())
    return digest.hexdigest()


def spelt(value: Any) -> str:
    """All that a value is made of as text: every field of every record, every number of every array.

    What has no such text is refused: code that was kept for another value would be found by its name.
    """
    if value is LEAF:
        return "*"
    if value is None or isinstance(value, str | bytes | int | float | np.generic | slice):
        return repr(value)
    if isinstance(value, type | FunctionType) and "<" not in value.__qualname__:
        return f"{value.__module__}.{value.__qualname__}"
    return f"{type(value).__module__}.{type(value).__qualname__}({', '.join(map(spelt, _parts(value)))})"


def _parts(value: Any) -> Iterable[Any]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [part for field in dataclasses.fields(value) for part in (field.name, getattr(value, field.name))]
    if isinstance(value, Structure):
        return value.kind, value.held, value.children
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, hashlib.sha256(value.tobytes()).hexdigest()
    if isinstance(value, tuple | list | range):
        return value
    if isinstance(value, Mapping):
        return [part for item in value.items() for part in item]
    if isinstance(value, Set):
        return sorted(map(spelt, value))
    raise TypeError(f"a {type(value).__qualname__} has no text that tells all it is made of, to name kept code by")


def named(function: Callable[..., Any]) -> str:
    """A name of a function of a module, with a fingerprint of the module's source."""
    source = hashlib.sha256(Path(inspect.getfile(function)).read_bytes()).hexdigest()
    return f"{function.__module__}.{function.__qualname__} {source}"


@functools.cache
def _version_of_jax() -> str:
    """Asked of the installed package: nothing is loaded to find out."""
    return importlib.metadata.version("jax")


@functools.cache
def package_digest() -> str:
    """A fingerprint of the source that kernels are made of, in the package that they are part of."""
    digest = hashlib.sha256()
    root = Path(__file__).parent.parent
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root)
        if inside.parts[0] not in UNCOMPILED:
            digest.update(str(inside).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()
