"""Trees of rigid joints, stepped in joint coordinates: laws of motion, and agreement with every other way to step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynamics.scenes import orders, with_joints
from dynamics.test_convergence import cartpole, furuta, pendulum
from dynamics.test_tree import branched
from quick import quick
from reference.reduced_ode import solve
from shadowfit.dynamics import State, energy, place, rigid, simulate
from shadowfit.dynamics.elements import assembled
from shadowfit.dynamics.requests import step_commands
from shadowfit.dynamics.sliding import stick_width
from shadowfit.dynamics.tree import forward_kinematics, motions, tree_of
from shadowfit.errors import SimulationError
from shadowfit.estimation.residuals import joint_transition
from shadowfit.estimation.residuals.stopping import stick_times
from shadowfit.geometry import Pose
from shadowfit.kernels.along import along
from shadowfit.models import builtin

H = 4e-3

angular_momenta = jax.jit(jax.vmap(energy.angular_momentum, (None, 0)))


def rubbing(**values):
    return with_joints(builtin.furuta(), **{"coulomb": 2e-3, "dry": 2e-3, **values})


def spun(mechanism, seed=0):
    """A tree with everything in motion."""
    rng = np.random.default_rng(seed)
    tree = tree_of(mechanism)
    state = place(mechanism)
    motion = motions(tree, mechanism, state.pose)
    increment = jnp.asarray(0.4 * rng.normal(size=tree.size))
    moved = rigid.rigid_step.moved(tree, motion, increment)
    placed = forward_kinematics(tree, mechanism, moved)
    return State(placed.pose, placed.twists @ jnp.asarray(rng.normal(size=tree.size)))


@pytest.mark.parametrize(
    "mechanism",
    [rubbing(), builtin.cartpole(), *quick([builtin.furuta(friction=False), branched()])],
    ids=lambda m: m.name,
)
def test_forward_then_inverse_leaves_nothing(mechanism):
    """The residual of fits in joint coordinates, which is written another way, vanishes along a simulation."""
    steps = 40
    state = spun(mechanism)
    signals = np.random.default_rng(2).normal(size=(len(mechanism.inputs), steps))
    command = np.asarray(step_commands(mechanism, signals, H, "exact"))
    tree = tree_of(mechanism)
    found = rigid.run(tree, mechanism, state, command, H)
    assert not np.any(found.status)

    def missing(mechanism, position, orientation, command):
        motion = [motions(tree, mechanism, Pose(position[i], orientation[i])) for i in range(3)]
        window = jax.tree.map(lambda *x: jnp.stack(x), *motion)
        stopped, _, _ = joint_transition.braked(tree, mechanism, window, command, jnp.asarray(H))
        widths = stick_width(jnp.array(stick_times(tree, mechanism)), stopped, jnp.asarray(H))
        return [joint_transition.balance_of(tree, mechanism, window, command, jnp.asarray(H), widths).missing]

    windows = [np.stack([x[i : i + steps - 1] for i in range(3)], axis=1) for x in (found.position, found.orientation)]
    (left,) = along(missing, mechanism, [*windows, command[1:steps]])
    # Impulses as large as those of speeds that differ by rounding errors of the positions.
    moment = float(np.sum(assembled(mechanism).bodies.mass)) * max(1.0, float(np.max(np.abs(found.position))))
    assert np.max(np.abs(left)) < 100.0 * np.finfo(float).eps * moment / H


@pytest.mark.parametrize("case", [pendulum, furuta, cartpole], ids=lambda c: c.__name__)
def test_second_order_against_the_reduced_equations(case):
    mechanism, model, positions, speeds, sensors, signal = case()
    duration, counts = 1.0, (125, 250, 500)
    start = place(mechanism, positions, speeds)
    joints = list(mechanism.joints)
    times = np.linspace(0.0, duration, 26)
    exact = solve(model, [positions.get(j, 0.0) for j in joints], [speeds.get(j, 0.0) for j in joints], times, signal).q
    errors = []
    for steps in counts:
        inputs = {} if signal is None else {"u": _means(signal, duration, steps)}
        run = simulate(mechanism, start, inputs, timestep=duration / steps, steps=steps, joints="rigid", substeps=1)
        seen = np.stack([np.asarray(run.readings[name])[:: steps // 25] for name in sensors], axis=1)
        errors.append(np.max(np.abs(seen - exact)))
    assert min(orders(errors)) > 1.8


def _means(signal, duration, steps):
    h = duration / steps
    fine = np.array([signal(t) for t in h * (np.arange(steps * 20) + 0.5) / 20])
    return fine.reshape(steps, 20).mean(axis=1)


def test_stiff_joints_become_rigid_ones():
    mechanism = builtin.furuta(friction=False)
    start = place(mechanism, {"hinge2": 2.0})
    options = {"timestep": H, "steps": 200, "substeps": 1}
    rigid_run = simulate(mechanism, start, joints="rigid", diagnostics=True, **options)
    differences, loads = [], []
    for compliance in (1e-6, 1e-8):
        stiff = simulate(
            with_joints(mechanism, compliance=compliance), start, joints="compliant", diagnostics=True, **options
        )
        differences.append(np.max(np.abs(stiff.readings["theta2"] - rigid_run.readings["theta2"])))
        (ours,), (theirs,) = rigid_run.diagnostics.multipliers, stiff.diagnostics.multipliers
        loads.append(np.max(np.abs(ours - theirs)[5:]) / np.max(np.abs(theirs)))
    assert differences[1] < 1e-6
    assert differences[1] < 0.1 * differences[0]
    assert loads[1] < 1e-3


@pytest.mark.slow
def test_energy_and_momentum_of_a_floating_tree():
    """Without gravity nothing changes a floating tree's momentum, nor without friction its energy, to second order."""
    mechanism = branched().set({"gravity.acceleration": 0.0})
    elements, start = assembled(mechanism), spun(mechanism)
    errors = []
    for timestep in (4e-3, 2e-3):
        steps = round(0.8 / timestep)
        run = simulate(mechanism, start, timestep=timestep, steps=steps, joints="rigid", diagnostics=True, substeps=1)
        total = np.asarray(run.diagnostics.kinetic)
        mass = np.asarray(elements.bodies.mass)
        linear = np.einsum("b,tbi->ti", mass, np.asarray(run.states.velocity)[:, :, :3])
        np.testing.assert_allclose(linear, linear[:1].repeat(len(linear), 0), atol=1e-11)
        velocity = 0.5 * (run.states.velocity[:-1] + run.states.velocity[1:])
        spin = jax.jit(jax.vmap(lambda p, v: energy.angular_momentum(elements, State(p, v))))(
            run.states.pose[:-1], velocity
        )
        errors.append(max(np.ptp(total) / total[0], np.max(np.abs(spin - spin[0])) / np.max(np.abs(spin))))
        assert np.max(run.diagnostics.gap) < 1e-12
    assert errors[0] < 1e-3
    assert orders(errors)[0] > 1.7


def test_a_batch_is_its_members():
    mechanism = rubbing()
    tree = tree_of(mechanism)
    starts = [place(mechanism, {"hinge2": a}, {"hinge1": s}) for a, s in ((0.1, 0.0), (2.0, 3.0), (3.1, -1.0))] * 2
    together = jax.tree.map(lambda *x: np.stack(x), *starts)
    command = 0.2 * np.random.default_rng(0).normal(size=(6, 50, 1))
    found = rigid.run(tree, mechanism, together, command, H)
    for i in (0, 1, 5):
        alone = rigid.run(tree, mechanism, starts[i], command[i], H)
        for ours, theirs in zip(found, alone, strict=True):
            np.testing.assert_allclose(ours[i], theirs, atol=1e-11)


@pytest.mark.slow
def test_machine_code_equals_xla(monkeypatch):
    mechanism, steps = with_joints(builtin.pendulum(), coulomb=2e-3, dry=0.02), 60
    options = {"timestep": H, "steps": steps, "joints": "rigid", "diagnostics": True}
    start = place(mechanism, {"hinge": 1.0}, {"hinge": 2.0})
    ours = simulate(mechanism, start, **options, substeps=1)
    monkeypatch.setattr(rigid.Sequence, "code", lambda *_: None)
    theirs = simulate(mechanism, start, **options, substeps=1)
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_a_stuck_joint_creeps_as_friction_states_and_a_free_one_swings():
    """Creep is half a step times the acceleration that friction prevents (:mod:`sliding`), and vanishes with it."""
    mechanism = with_joints(builtin.pendulum(), coulomb=0.05, dry=0.0)
    start = place(mechanism, {"hinge": 0.02})
    drifts = []
    for timestep in (4e-3, 2e-3):
        run = simulate(mechanism, start, timestep=timestep, steps=round(1.0 / timestep), joints="rigid", substeps=1)
        drifts.append(0.02 - float(run.readings["theta"][-1]))
    assert drifts[0] / drifts[1] == pytest.approx(2.0, rel=0.1)
    free = mechanism.set({"hinge.coulomb": 0.0})
    swinging = simulate(free, start, timestep=4e-3, steps=250, joints="rigid", substeps=1).readings["theta"]
    assert np.ptp(swinging) > 10.0 * drifts[0]


def test_a_step_that_does_not_settle_is_reported_with_what_was_computed():
    mechanism = builtin.furuta(friction=False)
    state = place(mechanism, {"hinge2": 2.0}, {"hinge1": 60.0, "hinge2": 80.0})
    with pytest.raises(SimulationError, match=r"did not settle; try a smaller time-step") as stop:
        simulate(mechanism, state, timestep=0.05, steps=50, joints="rigid", diagnostics=True, substeps=1)
    assert np.all(np.isfinite(np.asarray(stop.value.partial.states.velocity)))


def test_what_rigid_joints_do_not_describe_is_refused():
    furuta_model = builtin.furuta(friction=False)
    with pytest.raises(SimulationError, match="rigid joints are for"):
        simulate(furuta_model, place(furuta_model), timestep=H, steps=1, joints="rigid", discretization="spook")
