"""Dry friction in fits: parameters of machines that reverse, whose truth is an equation that shares nothing with us."""

import jax.numpy as jnp
import numpy as np
import pytest

from estimation.scenes import POSES, with_joint
from reference.reduced_ode import Pendulum, solve
from shadowfit.dynamics import dry_friction, sliding
from shadowfit.dynamics.simulate import simulate
from shadowfit.estimation import ErrorModel, Options, fit
from shadowfit.mechanism import Body, Coulomb, Input, JointPosition, Mechanism, TorqueMotor, hinge
from shadowfit.models import Start, builtin
from shadowfit.recordings import Recording

LEVEL, VISCOUS, INERTIA = 2e-3, 2e-4, 0.0039
TRUTH = {"pendulum.inertia.yy": INERTIA, "hinge.viscous": VISCOUS, "hinge.coulomb": LEVEL}


def rigid_pendulum():
    mechanism = with_joint(builtin.pendulum(friction=False), "hinge", friction=Coulomb())
    stiff = {f"hinge.compliance.{kind}": 1e-9 for kind in ("linear", "rotational")}
    return mechanism.set({**stiff, "pendulum.mass": 0.428, **TRUTH})


def swings(seconds=8.0):
    """Released at 2 rad: it reverses a dozen times and comes to rest. No noise."""
    time = 0.005 * np.arange(round(seconds / 0.005) + 1)
    model = Pendulum(viscous=VISCOUS, coulomb=LEVEL, coulomb_speed=1e-3)
    return Recording(time, {"theta": solve(model, [2.0], [0.0], time).q[:, 0]})


@pytest.fixture(scope="module")
def recording():
    return swings()


def errors(recording, **options):
    """Relative errors of the estimates."""
    start = {name: 1.2 * value for name, value in TRUTH.items()}
    found = fit(rigid_pendulum(), recording, start, options=Options(**{**POSES, "state_weight": 1e6, **options}))
    assert found.converged
    return np.array([row.value / TRUTH[row.name] - 1.0 for row in found.parameters])


@pytest.mark.slow
def test_reversals_leave_no_bias(recording):
    """Steps of 10 ms with two samples each; friction in the direction of the end of the step is 0.2 % off here."""
    found = errors(recording, timestep=0.01, correction="deferred")
    assert np.all(np.abs(found) < 3e-4)


def two_axes(limit, coupling):
    """Two axes whose friction acts on both; no gap multipliers."""
    width = 0.5 * jnp.diagonal(coupling)
    rule = dry_friction.Averaged(jnp.array([0.02, -0.01]), width)
    none = (jnp.zeros((2, 0)),)
    return dry_friction.DryAxes(
        jnp.eye(2), rule, coupling, coupling, none, (limit,), none, (jnp.zeros((2, 0, 2)),), (jnp.zeros((2, 0, 2)),),
        jnp.zeros(2),
    )  # fmt: skip


@pytest.mark.parametrize("free", [(0.3, -0.2), (0.01, 0.003), (-0.05, 0.04), (0.0, 0.0)])
def test_settled_axes_obey_the_law(free):
    """``s' = s₀ + C p`` with ``p = −L A(s, s')`` for both axes at once."""
    limit, coupling = jnp.array([1e-3, 4e-3]), jnp.array([[20.0, -8.0], [-8.0, 30.0]])
    dry = two_axes(limit, coupling)
    reached, _ = dry_friction.settle(dry, jnp.array(free))
    width = dry.rule.width * limit
    impulses = -limit * sliding.mean_direction(dry.rule.before, reached, width)
    np.testing.assert_allclose(reached, jnp.array(free) + coupling @ impulses, atol=1e-12)


def sticking_arm():
    """An arm of 0.3 N m of dry friction that slow torques move and let stick, simulated in steps of 0.16 ms."""
    motor = {"motor": TorqueMotor(1.0, input="u")}
    joint = hinge(parent="world", child="arm", axis=(0, 1, 0), viscous=0.05, friction=Coulomb(coulomb=0.3), laws=motor)
    mechanism = Mechanism(
        {"arm": Body(1.0, np.diag([0.02, 0.02, 0.02]), com=(0.0, 0.0, -0.1))},
        {"joint": joint},
        sensors={"q": JointPosition(joint="joint", std=2e-4)},
        inputs={"u": Input(unit="N m", hold="linear")},
    )
    finer, time = 64, 0.01 * np.arange(401)
    torque = 0.9 * np.sin(np.pi * time)
    acting = np.interp(0.01 / finer * np.arange(400 * finer), time, torque)
    run = simulate(
        mechanism,
        Start().state(mechanism),
        {"u": acting},
        timestep=0.01 / finer,
        steps=len(acting),
        joints="rigid",
        substeps=1,
    )
    return mechanism, Recording(time, {"q": np.asarray(run.readings["q"])[::finer], "u": torque})


@pytest.mark.slow
def test_the_correction_takes_off_the_width_of_friction_near_rest():
    """With a width that is the same in fine steps, inertia and mass of an arm that sticks are four times as far off."""
    mechanism, recording = sticking_arm()
    free = ["arm.inertia.yy", "arm.mass"]
    off = []
    for stick_time in (0.005, "half a step"):
        options = Options(timestep=0.01, state_weight=1.0, errors=ErrorModel({"joint": 0.005}), stick_time=stick_time)
        found = fit(mechanism, recording, [*free, "joint.viscous", "joint.coulomb"], options=options)
        assert found.converged
        off.append([abs(row.value / mechanism.get(row.name) - 1.0) for row in found.parameters[: len(free)]])
    fixed, own = np.array(off)
    assert np.all(own < 0.02)
    assert np.all(own < fixed / 3.0)
