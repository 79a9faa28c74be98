"""Results where simulators read them: the exported machine is ours, however it is written, and nothing else is."""

import ast
from pathlib import Path

import numpy as np
import pytest

from models.robots.test_export import LEG
from models.robots.test_urdf import write
from shadowfit.dynamics import place, simulate
from shadowfit.estimation import fit
from shadowfit.evaluation import load_result
from shadowfit.evaluation.exporting import FRAMEWORKS, ExportError, export
from shadowfit.frames import optional
from shadowfit.models import ModelFileError, load_model, read_model
from shadowfit.recordings import Recording

mujoco = pytest.importorskip("mujoco")
TRUTH = {"hip.viscous": 0.75, "knee.viscous": 0.2, "hip.motor.shaft_inertia": 0.02, "thigh.inertia.yy": 0.024}
FREE = ("hip.viscous", "knee.viscous", "hip.motor.shaft_inertia", "thigh.inertia.yy")
TIME = 0.01 * np.arange(151)
MODEL_FIELDS = ("dof_damping", "dof_armature", "dof_frictionloss", "body_mass", "body_ipos")


def recorded(mechanism, start):
    torque = 2.0 * np.sin(4.0 * TIME) + np.sin(11.0 * TIME)
    run = simulate(mechanism, place(mechanism, start), {"hip_effort": torque[:-1]}, timestep=0.01, steps=len(TIME) - 1)
    noise = np.random.default_rng(0).normal(0.0, 1e-4, (2, len(TIME)))
    angles = {f"{joint}_position": np.asarray(run.readings[f"{joint}_position"]) for joint in ("hip", "knee")}
    noisy = {name: values + own for (name, values), own in zip(angles.items(), noise, strict=True)}
    return Recording(TIME, {**noisy, "hip_effort": torque}, name="swing")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """The robot file of a leg, and a fit to another leg."""
    path = write(tmp_path_factory.mktemp("leg"), LEG, "leg.xml")
    mechanism = read_model(path)
    return path, fit(mechanism, recorded(mechanism.set(TRUTH), {"hip": 0.4}), FREE)


@pytest.fixture(scope="module")
def leg(fitted):
    """The file, and the result of the fit."""
    path, estimate = fitted
    estimate.save(path.parent / "result")
    return path, load_result(path.parent / "result")


def test_an_estimate_is_exported_as_its_result_is(fitted, leg, tmp_path):
    path, estimate = fitted
    (one,) = export(estimate, path, out=tmp_path / "one.xml").paths
    (two,) = export(leg[1], path, out=tmp_path / "two.xml").paths
    assert one.read_bytes() == two.read_bytes()


@pytest.fixture
def place_for_files(leg, tmp_path):
    """A copy of the robot file to export beside."""
    path, result = leg
    return write(tmp_path, path.read_text("utf-8"), "leg.xml"), result


def full_inertia(model, body):
    turned = np.zeros(9)
    mujoco.mju_quat2Mat(turned, model.body_iquat[body])
    axes = turned.reshape(3, 3)
    return axes @ np.diag(model.body_inertia[body]) @ axes.T


def test_the_exported_machine_moves_as_ours(place_for_files):
    file, result = place_for_files
    (path,) = export(result, file).paths
    assert file.read_text("utf-8") == LEG
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep = 1e-4
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    data = mujoco.MjData(model)
    data.qpos[:] = 0.6, -0.3
    for _ in range(5000):
        mujoco.mj_step(model, data)
    ours = result.mechanism()
    run = simulate(ours, place(ours, {"hip": 0.6, "knee": -0.3}), timestep=0.01, steps=50)
    reached = [np.asarray(run.readings[f"{joint}_position"])[-1] for joint in ("hip", "knee")]
    np.testing.assert_allclose(reached, data.qpos, atol=5e-4)


def test_draws_as_files_and_as_one_module_are_the_same_machines(place_for_files):
    file, result = place_for_files
    files = export(result, file, "mujoco", draws=3, seed=5).paths
    assert [path.name for path in files] == [f"leg.calibrated.{number}.xml" for number in range(3)]
    (path,) = export(result, file, "mjx", draws=3, seed=5).paths
    space: dict = {}
    exec(compile(path.read_text("utf-8"), path, "exec"), space)
    plain = mujoco.MjModel.from_xml_path(str(file))
    for number, own in enumerate(files):
        expected, applied = mujoco.MjModel.from_xml_path(str(own)), space["applied"](plain, number)
        for field in MODEL_FIELDS:
            np.testing.assert_allclose(getattr(applied, field), getattr(expected, field), rtol=1e-9, atol=1e-12)
        for body in range(1, plain.nbody):
            np.testing.assert_allclose(full_inertia(applied, body), full_inertia(expected, body), atol=1e-12)
    drawn = result.draw(3, 5).to_dict()["hip.viscous"]
    np.testing.assert_allclose(space["JOINTS"]["hip"]["viscous"], drawn, rtol=1e-12)


def test_all_machines_are_one_batch_in_mjx(place_for_files):
    pytest.importorskip("mujoco.mjx")
    file, result = place_for_files
    (path,) = export(result, file, "mjx", draws=4).paths
    space: dict = {}
    exec(compile(path.read_text("utf-8"), path, "exec"), space)
    model = mujoco.MjModel.from_xml_path(str(file))
    batch, axes = space["machines"](model)
    assert batch.dof_damping.shape == (4, model.nv)
    np.testing.assert_allclose(batch.dof_damping[:, 0], space["JOINTS"]["hip"]["viscous"], rtol=1e-6)
    assert axes.dof_damping == 0
    assert axes.qpos0 is None


@pytest.mark.slow
def test_a_batch_in_mjx_moves_as_our_machines(place_for_files):
    """With steps of a millisecond: what is left is the integrators' difference, MJX's in single precision."""
    jax, mjx = pytest.importorskip("jax"), pytest.importorskip("mujoco.mjx")
    file, result = place_for_files
    (path,) = export(result, file, "mjx", draws=2, seed=3).paths
    space: dict = {}
    exec(compile(path.read_text("utf-8"), path, "exec"), space)
    model = mujoco.MjModel.from_xml_path(str(file))
    model.opt.timestep = 1e-3
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    batch, axes = space["machines"](model)

    def end(one):
        start = mjx.make_data(one).replace(qpos=jax.numpy.array([0.6, -0.3]))
        return jax.lax.scan(lambda data, _: (mjx.step(one, data), None), start, length=300)[0].qpos

    ends = np.asarray(jax.jit(jax.vmap(end, in_axes=(axes,)))(batch))
    draws = result.draw(2, 3)
    for number, reached in enumerate(ends):
        ours = draws.mechanism(number)
        run = simulate(ours, place(ours, {"hip": 0.6, "knee": -0.3}), timestep=0.01, steps=30)
        expected = [np.asarray(run.readings[f"{joint}_position"])[-1] for joint in ("hip", "knee")]
        np.testing.assert_allclose(reached, expected, atol=3e-3)


@pytest.mark.parametrize("framework", ["isaaclab", "mjlab"])
def test_ranges_enclose_as_many_machines_as_they_say(place_for_files, framework):
    file, result = place_for_files
    (path,) = export(result, file, framework, ranges=0.8).paths
    tree = ast.parse(path.read_text("utf-8"))
    values = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id in ("LINKS", "JOINTS")
    }
    low, middle, high = values["JOINTS"]["knee"]["viscous"]
    drawn = result.draw(2000, 7).to_dict()["knee.viscous"]
    assert np.mean((drawn > low) & (drawn < high)) == pytest.approx(0.8, abs=0.05)
    assert middle == result.mechanism().get("knee.viscous")
    assert low < middle < high
    assert "Written for" in ast.get_docstring(tree)


@pytest.mark.parametrize("framework", ["genesis", "newton"])
def test_what_a_framework_has_no_place_for_is_listed(tmp_path, place_for_files, framework):
    file, result = place_for_files
    made = export(result, file, framework)
    compile(made.paths[0].read_text("utf-8"), "module", "exec")
    assert ("hip.viscous" in made.homeless) == (framework == "newton")


def stage(folder, metres=1.0):
    """The leg's bodies and joints on a stage in some unit of length."""
    usd, geometry, physics = (optional(f"pxr.{name}", "usd") for name in ("Usd", "UsdGeom", "UsdPhysics"))
    made = usd.Stage.CreateNew(str(folder / "leg.usda"))
    geometry.SetStageMetersPerUnit(made, metres)
    geometry.SetStageUpAxis(made, "Z")
    for name in ("thigh", "shin"):
        physics.RigidBodyAPI.Apply(geometry.Xform.Define(made, f"/leg/{name}").GetPrim())
    for name in ("hip", "knee"):
        physics.RevoluteJoint.Define(made, f"/leg/{name}")
    made.Save()
    return folder / "leg.usda"


@pytest.mark.parametrize("metres", [1.0, 0.01])
def test_a_layer_over_a_stage(leg, tmp_path, metres):
    pytest.importorskip("pxr")
    usd, physics, gf = (optional(f"pxr.{name}", "usd") for name in ("Usd", "UsdPhysics", "Gf"))
    path, ours = stage(tmp_path, metres), leg[1].mechanism()
    before = path.read_bytes()
    made = export(leg[1], path)
    assert path.read_bytes() == before
    assert made.paths[0].name == "leg.calibrated.usda"
    opened = usd.Stage.Open(str(made.paths[0]))
    assert opened.GetMetadata("upAxis") == "Z"
    assert opened.GetMetadata("metersPerUnit") == metres
    hip, thigh = opened.GetPrimAtPath("/leg/hip"), physics.MassAPI(opened.GetPrimAtPath("/leg/thigh"))
    unit = metres**-2
    assert hip.GetAttribute("mjc:damping").Get() == pytest.approx(ours.get("hip.viscous") * unit)
    physx = hip.GetAttribute("physxJointAxis:angular:viscousFrictionCoefficient").Get()
    assert physx == pytest.approx(ours.get("hip.viscous") * unit * np.pi / 180.0, rel=1e-6)
    assert {"MjcJointAPI", "PhysxJointAxisAPI:angular"} <= set(hip.GetPrimTypeInfo().GetAppliedAPISchemas())
    assert thigh.GetMassAttr().Get() == pytest.approx(ours.get("thigh.mass"))
    axes = np.array(gf.Matrix3d(gf.Quatd(thigh.GetPrincipalAxesAttr().Get()))).T
    inertia = axes @ np.diag(thigh.GetDiagonalInertiaAttr().Get()) @ axes.T
    expected = unit * np.array(ours.bodies["thigh"].inertia.rows())
    np.testing.assert_allclose(inertia, expected, atol=1e-6 * np.abs(expected).max())


def test_a_stage_without_the_joint_is_refused(leg, tmp_path):
    pytest.importorskip("pxr")
    usd = optional("pxr.Usd", "usd")
    path = stage(tmp_path)
    opened = usd.Stage.Open(str(path))
    opened.RemovePrim("/leg/knee")
    opened.Save()
    with pytest.raises(ModelFileError, match="no joint 'knee'; it has hip"):
        export(leg[1], path)
    write(tmp_path, "nonsense", "broken.usda")
    with pytest.raises(ModelFileError, match="cannot be opened"):
        export(leg[1], tmp_path / "broken.usda")


def test_nothing_is_overwritten_unasked(place_for_files):
    file, result = place_for_files
    (path,) = export(result, file).paths
    path.write_text("mine")
    with pytest.raises(ExportError, match="exists"):
        export(result, file)
    assert path.read_text() == "mine"
    export(result, file, replace=True)
    assert load_model(path).mechanism.get("hip.viscous") == result.mechanism().get("hip.viscous")


@pytest.mark.parametrize(
    ("framework", "options", "message"),
    [
        ("mujuco", {}, "no framework 'mujuco'.*mujoco"),
        ("usd", {}, "must be a file .usd"),
        ("urdf", {}, "must be a file .urdf"),
        ("mujoco", {"ranges": 0.9}, "no place for ranges"),
        ("mjlab", {"draws": 3}, "draws by itself from ranges"),
        ("mjlab", {"ranges": 95.0}, "part of the machines"),
        ("mujoco", {"draws": -1}, "from 1 on"),
    ],
)
def test_what_does_not_go_together_is_a_sentence(leg, framework, options, message):
    with pytest.raises(ExportError, match=message):
        export(leg[1], leg[0], framework, **options)


def test_every_framework_is_documented():
    text = (Path(__file__).parents[2] / "docs" / "robots.md").read_text("utf-8")
    assert all(f"`{name}`" in text for name in FRAMEWORKS)


def test_inertias_are_turned_into_the_frames_of_genesis(place_for_files):
    """Its links keep the inertial frame of their file: a quaternion there gives the same inertia in the link's axes."""
    file, result = place_for_files
    (path,) = export(result, file, "genesis").paths
    space: dict = {}
    exec(compile(path.read_text("utf-8"), path, "exec"), space)
    quat = np.array([0.5, -0.1, 0.7, 0.2])
    quat /= np.linalg.norm(quat)
    expected = np.zeros(9)
    mujoco.mju_quat2Mat(expected, quat)
    np.testing.assert_allclose(space["rotation"](quat), expected.reshape(3, 3), atol=1e-12)
