"""On linear dynamics the state estimate is the Kalman smoother's: a mass on a slider with a spring.

The dynamics residual is an impulse of standard deviation ``σ₀/√κ``, so the velocity after each step is that of the
stepper plus noise of variance ``σ₀²/(κ m²)``. With ``configuration`` unknowns the position follows from this velocity;
with ``full`` ones it follows from a velocity with noise of its own.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimation.scenes import spring_slider, twin
from shadowfit.dynamics import place
from shadowfit.dynamics.elements import assembled
from shadowfit.dynamics.exact import step as exact_step
from shadowfit.dynamics.spook import step as spook_step
from shadowfit.dynamics.velocity_problem import complementary_count
from shadowfit.estimation import LevenbergMarquardt, Options, fit

STEPPERS = {"spook": jax.jit(spook_step), "exact": jax.jit(exact_step)}
TIMESTEP, STEPS, WEIGHT = 0.02, 60, 40.0


def new_speed(mechanism, discretization, position, speed):
    """The stepper's velocity after one step."""
    elements = assembled(mechanism)
    state = place(mechanism, {"rail": position}, {"rail": speed})
    guess = jnp.zeros(complementary_count(elements), bool)
    new, _ = STEPPERS[discretization](elements, state, jnp.zeros(0), jnp.asarray(TIMESTEP), guess)
    return float(new.velocity[0, 0])


def rts(measured, transition, noise, variance, mean, covariance):
    """Rauch, Tung and Striebel's smoother of ``z' = A z + w`` from ``z_1`` on; the first component is measured."""
    means, covariances, predicted = [mean], [covariance], []
    for value in measured:
        ahead, spread = transition @ means[-1], transition @ covariances[-1] @ transition.T + noise
        predicted.append((ahead, spread))
        gain = spread[:, 0] / (spread[0, 0] + variance)
        means.append(ahead + gain * (value - ahead[0]))
        covariances.append(spread - np.outer(gain, spread[0]))
    smooth = means[-1]
    found = [smooth]
    for k in range(len(predicted) - 1, -1, -1):
        ahead, spread = predicted[k]
        smooth = means[k] + covariances[k] @ transition.T @ np.linalg.solve(spread, smooth - ahead)
        found.append(smooth)
    return np.array(found[::-1])


@pytest.mark.parametrize(
    ("discretization", "unknowns"),
    [
        pytest.param("spook", "full", marks=pytest.mark.slow),
        ("exact", "configuration"),
        ("exact", "joint"),
        pytest.param("spook", "configuration", marks=pytest.mark.slow),
        pytest.param("exact", "full", marks=pytest.mark.slow),
    ],
)
def test_states_are_those_of_the_kalman_smoother(discretization, unknowns):
    mass, std = 0.7, 1e-2
    mechanism = spring_slider(mass=mass, std=std)
    recording = twin(mechanism, {"rail": 0.3}, STEPS, timestep=TIMESTEP, noise=std)
    estimate = fit(
        mechanism,
        recording,
        options=Options(
            timestep=TIMESTEP, discretization=discretization, unknowns=unknowns, correction="none", state_weight=WEIGHT
        ),
        optimiser=LevenbergMarquardt(start_damping=1e-13),
    )
    assert estimate.converged
    by_position = new_speed(mechanism, discretization, 1.0, 0.0)
    by_speed = new_speed(mechanism, discretization, 0.0, 1.0)
    transition = np.array([[1.0 + TIMESTEP * by_position, TIMESTEP * by_speed], [by_position, by_speed]])
    # Errors of joint coordinates are forces. They act on the inertia and, within the step, on spring and damper, as the
    # spring's own pull −k x h does, which leaves the speed ``by_position``.
    pull = TIMESTEP * float(mechanism.get("rail.spring.stiffness"))
    inertia = -pull / by_position if unknowns == "joint" else mass
    q, r, h = std**2 / WEIGHT / inertia**2, std**2, TIMESTEP
    if unknowns != "full":
        noise = q * np.array([[h * h, h], [h, 1.0]])
        jump = 0.0
    else:
        noise = q * np.diag([h * h, 1.0])
        jump = 2.0 * q
    y = recording.channels["x"]
    # Nothing is known of the start: after two samples the state is x_1 = y_1, v_1 = (y_1 − y_0)/h, with their noise.
    covariance = np.array([[r, r / h], [r / h, 2.0 * r / h**2 + jump]])
    expected = rts(y[2:], transition, noise, r, np.array([y[1], (y[1] - y[0]) / h]), covariance)
    found = estimate.trajectory().readings["x"]
    np.testing.assert_allclose(found[1:], expected[:, 0], rtol=0.0, atol=1e-8)
    if unknowns != "full":
        assert found[0] == pytest.approx(expected[0] @ [1.0, -h], abs=1e-8)
    # The law is not trivial: the estimate is neither the data nor the noise-free motion.
    assert 1e-3 < np.std(found - y) < 3 * std
