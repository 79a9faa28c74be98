"""Bodies that can only turn about one axis: of their inertia the motion sees nothing else."""

import numpy as np

from shadowfit.mechanism import Body, Mechanism, ball, hinge, slider
from shadowfit.mechanism.turning import turning_axes
from shadowfit.models import builtin

BODY = Body(1.0, (1.0, 1.0, 1.0))


def axes(mechanism):
    return {
        name: None if axis is None else np.round(np.abs(axis), 12) for name, axis in turning_axes(mechanism).items()
    }


def test_built_in_models():
    np.testing.assert_array_equal(axes(builtin.pendulum())["pendulum"], [0.0, 1.0, 0.0])
    furuta = axes(builtin.furuta())
    np.testing.assert_array_equal(furuta["arm"], [0.0, 0.0, 1.0])
    assert furuta["pendulum"] is None
    cartpole = axes(builtin.cartpole())
    np.testing.assert_array_equal(cartpole["cart"], [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(cartpole["pole"], [0.0, 1.0, 0.0])
    # A loop, and joints that are listed before what they hang on.
    for name, axis in axes(builtin.fourbar()).items():
        np.testing.assert_array_equal(axis, [0.0, 1.0, 0.0], err_msg=name)
    for axis in axes(builtin.chain(3)).values():
        np.testing.assert_array_equal(axis, [0.0, 1.0, 0.0])
    assert axes(builtin.incline()) == {"box": None}


def test_axes_are_those_of_the_body():
    """A body that is mounted turned has the world's axis in its own frame, behind a slider too; a ball ends it."""
    turned = (np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0)
    joints = {
        "far": slider("first", "second", axis=(1.0, 0.0, 0.0), zero_rotation=(np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5))),
        "near": hinge("world", "first", axis=(0.0, 0.0, 1.0), zero_rotation=turned),
        "end": ball("second", "third"),
    }
    found = axes(Mechanism(dict.fromkeys(("first", "second", "third"), BODY), joints))
    np.testing.assert_allclose(found["first"], [0.0, 1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(found["second"], [1.0, 0.0, 0.0], atol=1e-12)
    assert found["third"] is None
