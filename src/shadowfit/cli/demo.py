"""``shadowfit demo``: the Furuta pendulum released almost upright."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

DURATION, TIMESTEP = 10.0, 0.005  # s


def demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the results.")] = Path("demo"),
) -> None:
    """Simulate the Furuta pendulum, released almost upright, and plot it."""
    from shadowfit.cli import console, runtime

    runtime.start_jax()
    from shadowfit.cli.readings import columns, write_csv
    from shadowfit.dynamics import simulate
    from shadowfit.models import load_model

    loaded = load_model("furuta")
    state = loaded.start.state(loaded.mechanism)
    with console.messages().status("simulating"):
        run = simulate(loaded.mechanism, state, timestep=TIMESTEP, steps=round(DURATION / TIMESTEP))
    readings = columns(loaded.mechanism, run, {})
    write_csv(out / "furuta_release.csv", readings)
    _plot(out / "furuta_release.png", readings)
    table = console.table("Furuta pendulum, released almost upright", "sensor", "start", "smallest", "largest", "end")
    for heading, values in list(readings.items())[1:]:
        table.add_row(heading, *(f"{value:.3f}" for value in (values[0], values.min(), values.max(), values[-1])))
    console.output().print(table)
    typer.echo(f"Written to {out}: furuta_release.csv, furuta_release.png")


def _plot(path: Path, readings: dict[str, Any]) -> None:
    import matplotlib.figure

    time, *angles = readings.items()
    figure = matplotlib.figure.Figure(figsize=(8, 4.5), layout="constrained")
    for axes, (heading, values) in zip(figure.subplots(len(angles), sharex=True), angles, strict=True):
        axes.plot(time[1], values, color="tab:blue")
        axes.set_ylabel(heading)
        axes.grid(alpha=0.3)
    axes.set_xlabel(time[0])
    figure.suptitle("Furuta pendulum, released almost upright")
    figure.savefig(path, dpi=150)
