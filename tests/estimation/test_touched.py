"""End stops in joint coordinates: rows vanish along simulations, have their derivatives, and find truths."""

import numpy as np
import pytest

from dynamics.linkages import fourbar
from estimation.scenes import all_rows, problem_of
from estimation.test_linearise import slope_along
from shadowfit.dynamics import place, simulate
from shadowfit.errors import MechanismError
from shadowfit.estimation import LevenbergMarquardt, Options, fit
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.residuals.unknowns import joint as joint_unknowns
from shadowfit.estimation.residuals.unknowns.joint import Joint
from shadowfit.geometry import Pose
from shadowfit.mechanism import Body, JointLimit, JointPosition, Mechanism, hinge
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
    return mechanism, place(mechanism, {"pin0": 1.0})


def run_of(mechanism, start, steps=300, **options):
    return simulate(mechanism, start, timestep=H, steps=steps, joints="rigid", **options)


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


FREE = ("stop.lower", "stop.damping", "last.lower", "rod1.mass", "pin1.viscous")


@pytest.mark.parametrize("swept", [False, True])
def test_rows_vanish_along_simulations_and_have_the_derivatives_of_their_residuals(swept, monkeypatch):
    monkeypatch.setattr(joint_unknowns, "LARGEST_STEP", 0 if swept else 10**9)
    problem, point = along(*swinging(2), FREE)
    assert (problem.kernels.recursion is not None) == swept
    here, commands = problem.at(point.values, 0), problem.commands_at(point.values, 0)
    left = here.dynamics_residuals(point.nodes[0].pose, commands, H)
    assert np.max(np.abs(left)) < 1e-9  # [N s, N m s]
    rows = all_rows(problem, point)
    rng = np.random.default_rng(2)
    still = np.zeros((problem.node_count(0), problem.plan.node_size))
    states = rng.standard_normal(still.shape)
    check(rows.states @ states.ravel(), slope_along(problem, point, states, np.zeros(len(FREE)), 1e-10))
    # All parameters at once, each about as strongly as the others.
    size = np.max(np.abs(rows.parameters), axis=0)
    assert np.count_nonzero(size) >= len(FREE) - 1
    mixed = np.where(size > 0.0, rng.choice([-1.0, 1.0], len(size)), 0.0) / np.where(size > 0.0, size, 1.0)
    scale = np.min(problem.parameters.spread(lambda p: p.scale)[size > 0.0] / np.abs(mixed[size > 0.0]))
    check(rows.parameters @ mixed, slope_along(problem, point, still, mixed, 1e-6 * scale))


def check(own, numeric):
    np.testing.assert_allclose(own, numeric, rtol=0.0, atol=2e-4 * np.max(np.abs(numeric)))


def test_a_stop_and_its_damping_are_found():
    mechanism, start = swinging()
    options = Options(timestep=H, state_weight=1e4, stick_time=None, cutoff=200.0)
    begin = {"stop.lower": -0.19, "stop.damping": 4e-3, "rod0.inertia.yy": 6e-3, "pin0.viscous": 7.5e-3}
    tight = LevenbergMarquardt(max_iterations=60, decrease_tolerance=1e-12, step_tolerance=1e-10)
    found = fit(mechanism, recorded(mechanism, run_of(mechanism, start)), begin, options=options, optimiser=tight)
    assert (found.problem.options.unknowns, found.problem.options.correction) == ("joint", "none")
    for row in found.parameters:
        assert row.value == pytest.approx(mechanism.get(row.name), rel=1e-5), found.summary()


def test_stops_of_loops_are_refused():
    plain = fourbar()
    stop = {"stop": JointLimit("a", lower=-2.0, upper=1.0)}
    parts = {"inputs": dict(plain.inputs.items())}
    limited = Mechanism(dict(plain.bodies.items()), dict(plain.joints.items()), contacts=stop, **parts)
    with pytest.raises(MechanismError, match=r"'stop' is an end stop and joint 'd' closes a loop"):
        Joint.of(limited)
