"""``shadowfit demo``: the main job, on a machine whose parameters are known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shadowfit.cli.options import Json, Quiet


def demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the results.")] = Path("demo"),
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit seven parameters of a Furuta pendulum to its swing-up, recorded from a twin with known parameters."""
    from shadowfit.cli.loading import start

    start(quiet)
    from shadowfit.cli.fit import FitTask, Output, fit_and_save
    from shadowfit.estimation import Free, LevenbergMarquardt, Options
    from shadowfit.evaluation.columns import write_recording
    from shadowfit.evaluation.summary import Details
    from shadowfit.models import load_model
    from shadowfit.models.twins import demonstration

    twin = demonstration()
    loaded = load_model(twin.model)
    recording = twin.recording
    write_recording(out / "swing_up.csv", recording)
    mechanism = loaded.mechanism.set(twin.settings)
    optimiser = LevenbergMarquardt()
    task = FitTask(mechanism, [recording], dict.fromkeys(twin.free, Free()), Options(), optimiser)
    summary = fit_and_save(task, Details(loaded.text, optimiser, truth=twin.truth), Output(out, quiet, json))
    raise typer.Exit(0 if summary["converged"] else 1)
