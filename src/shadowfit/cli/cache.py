"""``shadowfit cache``: the compiled code that is kept from run to run."""

from __future__ import annotations

from typing import Annotated

import typer


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove all of it; what is needed is made again.")] = False,
) -> None:
    """Show the compiled code that is kept from run to run, or remove it."""
    from shadowfit.kernels.key import key_path, user_key
    from shadowfit.kernels.store import FOLDER_VARIABLE, MOST_BYTES, folder, kept, remove_all
    from shadowfit.memory import spoken

    place = folder()
    if place is None:
        typer.echo(f"Nothing is kept: {FOLDER_VARIABLE} is empty.")
        return
    if clear:
        remove_all()
    count, size = kept()
    typer.echo(f"{count} entries, {spoken(size)} of at most {spoken(MOST_BYTES)}, in {place}")
    usable = "sealed with" if user_key() is not None else "not used, as there is no key of yours in"
    typer.echo(f"{usable} {key_path()}")
