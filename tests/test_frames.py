"""Columns as frames, and optional packages that are not installed."""

import numpy as np
import pytest

from shadowfit.frames import MissingPackageError, optional, pandas_frame, polars_frame

COLUMNS = {"a": np.array([1.0, 2.0]), "b": ["x", "y"]}


def test_frames_have_the_columns():
    assert polars_frame(COLUMNS)["a"].to_list() == pandas_frame(COLUMNS)["a"].tolist() == [1.0, 2.0]


def test_a_package_that_is_not_installed_is_named_with_its_command():
    with pytest.raises(MissingPackageError, match=r'stagecraft; install it with pip install "shadowfit\[usd\]"'):
        optional("stagecraft.lights", "usd")
