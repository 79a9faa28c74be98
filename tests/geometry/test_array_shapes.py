"""Shapes are checked in tests: a wrong one is an error, not a result."""

import jaxtyping
import numpy as np
import pytest

from shadowfit.geometry import rotations


def test_an_array_of_another_shape_than_annotated_is_refused():
    with pytest.raises(jaxtyping.TypeCheckError):
        rotations.matrix(np.zeros(3))
