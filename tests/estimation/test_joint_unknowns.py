"""Joint coordinates as unknowns: equations of rigid joints, the truth found, the same answer as with stiff joints."""

import numpy as np
import pytest

from dynamics.scenes import with_joints
from estimation.scenes import pulses, spring_slider, twin, with_joint
from estimation.test_fit import TIGHT, planted
from quick import quick
from shadowfit.errors import MechanismError
from shadowfit.estimation import Options, fit
from shadowfit.estimation.problem.options import ProblemError
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.problem import build_problem
from shadowfit.estimation.refits.bootstrap import bootstrap
from shadowfit.estimation.residuals.unknowns.joint import Joint
from shadowfit.evaluation.axis_forces import axis_forces
from shadowfit.mechanism import Coulomb, Mechanism, Sphere, touch
from shadowfit.models import builtin

# Joints of the simulator that are as good as rigid.
RIGID = 1e-12


def rigid(mechanism):
    return with_joints(mechanism, compliance=RIGID)


def fitted(mechanism, recording, free, unknowns="joint", **options):
    settings = Options(**{"state_weight": 1e4, "correction": "none", "unknowns": unknowns, **options})
    return fit(mechanism, recording, free, options=settings, optimiser=TIGHT)


SCENES = {
    "furuta": (
        lambda: rigid(builtin.furuta(friction=False)).set({"hinge1.viscous": 2e-3, "hinge2.viscous": 1e-3}),
        {"hinge2": 2.0},
        0.4,
        {"arm.inertia.zz": 0.01, "pendulum.inertia.yy": 0.01, "hinge?.viscous": 5e-4, "hinge1.motor.gain": 0.2},
    ),
    "cartpole": (
        lambda: rigid(builtin.cartpole()),
        {"pivot": 2.0},
        2.0,
        {"cart.mass": 1.0, "pole.inertia.yy": 0.02, "rail.viscous": 0.1, "pivot.viscous": 5e-3},
    ),
    "chain": (
        lambda: rigid(builtin.chain(4)).set({f"hinge{i}.viscous": 1e-3 for i in range(1, 5)}),
        {"hinge1": 1.2, "hinge2": -0.8, "hinge3": 0.6, "hinge4": 1.0},
        0.0,
        {"link?.inertia.yy": 6e-4, "hinge?.viscous": 5e-4},
    ),
}


@pytest.mark.parametrize("name", quick(SCENES, "furuta", "cartpole"))
def test_the_stepper_with_rigid_joints_leaves_nothing_and_its_parameters_are_found(name):
    """Forward, then inverse: data of the `exact` stepper have no residual, and planted parameters come out."""
    build, start, size, free = SCENES[name]
    mechanism = build()
    recording = twin(mechanism, start, 120, inputs={key: pulses(120, size=size) for key in mechanism.inputs})
    estimate = planted(mechanism, recording, free, unknowns="joint")
    assert estimate.converged, estimate.summary()
    assert estimate.cost < 1e-12
    for row in estimate.parameters:
        assert row.value == pytest.approx(mechanism.get(row.name), rel=1e-5), estimate.summary()


@pytest.mark.slow
def test_same_answer_as_stiff_joints_and_the_states_that_go_with_it():
    mechanism = with_joints(builtin.cartpole(), compliance=1e-9)
    recording = twin(mechanism, {"pivot": 2.0}, 150, noise=1e-3, inputs={"u": pulses(150, size=2.0)})
    free = {"cart.mass": 1.0, "pole.inertia.yy": 0.02, "rail.viscous": 0.1}
    kinds = ("joint", "configuration")
    found = {unknowns: fitted(mechanism, recording, free, unknowns, state_weight=1e7) for unknowns in kinds}
    rows = {unknowns: {row.name: row for row in each.parameters} for unknowns, each in found.items()}
    for name in free:
        joint, stiff = (rows[unknowns][name] for unknowns in found)
        assert joint.value == pytest.approx(stiff.value, abs=0.05 * stiff.std)
        assert joint.std == pytest.approx(stiff.std, rel=0.05)
    states = [each.trajectory().states for each in found.values()]
    np.testing.assert_allclose(states[0].pose.position, states[1].pose.position, atol=2e-4)
    np.testing.assert_allclose(*(each.state_std()[5:-5] for each in found.values()), rtol=0.1, atol=5e-6)


def test_missing_forces_are_those_that_the_model_lacks():
    """A model without viscous friction: what it lacks, against speed, is the friction of the truth."""
    truth = rigid(builtin.cartpole()).set({"pivot.viscous": 0.02})
    recording = twin(truth, {"pivot": 2.0}, 200, inputs={"u": pulses(200, size=2.0)})
    estimate = fitted(truth.set({"pivot.viscous": 0.0}), recording, (), state_weight=1.0)
    found = axis_forces(estimate)[0]["pivot"]
    slope = np.polyfit(found.speed[5:-5], found.force[5:-5], 1)[0]
    assert slope == pytest.approx(-0.02, rel=0.1)
    np.testing.assert_allclose(np.gradient(found.position, found.time)[5:-5], found.speed[5:-5], atol=0.1)
    first, *_, last = np.array_split(found.force, 5)
    np.testing.assert_allclose(found.binned("time", 5).force[[0, -1]], [np.mean(first), np.mean(last)])
    assert np.all(np.diff(found.binned("position", 5).over) > 0.0)


def test_dry_friction_in_proportion_to_the_load():
    """Loads come from the bodies' motion: μ of a bearing is found from data of the stepper at fine steps."""
    truth = rigid(with_joint(builtin.pendulum(), "hinge", friction=Coulomb(dry=2e-2, dry_radius=0.02)))
    recording = twin(truth, {"hinge": 2.5}, 1500, timestep=0.001, every=5)
    free = {"pendulum.inertia.yy": 0.01, "hinge.dry": 1e-2}
    estimate = fitted(truth, recording, free, correction="deferred", state_weight=1e6)
    for row in estimate.parameters:
        assert row.value == pytest.approx(truth.get(row.name), rel=5e-3), estimate.summary()


@pytest.mark.slow
def test_bootstrap_scatters_as_the_linearised_error_bars_say():
    mechanism = rigid(spring_slider())
    recording = twin(mechanism, {"rail": 0.3}, 150, timestep=0.02, noise=1e-2)
    estimate = fitted(mechanism, recording, {"rail.spring.stiffness": 5.0}, timestep=0.02, state_weight=100.0)
    scatter = bootstrap(estimate, replicates=40, seed=1).std
    assert scatter[0] == pytest.approx(estimate.parameters[0].std, rel=0.35)


def test_what_rigid_joints_do_not_describe_is_refused():
    loop = builtin.fourbar()
    recording = twin(loop, {"ground_crank": -1.0}, 20)
    plain = builtin.furuta(friction=False)
    loaded = Mechanism(
        dict(plain.bodies.items()),
        dict(plain.joints.items()),
        contacts={"floor": touch(Sphere(0.1), plain.bodies.names[-1], friction=0.5)},
        inputs=dict(plain.inputs.items()),
    )
    assert Joint.of(loaded).touches
    with pytest.raises(MechanismError, match="joint 'hinge1' rubs in proportion to its load, which contact 'floor'"):
        Joint.of(with_joint(loaded, "hinge1", friction=Coulomb(dry=0.1)))
    with pytest.raises(ProblemError, match="need the residual 'implicit'"):
        build_problem(loop, [recording], parameter_set(loop, ()), Options(unknowns="joint", discretization="spook"))


def test_the_calibrated_mechanism_has_rigid_joints():
    """Else a simulation of the result would let joints give that the fit took for rigid."""
    mechanism = with_joints(builtin.pendulum(), compliance=1e-4)
    estimate = fitted(mechanism, twin(rigid(mechanism), {"hinge": 1.0}, 60), {"pendulum.inertia.yy": 0.01})
    assert 0.0 < estimate.mechanism().get("hinge.compliance.linear") <= 1e-9
    assert estimate.problem.given.get("hinge.compliance.linear") == pytest.approx(1e-4)
