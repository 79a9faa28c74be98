"""Compliant joints in joint coordinates: as with poses of all bodies, down to the rigid limit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynamics.linkages import compliant, fourbar, parallelogram, rubbing_fourbar, slider_crank, standing
from dynamics.scenes import orders, with_joints
from dynamics.test_loops import drive, left_by_the_stepper
from quick import quick
from shadowfit.dynamics import balance, loops, place, rigid, simulate
from shadowfit.dynamics.elements import assemble
from shadowfit.dynamics.kinematics import gap_values
from shadowfit.dynamics.loop_law import loop_law
from shadowfit.dynamics.requests import step_commands
from shadowfit.dynamics.state import Moving
from shadowfit.dynamics.tree import coordinate_names, forward_kinematics, motions, tree_of
from shadowfit.geometry import Pose
from shadowfit.kernels.along import along
from shadowfit.mechanism import Body, JointPosition, Mechanism, hinge, lock

H = 4e-3
SCENES = {
    "fourbar": (fourbar, "d", {"a": -1.0}, {"a": 5.0}),
    "slider_crank": (slider_crank, "bore", {"shaft": 0.7}, {"shaft": 12.0}),
    "three bars": (lambda: parallelogram(3), "bar2_head", standing(parallelogram(3)), {"bar0_foot": 2.0}),
}


def footed(compliance=1e-3):
    """A heavy base on soft feet that carries a swinging arm: a compliant joint that closes no loop."""
    return Mechanism(
        {"base": Body(5.0, (0.1, 0.1, 0.1)), "arm": Body(1.0, (0.01, 0.02, 0.02))},
        {
            "feet": lock("world", "base", compliance=compliance, damping=5e-3, compliant=True),
            "pin": hinge(
                "base", "arm", axis=(0, 1, 0), parent_point=(0, 0, 0.2), child_point=(-0.3, 0, 0), compliance=1e-12
            ),
        },
        sensors={"angle": JointPosition("pin", 1e-3)},
        name="footed",
    )


def placed_in(name):
    """A mechanism with a compliant joint, and where it starts."""
    if name == "footed":
        mechanism = footed()
        return mechanism, place(mechanism, {"pin": 0.5})
    build, joint, positions, speeds = SCENES[name]
    mechanism = compliant(build(), joint, 1e-3)
    return mechanism, place(mechanism, positions, speeds)


@pytest.mark.parametrize("name", quick([*SCENES, "footed"], "footed"))
def test_impulses_are_those_of_compliant_joints_between_bodies(name):
    """The balance with poses of all bodies misses what rigid joints do, which is nothing along the coordinates."""
    mechanism, start = placed_in(name)
    tree, steps = tree_of(mechanism), 60
    assert len(tree.rigid_loops) == (1 if name == "three bars" else 0)
    signals = np.reshape([np.broadcast_to(0.05, steps) for _ in mechanism.inputs], (-1, steps))
    command = np.asarray(step_commands(mechanism, signals, H, "exact"))
    found = rigid.run(tree, mechanism, start, command, H)
    assert not np.any(found.status)

    def missing(mechanism, position, orientation, velocity, new_velocity, command):
        pose = Pose(position, orientation)
        step = Moving(pose, velocity, new_velocity, command, jnp.asarray(H))
        moving = forward_kinematics(tree, mechanism, motions(tree, mechanism, pose)).twists
        left = jnp.einsum("bid,bi->d", moving, balance.missing_impulse(assemble(mechanism), step, "exact"))
        closed = loops.jacobian(loops.closing(tree, mechanism), pose, moving)
        return [left, closed[loop_law(tree, loops.closing(tree, mechanism), jnp.asarray(H)).rigid_places]]

    velocity = found.velocity
    states = [found.position[1:-1], found.orientation[1:-1], velocity[1:-1], velocity[2:], command[1 : steps + 1]]
    left, held = along(missing, stiff(mechanism), [x[: steps - 1] for x in states])
    for impulse, rows in zip(left, held, strict=True):
        # Rigid loops act along their rows.
        free = impulse - rows.T @ np.linalg.lstsq(rows.T, impulse, rcond=1e-9)[0] if rows.size else impulse
        assert np.max(np.abs(free)) < 1e-10


def stiff(mechanism):
    """Without impulses of rigid joints, whose rounding errors would be multiplied by their stiffness."""
    names = [name for name, joint in mechanism.joints.items() if not joint.compliant]
    return mechanism.set({f"{name}.compliance.{way}": 1e6 for name in names for way in ("linear", "rotational")})


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SCENES, "footed"])
def test_as_with_poses_of_all_bodies(name):
    """Other joints are stiff; both are second order, and start half a step apart in different ways."""
    mechanism, start = placed_in(name)
    steps = 100
    options = {"timestep": 2e-3, "steps": steps, "diagnostics": True}
    inputs = drive(mechanism, steps)
    ours = simulate(mechanism, start, inputs, joints="rigid", **options, substeps=1)
    theirs = simulate(mechanism, start, inputs, joints="compliant", **options, substeps=1)
    for sensor in mechanism.sensors:
        reading = np.asarray(theirs.readings[sensor])
        np.testing.assert_allclose(ours.readings[sensor], reading, atol=1e-3 * np.ptp(reading))
    gaps = np.asarray(theirs.diagnostics.gap)
    np.testing.assert_allclose(ours.diagnostics.gap, gaps, atol=0.01 * np.max(gaps))


@pytest.mark.parametrize("name", quick(SCENES))
def test_tends_to_the_rigid_loop(name):
    """With a tenth of the compliance a tenth of the gaps, and of the change of the motion, is left."""
    build, joint, positions, speeds = SCENES[name]
    mechanism, steps = build(), 200
    start = place(mechanism, positions, speeds)
    options = {"timestep": 1e-3, "steps": steps, "diagnostics": True, "joints": "rigid"}
    inputs = drive(mechanism, steps)
    limit = simulate(mechanism, start, inputs, **options, substeps=1)
    apart, open_by = [], []
    for compliance in (1e-4, 1e-5, 1e-6):
        run = simulate(compliant(mechanism, joint, compliance), start, inputs, **options, substeps=1)
        pairs = [(np.asarray(run.readings[s]), np.asarray(limit.readings[s])) for s in mechanism.sensors]
        apart.append(max(np.max(np.abs(soft - stiff)) / np.ptp(stiff) for soft, stiff in pairs))
        open_by.append(np.max(run.diagnostics.gap))
    if name != "three bars":  # a third bar of the right length changes nothing
        assert np.all(np.divide(apart[:-1], apart[1:]) > 8.0)
    np.testing.assert_allclose(np.divide(open_by[:-1], open_by[1:]), 10.0, rtol=0.1)


@pytest.mark.slow
def test_without_compliance_a_redundant_loop_goes_as_the_rigid_one():
    """Five rows of a planar loop, of which two count; gaps are closed over the relaxation time, not at once."""
    mechanism = compliant(fourbar(), "d", 0.0)
    start = place(mechanism, {"a": -1.0}, {"a": 5.0})
    options = {"timestep": 1e-3, "steps": 200, "joints": "rigid"}
    ours, limit = simulate(mechanism, start, **options, substeps=1), simulate(fourbar(), start, **options, substeps=1)
    np.testing.assert_allclose(ours.readings["last_angle"], limit.readings["last_angle"], atol=1e-5)


@pytest.mark.parametrize("build", quick([fourbar, rubbing_fourbar], fourbar), ids=["smooth", "rubbing"])
def test_forward_then_inverse_leaves_nothing(build):
    """The residual of fits, written another way, vanishes with impulses that are those of springs and dampers."""
    left, open_by = left_by_the_stepper(compliant(build(), "d", 1e-4))
    assert np.max(np.abs(left)) < 1e-13
    assert np.max(np.abs(open_by)) < 1e-13


@pytest.mark.slow
def test_energy_of_a_spring_without_damping_is_kept():
    """Bodies, gravity, and g²/2ε of the loop's own gaps; the error is of second order."""
    plain = with_joints(fourbar(), viscous=0.0).set({"d.spring.damping": 0.0, "d.spring.stiffness": 0.0})
    compliance = 1e-2
    mechanism = compliant(plain, "d", compliance, 0.0)
    closers = loops.closing(tree_of(mechanism), mechanism)
    drifts = []
    for timestep in (2e-3, 1e-3):
        start = place(mechanism, {"a": -1.0}, {"a": 5.0})
        run = simulate(
            mechanism,
            start,
            timestep=timestep,
            steps=round(0.2 / timestep),
            joints="rigid",
            diagnostics=True,
            substeps=1,
        )
        gaps = np.asarray(jax.jit(jax.vmap(lambda pose: gap_values(closers, pose)))(run.states.pose))
        stored = 0.5 * np.sum(gaps**2, axis=1) / compliance
        assert np.max(stored) > 1e-3
        whole = np.asarray(run.diagnostics.kinetic + run.diagnostics.potential) + stored
        drifts.append(np.ptp(whole[1:-1]) / np.max(stored))
    assert drifts[-1] < 0.05
    assert min(orders(drifts)) > 1.7


def test_compliant_joints_hold_no_body_of_the_tree():
    tree = tree_of(compliant(fourbar(), "a", 1e-4))
    assert (tree.loops, tree.compliant, tree.rigid_loops) == ((0,), (0,), ())
    mixed = tree_of(compliant(parallelogram(3), "bar0_head", 1e-4))
    assert (len(mixed.loops), len(mixed.rigid_loops)) == (2, 1)
    assert coordinate_names(tree_of(footed()), footed())[-2:] == ("base.rz", "pin")
