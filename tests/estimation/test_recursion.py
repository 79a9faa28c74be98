"""The recursion over a tree: equal to the step written out, derivatives, an independent engine, planted truth."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynamics.test_tree import branched
from estimation.arms import AXES, arm, as_motions, coupled, driven, impulses, sweep_of, torso
from estimation.scenes import dc_cartpole, full_furuta
from quick import quick
from shadowfit.dynamics.tree import tree_of
from shadowfit.estimation import Options, fit
from shadowfit.estimation.problem.dependencies import make_plan
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.residuals import joint_transition
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.estimation.residuals.recursion import TreeRows
from shadowfit.estimation.residuals.stopping import Stopping, stick_times
from shadowfit.geometry import Pose, rotations
from shadowfit.kernels import mapped, over_time
from shadowfit.models import builtin

STEPS, TIMESTEP = 5, 0.01

GEARED = "hinge1.load_loss hinge1.stribeck_gear_loss hinge1.stribeck_load_loss"
SCENES = {
    "cartpole": (
        builtin.cartpole,
        "cart.mass cart.com.? pole.mass pole.com.? pole.inertia.* rail.viscous rail.parent_* rail.child_* "
        "pivot.parent_* pivot.child_* gravity.*",
    ),
    "branched": (branched, "*.mass *.com.? *.inertia.* *_point.? *.parent_rotation"),
    "laws": (
        full_furuta,
        "arm.* pendulum.* hinge?.viscous hinge1.motor.gain hinge1.motor.shaft_inertia hinge1.stribeck "
        "hinge1.stribeck_coulomb hinge1.stribeck_rate hinge1.stribeck_exponent hinge1.dry "
        "hinge1.coulomb hinge1.asymmetry hinge1.gear_loss "
        "hinge2.spring.stiffness hinge2.spring.rest push.* u.* w.gain gravity.* hinge?.parent_* hinge2.child_*",
    ),
    "geared": (
        lambda: full_furuta().set(dict.fromkeys(GEARED.split(), 0.1)),
        f"{GEARED} hinge1.gear_loss hinge1.motor.gain arm.mass pendulum.inertia.* u.*",
    ),
    "motor": (dc_cartpole, "rail.motor.* cart.* pole.*"),
    "coupled": (lambda: coupled(3), "link2.mass joint3.coulomb shaft.viscous shaft.coulomb shaft.shaft_inertia"),
    "chain": (lambda: builtin.chain(5, friction=True), "*.mass hinge?.viscous hinge?.coulomb hinge3.child_point.x"),
}


@mapped
def _moved(position, orientation, step):
    moved = Pose(position, orientation).plus(step)
    return jnp.concatenate([moved.position, moved.orientation], axis=-1)


@mapped
def _turned(quaternion, step):
    return rotations.plus_local(quaternion, step)


def moved(pose, steps):
    bodies = pose.position.shape[-2]
    flat = [x.reshape(-1, bodies, x.shape[-1]) for x in (pose.position, pose.orientation, steps)]
    found = _moved(*flat).reshape(*pose.position.shape[:-1], 7)
    return Pose(found[..., :3], found[..., 3:])


@dataclasses.dataclass(frozen=True)
class Scene:
    """A machine in motion, its rows by recursion, and its missing impulses written out."""

    rows: np.ndarray
    alone: np.ndarray
    """Missing impulses by recursion, without derivatives."""
    braked: object
    """Stopping speeds and speeds by recursion."""
    written: object
    """Missing impulses, stopping speeds and speeds as functions of values, windows of poses and commands."""
    layout: object
    tree: object
    values: Values
    windows: Pose
    command: np.ndarray
    slopes: np.ndarray


@functools.cache
def scene(name):
    build, patterns = SCENES[name]
    mechanism = build()
    parameters = parameter_set(mechanism, patterns.split())
    layout = make_plan(mechanism, parameters, Options(unknowns="joint"), 3, True).layout
    tree = tree_of(mechanism)
    rng = np.random.default_rng(4)
    bodies, inputs = len(mechanism.bodies), len(mechanism.inputs)
    still = Pose(np.zeros((STEPS + 2, bodies, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (STEPS + 2, bodies, 1)))
    time = TIMESTEP * np.arange(STEPS + 2)[:, None]
    path = rng.uniform(-1, 1, tree.size) + time * rng.standard_normal(tree.size)
    path = path + TIMESTEP**2 * 5.0 * rng.standard_normal(path.shape)
    nodes = moved(still, (path @ tree.selection()).reshape(STEPS + 2, bodies, 6))
    named = parameters.named(parameters.start(), 0)
    numbers = np.array([named[n] for n in layout.numbers])
    values = Values(numbers, np.array([named[n] for n in layout.turns]).reshape(-1, 4))
    command, slopes = rng.standard_normal((STEPS, inputs)), rng.standard_normal((STEPS, inputs, len(layout.inputs)))
    recursion = TreeRows(layout, tree, mechanism)
    braked = recursion.braked(values, nodes, command, TIMESTEP)
    widths = Stopping(braked.stopped).widths(np.array(stick_times(tree, mechanism)), TIMESTEP)
    rows = recursion.rows(values, nodes, (command, slopes), TIMESTEP, widths)
    alone = recursion.missing(values, nodes, command, TIMESTEP, widths)

    leaves, structure = jax.tree.flatten(mechanism)

    def one(settings, constants, varying):
        whole = jax.tree.unflatten(structure, settings)
        now = layout.write(whole, Values(*constants), jnp.zeros(layout.size))
        motions, timestep = Pose(*varying[:2]), jnp.asarray(TIMESTEP)
        here = joint_transition.balance_of(tree, now, motions, varying[2], timestep, varying[3])
        return here.missing, *joint_transition.braked(tree, now, motions, varying[2], timestep)

    shapes = [np.empty((3, bodies, 3)), np.empty((3, bodies, 4)), np.empty(inputs), np.empty(widths.shape[1])]
    settings = [np.asarray(leaf) for leaf in leaves]
    kernel = over_time(one, settings, [values.numbers, values.turns], shapes, f"written out {layout} {structure}")

    def written(values, windows, command):
        given = [windows.position, windows.orientation, command, widths]
        return kernel(settings, [values.numbers, values.turns], given)

    windows = Pose(
        *(np.stack([x[i : i + STEPS] for i in range(3)], axis=1) for x in (nodes.position, nodes.orientation))
    )
    # A copy: what is kept to the end must not lie in memory that is handed around.
    return Scene(rows.copy(), alone, braked, written, layout, tree, values, windows, command, slopes)


@pytest.mark.parametrize("name", quick(SCENES, "laws"))
def test_missing_impulses_are_those_of_the_step_written_out(name):
    found = scene(name)
    expected, *braked = found.written(found.values, found.windows, found.command)
    np.testing.assert_allclose(found.rows[..., -1], expected, rtol=1e-10, atol=1e-12 * np.abs(expected).max())
    for own, other in zip(found.braked, braked, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-12 * np.abs(other).max())


@pytest.mark.parametrize("name", quick(SCENES, "laws"))
def test_impulses_without_derivatives_are_the_same(name):
    found = scene(name)
    size = np.abs(found.rows[..., -1]).max()
    np.testing.assert_allclose(found.alone, found.rows[..., -1], rtol=1e-12, atol=1e-13 * size)


def close(found, expected, size, rtol=1e-6):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * size)


@pytest.mark.parametrize("name", quick(SCENES, "laws"))
def test_derivatives_by_the_configurations_are_differences(name):
    found = scene(name)
    size, bodies = found.tree.size, found.windows.position.shape[-2]
    for time in range(3):
        for i in range(size):
            step = np.zeros((STEPS, 3, bodies, 6))
            step[:, time] = 1e-6 * found.tree.selection()[i].reshape(bodies, 6)
            both = [found.written(found.values, moved(found.windows, s * step), found.command)[0] for s in (1, -1)]
            own = found.rows[:, :, time * size + i]
            close(own, (both[0] - both[1]) / 2e-6, np.abs(found.rows[..., : 3 * size]).max())


@pytest.mark.parametrize("name", quick(SCENES, "laws"))
def test_derivatives_by_the_parameters_are_differences(name):
    found = scene(name)
    layout, values = found.layout, found.values
    first = 3 * found.tree.size
    table = found.rows[..., first:-1]
    # A number that is zero says nothing about its size; that of others of its kind does.
    for k, parameter in enumerate(layout.numbers):
        column = layout.order[k]
        step = 1e-6 * (max(1e-2, abs(values.numbers[k])) if "inertia" in parameter else 1.0)
        if column in layout.inputs:
            change = step * found.slopes[:, :, layout.inputs.index(column)]
            both = [found.written(values, found.windows, found.command + s * change)[0] for s in (1, -1)]
        else:
            steps = [values.numbers + s * step * np.eye(len(values.numbers))[k] for s in (1, -1)]
            both = [found.written(Values(n, values.turns), found.windows, found.command)[0] for n in steps]
        close(table[..., column], (both[0] - both[1]) / (2 * step), np.abs(table).max(), 1e-5)
    for k in range(len(layout.turns)):
        for i in range(3):
            turned = [
                _turned(values.turns, s * 1e-6 * np.outer(np.eye(len(layout.turns))[k], np.eye(3)[i])) for s in (1, -1)
            ]
            both = [found.written(Values(values.numbers, t), found.windows, found.command)[0] for t in turned]
            column = layout.order[len(layout.numbers) + 3 * k + i]
            close(table[..., column], (both[0] - both[1]) / 2e-6, np.abs(table).max(), 1e-5)


def mjcf(mechanism, parents):
    """The same tree for MuJoCo; shafts are its armature."""

    def numbers(values):
        return " ".join(f"{x:.17g}" for x in values)

    def link(i):
        body, joint = mechanism.bodies[f"link{i}"], mechanism.joints[f"joint{i}"]
        inertia = [mechanism.get(f"link{i}.inertia.{name}") for name in ("xx", "yy", "zz", "xy", "xz", "yz")]
        shaft = mechanism.get(f"joint{i}.motor.shaft_inertia")
        inside = "".join(link(k + 1) for k, parent in enumerate(parents) if parent == i)
        return (
            f'<body pos="{numbers(joint.parent_point)}">'
            f'<inertial pos="{numbers(body.com)}" mass="{float(body.mass):.17g}" fullinertia="{numbers(inertia)}"/>'
            f'<joint type="hinge" axis="{numbers(AXES[i % 3])}" armature="{shaft:.17g}"/>{inside}</body>'
        )

    roots = "".join(link(k + 1) for k, parent in enumerate(parents) if parent == 0)
    return (
        f'<mujoco><option gravity="0 0 {-mechanism.get("gravity.acceleration"):.17g}"/>'
        '<compiler balanceinertia="false" boundmass="0" inertiafromgeom="false"/>'
        f"<worldbody>{roots}</worldbody></mujoco>"
    )


def test_torques_are_those_of_mujoco_in_the_limit_of_short_steps():
    mujoco = pytest.importorskip("mujoco")
    parents = torso(12)
    smooth = arm(12, parents)
    rubbing = [n for pattern in ("*.viscous", "*.coulomb", "*.dry") for n in smooth.expand(pattern)]
    smooth = smooth.set(dict.fromkeys(rubbing, 0.0))
    steps, timestep = 6, 1e-3
    at = timestep * np.arange(-1, steps + 1)[:, None]
    rng = np.random.default_rng(3)
    size, rate, phase = rng.uniform(0.2, 0.8, 12), rng.uniform(1.0, 6.0, 12), rng.uniform(0.0, 6.0, 12)
    path = size * np.sin(rate * at + phase)
    sweep, values = sweep_of(smooth, ())
    found = impulses(sweep, values, as_motions(path), np.zeros((steps, 12)), timestep) / timestep
    model = mujoco.MjModel.from_xml_string(mjcf(smooth, parents))
    data = mujoco.MjData(model)
    # MuJoCo numbers joints depth first, links here are numbered as they were listed.
    order = []

    def visit(i):
        order.append(i)
        for k, parent in enumerate(parents):
            if parent == i + 1:
                visit(k)

    for k, parent in enumerate(parents):
        if parent == 0:
            visit(k)
    for k in range(steps):
        now = at[k + 1]
        data.qpos[:] = path[k + 1][order]
        data.qvel[:] = (size * rate * np.cos(rate * now + phase))[order]
        data.qacc[:] = (-size * rate**2 * np.sin(rate * now + phase))[order]
        mujoco.mj_inverse(model, data)
        np.testing.assert_allclose(found[k][order], data.qfrc_inverse, atol=1e-4 * np.abs(data.qfrc_inverse).max())


@pytest.mark.slow
@pytest.mark.parametrize(("joints", "parents"), [(7, None), (12, torso(12))], ids=["arm", "torso"])
def test_planted_parameters_of_machines_with_many_joints_are_found(joints, parents):
    """Torques from inverse dynamics leave no residual, and what they belong to comes out."""
    truth = arm(joints, parents)
    recording = driven(truth, 100)
    names = [n for pattern in ("*.viscous", "*.coulomb", "*.shaft_inertia") for n in truth.expand(pattern)]
    start = {name: (1.5 if i % 2 else 0.7) * truth.get(name) for i, name in enumerate(names)}
    options = Options(unknowns="joint", correction="none", state_weight=1.0, stick_time=None)
    estimate = fit(truth, recording, start, options=options)
    assert estimate.converged, estimate.summary()
    assert estimate.problem.kernels.recursion is not None
    for row in estimate.parameters:
        assert row.value == pytest.approx(truth.get(row.name), rel=1e-5), estimate.summary()


@pytest.mark.slow
def test_all_inertial_numbers_of_an_arm_take_few_iterations():
    """Equations that are believed next to exactly are a curved valley, along which no step may be refused."""
    truth = arm(6)
    recording = driven(truth, 3000, noise=1e-4)
    free = ("*.mass", "*.com.?", "*.inertia.*", "*.viscous", "*.coulomb", "*.dry", "*.shaft_inertia")
    rng = np.random.default_rng(2)
    start = {name: truth.get(name) * rng.uniform(0.8, 1.25) for pattern in free for name in truth.expand(pattern)}
    assert len(start) == 84
    options = Options(unknowns="joint", correction="none", state_weight=1e8)
    estimate = fit(truth, recording, start, options=options)
    assert estimate.converged
    # Nothing but the sensors' noise is left, of 18,000 readings; how long the bottom of the valley is followed after
    # that hangs on rounding.
    noise = 18_000 * 1e-8
    assert next(entry.number for entry in estimate.log if entry.cost < 1.03 * noise) <= 12
    assert estimate.cost * len(recording.time) == pytest.approx(noise, rel=0.03)
