"""``shadowfit fit``: estimate parameters and states from recordings."""

from __future__ import annotations

import dataclasses
import json as notation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shadowfit.cli.options import (
    DATA,
    METHOD,
    OUTPUT,
    WISHED,
    Begin,
    ChannelFile,
    Channels,
    Correction,
    Criterion,
    Discretization,
    End,
    FreeNames,
    Intervals,
    Json,
    Model,
    Quiet,
    Recordings,
    Residual,
    Settings,
    Topics,
    Unknowns,
    Weld,
    apply_settings,
    free_parameters,
    impulse_variances,
    known_beforehand,
    named_expressions,
    numbers,
    state_weight,
)
from shadowfit.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shadowfit.estimation import Estimate, Free, LevenbergMarquardt, Options
    from shadowfit.evaluation.summary import Details
    from shadowfit.mechanism import Mechanism
    from shadowfit.recordings import Recording


def fit(
    model: Model,
    recordings: Recordings,
    free: FreeNames = None,
    prior: Annotated[
        list[str] | None,
        typer.Option(
            "--prior",
            metavar="NAME=STD",
            help="What is known of a free parameter beforehand: a standard deviation around its start, in its unit or "
            "per cent; entropic:30% for all inertial numbers of a body.",
            rich_help_panel=WISHED,
        ),
    ] = None,
    each: Annotated[
        list[str] | None,
        typer.Option(
            "--each",
            metavar="NAME",
            help="A free parameter with a value of its own in each recording, or a pattern.",
            rich_help_panel=WISHED,
        ),
    ] = None,
    report: Annotated[
        list[str] | None,
        typer.Option(
            "--report",
            metavar="[NAME=]EXPRESSION",
            help="A quantity that follows from the parameters, such as 'length=sqrt(arm.inertia.zz / arm.mass)', with "
            "error bars. May be repeated; the model file's table 'derived' has more.",
            rich_help_panel=WISHED,
        ),
    ] = None,
    settings: Settings = None,
    weld: Weld = None,
    channel: Channels = None,
    channels: ChannelFile = None,
    topic: Topics = None,
    begin: Begin = None,
    end: End = None,
    no_check: Annotated[
        bool,
        typer.Option(
            "--no-check",
            help="Do not look at the recordings first; fit even samples in a random order.",
            rich_help_panel=DATA,
        ),
    ] = False,
    paper: Annotated[
        bool,
        typer.Option(
            "--paper",
            help="The paper's method with its settings: SPOOK at 10 ms, poses and velocities, its residual, state "
            "weight 100, its optimiser. Others given beside it count.",
            rich_help_panel=METHOD,
        ),
    ] = False,
    timestep: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="Time-step in seconds; default: the sampling interval, or a multiple of at most 10 ms (less for "
            "fast motions).",
            rich_help_panel=METHOD,
        ),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(
            "--state-weight",
            metavar="K|auto",
            help="How much the equations of motion count against the measurements (κ in the paper); default: auto, "
            "from the data.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    criterion: Annotated[
        Criterion | None,
        typer.Option(
            help="What the model is for. parameters: the most likely ones; simulate: those whose simulations follow "
            "the recordings; default: simulate, unless forces were measured or no simulation follows.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    errors: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What is known of errors, as a TOML table or the folder of a result: forces, sensors, criterion. What "
            "is not in it is estimated.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    force_noise: Annotated[
        list[str] | None,
        typer.Option(
            "--force-noise",
            metavar="JOINT=STD",
            help="How well the force at a joint is known [N m, N]: standard deviation of a white force at the sampling "
            "rate, which is then not estimated. May be repeated.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    impulse_variance: Annotated[
        list[str] | None,
        typer.Option(
            "--impulse-variance",
            metavar="BODY[.x|y|z|rx|ry|rz]=V",
            help="How large the squared errors of the equations of motion of a body are, relative to others (1). May "
            "be repeated.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    residual: Annotated[
        Residual | None,
        typer.Option(help="implicit (default): robust for stiff joints; inverse: the paper's.", rich_help_panel=METHOD),
    ] = None,
    discretization: Annotated[
        Discretization | None,
        typer.Option(
            help="exact (default): physical parameters; spook: those of a SPOOK simulator.", rich_help_panel=METHOD
        ),
    ] = None,
    unknowns: Annotated[
        Unknowns | None,
        typer.Option(
            help="joint: joint coordinates, joints are rigid; configuration: poses of the bodies; full: the paper's. "
            "Default: joint, wherever joint coordinates can describe the model, else configuration.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    correction: Annotated[
        Correction | None,
        typer.Option(
            help="deferred: errors of the time-step are computed and taken off (default with exact, without contacts); "
            "none: parameters are the stepper's at this time-step.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    huber: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="For outliers: residuals beyond N standard deviations count linearly, not squared.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    cutoff: Annotated[
        float | None,
        typer.Option(
            metavar="HZ",
            help="Low-pass filter behind the first trajectory; default: 10, or more for fast motions.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    max_iterations: Annotated[
        int | None,
        typer.Option(
            "--max-iterations",
            metavar="N",
            min=1,
            help="Limit of all iterations together; default: 200.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    intervals: Annotated[
        Intervals,
        typer.Option(
            help="What errors are taken to be: anything that averages out, functions of the motion, disagreement of "
            "pieces (robust); white, as large as believed (gauss-newton) or as the residuals (residual); the paper's.",
            rich_help_panel=METHOD,
        ),
    ] = Intervals.robust,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder for the result.", rich_help_panel=OUTPUT)
    ] = Path("result"),
    no_report: Annotated[
        bool, typer.Option("--no-report", help="Do not write the result's page.", rich_help_panel=OUTPUT)
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a model to recordings: parameters with error bars, the motion, and a verdict.

    Exit status: 0 converged; 1 not converged (the result is still written);
    2 wrong use or bad input; 3 --out could not be written, the result is elsewhere;
    130 interrupted without a result.
    """
    from shadowfit.cli.known_errors import error_model
    from shadowfit.cli.loading import load, start

    start(quiet)
    from shadowfit.cli.recordings import Selection, read_recordings
    from shadowfit.estimation import LevenbergMarquardt, Options
    from shadowfit.evaluation.derived import read_expressions, visible_in_drives
    from shadowfit.evaluation.summary import Details

    loaded = load(model, weld, quiet=quiet)
    mechanism = apply_settings(loaded.mechanism, settings or ())
    parameters = free_parameters(free or (), mechanism, known_beforehand(prior or (), mechanism), each or ())
    measured = read_recordings(recordings, mechanism, Selection(channel, channels, topic, begin, end), quiet=quiet)
    visible = visible_in_drives(mechanism, parameters)
    wanted = read_expressions({**visible, **loaded.derived, **named_expressions(report or ())}, mechanism)
    options = _given(
        Options.paper() if paper else Options(),
        timestep=timestep,
        residual=residual,
        discretization=discretization,
        unknowns=unknowns,
        correction=correction,
        state_weight=None if weight is None else state_weight(weight),
        impulse_covariance=impulse_variances(mechanism, impulse_variance or ()),
        errors=error_model(loaded.errors, errors, numbers(force_noise or (), "--force-noise"), criterion),
        huber=huber,
        cutoff=cutoff,
    )
    optimiser = _given(LevenbergMarquardt.paper() if paper else LevenbergMarquardt(), max_iterations=max_iterations)
    task = FitTask(mechanism, measured, parameters, options, optimiser)
    notices = [] if no_check else _look_first(task, quiet)
    details = Details(loaded.text, optimiser, kind=intervals.value, derived=wanted, warnings=notices)
    summary = fit_and_save(task, details, Output(out, quiet, json, report=not no_report))
    raise typer.Exit(0 if summary["converged"] else 1)


def _look_first(task: FitTask, quiet: bool) -> list[str]:
    """What `shadowfit check` finds wrong, said before the fit; raises for what no fit can mend.

    Of fits with other equations than the default ones only the samples are looked at.
    """
    from shadowfit.cli import console
    from shadowfit.errors import RecordingError
    from shadowfit.estimation import Options
    from shadowfit.evaluation.precheck import look, surely_wrong

    for notice in surely_wrong(task.mechanism, task.recordings):
        raise RecordingError(f"{notice.sentences()} Look with `shadowfit check`, or fit it all the same: --no-check")
    plain, given = Options(), task.options
    if (given.unknowns, given.discretization) != (plain.unknowns, plain.discretization):
        return []
    with console.doing("looking at the recordings first", quiet):
        found = look(task.mechanism, task.recordings, dict(task.free), given).notices
    wrong = [notice for notice in found if notice.severity == "red"]
    for notice in () if quiet else wrong:
        console.messages().print(f"check: {notice.sentences()}", soft_wrap=True)
    return [f"before the fit: {notice.sentences().rstrip('.')}" for notice in wrong]


def _given(preset: Any, **fields: Any) -> Any:
    """The settings with those that the user gave; words of an option are their values."""
    given = {name: getattr(value, "value", value) for name, value in fields.items() if value is not None}
    return dataclasses.replace(preset, **given)


@record(frozen=True)
class FitTask:
    """What a command fits to what."""

    mechanism: Mechanism
    recordings: list[Recording]
    free: Mapping[str, Free]
    options: Options
    optimiser: LevenbergMarquardt


@record(frozen=True)
class Output:
    """Where a command writes, and how much it says."""

    folder: Path
    quiet: bool
    json: bool
    """Print the result as JSON, and nothing else."""
    report: bool = True
    """Whether to write the result's page."""


def fit_and_save(task: FitTask, details: Details, output: Output) -> dict[str, Any]:
    """Fit with progress shown, print the answer, and write the result with its report.

    Returns the contents of ``result.json``, which is all that is printed with ``json``.
    """
    from shadowfit import runtime
    from shadowfit.cli import console, saving
    from shadowfit.cli.interruption import uninterrupted
    from shadowfit.cli.verdict import print_verdict
    from shadowfit.evaluation.destination import check_destination, expected_size

    recordings, out = task.recordings, output.folder
    check_destination(out, expected_size(task.mechanism, recordings, [len(recording) for recording in recordings]))
    before = runtime.compile_seconds()
    # Around the fit, which has handlers of its own: between its end and the writing no signal finds others.
    with uninterrupted():
        estimate, spoken = _fitted(task, output)
        compiling = runtime.compile_seconds() - before
        details = dataclasses.replace(details, compile_seconds=compiling, warnings=[*details.warnings, *spoken])
        if not output.json:
            # At once: writing the result, with its rollout, takes longer than the fit.
            _print_answer(estimate, details)
        with console.doing("simulating the calibrated model and writing the result", output.quiet) as status:

            def conclude(summary: Mapping[str, Any]) -> None:
                if status is not None:
                    status.update("drawing the report")
                if not output.json:
                    print_verdict(summary)

            summary = saving.save(estimate, out, details, conclude, page=output.report)
    if output.json:
        typer.echo(notation.dumps(summary, ensure_ascii=False, allow_nan=False))
    else:
        typer.echo(f"Result in {out}" + (f"; open {out / 'report.html'} in a browser" if output.report else ""))
    return summary


def _fitted(task: FitTask, output: Output) -> tuple[Estimate, list[str]]:
    """The fit, which signals end at an iteration, and what was warned of."""
    from shadowfit import estimation
    from shadowfit.cli.interruption import interruptible
    from shadowfit.cli.progress import fit_progress
    from shadowfit.cli.recordings import spoken_warnings
    from shadowfit.evaluation.checkpoint import Checkpoint

    with (
        interruptible() as interruption,
        spoken_warnings(task.recordings, output.quiet) as spoken,
        fit_progress(output.quiet) as shown,
    ):
        progress = interruption.progress([Checkpoint(output.folder), *([] if shown is None else [shown])])
        estimate = estimation.fit(
            task.mechanism,
            task.recordings,
            task.free,
            options=task.options,
            optimiser=task.optimiser,
            progress=progress,
        )
    return estimate, spoken


def _print_answer(estimate: Estimate, details: Details) -> None:
    from shadowfit.cli import console
    from shadowfit.cli.verdict import base_table, derived_table, parameter_table
    from shadowfit.evaluation.derived import derived as derived_quantities
    from shadowfit.evaluation.summary import base_parameters, parameters, worth_a_table

    if estimate.parameters:
        console.output().print(parameter_table(parameters(estimate, details.kind, details.truth)))
        base = base_parameters(estimate)
        if base is not None and worth_a_table(base):
            console.output().print(base_table(base))
    if details.derived:
        console.output().print(derived_table(derived_quantities(estimate, details.derived, details.kind)))
