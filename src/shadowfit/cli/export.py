"""``shadowfit export``: a result into the user's own file, over a USD stage, or as Python for a framework."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping


def export(
    result: Annotated[Path, typer.Argument(metavar="RESULT_DIR", help="Folder that `fit --out` wrote.")],
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Your robot file (.urdf, .xml), model file (.toml) or USD stage; it stays."
        ),
    ],
    framework: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="FRAMEWORK",
            help="urdf, mujoco, toml, usd, mjx, mjlab, isaaclab, newton or genesis; default: a copy of FILE.",
        ),
    ] = None,
    draws: Annotated[
        int, typer.Option("--draws", help="So many possible machines in place of the calibrated one.")
    ] = 0,
    ranges: Annotated[
        str | None,
        typer.Option("--ranges", metavar="PERCENT", help="Part of possible machines within the ranges; default: 95%."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the draws.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Default: FILE's name with .calibrated, beside FILE."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Write parameters that were not identified, too.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Over files that exist; of a changed or red result.")] = False,
) -> None:
    """Write the calibrated values of a result where a simulator reads them.

    In a copy of your own file nothing else changes. Parameters that were not identified stay as they were, and are
    listed; those of which combinations are known are written together. What a format cannot hold is listed.
    """
    from shadowfit import runtime

    runtime.start_jax()
    from shadowfit.evaluation import load_result
    from shadowfit.evaluation.exporting import export as exported
    from shadowfit.evaluation.store import blamed
    from shadowfit.models import load_model
    from shadowfit.models.robots.read import SUFFIXES

    saved = load_result(result, force=force)
    part = None if ranges is None else _part(ranges)
    with blamed(saved):
        made = exported(
            saved,
            file,
            framework,
            out=out,
            draws=draws,
            ranges=part,
            seed=seed,
            everything=everything,
            replace=force,
            red=force,
        )
    first, count = made.paths[0], len(made.paths)
    where = f"{first}" if count == 1 else f"{first} … {made.paths[-1].name}"
    again = ", read again and compared" if first.suffix in (*SUFFIXES, ".toml") else ""
    typer.echo(f"{where}: {len(made.written)} numbers written{again}")
    if count == 1 and first.suffix in (*SUFFIXES, ".toml"):
        before, after = load_model(file).mechanism, saved.mechanism()
        for name, value in made.written.items():
            unit = after.unit(name)
            shown = f"{_shown(before.get(name))} -> {_shown(value)}{'' if unit in ('1', '') else f' {unit}'}"
            typer.echo(f"  {name}: {shown}")
    if any(".compliance." in name and name not in saved.summary["parameters"] for name in made.written):
        typer.echo("compliances are so small that simulations follow the fit, which took the joints as rigid")
    changes = made.changes
    _tell("written together, for only combinations of them are known", dict.fromkeys(changes.together))
    if not draws:
        _tell("not identified, left as they were (--all writes them)", dict.fromkeys(changes.unidentified))
    _tell("one value for each recording, left as they were", dict.fromkeys(changes.separate))
    for name, why in made.impossible.items():
        typer.echo(f"{name} is left as it was: {why}")
    kind = f"{framework} export" if framework else f"{file.suffix} file"
    _tell(f"no place in this {kind}; a model file (.toml) can hold them", made.homeless)


def _part(text: str) -> float:
    """0.95 of ``95%`` or ``95``."""
    from shadowfit.evaluation.exporting import ExportError

    try:
        return float(text.strip().removesuffix("%")) / 100.0
    except ValueError as error:
        raise ExportError(f"--ranges takes a percentage such as 95%, not {text!r}") from error


def _tell(why: str, names: Mapping[str, Any]) -> None:
    if names:
        typer.echo(f"{why}:")
        for name, value in names.items():
            typer.echo(f"  {name}" if value is None else f"  {name} = {_shown(value)}")


def _shown(value: Any) -> str:
    import numpy as np

    return " ".join(f"{part:.6g}" for part in np.ravel(value))
