"""Columns as frames of other libraries, which are loaded when one is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from shadowfit.errors import ShadowfitError

Columns = Mapping[str, Sequence[Any] | np.ndarray]


class MissingPackageError(ShadowfitError):
    """An optional package that is not installed."""


def optional(module: str, extra: str) -> ModuleType:
    """A module of an optional package.

    Raises:
        MissingPackageError: it is not installed; the message has the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingPackageError(
            f'this needs the package {package}; install it with pip install "shadowfit[{extra}]"'
        ) from error


def polars_frame(columns: Columns) -> Any:
    """A Polars frame."""
    return importlib.import_module("polars").DataFrame(dict(columns))


def pandas_frame(columns: Columns) -> Any:
    """A pandas frame (extra ``pandas``)."""
    return optional("pandas", "pandas").DataFrame(dict(columns))


def inference_data(draws: Columns) -> Any:
    """Draws as the posterior of an InferenceData of ArviZ, in one chain (extra ``arviz``)."""
    return optional("arviz", "arviz").from_dict({name: np.asarray(values)[None] for name, values in draws.items()})
