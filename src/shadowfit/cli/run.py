"""``shadowfit run``: the commands of a project file."""

from __future__ import annotations

import contextlib
import enum
from pathlib import Path
from typing import Annotated

import typer


class Step(enum.StrEnum):
    """What to do with a project."""

    show = "show"
    check = "check"
    fit = "fit"
    validate = "validate"


def run(
    context: typer.Context,
    project: Annotated[Path, typer.Argument(metavar="PROJECT", help="A project file, or the folder it is in.")],
    step: Annotated[Step, typer.Argument(metavar="[show|check|fit|validate]", help="What to do; default: fit.")] = (
        Step.fit
    ),
    dry: Annotated[bool, typer.Option("--dry-run", help="Print the command line and do nothing.")] = False,
) -> None:
    """Run a project: the command line that its file stands for, in its folder.

    `shadowfit web` writes such files; further options go into its table 'options'. Exit status: that of the command.
    """
    from shadowfit.projects import commands
    from shadowfit.projects.project import FILE, read_project

    file = project / FILE if project.is_dir() else project
    arguments = getattr(commands, step.value)(read_project(file))
    typer.echo(commands.shown(arguments), err=not dry)
    if dry:
        return
    group = context.find_root().command
    with contextlib.chdir(file.resolve().parent):
        raise typer.Exit(group.main(arguments, prog_name="shadowfit", standalone_mode=False) or 0)
