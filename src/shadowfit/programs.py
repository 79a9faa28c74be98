"""What XLA compiles, kept with the other code: JAX' own cache runs whatever lies in its folder."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from typing import Any

from shadowfit.kernels import store
from shadowfit.lazy_jax import jax


class Programs:
    """The store of compiled code as JAX wants a cache."""

    def __init__(self, path: str) -> None:
        self._path = path

    def get(self, key: str) -> bytes | None:
        """A program of an earlier run."""
        return store.read(_name(key))

    def put(self, key: str, value: bytes) -> None:
        """Keep a program."""
        store.write(_name(key), value)


def _name(key: str) -> str:
    return f"xla-{key}"


def keep_programs() -> None:
    """Have JAX keep its programs in the store; a folder that the user gave to JAX itself stays."""
    from jax._src import compilation_cache  # noqa: PLC0415  (JAX has no public way to say what its cache is)

    if jax.config.values["jax_compilation_cache_dir"] is not None or store.folder() is None:
        return
    if not hasattr(compilation_cache, "get_file_cache"):
        return  # another JAX: nothing is kept rather than run unseen

    def cache(path: str) -> tuple[Any, str]:
        return Programs(path), path

    compilation_cache.get_file_cache = cache
    # JAX wants a folder; should it not ask for our cache, this one is new and nobody else's.
    folder = tempfile.mkdtemp(prefix="shadowfit-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_enable_xla_caches", "none")  # files of XLA's own in that folder
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
