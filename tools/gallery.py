"""The gallery: notebooks in percent format (docs/gallery/*.py), run, as pages with what they print and draw.

    python -m tools.gallery            # all of them into docs/gallery/*.md
    python -m tools.gallery pendulum   # one

Editors and Jupytext open the sources as notebooks. Pages and pictures are made from them and not kept.
"""

import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
MARKER = "# %%"


class Cell(NamedTuple):
    """A piece of a notebook."""

    words: bool
    """Whether it is Markdown; else Python."""
    text: str


class Ran(NamedTuple):
    """What a cell of Python did."""

    printed: str
    pictures: list[bytes]
    """PNG files."""


def names() -> list[str]:
    """All notebooks."""
    return sorted(path.stem for path in GALLERY.glob("*.py"))


def cells(text: str) -> list[Cell]:
    """The cells of a notebook."""
    found = []
    for piece in text.split(MARKER)[1:]:
        head, _, body = piece.partition("\n")
        words = "[markdown]" in head
        lines = [line.removeprefix("#").removeprefix(" ") for line in body.splitlines()] if words else [body]
        found.append(Cell(words, "\n".join(lines).strip()))
    return found


def run(name: str, space: dict[str, Any]) -> Iterator[tuple[Cell, Ran]]:
    """Run a notebook's cells one after the other in the current folder; ``space`` holds its names then."""
    import matplotlib as mpl  # noqa: PLC0415  the pages themselves need none

    mpl.use("Agg")
    path = GALLERY / f"{name}.py"
    for number, cell in enumerate(cells(path.read_text("utf-8"))):
        printed = io.StringIO()
        if not cell.words:
            with contextlib.redirect_stdout(printed):
                exec(compile(cell.text, f"{path.name}, cell {number}", "exec"), space)
        yield cell, Ran(printed.getvalue(), _pictures())


def _pictures() -> list[bytes]:
    """All open figures, which are closed."""
    from matplotlib import pyplot  # noqa: PLC0415  after the choice of what draws

    drawn = []
    for number in pyplot.get_fignums():
        file = io.BytesIO()
        pyplot.figure(number).savefig(file, format="png", dpi=80)
        drawn.append(file.getvalue())
    pyplot.close("all")
    return drawn


def write_page(name: str) -> None:
    """Run a notebook in an empty folder, and write its page and pictures beside it."""
    home, parts, count = Path.cwd(), [], 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for cell, ran in run(name, {"__name__": name}):
                parts.append(cell.text if cell.words else f"```python\n{cell.text}\n```")
                if ran.printed.strip():
                    parts.append(f"```text\n{ran.printed.strip()}\n```")
                for picture in ran.pictures:
                    (GALLERY / f"{name}-{count}.png").write_bytes(picture)
                    parts.append(f"![]({name}-{count}.png)")
                    count += 1
        finally:
            os.chdir(home)
    parts.append(f"The notebook: [{name}.py]({name}.py), in percent format.")
    (GALLERY / f"{name}.md").write_text("\n\n".join(parts) + "\n", "utf-8")


if __name__ == "__main__":
    for one in sys.argv[1:] or names():
        write_page(one)
