"""Closed loops of rigid joints: stepped in joint coordinates, as the same loops with stiff joints go."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynamics.linkages import fourbar, parallelogram, rubbing_fourbar, slider_crank, standing
from dynamics.scenes import orders, with_joints
from quick import quick
from shadowfit.dynamics import loops, place, rigid, simulate
from shadowfit.dynamics.exact import NewtonStatus
from shadowfit.dynamics.kinematics import gap_values
from shadowfit.dynamics.loop_law import loop_law
from shadowfit.dynamics.requests import step_commands
from shadowfit.dynamics.sliding import stick_width
from shadowfit.dynamics.tree import motions, tree_of
from shadowfit.errors import SimulationError
from shadowfit.estimation.residuals import joint_transition
from shadowfit.estimation.residuals.stopping import stick_times
from shadowfit.geometry import Pose
from shadowfit.kernels.along import along

H = 4e-3
SCENES = {
    "fourbar": (fourbar, {"a": -1.0}, {"a": 5.0}),
    "slider_crank": (slider_crank, {"shaft": 0.7}, {"shaft": 12.0}),
    "three bars": (lambda: parallelogram(3), standing(parallelogram(3)), {"bar0_foot": 2.0}),
}


def drive(mechanism, steps, size=0.05):
    return {name: size * np.sin(0.1 * np.arange(steps)) for name in mechanism.inputs}


@pytest.mark.parametrize("name", quick(SCENES))
def test_stiff_loops_become_rigid_ones(name):
    """Positions, speeds and what joints carry; spatial hinges make all but two rows of a planar loop redundant."""
    build, positions, speeds = SCENES[name]
    mechanism, steps = build(), 100
    start = place(mechanism, positions, speeds)
    options = {"timestep": 2e-3, "steps": steps, "diagnostics": True}
    inputs = drive(mechanism, steps)
    ours = simulate(mechanism, start, inputs, joints="rigid", **options, substeps=1)
    theirs = simulate(mechanism, start, inputs, joints="compliant", **options, substeps=1)
    for sensor in mechanism.sensors:
        # Both are second order; they start half a step apart in different ways.
        np.testing.assert_allclose(
            ours.readings[sensor], theirs.readings[sensor], atol=2e-3 * np.ptp(ours.readings[sensor])
        )
    assert np.max(ours.diagnostics.gap) < 1e-9
    if name == "three bars":
        return  # what redundant bars carry is a matter of their compliance
    for mine, other in zip(ours.diagnostics.multipliers, theirs.diagnostics.multipliers, strict=True):
        np.testing.assert_allclose(mine[5:], other[5:], atol=0.02 * np.max(np.abs(other)))


@pytest.mark.parametrize("name", quick(SCENES, "slider_crank"))
def test_compliant_loops_tend_to_the_rigid_loop(name):
    """With a tenth of the compliance of all joints a tenth of the gaps, and of the change of the motion, is left."""
    build, positions, speeds = SCENES[name]
    mechanism, steps, timestep = build(), 200, 1e-3
    start = place(mechanism, positions, speeds)
    options = {"timestep": timestep, "steps": steps, "diagnostics": True}
    inputs = drive(mechanism, steps)
    limit = simulate(mechanism, start, inputs, joints="rigid", **options, substeps=1)
    fields = [f"{joint}.compliance.{way}" for joint in mechanism.joints for way in ("linear", "rotational")]
    away, open_by = [], []
    for compliance in (1e-4, 1e-5, 1e-6):
        compliant = mechanism.set(dict.fromkeys(fields, compliance))
        run = simulate(compliant, start, inputs, joints="compliant", **options, substeps=1)
        pairs = [(np.asarray(run.readings[s]), np.asarray(limit.readings[s])) for s in mechanism.sensors]
        away.append(max(np.max(np.abs(soft - stiff)) / np.ptp(stiff) for soft, stiff in pairs))
        open_by.append(np.max(run.diagnostics.gap))
    assert np.all(np.divide(away[:-1], away[1:]) > 8.0)
    np.testing.assert_allclose(np.divide(open_by[:-1], open_by[1:]), 10.0, rtol=0.1)


@pytest.mark.slow
def test_second_order_and_energy():
    mechanism = with_joints(fourbar(), viscous=0.0).set({"d.spring.damping": 0.0, "d.spring.stiffness": 0.0})
    start = place(mechanism, {"a": -1.0}, {"a": 8.0})
    angles, drifts = [], []
    for timestep in (4e-3, 2e-3, 1e-3, 2.5e-4):
        steps = round(0.5 / timestep)
        run = simulate(mechanism, start, timestep=timestep, steps=steps, joints="rigid", diagnostics=True, substeps=1)
        angles.append(np.asarray(run.readings["crank_angle"])[:: round(0.02 / timestep)])
        drifts.append(np.ptp(np.asarray(run.diagnostics.kinetic + run.diagnostics.potential)[1:-1]))
    errors = [np.max(np.abs(angle - angles[-1])) for angle in angles[:-1]]
    assert min(orders(errors)) > 1.8
    assert min(orders(drifts[:3])) > 1.7


def left_by_the_stepper(mechanism, steps=40):
    """What steps leave of the residual of fits, with the loops' impulses, and of their springs and dampers."""
    tree = tree_of(mechanism)
    start = place(mechanism, {"a": -1.0}, {"a": 5.0})
    signals = np.stack(list(drive(mechanism, steps).values()))
    command = np.asarray(step_commands(mechanism, signals, H, "exact"))
    found = rigid.run(tree, mechanism, start, command, H)
    assert not np.any(found.status)

    def missing(mechanism, position, orientation, command, reaction):
        motion = [motions(tree, mechanism, Pose(position[i], orientation[i])) for i in range(3)]
        window = jax.tree.map(lambda *x: jnp.stack(x), *motion)
        times = jnp.array(stick_times(tree, mechanism))
        mobility = joint_transition.mobility(tree, mechanism, window[1], jnp.asarray(H))
        stopped = jnp.zeros(len(times))
        # Joints of the tree carry what friction of those that close its loops leaves them.
        for _ in range(2):
            widths = stick_width(times, stopped, jnp.asarray(H))
            here = joint_transition.balance_of(tree, mechanism, window, command, jnp.asarray(H), widths, reaction)
            stopped = mobility * here.limits
        residual = here.missing
        if not tree.compliant:
            return [residual]
        closers = loops.closing(tree, mechanism)
        gaps = [gap_values(closers, Pose(position[i], orientation[i])) for i in range(3)]
        law = loop_law(tree, closers, jnp.asarray(H))
        return [residual, law.defect(*gaps) + H * law.sigma * reaction]

    windows = [np.stack([x[i : i + steps - 1] for i in range(3)], axis=1) for x in (found.position, found.orientation)]
    return along(missing, mechanism, [*windows, command[1:steps], found.reaction[1:steps]])


@pytest.mark.parametrize("build", quick([fourbar, rubbing_fourbar], fourbar), ids=["smooth", "rubbing"])
def test_forward_then_inverse_leaves_nothing(build):
    """The residual of fits, written another way, vanishes in all coordinates with the loop's impulses."""
    (left,) = left_by_the_stepper(build())
    assert np.max(np.abs(left)) < 1e-13


def test_a_step_that_fails_near_a_singular_configuration_names_the_loop(monkeypatch):
    """A parallelogram that is almost flat, where it could go on in two ways."""
    failed = (3, int(NewtonStatus.NOT_SETTLED))
    monkeypatch.setattr(sys.modules["shadowfit.dynamics.outcomes"], "_solved", lambda status: failed)
    mechanism = parallelogram()
    for angle, words in ((-0.005, r"step 3 .* did not settle.*loop of joint 'bar._head'"), (-1.0, r"time-step$")):
        with pytest.raises(SimulationError, match=words):
            simulate(
                mechanism,
                place(mechanism, standing(mechanism, angle)),
                timestep=1e-4,
                steps=5,
                joints="rigid",
                substeps=1,
            )
