"""Packages that only some formats need: imported when such a file is read, and named with the command if missing."""

from __future__ import annotations

import importlib
from types import ModuleType

from shadowfit.errors import RecordingError


def need(module: str, extra: str, where: str) -> ModuleType:
    """A module of an optional package.

    Raises:
        RecordingError: it is not installed; the message has the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise RecordingError(
            f"{where}: reading this format needs the package {package!r}; install it with "
            f'pip install "shadowfit[{extra}]"'
        ) from error
