"""Twins of the paper's machines: against equations in joint angles that share nothing with the simulator."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from paper import paper_twins
from shadowfit.evaluation.columns import read_csv
from shadowfit.models import load_model, parse_model
from shadowfit.models.twins import FurutaTruth, advance, counted


def test_encoders_count():
    angles = np.linspace(-4.0, 4.0, 1000)
    read = counted(angles, 0.3)
    width = 2.0 * np.pi / 4096
    assert np.abs(read - angles).max() <= 0.5 * width + 1e-12
    steps = np.diff(np.unique(read)) / width
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)


def test_the_stribeck_model_is_the_pendulum_with_another_friction():
    stribeck = parse_model(paper_twins.stribeck_model(), "stribeck").mechanism
    plain = load_model("pendulum").mechanism
    assert set(plain.leaves()) < set(stribeck.leaves())
    assert set(paper_twins.PENDULUM_TRUTH) <= set(stribeck.leaves())


@pytest.mark.slow
def test_the_pendulum_moves_by_its_equation_of_motion():
    """``(J + m l²) θ̈ = −m g l sin θ − b θ̇ − μ(θ̇)(|F_x| + |F_y|) sign θ̇``, F the force in the bearing."""
    made = paper_twins.pendulum(2.0, np.random.default_rng(5))["theta"]
    truth = paper_twins.PENDULUM_TRUTH
    mass, length, gravity = 0.428, 0.092, 9.82
    swing = truth["pendulum.inertia.yy"] + mass * length**2

    def rate(time, state):
        angle, speed = state
        friction, acceleration = 0.0, -mass * gravity * length * np.sin(angle) / swing
        # The force depends weakly on the acceleration, which depends on friction: a few rounds settle it.
        for _ in range(4):
            across = mass * length * (np.cos(angle) * acceleration - np.sin(angle) * speed**2)
            up = mass * (gravity + length * (np.sin(angle) * acceleration + np.cos(angle) * speed**2))
            coefficient = truth["hinge.dry"] + truth["hinge.stribeck"] * np.exp(
                -truth["hinge.stribeck_rate"] * speed**2
            )
            friction = coefficient * (abs(across) + abs(up)) * np.tanh(speed / 1e-4)
            torque = -mass * gravity * length * np.sin(angle) - truth["hinge.viscous"] * speed - friction
            acceleration = torque / swing
        return speed, acceleration

    # Released near upright, errors grow with exp(8 t/s) until the fall: start once it falls.
    first = 500
    speed = np.polyval(np.polyder(np.polyfit(np.arange(-5, 6) * 1e-3, made[first - 5 : first + 6], 4)), 0.0)
    times = 1e-3 * np.arange(len(made) - first)
    solved = solve_ivp(rate, (0.0, times[-1]), (made[first], speed), t_eval=times, rtol=1e-8, atol=1e-10, max_step=0.01)
    np.testing.assert_allclose(solved.y[0], made[first:], atol=3e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["furuta_pulse", "furuta_swingup"])
def test_the_furuta_pendulum_moves_by_its_equations_of_motion(kind):
    made = getattr(paper_twins, kind)(1.2, np.random.default_rng(3))
    state = (0.0, 0.0, 0.0, 0.0)
    angles = []
    for volt in made["u"]:
        angles.append(state[:2])
        state = advance(FurutaTruth(), state, float(volt), 1e-3)
    solved = np.array(angles)
    assert np.ptp(made["theta2"]) > 0.1, "it moves"
    for i, name in enumerate(("theta1", "theta2")):
        np.testing.assert_allclose(made[name], solved[:, i], atol=2e-3)


@pytest.mark.slow
def test_files_of_a_twin(tmp_path):
    arguments = {"kind": "synthetic", "file": "twins/a.csv", "duration": 0.5, "noise": 1e-3, "seed": 4, "counts": 0}
    first = paper_twins.make_twin(arguments, tmp_path)
    noisy, true = read_csv(tmp_path / "twins" / "a.csv"), read_csv(tmp_path / "twins" / "a.true.csv")
    assert len(noisy["time [s]"]) == 501
    error = noisy["theta1 [rad]"] - true["theta1 [rad]"]
    assert np.std(error) == pytest.approx(1e-3, rel=0.15)
    assert paper_twins.make_twin(arguments, tmp_path) == first, "the same seed, the same data"
    assert paper_twins.make_twin({**arguments, "seed": 5}, tmp_path)["digest"] != first["digest"]
