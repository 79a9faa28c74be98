"""Reading the model that a command names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shadowfit.models import ModelFile


def load(model: str, weld: Iterable[str] | None = None, *, quiet: bool = False) -> ModelFile:
    """The model; what was assumed about a robot file is said on standard error."""
    from shadowfit.cli import console
    from shadowfit.models import load_model

    loaded = load_model(model, weld=weld or ())
    for note in () if quiet else loaded.notes:
        console.messages().print(f"note: {note}", soft_wrap=True)
    return loaded
