"""``shadowfit fleet``: one fit over very many recordings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shadowfit.cli.cases import Dashboard, OutFolder, Scheduler
from shadowfit.cli.options import (
    Begin,
    ChannelFile,
    Channels,
    End,
    FreeNames,
    Json,
    Model,
    OptionError,
    Quiet,
    Settings,
    apply_settings,
    free_parameters,
    known_beforehand,
    state_weight,
)

if TYPE_CHECKING:
    from shadowfit.recordings import RecordingFile


def fleet(
    model: Model,
    recordings: Annotated[
        list[str] | None,
        typer.Argument(metavar="RECORDING...", help="Recordings, or patterns in quotes such as 'runs/*.csv'."),
    ] = None,
    listed: Annotated[
        Path | None,
        typer.Option("--list", metavar="FILE", help="A text file with the path of a recording in each line."),
    ] = None,
    free: FreeNames = None,
    each: Annotated[
        list[str] | None,
        typer.Option(
            "--each", metavar="NAME", help="A free parameter with a value of its own in each recording, or a pattern."
        ),
    ] = None,
    scatter: Annotated[
        list[str] | None,
        typer.Option(
            "--scatter",
            metavar="NAME",
            help="A free parameter whose values in the recordings scatter about a mean; mean and spread are estimated.",
        ),
    ] = None,
    prior: Annotated[
        list[str] | None,
        typer.Option("--prior", metavar="NAME=STD", help="What is known of a free parameter beforehand."),
    ] = None,
    settings: Settings = None,
    channel: Channels = None,
    channels: ChannelFile = None,
    begin: Begin = None,
    end: End = None,
    timestep: Annotated[float | None, typer.Option(metavar="S", help="Time-step; default: as for fit.")] = None,
    weight: Annotated[
        str | None,
        typer.Option("--state-weight", metavar="K|auto", help="As for fit; auto: from a fit of a few recordings."),
    ] = None,
    max_iterations: Annotated[
        int | None, typer.Option("--max-iterations", metavar="N", min=1, help="Limit of iterations; default: 200.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", metavar="N", min=1, help="A Dask cluster of N processes; default: threads of this process."
        ),
    ] = None,
    scheduler: Scheduler = None,
    dashboard: Dashboard = False,
    out: OutFolder = Path("fleet"),
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a model to very many recordings at once, on one machine or many.

    Recordings are read by the workers that fit them. A run that was stopped goes on with the same command.

    Exit status: 0 converged, 1 not converged, 2 wrong use or bad input, 130 interrupted.
    """
    from shadowfit import runtime

    runtime.start_jax()
    from shadowfit.cli import console
    from shadowfit.cli.cases import hired
    from shadowfit.cli.interruption import uninterrupted
    from shadowfit.cli.loading import load
    from shadowfit.cli.progress import FleetPace, fit_progress
    from shadowfit.cli.recordings import Selection
    from shadowfit.estimation import LevenbergMarquardt, Options
    from shadowfit.estimation.solve.levenberg_marquardt import Status
    from shadowfit.estimation.spread.fleet import fit_fleet
    from shadowfit.evaluation.destination import check_destination
    from shadowfit.evaluation.fleet import FleetMemory, save_fleet

    check_destination(out)
    mechanism = apply_settings(load(model, quiet=quiet).mechanism, settings or ())
    wanted = free_parameters(free or (), mechanism, known_beforehand(prior or (), mechanism), each or ())
    sources = _sources(recordings or [], listed, Selection(channel, channels, None, begin, end))
    options = Options(timestep=timestep, state_weight="auto" if weight is None else state_weight(weight))
    optimiser = LevenbergMarquardt() if max_iterations is None else LevenbergMarquardt(max_iterations=max_iterations)
    memory = FleetMemory(out, _key(mechanism, sources, wanted, scatter, options))
    with (
        hired(workers, scheduler, dashboard, local_cluster=workers is not None) as crew,
        fit_progress(quiet, FleetPace(len(sources), optimiser.max_iterations)) as progress,
    ):
        estimate = fit_fleet(
            mechanism,
            sources,
            wanted,
            scatter=scatter or (),
            options=options,
            optimiser=optimiser,
            crew=crew,
            progress=progress,
            memory=memory,
        )
    if estimate.status is Status.INTERRUPTED:
        raise KeyboardInterrupt("interrupted; the same command goes on where it stopped")
    with uninterrupted():
        summary = save_fleet(estimate, out)
    if json:
        import json as notation

        typer.echo(notation.dumps(summary, ensure_ascii=False, allow_nan=False))
    else:
        _show(summary)
        console.output().print(f"{summary['status']} ({summary['iterations']} iterations, {summary['seconds']:.1f} s)")
        some = f"{summary['noise_from_recordings']} of the {summary['recordings']} recordings"
        console.output().print(f"Levels of the noise are those of a fit of {some}.", soft_wrap=True)
        typer.echo(f"Result in {out}: fleet.json, recordings.csv, model.toml")
    raise typer.Exit(0 if estimate.converged else 1)


def _sources(paths: list[str], listed: Path | None, selection: Any) -> list[RecordingFile]:
    """The recordings of arguments, patterns and a list, sorted by path: their order is part of the digits."""
    import glob
    import math

    from shadowfit.files import read_text
    from shadowfit.recordings import RecordingFile

    named = [line.strip() for line in read_text(listed).splitlines()] if listed is not None else []
    for path in paths:
        paths_here = glob.glob(path, recursive=True) if glob.has_magic(path) else [path]
        if not paths_here:
            raise OptionError(f"no file matches {path!r}")
        named += paths_here
    if not named:
        raise OptionError("there is no recording; name some, or a pattern in quotes, or a file of paths with --list")
    table = selection.channels()
    first = -math.inf if selection.begin is None else selection.begin
    last = math.inf if selection.end is None else selection.end
    unique = sorted({str(Path(name).absolute()) for name in named if name})
    return [RecordingFile(path, table, first, last) for path in unique]


def _key(*parts: Any) -> str:
    """Tells one fit from another, and one version from the next."""
    import hashlib

    from shadowfit.parallel.cluster import identity

    return hashlib.sha256(repr((identity(), *parts)).encode()).hexdigest()


def _show(summary: dict[str, Any]) -> None:
    from shadowfit.cli import console

    table = console.table(
        f"Common to {summary['recordings']} recordings", "name", "value", "std", "spread", "unit", "",
        numeric=("value", "std", "spread"),
    )  # fmt: skip
    for name, row in summary["parameters"].items():
        spread = summary["spreads"].get(name)
        scatters = "" if spread is None else f"{spread['value']:.4g} ± {spread['std'] or float('nan'):.2g}"
        std = "" if row["std"] is None else f"{row['std']:.2g}"
        note = "at bound" if row["at_bound"] else "" if row["identifiable"] else "not identifiable"
        table.add_row(name, f"{row['value']:.6g}", std, scatters, row["unit"], note)
    console.output().print(table)
