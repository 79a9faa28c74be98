"""Functions of angles by code of their own: as exact as the C library, and the same in vectors and alone."""

import jax.numpy as jnp
import numpy as np
import pytest

from shadowfit.kernels import kernel

KINDS = {
    "small": 0.3,
    "a few turns": 20.0,
    "many turns": 3e4,
    "beyond what is reduced here": 1e8,
}


def angles(scale):
    random = np.random.default_rng(0).normal(size=399) * scale
    # Next to multiples of π/2, where one of the functions vanishes.
    near = np.round(random[:100] / (np.pi / 2)) * (np.pi / 2)
    return np.concatenate([random, near, [0.0, -0.0]])


def functions(settings, constants, varying):
    del settings, constants
    return [jnp.sin(varying[0]), jnp.cos(varying[0]), jnp.tan(varying[0])]


def direction(settings, constants, varying):
    del settings, constants
    return [jnp.arctan2(varying[0], varying[1])]


def run(function, *columns):
    compiled = kernel(function, [], [], [column[0] for column in columns], key=None)
    return compiled([], [], list(columns))


def units_off(found, expected):
    """Largest difference, in units of the last place of what is expected."""
    return np.max(np.abs(found - expected) / np.spacing(np.abs(expected)))


@pytest.mark.parametrize("scale", KINDS.values(), ids=KINDS)
def test_sine_cosine_and_tangent_are_exact_to_the_last_places(scale):
    x = angles(scale)
    sine, cosine, tangent = run(functions, x)
    # NumPy's are within one unit of the truth, as ours of one and two.
    assert units_off(sine, np.sin(x)) <= 2.0
    assert units_off(cosine, np.cos(x)) <= 2.0
    assert units_off(tangent, np.tan(x)) <= 3.0


def test_directions_are_exact_to_the_last_places_in_every_quarter():
    rng = np.random.default_rng(1)
    sizes = 10.0 ** rng.uniform(-12.0, 12.0, size=(2, 400))
    y, x = rng.choice([-1.0, 1.0], size=(2, 400)) * sizes
    (found,) = run(direction, y, x)
    assert units_off(found, np.arctan2(y, x)) <= 3.0


def test_directions_of_all_kinds_of_points_are_those_of_the_c_library():
    some = [0.0, -0.0, 1.0, -1.0, 5e-324, -1e300, 1e300, np.inf, -np.inf, np.nan]
    y, x = (grid.ravel() for grid in np.meshgrid(some, some))
    (found,) = run(direction, y, x)
    np.testing.assert_allclose(found, np.arctan2(y, x), rtol=1e-15)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(np.arctan2(y, x)))


def test_digits_do_not_depend_on_what_the_other_lanes_hold():
    """A lane that needs a reduction, or the C library, leaves those beside it as they are."""
    x = np.linspace(-0.7, 0.7, 40)
    alone = run(functions, x)
    for other in (2.0, 1e8, np.inf):
        mixed = np.full(4 * len(x), other)
        mixed[::4] = x
        for one, beside in zip(alone, run(functions, mixed), strict=True):
            np.testing.assert_array_equal(beside[::4], one)


def test_directions_do_not_depend_on_what_the_other_lanes_hold():
    y, x = 0.3 * np.sin(np.arange(40.0)), np.ones(40)
    for other in ([1.0, -1.0], [0.0, 0.0]):
        mixed = np.repeat(np.array(other)[:, None], 160, axis=1)
        mixed[:, ::4] = y, x
        np.testing.assert_array_equal(run(direction, *mixed)[0][::4], run(direction, y, x)[0])
