"""Names of what is kept, from all that it depends on."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import jax


def fingerprint(*parts: str | None) -> str:
    """A name for what depends on these texts and on the source of this package and of JAX."""
    digest = hashlib.sha256()
    for part in (package_digest(), jax.__version__, *parts):
        digest.update(f"{part}\n".encode())
    return digest.hexdigest()


@functools.cache
def package_digest() -> str:
    """A fingerprint of the source of the package that these kernels are part of."""
    digest = hashlib.sha256()
    root = Path(__file__).parent.parent
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
