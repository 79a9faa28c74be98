"""Model files, and the built-in models that are such files."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from shadowfit.models.catalogue import library as library
from shadowfit.models.errors import ModelFileError as ModelFileError

if TYPE_CHECKING:
    from shadowfit.models.load import load_model as load_model
    from shadowfit.models.load import read_model as read_model
    from shadowfit.models.reader import ModelFile as ModelFile
    from shadowfit.models.reader import parse_model as parse_model
    from shadowfit.models.start import Start as Start
    from shadowfit.models.update import update_model as update_model
    from shadowfit.models.writer import format_model as format_model
    from shadowfit.models.writer import write_model as write_model

# The rest needs JAX and is imported when it is first asked for, so that listing the models takes no time.
_LATER = {
    "load_model": "load",
    "read_model": "load",
    "ModelFile": "reader",
    "parse_model": "reader",
    "Start": "start",
    "update_model": "update",
    "format_model": "writer",
    "write_model": "writer",
}
__all__ = ["ModelFileError", "library", *_LATER]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
