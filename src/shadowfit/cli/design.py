"""``shadowfit design``: which motion to record."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shadowfit.cli.options import (
    FreeNames,
    Json,
    Model,
    Quiet,
    Settings,
    Weld,
    apply_settings,
    free_parameters,
    numbers,
)

if TYPE_CHECKING:
    from shadowfit.designs import Design


class Criterion(enum.StrEnum):
    """What is made small."""

    worst = "worst"
    D = "D"
    A = "A"


def design(
    model: Model,
    out: Annotated[Path, typer.Option("--out", metavar="CSV", help="File for the motion; .yaml and .html beside it.")],
    free: FreeNames = None,
    duration: Annotated[float, typer.Option(metavar="S", help="Length of the recording.")] = 10.0,
    interval: Annotated[float, typer.Option(metavar="S", help="Time between its samples.")] = 0.01,
    limits: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A TOML file with limits of joints, inputs and workspace.")
    ] = None,
    noise: Annotated[
        list[str] | None,
        typer.Option(
            "--noise",
            metavar="NAME=STD",
            help="Noise of a sensor, in its unit, or of a joint's force [N m, N]. May be repeated; default: the "
            "model's sensors, and forces known to a hundredth.",
        ),
    ] = None,
    given: Annotated[
        list[Path] | None,
        typer.Option("--given", metavar="RESULT", help="Folder of a fit whose information counts. May be repeated."),
    ] = None,
    criterion: Annotated[
        Criterion, typer.Option(help="worst: the worst relative error bar; D: their volume; A: their mean square.")
    ] = Criterion.worst,
    start: Annotated[
        list[str] | None,
        typer.Option("--start", metavar="JOINT=VALUE", help="Where the machine rests, in rad or m. May be repeated."),
    ] = None,
    band: Annotated[float | None, typer.Option(metavar="HZ", help="Highest frequency; default: by its size.")] = None,
    evaluations: Annotated[
        int, typer.Option(metavar="N", help="Motions that the search looks at, at most; the same on any machine.")
    ] = 4000,
    seconds: Annotated[
        float, typer.Option(metavar="S", help="Time after which the search is broken off, which is said.")
    ] = 600.0,
    settings: Settings = None,
    weld: Weld = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Design the motion after which wished parameters are known best, and say how well they will be known.

    Writes the motion as a table (CSV), as a ROS joint trajectory (YAML) and as a page (HTML). Exit status: 0 done,
    2 wrong use or bad input.
    """
    from shadowfit import runtime

    runtime.start_jax()
    from shadowfit.cli import console
    from shadowfit.cli.loading import load
    from shadowfit.designs import DesignSettings, Limits, rated, read_limits
    from shadowfit.designs import design as find
    from shadowfit.evaluation import load_result
    from shadowfit.evaluation.destination import check_files
    from shadowfit.models import Start

    check_files(*_files(out))
    loaded = load(model, weld, quiet=quiet)
    mechanism = apply_settings(loaded.mechanism, settings or ())
    rest = numbers(start or (), "--start")
    given_limits = Limits() if limits is None else read_limits(limits, mechanism)
    allowed, stated = rated(given_limits, loaded, rest)
    if stated and not quiet:
        console.messages().print(f"note: limits of the robot file are kept: {'; '.join(stated)}", soft_wrap=True)
    chosen = DesignSettings(
        duration=duration,
        interval=interval,
        criterion=criterion.value,
        noise=numbers(noise or (), "--noise"),
        band=band,
        evaluations=evaluations,
        seconds=seconds,
    )
    with _progress(quiet) as say:
        best = find(
            mechanism,
            free_parameters(free or (), mechanism),
            start=Start(positions=rest),
            limits=allowed,
            settings=chosen,
            given=[load_result(folder) for folder in given or ()],
            progress=say,
        )
    files = _write(best, out)
    if json:
        import json as notation

        from shadowfit.designs.files import summary

        typer.echo(notation.dumps({**summary(best), "files": files}, ensure_ascii=False, allow_nan=False))
        return
    _print(best)
    typer.echo(f"Motion in {', '.join(files)}")


def _progress(quiet: bool) -> Any:
    """A function that is told what is going on: beside a spinner, or in lines."""
    import contextlib

    from shadowfit.cli import console

    screen = console.messages()
    if quiet:
        return contextlib.nullcontext()
    if not screen.is_terminal:
        return contextlib.nullcontext(lambda text: screen.print(text, soft_wrap=True))

    @contextlib.contextmanager
    def shown() -> Any:
        with screen.status("designing") as status:
            yield status.update

    return shown()


def _write(best: Design, out: Path) -> list[str]:
    from shadowfit.designs.files import motion_table, trajectory_text
    from shadowfit.designs.page import design_page
    from shadowfit.evaluation.columns import write_csv
    from shadowfit.models.atomic import write_text

    table, trajectory, page = _files(out)
    write_csv(table, motion_table(best))
    write_text(trajectory, trajectory_text(best))
    write_text(page, design_page(best))
    return [str(file) for file in (table, trajectory, page)]


def _files(out: Path) -> tuple[Path, Path, Path]:
    """The motion as a table, as a trajectory and as a page."""
    return out, out.with_suffix(".yaml"), out.with_suffix(".html")


def _print(best: Design) -> None:
    import math

    from shadowfit.cli import console
    from shadowfit.designs.page import ending, notices, percent, sentence

    numeric = ("value", "± std", "relative")
    table = console.table("Error bars to expect", "parameter", "value", "± std", "unit", "relative", numeric=numeric)
    rows = zip(best.labels, best.values, best.units, best.std.tolist(), best.relative.tolist(), strict=True)
    for label, value, unit, std, share in rows:
        deviation = f"{std:.2g}" if math.isfinite(std) else ""
        table.add_row(label, f"{value:.4g}", deviation, unit, percent(share))
    screen = console.output()
    screen.print(table)
    screen.print(f"{sentence(best)} {ending(best)}", soft_wrap=True)
    for notice in notices(best):
        screen.print(f"- {notice.text}. {notice.advice}.", soft_wrap=True)
    screen.print(f"One more second lowers the worst error bar by {percent(best.worth)}.", soft_wrap=True)
