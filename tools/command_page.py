"""Write docs/options.md: every command with its arguments and options, in the words of ``--help``.

python -m tools.command_page
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from shadowfit.cli.app import GROUPS, application

PAGE = Path(__file__).parents[1] / "docs" / "options.md"
HEAD = """# All options

Every command with its arguments and options, written from the program by `python -m tools.command_page`; `shadowfit
COMMAND --help` prints the same. What needs more than a sentence is under [command line](command-line.md).
"""
# Of every command, and told once.
COMMON = ("help", "memory")


def _row(written: str, sentence: str) -> str:
    """A row of a table in which a stroke is no border."""
    code, words = (" ".join(text.split()).replace("|", "\\|") for text in (written, sentence))
    return f"| `{code}` | {words} |"


def _command(name: str, command: Any) -> Iterator[str]:
    context = typer.Context(command, info_name=name)
    shown = [one.get_help_record(context) for one in command.params if one.name not in COMMON]
    yield f"### {name}\n\n{' '.join((command.help or '').split())}\n"
    if shown:
        yield "\n".join(["| | |", "|---|---|", *(_row(*record) for record in shown if record)]) + "\n"


def page() -> str:
    """The whole page."""
    commands = typer.main.get_group(application()).commands
    parts = [HEAD]
    for heading, names in GROUPS.items():
        parts.append(f"## {heading}\n")
        for name in names:
            parts += _command(name, commands[name])
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
