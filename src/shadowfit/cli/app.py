"""The commands, and what happens when a user's input is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from shadowfit.cli.advise import advise
from shadowfit.cli.check import check
from shadowfit.cli.convert import convert
from shadowfit.cli.demo import demo
from shadowfit.cli.design import design
from shadowfit.cli.export import export
from shadowfit.cli.fit import fit
from shadowfit.cli.fleet import fleet
from shadowfit.cli.models import models
from shadowfit.cli.report import report
from shadowfit.cli.reproduce import reproduce
from shadowfit.cli.run import run
from shadowfit.cli.saving import KeptElsewhere
from shadowfit.cli.show import show
from shadowfit.cli.simulate import simulate
from shadowfit.cli.sweep import sweep
from shadowfit.cli.validate import validate
from shadowfit.cli.web import web
from shadowfit.errors import ShadowfitError
from shadowfit.runtime import undisturbed

# Longest message; names and cells of a damaged file may have any length.
LONGEST = 2000


class Commands(TyperGroup):
    """The group of commands: an error in the input is one message and exit status 2, not a traceback.

    So is what the operating system refuses. A result that had to be kept elsewhere is 3, an interrupted command 130.
    """

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        try:
            with undisturbed():  # it loads libraries, too
                return super().make_context(*arguments, **named)
        except KeyboardInterrupt as error:
            raise _interrupted(error) from error

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ShadowfitError as error:
            _say(str(error))
            raise typer.Exit(3 if isinstance(error, KeptElsewhere) else 2) from error
        except MemoryError as error:
            _say("there is not enough memory for this")
            raise typer.Exit(2) from error
        except BrokenPipeError:
            raise  # whoever read the output has gone; click ends quietly
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            _say(f"{where}{error.strerror or error}")
            raise typer.Exit(2) from error
        except KeyboardInterrupt as error:
            raise _interrupted(error) from error


def _interrupted(error: KeyboardInterrupt) -> typer.Exit:
    typer.echo(str(error) or "interrupted", err=True)
    return typer.Exit(130)


def _say(text: str) -> None:
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"
    typer.echo(f"error: {text}", err=True)


app = typer.Typer(
    cls=Commands,
    help="Fit a rigid-multibody simulator to recordings.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        import shadowfit

        typer.echo(f"shadowfit {shadowfit.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


# What `--help` lists together, in the order of use.
GROUPS: dict[str, tuple[Callable[..., None], ...]] = {
    "To begin with": (demo, web, models, show),
    "From recordings to a calibrated machine": (check, fit, validate, advise, report, export),
    "Before recording": (design, simulate),
    "Many fits": (run, fleet, sweep, reproduce),
    "Files": (convert,),
}
for heading, group in GROUPS.items():
    for command in group:
        app.command(rich_help_panel=heading)(command)
