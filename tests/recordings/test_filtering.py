"""Low-pass, resampling and held inputs: against SciPy and against closed forms."""

import itertools

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.signal
from hypothesis import given
from hypothesis import strategies as st

from shadowfit.errors import RecordingError
from shadowfit.recordings import held_input_average, held_input_hat, lowpass, resample, unwrap

RATE = 250.0
TIME = np.arange(0, 2001) / RATE


def jittered(seed, spread=0.4):
    time = TIME + spread / RATE * np.random.default_rng(seed).uniform(-0.5, 0.5, TIME.size)
    return np.sort(time)


# Low-pass


def test_zero_phase_the_response_to_an_impulse_is_symmetric():
    impulse = np.zeros(2001)
    impulse[1000] = 1.0
    response = lowpass(TIME, impulse)
    np.testing.assert_allclose(response, response[::-1], atol=1e-15)
    assert response.argmax() == 1000
    assert response.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("cutoff", [3.0, 10.0, 60.0])
def test_equals_the_recursive_filter_run_forwards_and_backwards(order, cutoff):
    values = np.cumsum(np.random.default_rng(order).normal(size=TIME.size))
    sections = scipy.signal.butter(order, cutoff, fs=RATE, output="sos")
    expected = scipy.signal.sosfiltfilt(sections, values, padlen=TIME.size - 1)
    np.testing.assert_allclose(lowpass(TIME, values, cutoff, order), expected, atol=1e-9 * np.ptp(values))


@pytest.mark.parametrize("time", [TIME, jittered(0)], ids=["even", "jittered"])
def test_straight_lines_pass_unchanged(time):
    line = 3.0 - 2.0 * time
    np.testing.assert_allclose(lowpass(time, line), line, atol=1e-12)


@pytest.mark.parametrize("time", [TIME, jittered(1)], ids=["even", "jittered"])
@pytest.mark.parametrize("frequency", [0.3, 1.0])
def test_slow_sines_pass_to_one_in_a_thousand(time, frequency):
    sine = np.sin(2 * np.pi * frequency * time + 0.4)
    error = np.abs(lowpass(time, sine) - sine)
    inner = (time > 0.2) & (time < time[-1] - 0.2)  # two periods of the cut-off away from the ends
    assert error[inner].max() < 1e-3
    # Reflection straightens the ends, so that there the curvature counts.
    assert error.max() < 0.5 * (2 * np.pi * frequency) ** 2 / (2 * np.pi * 10.0) ** 2


def test_gain_is_a_half_at_the_cutoff_and_small_above():
    inner = slice(500, 1500)
    for frequency, gain in [(10.0, 0.5), (20.0, None), (100.0, None)]:
        sine = np.sin(2 * np.pi * frequency * TIME)
        warped = np.tan(np.pi * frequency / RATE) / np.tan(np.pi * 10.0 / RATE)
        expected = 1.0 / (1.0 + warped**4) if gain is None else gain
        np.testing.assert_allclose(lowpass(TIME, sine)[inner], expected * sine[inner], atol=1e-9)


def test_missing_samples_are_filled_and_the_ends_held():
    sine = np.sin(2 * np.pi * TIME)
    damaged = sine.copy()
    damaged[np.random.default_rng(3).choice(TIME.size, 200, replace=False)] = np.nan
    damaged[:50] = np.nan
    smooth = lowpass(TIME, damaged)
    assert np.isfinite(smooth).all()
    first = np.flatnonzero(np.isfinite(damaged))[0]
    np.testing.assert_allclose(smooth[:first], damaged[first], atol=1e-12)
    inner = slice(first + 50, -50)
    assert np.abs(smooth - sine)[inner].max() < 1e-3


def test_above_nyquist_the_signal_is_left_as_it_is():
    values = np.random.default_rng(4).normal(size=TIME.size)
    for cutoff in (RATE / 2, 1e4, np.inf):
        np.testing.assert_array_equal(lowpass(TIME, values, cutoff), values)
    assert np.abs(lowpass(TIME, values, 0.49 * RATE) - values).max() > 0.0


def test_a_cutoff_far_below_the_length_of_the_recording_leaves_a_line_between_the_ends():
    values = np.random.default_rng(5).normal(size=TIME.size)
    line = np.linspace(values[0], values[-1], TIME.size)
    np.testing.assert_allclose(lowpass(TIME, values, 1e-6), line, atol=1e-9)


def test_angles_that_wrap_become_continuous_only_where_asked():
    turning = 4.0 * TIME + 0.5 * np.sin(3.0 * TIME)
    wrapped = np.angle(np.exp(1j * turning))
    np.testing.assert_allclose(lowpass(TIME, wrapped, wraps=True), lowpass(TIME, turning), atol=1e-9)
    assert np.abs(lowpass(TIME, wrapped) - turning).max() > 1.0
    holes = np.where(np.arange(TIME.size) % 9 == 0, np.nan, wrapped)
    np.testing.assert_allclose(unwrap(holes)[np.isfinite(holes)], turning[np.isfinite(holes)], atol=1e-9)
    assert np.isnan(unwrap(holes)[::9]).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((TIME, TIME, 0.0), "cut-off above 0 Hz"),
        ((TIME, TIME, np.nan), "cut-off above 0 Hz"),
        ((TIME, TIME, 10.0, 0), "order of 1 or more"),
        ((TIME, TIME[:-1]), "one value per time"),
        ((TIME, np.full_like(TIME, np.nan)), "every sample of the signal is missing"),
        (([0.0, 1e-6, 2e-6, 3.0], [1.0, 2.0, 3.0, 4.0]), "split the recording at its gaps"),
    ],
)
def test_impossible_filters_are_refused(arguments, message):
    with pytest.raises(RecordingError, match=message):
        lowpass(*arguments)


def test_very_short_signals():
    np.testing.assert_allclose(lowpass([0.0, 0.1, 0.2], [np.nan, 2.0, np.nan]), 2.0)
    np.testing.assert_allclose(lowpass([0.0, 0.01], [1.0, 3.0]), [1.0, 3.0])


# Resampling


@given(st.integers(0, 2**32 - 1), st.integers(4, 40))
def test_the_spline_reproduces_cubics(seed, samples):
    rng = np.random.default_rng(seed)
    time = np.cumsum(rng.uniform(0.1, 1.0, samples))
    cubic = np.polynomial.Polynomial(rng.normal(size=4), domain=[time[0], time[-1]], window=[-1.0, 1.0])
    new = rng.uniform(time[0], time[-1], 100)
    np.testing.assert_allclose(resample(time, cubic(time), new), cubic(new), atol=1e-9)


def test_the_spline_equals_that_of_scipy_with_the_same_end_slopes():
    rng = np.random.default_rng(6)
    time = np.cumsum(rng.uniform(0.1, 1.0, 60))
    values = rng.normal(size=60)
    slopes = [
        (k, float(scipy.interpolate.BarycentricInterpolator(time[part], values[part]).derivative(time[end])))
        for k, part, end in [(1, slice(0, 4), 0), (1, slice(-4, None), -1)]
    ]
    expected = scipy.interpolate.CubicSpline(time, values, bc_type=tuple(slopes))
    new = np.linspace(time[0], time[-1], 500)
    np.testing.assert_allclose(resample(time, values, new), expected(new), atol=1e-9)


def test_the_spline_is_of_fourth_order():
    errors = []
    for rate in (20.0, 40.0, 80.0):
        time = np.arange(0.0, 3.0, 1.0 / rate)
        new = np.linspace(0.0, time[-1], 997)
        errors.append(np.abs(resample(time, np.sin(5.0 * time), new) - np.sin(5.0 * new)).max())
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert (orders > 3.7).all(), orders


def test_pchip_equals_that_of_scipy_inside():
    rng = np.random.default_rng(7)
    time = np.cumsum(rng.uniform(0.1, 1.0, 60))
    values = np.cumsum(rng.normal(size=60))
    new = np.linspace(time[1], time[-2], 500)
    expected = scipy.interpolate.PchipInterpolator(time, values)(new)
    np.testing.assert_allclose(resample(time, values, new, kind="pchip"), expected, atol=1e-12)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30), st.integers(0, 2**32 - 1))
def test_pchip_never_leaves_the_range_of_its_neighbours(values, seed):
    rng = np.random.default_rng(seed)
    time = np.cumsum(rng.uniform(0.01, 1.0, len(values)))
    new = np.linspace(time[0], time[-1], 200)
    k = np.clip(np.searchsorted(time, new, side="right") - 1, 0, len(time) - 2)
    values = np.array(values)
    result = resample(time, values, new, kind="pchip")
    assert (result >= np.minimum(values[k], values[k + 1]) - 1e-9).all()
    assert (result <= np.maximum(values[k], values[k + 1]) + 1e-9).all()


@pytest.mark.parametrize("kind", ["cubic", "pchip"])
def test_interpolation_meets_the_samples_and_holds_beyond_them(kind):
    rng = np.random.default_rng(8)
    time, values = np.cumsum(rng.uniform(0.1, 1.0, 20)), rng.normal(size=20)
    values[3] = np.nan
    known = np.isfinite(values)
    np.testing.assert_allclose(resample(time, values, time[known], kind=kind), values[known], atol=1e-12)
    beyond = resample(time, values, [-100.0, time[-1] + 100.0], kind=kind)
    np.testing.assert_array_equal(beyond, resample(time, values, time[[0, -1]], kind=kind))


def test_resampling_one_or_two_samples_and_unknown_kinds():
    np.testing.assert_array_equal(resample([0.0, 1.0], [np.nan, 5.0], [-1.0, 0.5, 2.0]), [5.0, 5.0, 5.0])
    np.testing.assert_allclose(resample([0.0, 1.0], [1.0, 5.0], [0.25, 0.5]), [2.0, 3.0])
    with pytest.raises(RecordingError, match="unknown kind of interpolation 'quintic'; there are: cubic, pchip"):
        resample([0.0, 1.0], [1.0, 5.0], [0.25], kind="quintic")


def test_resampling_angles_that_wrap():
    turning = 4.0 * TIME
    wrapped = np.angle(np.exp(1j * turning))
    new = np.linspace(0.0, TIME[-1], 333)
    np.testing.assert_allclose(resample(TIME, wrapped, new, wraps=True), 4.0 * new, atol=1e-9)


# Held inputs


def held(time, values, hold, t):
    """The held signal at one time, straight from its definition."""
    if hold == "linear":
        return np.interp(t, time, values)
    return values[max(np.searchsorted(time, t, side="right") - 1, 0)]


@pytest.mark.parametrize("hold", ["zero", "linear"])
@given(seed=st.integers(0, 2**32 - 1), delay=st.floats(-0.3, 0.7))
def test_averages_equal_quadrature(hold, seed, delay):
    rng = np.random.default_rng(seed)
    time, values = np.cumsum(rng.uniform(0.05, 0.2, 9)), rng.normal(size=9)
    start = rng.uniform(-0.5, 1.5, 6)
    stop = start + rng.uniform(0.01, 1.0, 6)
    result = held_input_average(time, values, start, stop, hold, delay)
    for a, b, mean in zip(start, stop, result, strict=True):
        inside = [t + delay for t in time if a < t + delay < b]
        pieces = zip([a, *inside], [*inside, b], strict=True)
        integral = sum(
            scipy.integrate.fixed_quad(np.vectorize(lambda t: held(time, values, hold, t - delay)), left, right, n=2)[0]
            for left, right in pieces
        )
        assert mean == pytest.approx(integral / (b - a), abs=1e-12)


@pytest.mark.parametrize("hold", ["zero", "linear"])
def test_averages_of_adjoining_intervals_add_up(hold):
    values = np.random.default_rng(9).normal(size=TIME.size)
    edges = np.linspace(-0.1, TIME[-1] + 0.1, 778)
    parts = held_input_average(TIME, values, edges[:-1], edges[1:], hold, delay=0.0123)
    whole = held_input_average(TIME, values, edges[:1], edges[-1:], hold, delay=0.0123)
    assert np.sum(parts * np.diff(edges)) == pytest.approx(whole[0] * (edges[-1] - edges[0]), abs=1e-12)


@pytest.mark.parametrize("hold", ["zero", "linear"])
@given(seed=st.integers(0, 2**32 - 1), delay=st.floats(-0.3, 0.7))
def test_under_a_hat_a_motion_sees_its_acceleration(hold, seed, delay):
    """``q(t + h) − 2 q(t) + q(t − h) = h² û`` where the held signal is the acceleration of q."""
    rng = np.random.default_rng(seed)
    time, values = np.cumsum(rng.uniform(0.05, 0.2, 9)), 3.0 + rng.normal(size=9)
    centre, h = rng.uniform(-0.5, 1.5, 4), 0.17
    result = held_input_hat(time, values, centre, h, hold, delay)
    for middle, mean in zip(centre, result, strict=True):
        edges = sorted([middle - h, middle, middle + h, *(t + delay for t in time if abs(t + delay - middle) < h)])

        def weighed(t, middle=middle):
            return (1.0 - abs(t - middle) / h) * held(time, values, hold, t - delay) / h

        pieces = itertools.pairwise(edges)
        parts = [scipy.integrate.fixed_quad(np.vectorize(weighed), left, right, n=2)[0] for left, right in pieces]
        assert mean == pytest.approx(sum(parts), abs=1e-11)


@pytest.mark.parametrize("hold", ["zero", "linear"])
def test_hats_of_finer_steps_are_parts_of_a_hat(hold):
    """So that the means of finer steps leave nothing to correct."""
    values, h, finer = np.random.default_rng(11).normal(size=TIME.size), 0.01, 4
    centre = 0.05 + h * np.arange(20)
    weights = 1.0 - np.abs(np.arange(1 - finer, finer)) / finer
    fine = [
        held_input_hat(TIME, values, centre + k * h / finer, h / finer, hold, 0.003) for k in range(1 - finer, finer)
    ]
    whole = held_input_hat(TIME, values, centre, h, hold, 0.003)
    np.testing.assert_allclose(np.transpose(fine) @ weights / finer, whole, atol=1e-9)


def test_on_the_samples_own_intervals_the_zero_hold_returns_them():
    values = np.random.default_rng(10).normal(size=TIME.size)
    result = held_input_average(TIME, values, TIME[:-1], TIME[1:])
    np.testing.assert_allclose(result, values[:-1], atol=1e-11)
    shifted = held_input_average(TIME, values, TIME[1:-1], TIME[2:], delay=1.0 / RATE)
    np.testing.assert_allclose(shifted, values[:-2], atol=1e-9)


def test_missing_inputs_are_bridged_by_the_hold():
    time, values = [0.0, 1.0, 2.0, 3.0], [1.0, np.nan, 5.0, np.nan]
    starts, stops = [0.0, 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0]
    np.testing.assert_allclose(held_input_average(time, values, starts, stops), [1.0, 1.0, 5.0, 5.0])
    np.testing.assert_allclose(held_input_average(time, values, starts, stops, "linear"), [2.0, 4.0, 5.0, 5.0])


def test_an_interval_of_length_zero_gives_the_value():
    time, values = [0.0, 1.0, 2.0], [1.0, 3.0, 7.0]
    points = [-1.0, 0.5, 1.0, 5.0]
    np.testing.assert_allclose(held_input_average(time, values, points, points), [1.0, 1.0, 3.0, 7.0])
    np.testing.assert_allclose(held_input_average(time, values, points, points, "linear"), [1.0, 2.0, 3.0, 7.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0, 1.0], [1.0, 2.0], [1.0], [0.0]), "must not end before they start"),
        (([0.0, 1.0], [1.0, 2.0], [0.0], [1.0], "cubic"), "unknown hold 'cubic'; there are: zero, linear"),
        (([0.0, 1.0], [np.nan, np.nan], [0.0], [1.0]), "every sample of the signal is missing"),
    ],
)
def test_impossible_averages_are_refused(arguments, message):
    with pytest.raises(RecordingError, match=message):
        held_input_average(*arguments)
