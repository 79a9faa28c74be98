"""``shadowfit convert``: a robot file, or a small file beside one, as a full model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shadowfit.cli.options import Model, Settings, Weld, apply_settings


def convert(
    model: Model,
    out: Annotated[Path, typer.Argument(metavar="OUT.toml", help="The model file to write.")],
    settings: Settings = None,
    weld: Weld = None,
) -> None:
    """Write a robot file (or any model) as a model file that says the same."""
    from shadowfit import runtime
    from shadowfit.cli.options import OptionError

    if out.suffix.lower() != ".toml":
        raise OptionError(f"{out}: a model file's name ends in .toml; `shadowfit export` writes robot files")
    runtime.start_jax()
    from shadowfit.cli.loading import load
    from shadowfit.models import write_model

    loaded = load(model, weld)
    mechanism = apply_settings(loaded.mechanism, settings or ())
    write_model(mechanism, out, comment=f"From {Path(model).name}.", description=loaded.description, start=loaded.start)
    bodies, joints = len(mechanism.bodies), len(mechanism.joints)
    typer.echo(f"{out}: {bodies} bod{'y' if bodies == 1 else 'ies'}, {joints} joint{'' if joints == 1 else 's'}")
