"""What must not change: momentum and energy of a free body, energy of pendulums without friction.

The joints' own regularisation dissipates. Measured on the pendulum, the loss of energy per time is

    c₁ ε τ            in both steppers: a joint of compliance ε gives under its load and is damped with the time τ,
    c₂ h τ²           in SPOOK only: the linearised constraint lets a turning link drift, the relaxation pulls it back.

In space the explicit gyroscopic torque adds an error of the order of h to SPOOK's energy.

So ``exact`` with stiff joints has next to none, and SPOOK's vanishes with the step.
"""

import jax
import numpy as np
import pytest

from dynamics.scenes import STEPPERS, energy, orders, released, run, with_joints
from shadowfit.dynamics import State, Trajectory, assemble, place
from shadowfit.dynamics.energy import angular_momentum
from shadowfit.mechanism import Body, Gravity, Mechanism
from shadowfit.models import builtin

STEPS = (4e-3, 2e-3, 1e-3)
MASS = 0.7


def free_body() -> tuple[Mechanism, State]:
    """Three different moments, products of inertia, centre of mass off the body's frame, spin near the middle axis."""
    body = Body(MASS, (1e-3, 2e-3, 2.6e-3, 1e-4, 0.0, 2e-4), com=(0.1, 0.0, 0.2))
    mechanism = Mechanism({"body": body}, gravity=Gravity(0.0))
    pose = ((0.1, 0.2, 0.3), (0.5, 0.5, 0.5, 0.5))
    return mechanism, place(mechanism, poses={"body": pose}, velocities={"body": (0.3, -0.2, 0.1, 5.0, 0.1, -2.0)})


def at_their_times(trajectory: Trajectory, stepper: str) -> State:
    """States whose velocities belong to the same time as the poses: the leapfrog's lie half a step before."""
    states = trajectory.states
    if stepper == "spook":
        return states
    return State(states.pose[:-1], 0.5 * (states.velocity[:-1] + states.velocity[1:]))


@pytest.mark.parametrize("stepper", STEPPERS)
def test_a_free_body_keeps_its_linear_momentum(stepper: str) -> None:
    mechanism, state = free_body()
    flight = run(mechanism, state, 1.0, 4e-3, stepper)
    velocity = np.asarray(flight.states.velocity[:, 0, :3])
    np.testing.assert_allclose(velocity, np.tile([0.3, -0.2, 0.1], (len(flight), 1)), rtol=1e-14)
    np.testing.assert_allclose(flight.states.pose.position[-1, 0], [0.4, 0.0, 0.4], rtol=0, atol=1e-13)


@pytest.mark.parametrize(("stepper", "order"), [("spook", 1), ("exact", 2)])
def test_a_free_body_keeps_angular_momentum_and_energy_to_the_steppers_order(stepper: str, order: int) -> None:
    mechanism, state = free_body()
    of_all = jax.jit(jax.vmap(lambda s: angular_momentum(assemble(mechanism), s)))
    momentum_errors, energy_errors = [], []
    for timestep in STEPS:
        flight = run(mechanism, state, 2.0, timestep, stepper)
        momentum = np.asarray(of_all(at_their_times(flight, stepper)))
        start = np.asarray(of_all(jax.tree.map(lambda x: x[None], state)))[0]
        momentum_errors.append(np.abs(momentum - start).max() / np.linalg.norm(start))
        total = energy(flight)
        energy_errors.append(np.abs(total - total[0]).max() / total[0])
    turned = 2.0 * np.arccos(np.abs(np.asarray(flight.states.pose.orientation[:, 0]) @ np.full(4, 0.5)))
    assert turned.max() > 3.0  # it tumbles
    np.testing.assert_allclose(orders(momentum_errors), order, rtol=0, atol=0.1)
    np.testing.assert_allclose(orders(energy_errors), order, rtol=0, atol=0.1)
    assert momentum_errors[-1] < (1e-3 if order == 1 else 1e-6)


def frictionless(name: str, **values: float) -> Mechanism:
    return with_joints(getattr(builtin, name)(friction=False), viscous=0.0, **values)


def loss_rate(trajectory: Trajectory) -> float:
    """Energy lost per second, relative to the energy exchanged in a swing, between the first second and the last."""
    per_second = round(1.0 / float(trajectory.time[1]))
    total = energy(trajectory)
    lost = total[:per_second].mean() - total[-per_second:].mean()
    return lost / (float(trajectory.time[-1]) - 1.0) / np.ptp(trajectory.diagnostics.potential)


def pendulum_loss(stepper: str, timestep: float, compliance: float, damping: float) -> float:
    mechanism = frictionless("pendulum", compliance=compliance, damping=damping)
    return loss_rate(released(mechanism, {"hinge": 1.5}, 4.0, timestep, stepper))


@pytest.mark.parametrize("name", ["pendulum", "furuta"])
def test_a_minute_without_friction_by_the_exact_stepper(name: str) -> None:
    """Energy swings within the error of a step (second order) and does not drift."""
    largest = []
    for timestep in (8e-3, 4e-3):
        mechanism = frictionless(name, compliance=1e-9)
        minute = released(mechanism, {list(mechanism.joints)[-1]: 2.0}, 60.0, timestep, "exact")
        total, swing = energy(minute), np.ptp(minute.diagnostics.potential)
        largest.append(np.abs(total - total[0]).max() / swing)
        assert abs(loss_rate(minute)) < 2e-6
    assert largest[1] < 5e-4
    assert orders(largest)[0] == pytest.approx(2.0, abs=0.3)


def lost_in_a_minute(name: str, timestep: float, damping: float) -> float:
    """Relative loss by SPOOK from the first ten seconds to the last ten; the energy must fall all the way."""
    mechanism = frictionless(name, compliance=1e-9, damping=damping)
    minute = released(mechanism, {list(mechanism.joints)[-1]: 2.0}, 60.0, timestep, "spook")
    means = energy(minute)[1:].reshape(6, -1).mean(axis=1)
    assert np.all(np.diff(means) < 0.0)
    return (means[0] - means[-1]) / np.ptp(minute.diagnostics.potential)


@pytest.mark.parametrize("name", ["pendulum", "furuta"])
def test_a_minute_without_friction_by_spook(name: str) -> None:
    """Energy only falls, and twice as fast at twice the step: what is lost is the scheme's, and vanishes with it."""
    lost = lost_in_a_minute(name, 4e-3, 0.005)
    assert lost < 0.1
    assert lost_in_a_minute(name, 8e-3, 0.005) / lost == pytest.approx(2.0, rel=0.15)


def test_spook_dissipates_with_the_step_and_the_square_of_the_relaxation_time() -> None:
    by_step = [pendulum_loss("spook", timestep, 1e-9, 0.01) for timestep in STEPS]
    np.testing.assert_allclose(orders(by_step), 1.0, rtol=0, atol=0.05)
    by_time = [pendulum_loss("spook", 2e-3, 1e-9, damping) for damping in (0.02, 0.01, 0.005)]
    np.testing.assert_allclose(orders(by_time), [1.8, 1.8], rtol=0, atol=0.2)


def test_compliant_joints_dissipate_by_themselves() -> None:
    """In proportion to the compliance and (while short) the relaxation time, whatever the step."""
    by_compliance = [pendulum_loss("exact", 2e-3, compliance, 0.01) for compliance in (2e-5, 1e-5, 5e-6)]
    np.testing.assert_allclose(orders(by_compliance), 1.0, rtol=0, atol=0.03)
    by_time = [pendulum_loss("exact", 2e-3, 1e-5, damping) for damping in (0.01, 0.005, 0.0025)]
    np.testing.assert_allclose(orders(by_time), 1.0, rtol=0, atol=0.05)
    by_step = [pendulum_loss("exact", timestep, 1e-5, 0.01) for timestep in STEPS]
    np.testing.assert_allclose(by_step, by_step[-1], rtol=0.02)


def test_without_the_stiff_joints_own_loss_nothing_is_left() -> None:
    """Loss at ε = 1e-9 is a ten-thousandth of that at 1e-5: nothing else dissipates in the exact stepper."""
    assert 0.0 < pendulum_loss("exact", 1e-3, 1e-9, 0.01) < 2e-4 * pendulum_loss("exact", 1e-3, 1e-5, 0.01)
