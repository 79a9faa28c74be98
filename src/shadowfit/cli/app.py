"""The commands, and what happens when a user's input is wrong."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from shadowfit.cli.saving import KeptElsewhere
from shadowfit.errors import ShadowfitError
from shadowfit.memory import limit
from shadowfit.undisturbed import undisturbed

# Longest message; names and cells of a damaged file may have any length.
LONGEST = 2000
# Heading of the option that all commands have.
LIMITS = "Limits"


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


def _print_version(wanted: bool) -> None:
    if wanted:
        import shadowfit

        typer.echo(f"shadowfit {shadowfit.__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


Memory = Annotated[
    float | None,
    typer.Option(
        "--memory",
        metavar="GB",
        help="Most memory to use; default: half of what is free, and for reading a file 1 GB and 16 times its size.",
        rich_help_panel=LIMITS,
    ),
]


def limited(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command with the option that all have: the most memory, for itself and for what it starts."""

    @functools.wraps(command)
    def obeying(*arguments: Any, memory: float | None = None, **named: Any) -> Any:
        with limit(memory):
            return command(*arguments, **named)

    signature = inspect.signature(command, eval_str=True)
    option = inspect.Parameter("memory", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Memory)
    obeying.__signature__ = signature.replace(parameters=[*signature.parameters.values(), option])  # type: ignore[attr-defined]
    return obeying


# What `--help` lists together, in the order of use: functions of modules that have their names.
GROUPS: dict[str, tuple[str, ...]] = {
    "To begin with": ("demo", "web", "models", "show"),
    "From recordings to a calibrated machine": ("check", "fit", "validate", "advise", "report", "draw", "export"),
    "Before recording": ("design", "simulate"),
    "Many fits": ("run", "fleet", "sweep"),
    "Files": ("convert", "cache"),
}


def application(wanted: Collection[str] | None = None) -> typer.Typer:
    """The command line, with all commands or only some of them: each takes its time to load and to be described."""
    made = typer.Typer(
        cls=Commands,
        help="Fit a rigid-multibody simulator to recordings.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    made.callback()(_options)
    for heading, names in GROUPS.items():
        for name in names:
            if wanted is None or name in wanted:
                command = getattr(importlib.import_module(f"shadowfit.cli.{name}"), name)
                made.command(rich_help_panel=heading)(limited(command))
    return made


def for_arguments(arguments: Sequence[str]) -> typer.Typer:
    """The command line as far as these arguments need it: of their command, or of all if they begin with none."""
    wanted = {name for names in GROUPS.values() for name in names}.intersection(arguments[:1])
    return application(wanted or None)


def __getattr__(name: str) -> Any:
    """``app``: the whole command line, made when it is asked for."""
    if name != "app":
        raise AttributeError(name)
    return application()
