"""``shadowfit models``: the list of built-in models."""

from __future__ import annotations


def models() -> None:
    """List the built-in models."""
    from shadowfit.cli import console
    from shadowfit.models.catalogue import library

    table = console.table("Built-in models", "name", "description")
    for name, description in library().items():
        table.add_row(name, description)
    console.output().print(table)
