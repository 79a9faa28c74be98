"""Draws as files: CSV, Parquet and NPZ, by their endings."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from shadowfit.estimation.posterior import DrawError, Draws
from shadowfit.models.atomic import write_bytes


def _csv(draws: Draws) -> bytes:
    return draws.to_polars().write_csv().encode()


def _parquet(draws: Draws) -> bytes:
    content = io.BytesIO()
    draws.to_polars().write_parquet(content)
    return content.getvalue()


def _npz(draws: Draws) -> bytes:
    content = io.BytesIO()
    np.savez_compressed(content, parameters=np.array(draws.labels, str), values=draws.table)
    return content.getvalue()


WRITERS: dict[str, Callable[[Draws], bytes]] = {".csv": _csv, ".parquet": _parquet, ".npz": _npz}


def check_target(path: str | os.PathLike[str], *, replace: bool = False) -> None:
    """Raise where draws cannot go.

    Raises:
        DrawError: the ending is of no known kind, or the file exists and is not to be replaced.
    """
    target = Path(path)
    if target.suffix not in WRITERS:
        raise DrawError(f"{target}: draws are written as {', '.join(WRITERS)}, not as {target.suffix or 'that'}")
    if target.exists() and not replace:
        raise DrawError(f"{target} exists; take another name, or say that it may be replaced (--force, replace=True)")


def write_draws(draws: Draws, path: str | os.PathLike[str]) -> None:
    """Write one row for each machine, one column for each parameter; in an NPZ ``parameters`` and ``values``."""
    write_bytes(Path(path), WRITERS[Path(path).suffix](draws))
