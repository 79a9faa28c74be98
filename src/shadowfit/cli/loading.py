"""Before a command: the library, and the model that it names."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shadowfit.models import ModelFile


def start(quiet: bool = False) -> None:
    """Load the library, which takes a moment; on a terminal one sees that."""
    import contextlib

    from shadowfit import runtime
    from shadowfit.cli import console
    from shadowfit.undisturbed import undisturbed

    screen = console.messages()
    warnings.showwarning = console.ignore_warning if quiet else console.show_warning
    # What is loaded stays: looking through it for garbage, again and again, would take a tenth of a small fit's time.
    gc.disable()
    shown = contextlib.nullcontext() if quiet or not screen.is_terminal else screen.status("starting")
    with shown, undisturbed():
        runtime.start_jax()
        import shadowfit.estimation
        import shadowfit.evaluation  # noqa: F401
    gc.freeze()
    # Making programs leaves many small objects that are needed and little garbage: looked for less often.
    gc.set_threshold(20_000)
    gc.enable()


def load(model: str, weld: Iterable[str] | None = None, *, quiet: bool = False) -> ModelFile:
    """The model; what was assumed about a robot file is said on standard error."""
    from shadowfit.cli import console
    from shadowfit.models import load_model

    loaded = load_model(model, weld=weld or ())
    for note in () if quiet else loaded.notes:
        console.messages().print(f"note: {note}", soft_wrap=True)
    return loaded
