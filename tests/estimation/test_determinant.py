"""Forces that act and forces that were read: inertias are right in both cases, and the two are told apart."""

import dataclasses

import numpy as np
import pytest

from estimation.arms import arm, driven
from shadowfit.estimation import Options, fit
from shadowfit.estimation.fit import start_point
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.problem import build_problem
from shadowfit.estimation.problem.weights import unit_weights
from shadowfit.estimation.solve import objective
from shadowfit.estimation.uncertainty import determinant
from shadowfit.estimation.uncertainty.evidence import gather
from shadowfit.mechanism import Body, Input, JointPosition, Mechanism, TorqueMotor, slider
from shadowfit.recordings import Recording

MASS, DAMPING, STEP = 2.0, 0.8, 0.01


def cart(mass=1.5, damping=0.8):
    rail = slider("world", "cart", axis=(1.0, 0.0, 0.0), viscous=damping, laws={"motor": TorqueMotor(input="F")})
    sensors = {"x": JointPosition(joint="rail", std=1e-5, rotary=False)}
    return Mechanism(
        {"cart": Body(mass, (1.0, 1.0, 1.0))},
        {"rail": rail},
        sensors=sensors,
        inputs={"F": Input(hold="linear", unit="N")},
    )


def recording(acting, read, loop, seed=0, count=2500, finer=10):
    """A cart in a position loop or driven openly; forces that act, and errors of the force that was read."""
    rng = np.random.default_rng(seed)
    interval = STEP / 5
    h = interval / finer
    time = h * np.arange(count * finer)
    sines = zip((2.0, 2.0, 2.0, 1.5, 1.0), (0.3, 0.7, 1.3, 2.9, 5.1), rng.uniform(0.0, 6.0, 5), strict=True)
    wanted = sum(size * np.sin(2.0 * np.pi * rate * time + phase) for size, rate, phase in sines)
    path, rate = 0.01 * (wanted - wanted[0]), 0.01 * np.gradient(wanted, h)
    pushed = np.repeat(acting * rng.standard_normal(count), finer)
    x, v, places, forces = 0.0, rate[0], [], []
    for k in range(len(time)):
        force = MASS * (900.0 * (path[k] - x) + 60.0 * (rate[k] - v)) if loop else wanted[k]
        places.append(x)
        forces.append(force)
        a = (force + pushed[k] - DAMPING * v) / MASS
        x, v = x + h * v + 0.5 * h * h * a, v + h * a
    seen = np.array(places[::finer]) + 1e-5 * rng.standard_normal(count)
    told = np.array(forces[::finer]) + read * rng.standard_normal(count)
    return Recording(interval * np.arange(count), {"x": seen, "F": told}, units={"x": "m", "F": "N"})


def test_slope_is_that_of_the_inertia():
    """One body: ``∂ log det A/∂m = 1/m`` in every step, but for the small part of viscous friction."""
    data = recording(acting=1.0, read=0.0, loop=False)
    estimate = fit(cart(), data, ["cart.mass"], options=Options(timestep=STEP, unknowns="joint", state_weight=1e2))
    problem, here, weights = estimate.problem, estimate.outcome.linearisation, estimate.weights
    slope, curvature = determinant._slopes(problem, here.point, weights, np.array([[100.0]]))
    mass = estimate.values["cart.mass"] + 0.5 * STEP * DAMPING
    assert slope[0] == pytest.approx(100.0 / mass, rel=1e-3)
    assert curvature[0] == pytest.approx(100.0 / mass**2, rel=1e-3)
    assert gather(problem, here, weights).pull[0] == 0.0


@pytest.mark.slow
def test_slopes_are_those_of_difference_quotients_by_the_parameters():
    """Every third step of an arm, whose inertias change along the way; friction changes ∂τ/∂q', too."""
    mechanism = arm(4)
    free = ("*.mass", "*.com.?", "link?.inertia.*", "*.shaft_inertia", "joint2.viscous")
    problem = build_problem(
        mechanism, [driven(mechanism, 60)], parameter_set(mechanism, free), Options(state_weight=1.0)
    )
    weights = unit_weights(problem)
    # Widths of dry friction are not differentiated, and held.
    point = objective.held(problem, start_point(problem))
    assert point.stopping is not None
    freedom = np.diag([3.0, 2.0, 1.0, 0.5])
    slope, _ = determinant._slopes(problem, point, weights, freedom)

    def inertias_at(values):
        return determinant._inertias(problem, dataclasses.replace(point, values=values), weights)[::3]

    for i in range(problem.parameters.size):
        step = 1e-6 * (np.arange(problem.parameters.size) == i)
        inertias = [inertias_at(problem.parameters.plus(point.values, sign * step)) for sign in (1.0, -1.0)]
        change = (inertias[0] - inertias[1]) / 2e-6
        relative = change @ np.linalg.inv(inertias_at(point.values))
        expected = np.mean(np.trace(relative @ freedom, axis1=1, axis2=2))
        assert slope[i] == pytest.approx(expected, rel=1e-4, abs=1e-6 * np.max(np.abs(slope)))


def test_errors_of_readings_are_in_the_known_forces():
    for acting, read, loop in ((3.0, 0.0, False), (0.0, 3.0, True)):
        estimate = fit(cart(MASS), recording(acting, read, loop), [], options=Options(timestep=STEP, unknowns="joint"))
        share = determinant.acting_share(estimate.problem, estimate.outcome.linearisation.point, estimate.weights)
        assert share[0] == pytest.approx(0.0 if read else 1.0, abs=0.2)


@pytest.mark.parametrize(("acting", "read", "loop"), [(3.0, 0.0, False), (0.0, 3.0, True)])
def test_mass_is_right_whether_forces_act_or_are_read(acting, read, loop):
    estimate = fit(cart(), recording(acting, read, loop), ["cart.mass", "rail.viscous"])
    assert estimate.noise_choice.acting is (acting > 0.0)
    mass = estimate.parameters[0]
    assert abs(mass.value - MASS) < 3.0 * mass.std
    assert mass.std < 0.05 * MASS
