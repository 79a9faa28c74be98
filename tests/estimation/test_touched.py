"""Contacts and end stops in joint coordinates: rows vanish along simulations, have their derivatives, find truths."""

import numpy as np
import pytest

from dynamics.test_rigid_contacts import hopper, jammed, start_of
from estimation.scenes import all_rows, problem_of, with_joint
from estimation.test_linearise import slope_along
from quick import quick
from shadowfit.dynamics import place, simulate
from shadowfit.errors import MechanismError
from shadowfit.estimation import Free, LevenbergMarquardt, Options, fit
from shadowfit.estimation.fit import start_point
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import build_problem
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.residuals.unknowns.joint import Joint
from shadowfit.evaluation.rules import edges
from shadowfit.geometry import Pose
from shadowfit.mechanism import (
    Body,
    BodyOrientation,
    Coulomb,
    JointLimit,
    JointPosition,
    Mechanism,
    PointPosition,
    Sphere,
    hinge,
    touch,
)
from shadowfit.recordings import Recording

H = 2e-3
STOPS = {"compliance": 1e-4, "damping": 2e-3}


def stopped(links=1):
    """A chain of rods that swings into the stops of its first and last joint."""
    joints, bodies, base = {}, {}, "world"
    for i in range(links):
        name = f"rod{i}"
        bodies[name] = Body(0.5, (4e-3, 4e-3, 4e-3))
        places = {"parent_point": (0, 0, -0.3 if i else 0.0), "child_point": (0, 0, 0.3)}
        joints[f"pin{i}"] = hinge(base, name, axis=(0, 1, 0), viscous=5e-3, compliance=1e-12, **places)
        base = name
    stops = {"stop": JointLimit("pin0", lower=-0.2, upper=2.0, **STOPS)}
    if links > 1:
        stops["last"] = JointLimit(f"pin{links - 1}", lower=-0.3, upper=0.6, **STOPS)
    sensors = {f"angle{i}": JointPosition(f"pin{i}", 1e-3) for i in range(links)}
    return Mechanism(bodies, joints, contacts=stops, sensors=sensors, name=f"stopped{links}")


def swinging(links=1):
    mechanism = stopped(links)
    # A long chain is slow: it starts near its stop.
    return mechanism, place(mechanism, *(({"pin0": 1.0}, {}) if links < 6 else ({"pin0": 0.1}, {"pin0": -3.0})))


TABLE = {"friction": 0.4, "compliance": 1e-5, "damping": 4e-3, "stick_time": 1e-4}


def scraping():
    """Two rods that swing over a table and scrape along it."""
    plain = stopped(2)
    tip = touch(Sphere(0.03), "rod1", center=(0, 0, -0.3), plane_point=(0, 0, -1.1), **TABLE)
    parts = (dict(plain.bodies.items()), dict(plain.joints.items()))
    mechanism = Mechanism(*parts, contacts={"table": tip}, sensors=dict(plain.sensors.items()), name="scraping")
    return mechanism, place(mechanism, {"pin0": 0.6, "pin1": 0.2})


def hopping():
    """A floating trunk whose foot and belly fall on a floor."""
    plain = hopper()
    sensors = {"angle": JointPosition("hip", 1e-3), "turn": BodyOrientation("trunk"), "at": PointPosition("trunk")}
    parts = (dict(plain.bodies.items()), dict(plain.joints.items()))
    mechanism = Mechanism(*parts, contacts=dict(plain.contacts.items()), sensors=sensors, name="hopper")
    return mechanism, start_of(mechanism)


def jamming():
    """A four-bar linkage whose crank meets a stop."""
    mechanism = jammed()
    return mechanism, place(mechanism, {"a": 0.9}, {"a": 2.0})


def run_of(mechanism, start, steps=300, **options):
    return simulate(mechanism, start, timestep=H, steps=steps, joints="rigid", **options, substeps=1)


def recorded(mechanism, run):
    channels = {name: np.zeros(len(run)) for name in mechanism.inputs}
    for name, sensor in mechanism.sensors.items():
        values = np.asarray(run.readings[name]).reshape(len(run), -1)
        channels |= dict(zip(sensor.channels(name), values.T, strict=True))
    return Recording(np.asarray(run.time), channels)


def along(mechanism, start, free, **options):
    """A problem, and the point of a simulation's own motion and parameters."""
    run = run_of(mechanism, start)
    recording = recorded(mechanism, run)
    inner = Recording(recording.time[1:-1], {name: values[1:-1] for name, values in recording.channels.items()})
    problem = problem_of(mechanism, inner, free, unknowns="joint", timestep=H, **options)
    values = problem.parameters.start()
    bodies = Pose(np.asarray(run.states.pose.position), np.asarray(run.states.pose.orientation))
    return problem, Point(values, (Nodes(problem.at(values, 0).nodes(bodies), None),))


STOPPED = ("stop.lower", "stop.damping", "last.lower", "rod1.mass", "pin1.viscous")
SCENES = {
    "stops": (lambda: swinging(2), STOPPED),
    "stops of a long chain": (lambda: swinging(6), STOPPED),
    "table": (scraping, ("table.friction", "table.plane_point.z", "table.damping", "rod1.mass", "pin1.viscous")),
    "hopper": (hopping, ("foot.friction", "foot.plane_point.z", "stop.damping", "trunk.mass", "hip.viscous")),
    "loop": (jamming, ("stop.upper", "stop.damping", "coupler.mass")),
}


@pytest.mark.parametrize("scene", quick(SCENES, "stops of a long chain", "table"))
def test_rows_vanish_along_simulations_and_have_the_derivatives_of_their_residuals(scene):
    make, free = SCENES[scene]
    problem, point = along(*make(), free)
    assert (problem.kernels.recursion is not None) == ("long" in scene)
    here, commands = problem.at(point.values, 0), problem.commands_at(point.values, 0)
    left = here.dynamics_residuals(point.nodes[0].pose, commands, H)
    assert np.max(np.abs(left)) < 1e-9  # [N s, N m s]
    rows = all_rows(problem, point)
    rng = np.random.default_rng(2)
    still = np.zeros((problem.node_count(0), problem.plan.node_size))
    states = rng.standard_normal(still.shape)
    check(rows.states @ states.ravel(), slope_along(problem, point, states, np.zeros(len(free)), 1e-10))
    # All parameters at once, each about as strongly as the others.
    size = np.max(np.abs(rows.parameters), axis=0)
    assert np.count_nonzero(size) >= len(free) - 1
    mixed = np.where(size > 0.0, rng.choice([-1.0, 1.0], len(size)), 0.0) / np.where(size > 0.0, size, 1.0)
    scale = np.min(problem.parameters.scales[size > 0.0] / np.abs(mixed[size > 0.0]))
    check(rows.parameters @ mixed, slope_along(problem, point, still, mixed, 1e-6 * scale))


def check(own, numeric):
    np.testing.assert_allclose(own, numeric, rtol=0.0, atol=2e-4 * np.max(np.abs(numeric)))


@pytest.mark.slow
def test_a_stop_and_its_damping_are_found():
    mechanism, start = swinging()
    options = Options(timestep=H, state_weight=1e4, stick_time=None, cutoff=200.0)
    begin = {"stop.lower": -0.19, "stop.damping": 4e-3, "rod0.inertia.yy": 6e-3, "pin0.viscous": 7.5e-3}
    tight = LevenbergMarquardt(max_iterations=60, decrease_tolerance=1e-12, step_tolerance=1e-10)
    found = fit(mechanism, recorded(mechanism, run_of(mechanism, start)), begin, options=options, optimiser=tight)
    assert (found.problem.options.unknowns, found.problem.options.correction) == ("joint", "none")
    for row in found.parameters:
        assert row.value == pytest.approx(mechanism.get(row.name), rel=1e-5), found.summary()


@pytest.mark.parametrize("height", [-1.101, -1.13], ids=["touched", "below all motion"])
def test_friction_and_height_of_a_plane_are_found(height):
    mechanism, start = scraping()
    options = Options(timestep=H, state_weight=1e4, stick_time=None, cutoff=200.0)
    begin = {"table.friction": 0.3, "table.plane_point.z": height}
    tight = LevenbergMarquardt(max_iterations=60, decrease_tolerance=1e-12, step_tolerance=1e-10)
    found = fit(mechanism, recorded(mechanism, run_of(mechanism, start)), begin, options=options, optimiser=tight)
    assert (found.problem.options.unknowns, found.problem.options.correction) == ("joint", "none")
    for row in found.parameters:
        assert row.value == pytest.approx(mechanism.get(row.name), rel=1e-4), found.summary()


def test_a_fit_that_ends_on_an_edge_of_the_cost_does_not_end_green():
    """A given weight keeps the fit of a rod at a stop from its minimum; noise levels from the data lead there."""
    mechanism, start = swinging()
    recording = noisy(mechanism, recorded(mechanism, run_of(mechanism, start)))
    begin = {"stop.lower": -0.18, "rod0.inertia.yy": 4.8e-3}
    wrong, right = (
        fit(mechanism, recording, begin, options=Options(timestep=H, state_weight=weight)) for weight in (1e4, "auto")
    )
    assert wrong.converged
    assert wrong.parameters[0].value > -0.19
    (notice,) = edges(wrong)
    assert notice.severity == "amber"
    assert right.parameters[0].value == pytest.approx(-0.2, abs=2.0 * right.parameters[0].std)
    assert right.unkept_promise < 1e-6
    assert not list(edges(right))


def noisy(mechanism, recording):
    """With the sensors' noise."""
    random, channels = np.random.default_rng(0), dict(recording.channels)
    for name, sensor in mechanism.sensors.items():
        channels[name] = channels[name] + float(sensor.std) * random.standard_normal(len(recording.time))
    return Recording(recording.time, channels)


def test_a_stop_that_no_recording_surely_reaches_starts_where_the_nearest_one_does():
    mechanism, _ = swinging()
    runs = [recorded(mechanism, run_of(mechanism, place(mechanism, {"pin0": angle}), 100)) for angle in (0.5, 1.0)]
    sure = [float(np.min(run.channels["angle0"])) + 2.0 * float(mechanism.get("angle0.std")) for run in runs]

    def starts(free):
        options = Options(timestep=H, cutoff=249.0, state_weight=1e4)  # next to no filter
        problem = build_problem(mechanism, runs, parameter_set(mechanism, free, 2), options)
        return start_point(problem).values.numbers

    np.testing.assert_allclose(starts({"stop.lower": -0.9}), min(sure), atol=1e-4)
    np.testing.assert_allclose(starts({"stop.lower": Free(-0.9, per_recording=True)}), sure, atol=1e-4)
    # One that is reached stays where it is put, and none leaves its bounds.
    assert starts({"stop.lower": 0.3}) == [0.3]
    assert starts({"stop.lower": Free(-0.9, upper=-0.8)}) == [-0.8]


def test_loads_that_contacts_change_are_refused():
    mechanism, _ = jamming()
    with pytest.raises(MechanismError, match=r"joint 'a' rubs in proportion to its load, which contact 'stop' changes"):
        Joint.of(with_joint(mechanism, "a", friction=Coulomb(dry=0.1)))
