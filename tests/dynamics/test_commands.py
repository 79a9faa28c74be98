"""Commands of steps: means of held and connected signals, exactly; derivatives by delay, gain and samples."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamics.scenes import orders
from shadowfit.dynamics import commands, place, simulate
from shadowfit.dynamics.requests import step_commands
from shadowfit.mechanism import Body, Input, Mechanism, TorqueMotor, slider

HOLDS = ("zero", "linear")
holds = pytest.mark.parametrize("hold", HOLDS)
mean = jax.jit(commands.held_mean, static_argnames="hold")


def numeric_mean(times: np.ndarray, values: np.ndarray, start: float, stop: float, hold: str) -> float:
    """The integral piece by piece, between all samples inside the interval."""
    edges = np.unique([start, *times[(times > start) & (times < stop)], stop])
    middle = 0.5 * (edges[1:] + edges[:-1])
    if hold == "linear":
        inside = np.interp(middle, times, values)
    else:
        inside = values[np.clip(np.searchsorted(times, middle, side="right") - 1, 0, len(times) - 1)]
    return float(np.sum(inside * np.diff(edges)) / (stop - start))


@holds
@given(seed=st.integers(0, 2**32 - 1))
def test_the_mean_is_exact_for_any_samples_and_intervals(hold: str, seed: int) -> None:
    """Inside, across and far beyond the samples, at irregular times."""
    rng = np.random.default_rng(seed)
    times, values = np.cumsum(rng.uniform(0.01, 1.0, size=8)), rng.normal(size=8)
    start = rng.uniform(-2.0, 8.0, size=5)
    stop = start + rng.uniform(1e-3, 4.0, size=5)
    expected = [numeric_mean(times, values, a, b, hold) for a, b in zip(start, stop, strict=True)]
    np.testing.assert_allclose(mean(times, values, start, stop, hold=hold), expected, rtol=0, atol=1e-11)


@holds
def test_a_step_inside_one_sample_sees_its_value(hold: str) -> None:
    times, values = np.arange(5.0), np.array([1.0, 3.0, 3.0, -2.0, 0.0])
    found = mean(times, values, np.array([0.25, 1.0]), np.array([0.75, 2.0]), hold=hold)
    np.testing.assert_allclose(found, [1.0, 3.0] if hold == "zero" else [2.0, 3.0], rtol=1e-14)


@holds
def test_derivatives_by_samples_and_shift(hold: str) -> None:
    """The mean is linear in the samples; shifting the interval moves it by the difference of the end values."""
    times, values = np.arange(6.0), np.array([1.0, 3.0, 2.0, -2.0, 0.0, 1.0])
    start, stop = np.array([0.6, 1.2]), np.array([1.7, 3.9])
    by_values = jax.jit(jax.jacrev(lambda v: commands.held_mean(times, v, start, stop, hold)))(values)
    np.testing.assert_allclose(by_values @ values, mean(times, values, start, stop, hold=hold), rtol=1e-13)
    shifted = jax.jit(jax.jacfwd(lambda d: commands.held_mean(times, values, start - d, stop - d, hold)))(0.0)
    at = (lambda t: np.interp(t, times, values)) if hold == "linear" else (lambda t: values[np.floor(t).astype(int)])
    np.testing.assert_allclose(shifted, -(at(stop) - at(start)) / (stop - start), rtol=1e-12)


def test_intervals_of_the_two_steppers() -> None:
    """SPOOK's impulse at t_k acts over [t_k, t_k + h], the leapfrog's over [t_k − h/2, t_k + h/2]."""
    times = np.array([0.0, 0.1])
    np.testing.assert_allclose(commands.intervals(times, 0.1, "spook"), [[0.0, 0.1], [0.1, 0.2]])
    np.testing.assert_allclose(commands.intervals(times, 0.1, "exact"), [[-0.05, 0.05], [0.05, 0.15]])


def two_inputs() -> Mechanism:
    inputs = {"held": Input(gain=2.0, offset=0.5), "smooth": Input(hold="linear")}
    return Mechanism({"body": Body(1.0, (1, 1, 1))}, inputs=inputs)


def test_commands_have_gain_and_offset_in_the_inputs_order() -> None:
    signals = np.array([[1.0, 2.0, 4.0], [1.0, 2.0, 4.0]])
    found = step_commands(two_inputs(), signals, 0.1, "spook")
    np.testing.assert_allclose(found[:3, 0], 2.0 * signals[0] + 0.5, rtol=1e-14)
    np.testing.assert_allclose(found[:3, 1], [1.5, 3.0, 4.0], rtol=1e-14)  # constant after the last sample


def test_a_delay_shifts_the_signal_and_is_differentiable() -> None:
    """A step of one at t = 0.2 s, late by 0.03 s: the step that sees the edge has the rest, 0.07/0.1, of it."""
    signals = np.array([[0.0, 0.0, 1.0, 1.0, 1.0]] * 2)

    def late(delay: jax.Array) -> jax.Array:
        mechanism = two_inputs().write({"held.delay": delay, "held.gain": 1.0, "held.offset": 0.0})
        return step_commands(mechanism, signals, 0.1, "spook")[:, 0]

    np.testing.assert_allclose(jax.jit(late)(0.03), [0.0, 0.0, 0.7, 1.0, 1.0, 1.0], rtol=0, atol=1e-13)
    slope = jax.jit(jax.jacfwd(late))(0.03)
    np.testing.assert_allclose(slope, [0.0, 0.0, -1 / 0.1, 0.0, 0.0, 0.0], rtol=0, atol=1e-10)


def test_no_inputs_give_empty_commands() -> None:
    mechanism = Mechanism({"body": Body(1.0, (1, 1, 1))})
    assert step_commands(mechanism, np.zeros((0, 4)), 0.1, "spook").shape == (5, 0)


@pytest.mark.parametrize(("hold", "order"), [("zero", 1.0), ("linear", 2.0)])
def test_positions_under_a_sampled_force_converge_with_the_order_of_its_hold(hold, order):
    """Connected samples of a smooth force act in time; samples that are kept act half a step late."""
    mass, end = 2.0, 1.0
    cart = Mechanism(
        {"cart": Body(mass, (1.0, 1.0, 1.0))},
        {"rail": slider("world", "cart", axis=(1.0, 0.0, 0.0), laws={"push": TorqueMotor(input="u")})},
        inputs={"u": Input(hold=hold)},
    )
    # m x'' = sin(3 t + 1/2), from rest.
    exact = (-np.sin(3.0 * end + 0.5) / 9.0 + np.cos(0.5) * end / 3.0 + np.sin(0.5) / 9.0) / mass
    errors = []
    for steps in (50, 100, 200):
        force = np.sin(3.0 * end / steps * np.arange(steps) + 0.5)
        run = simulate(cart, place(cart), {"u": force}, timestep=end / steps, steps=steps, joints="rigid", substeps=1)
        errors.append(abs(float(run.states.pose.position[-1, 0, 0]) - exact))
    np.testing.assert_allclose(orders(errors), order, atol=0.1)
