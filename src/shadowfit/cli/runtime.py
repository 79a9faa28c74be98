"""Starting JAX for a program: double precision, and compiled programs kept from run to run."""

from __future__ import annotations

import warnings
from pathlib import Path


def start_jax() -> None:
    """Switch on double precision and the compilation cache, in the user's cache directory unless JAX has one."""
    import jax
    import platformdirs

    jax.config.update("jax_enable_x64", True)
    if jax.config.values["jax_compilation_cache_dir"] is not None:
        return
    folder = Path(platformdirs.user_cache_dir("shadowfit")) / "jax"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # a home that cannot be written to only costs the time to compile
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    # An entry that another run is writing, or left half-written, is compiled again: no reason to bother anybody.
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache entry", UserWarning)
