"""What is known of errors: a table of the model file, a file of its own or an earlier result, and options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shadowfit.cli.options import Criterion, OptionError
from shadowfit.files import read_text, read_toml

if TYPE_CHECKING:
    from shadowfit.estimation import ErrorModel


def error_model(
    of_model: Mapping[str, Any], file: Path | None, forces: Mapping[str, float], criterion: Criterion | None
) -> ErrorModel:
    """The error model of a fit; what is given later counts."""
    from shadowfit.estimation import ErrorModel

    given = dict(of_model) if file is None else _read(file)
    given["forces"] = {**given.get("forces", {}), **forces}
    if criterion is not None:
        given["criterion"] = criterion.value
    return ErrorModel.of(given, str(file or "[errors]"))


def _read(file: Path) -> dict[str, Any]:
    """The fields of a TOML file, or of the result in a folder."""
    try:
        if file.is_dir():
            return dict(json.loads(read_text(file / "result.json")).get("errors", {}))
        return read_toml(file)
    except (OSError, ValueError) as error:
        raise OptionError(f"--errors {file}: {error}") from error
