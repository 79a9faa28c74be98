"""Names of what is kept, from all that it depends on."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

UNCOMPILED = frozenset({"recordings", "models", "evaluation", "sweeps", "cli", "web"})
"""Folders of the package that kernels are not made of: a change of a report leaves compiled code alone. What they have
compiled for themselves is kept by `named`."""


def fingerprint(*parts: str | None) -> str:
    """A name for what depends on these texts and on the source of this package and of JAX."""
    digest = hashlib.sha256()
    for part in (package_digest(), _version_of_jax(), *parts):
        digest.update(f"{part}\n".encode())
    return digest.hexdigest()


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
