"""``shadowfit export``: calibrated numbers into a copy of the user's own file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shadowfit.cli.options import Force

if TYPE_CHECKING:
    from collections.abc import Mapping


def export(
    result: Annotated[Path, typer.Argument(metavar="RESULT_DIR", help="Folder that `fit --out` wrote.")],
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The robot file (.urdf, .xml) or model file (.toml) to copy.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="The copy; default: FILE's name with .calibrated, beside FILE."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Write parameters that were not identified, too.")] = False,
    force: Force = False,
) -> None:
    """Write the calibrated values of a result into a copy of a robot file or model file.

    Nothing else in the file changes. Parameters that were not identified stay as they were, and are listed; those of
    which combinations are known are written together.
    """
    from shadowfit import runtime

    runtime.start_jax()
    from shadowfit.evaluation import load_result
    from shadowfit.evaluation.calibrated import calibrated
    from shadowfit.evaluation.store import blamed
    from shadowfit.models import load_model
    from shadowfit.models.atomic import write_bytes
    from shadowfit.models.robots.export import export_robot, export_tables
    from shadowfit.models.robots.read import is_robot_file

    target = out or file.with_name(f"{file.stem}.calibrated{file.suffix}")
    before = load_model(file).mechanism
    saved = load_result(result, force=force)
    of_robot = is_robot_file(file)
    with blamed(saved):
        after = saved.mechanism()
        changes = calibrated(saved, before, everything=everything, own_numbers=of_robot)
        made = (export_robot if of_robot else export_tables)(file, changes.values)
    write_bytes(target, made.content)
    typer.echo(f"{target}: {len(made.written)} numbers written, read again and compared")
    for name, value in made.written.items():
        unit = after.unit(name)
        typer.echo(f"  {name}: {_shown(before.get(name))} -> {_shown(value)}{'' if unit in ('1', '') else f' {unit}'}")
    if any(".compliance." in name and name not in saved.summary["parameters"] for name in made.written):
        typer.echo("compliances are so small that simulations follow the fit, which took the joints as rigid")
    _tell("written together, for only combinations of them are known", dict.fromkeys(changes.together))
    _tell("not identified, left as they were (--all writes them)", dict.fromkeys(changes.unidentified))
    _tell("one value for each recording, left as they were", dict.fromkeys(changes.separate))
    for name, why in made.impossible.items():
        typer.echo(f"{name} is left as it was: {why}")
    _tell(f"no place in this {file.suffix} file; a model file (.toml) can hold them", made.homeless)


def _tell(why: str, names: Mapping[str, Any]) -> None:
    if names:
        typer.echo(f"{why}:")
        for name, value in names.items():
            typer.echo(f"  {name}" if value is None else f"  {name} = {_shown(value)}")


def _shown(value: Any) -> str:
    import numpy as np

    return " ".join(f"{part:.6g}" for part in np.atleast_1d(value))
