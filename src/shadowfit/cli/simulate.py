"""``shadowfit simulate``: run a model and write what its sensors read."""

from __future__ import annotations

import datetime
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shadowfit.cli.options import (
    ChannelFile,
    Discretization,
    Joints,
    Model,
    OptionError,
    Settings,
    Topics,
    Weld,
    apply_settings,
    numbers,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

    from shadowfit.dynamics import State, Trajectory
    from shadowfit.errors import SimulationError
    from shadowfit.mechanism import Mechanism
    from shadowfit.models import Start

DURATION = 10.0  # s
INTERVAL = 0.01  # s, of the rows
# Steps by which the pace is told (XLA does not make fewer), and time that is said beforehand [s].
TRIAL, WORTH_SAYING = 256, 60.0
STEP_SIZE = 1500  # bytes of a time step for each body, sensor and input while the table is written


def simulate(
    model: Model,
    out: Annotated[Path, typer.Option("--out", metavar="CSV", help="File for the readings.")],
    recording: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Recording whose channels drive the model's inputs.")
    ] = None,
    channel: Annotated[
        list[str] | None,
        typer.Option("--channel", metavar="INPUT=COLUMN", help="Column of an input. May be repeated."),
    ] = None,
    channels: ChannelFile = None,
    topic: Topics = None,
    duration: Annotated[
        float | None, typer.Option(metavar="S", help="Seconds to simulate; default: the recording's, or 10.")
    ] = None,
    timestep: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="Time-step, and interval of the rows; default: rows at the recording's interval, or 0.01, and where "
            "nothing collides steps of an eighth of that.",
        ),
    ] = None,
    discretization: Annotated[
        Discretization, typer.Option(help="exact: second order; spook: the paper's scheme.")
    ] = Discretization.exact,
    joints: Annotated[
        Joints | None,
        typer.Option(
            help="compliant: as the model says; rigid: joint coordinates, loops, contacts and stops as well. "
            "Default: as a fit takes them, rigid where that is possible."
        ),
    ] = None,
    settings: Settings = None,
    weld: Weld = None,
    start: Annotated[
        list[str] | None,
        typer.Option(
            "--start",
            metavar="JOINT=VALUE",
            help="Start position of a joint in rad or m, or JOINT.speed=VALUE in rad/s or m/s. May be repeated.",
        ),
    ] = None,
) -> None:
    """Simulate a model and write its sensors' readings to a CSV file."""
    from shadowfit import runtime
    from shadowfit.cli import console

    runtime.start_jax()
    from shadowfit.cli.loading import load
    from shadowfit.cli.readings import columns
    from shadowfit.cli.recordings import Selection, read_recordings
    from shadowfit.dynamics.requests import taken_substeps
    from shadowfit.evaluation.columns import write_csv
    from shadowfit.evaluation.inputs import recorded_inputs

    loaded = load(model, weld)
    mechanism = apply_settings(loaded.mechanism, settings or ())
    state = _with_start(loaded.start, start or ()).state(mechanism)
    selection = Selection(channel, channels, topic)
    drive = None if recording is None else read_recordings([recording], mechanism, selection)[0]
    interval = timestep if timestep is not None else drive.sample_interval if drive else INTERVAL
    duration = duration if duration is not None else drive.duration if drive else DURATION
    finer = taken_substeps(mechanism, None if timestep is None else 1, discretization.value)
    steps = _steps(duration, interval, mechanism, finer)
    inputs = recorded_inputs(mechanism, drive, interval / finer, finer * steps)
    options = {
        "timestep": interval,
        "steps": steps,
        "substeps": finer,
        "discretization": discretization.value,
        "joints": None if joints is None else joints.value,
    }
    with console.doing(f"simulating {mechanism.name}; the code of its steps is made first, unless it is kept", False):
        expected = _expected_seconds(mechanism, state, inputs, options)
        if expected > WORTH_SAYING:
            console.messages().print(
                f"{steps:,} rows of {finer} steps each take about {datetime.timedelta(seconds=round(expected))}"
            )
        run, failure = _run(mechanism, state, inputs, options)
    held = {name: values[::finer] for name, values in inputs.items()}
    table = columns(mechanism, run, held, float(drive.time[0]) if drive else 0.0)
    write_csv(out, table)
    typer.echo(f"{out}: {len(table['time [s]'])} rows; {', '.join(table)}")
    if failure is not None:
        typer.echo(f"error: {failure}", err=True)
        raise typer.Exit(1)


def _with_start(start: Start, texts: Iterable[str]) -> Start:
    values = numbers(texts, "--start")
    speeds = {name.removesuffix(".speed"): value for name, value in values.items() if name.endswith(".speed")}
    positions = {name: value for name, value in values.items() if not name.endswith(".speed")}
    return start.with_joints(positions, speeds)


def _steps(duration: float, timestep: float, mechanism: Mechanism, finer: int) -> int:
    """Whole steps in a duration, of which there must be one at least and no more than the memory holds.

    Each of them is to be made in ``finer`` smaller ones.
    """
    from shadowfit.memory import require

    count = duration / timestep * (1.0 + 1e-9) if timestep > 0.0 else 0.0
    if not count >= 1.0:
        raise OptionError(
            f"{duration:g} s in time-steps of {timestep:g} s are less than one step; choose another --duration or "
            "--timestep"
        )
    parts = len(mechanism.bodies) + len(mechanism.sensors) + len(mechanism.inputs)
    require(
        finer * count * STEP_SIZE * parts,
        f"a simulation of {finer * count:,.0f} time steps of {timestep / finer:g} s",
        advice="; choose another --duration or --timestep",
    )
    return int(count)


def _expected_seconds(
    mechanism: Mechanism, state: State, inputs: dict[str, np.ndarray], options: dict[str, Any]
) -> float:
    """Time that the steps take once there is code for them, by the pace of the first ones."""
    rows = min(options["steps"], max(TRIAL // options["substeps"], 1))
    first = {name: values[: rows * options["substeps"]] for name, values in inputs.items()}
    seconds = []
    for _ in range(2 if rows < options["steps"] else 0):
        began = time.perf_counter()
        _run(mechanism, state, first, options | {"steps": rows})
        seconds.append(time.perf_counter() - began)
    return min(seconds, default=0.0) * options["steps"] / rows


def _run(
    mechanism: Mechanism, state: State, inputs: dict[str, np.ndarray], options: dict[str, Any]
) -> tuple[Trajectory, SimulationError | None]:
    """The simulation; if it stops early, as far as it came and why."""
    from shadowfit.dynamics import Trajectory, simulate
    from shadowfit.errors import SimulationError

    try:
        return simulate(mechanism, state, inputs, **options), None
    except SimulationError as error:
        if not isinstance(error.partial, Trajectory):
            raise
        return error.partial, error
