"""The mean direction of dry friction over a step."""

import jax.numpy as jnp
import numpy as np
import pytest

from shadowfit.dynamics import sliding

SPEEDS = (-2.0, -0.3, -1e-3, 0.0, 1e-4, 0.05, 1.0)


def direction(speed, width):
    length = np.hypot(speed, 1.5 * width)
    return speed / length * (1.0 + 0.5 * (1.5 * width / length) ** 2)


def test_friction_grows_with_the_slope_of_its_width_and_is_soon_whole():
    """Beside v/√(v² + w²), which has the same slope and lacks half a per cent at ten times its width."""
    width = 0.02
    near, far = (float(sliding.mean_direction(v, v, jnp.asarray(width))) for v in (1e-4 * width, 10.0 * width))
    assert near == pytest.approx(1e-4, rel=1e-6)
    assert 0.0 < 1.0 - far < 2e-4


@pytest.mark.parametrize("before", SPEEDS)
@pytest.mark.parametrize("after", SPEEDS)
def test_it_is_the_mean_over_an_even_change_of_speed(before, after):
    width = 0.02
    middle = np.linspace(before, after, 200_001)
    middle = 0.5 * (middle[1:] + middle[:-1])
    expected = np.mean(direction(middle, width))
    found = sliding.mean_direction(jnp.asarray(before), jnp.asarray(after), jnp.asarray(width))
    assert float(found) == pytest.approx(expected, abs=1e-7)


def test_a_reversal_counts_for_the_times_before_and_after_it():
    """From 1 to −3 rad/s: a quarter of the step forwards, three quarters back."""
    assert float(sliding.mean_direction(1.0, -3.0, jnp.asarray(1e-9))) == pytest.approx(0.25 - 0.75, abs=1e-8)


def test_slope_is_the_derivative_and_never_negative():
    rng = np.random.default_rng(0)
    before, after = rng.standard_normal((2, 500)) * 10.0 ** rng.uniform(-4, 1, (2, 500))
    width = 10.0 ** rng.uniform(-4, 0, 500)
    slope = np.asarray(sliding.slope(before, after, width))
    step = 1e-6 * np.maximum(np.abs(after), width)
    moved = [np.asarray(sliding.mean_direction(before, after + sign * step, width)) for sign in (1, -1)]
    scale = 1.0 / np.maximum(np.abs(after), width)
    np.testing.assert_allclose(slope / scale, (moved[0] - moved[1]) / (2.0 * step) / scale, atol=1e-7)
    assert np.all(slope >= 0.0)


def test_width_is_that_of_half_a_step_or_more():
    """``w = max(stick_time, h/2) d L/h``: an axis of mobility 20 with friction of 0.1 N m slows down by 2 rad/s²."""
    timestep, stopped = jnp.asarray(0.01), jnp.asarray(20.0 * 0.01 * 0.1)
    assert float(sliding.stick_width(jnp.asarray(0.03), stopped, timestep)) == pytest.approx(0.03 * 2.0)
    assert float(sliding.stick_width(jnp.asarray(1e-6), stopped, timestep)) == pytest.approx(0.005 * 2.0)


def test_a_stuck_axis_comes_to_rest_without_changing_its_direction():
    """Backwards and forwards in the width, friction never throws the axis back: s' = s − D A has the sign of s."""
    taken = 0.01  # D, of which the least width is half
    for speed in np.linspace(1e-4, 3.0 * taken, 50):
        after = np.linspace(-taken, speed, 20_001)
        balance = after - speed + taken * np.asarray(sliding.mean_direction(speed, after, 0.5 * taken))
        reached = after[np.argmin(np.abs(balance))]
        assert -1e-6 <= reached < speed


def test_at_rest_without_friction():
    zero = jnp.zeros(())
    width = sliding.stick_width(zero, zero, jnp.asarray(0.01))
    assert float(sliding.mean_direction(zero, zero, width)) == 0.0
