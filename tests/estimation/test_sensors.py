"""Sensors in the estimator: derivatives of their rows, accelerations of both views, and truths found by each one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimation.scenes import all_rows, problem_of, shaken
from shadowfit.dynamics import place, simulate
from shadowfit.dynamics.motion_view import MotionView
from shadowfit.dynamics.state import Instant, State
from shadowfit.dynamics.tree import motions, tree_of
from shadowfit.estimation import Options, fit
from shadowfit.estimation.solve import objective
from shadowfit.mechanism import (
    Accelerometer,
    Body,
    BodyOrientation,
    BodyRate,
    Input,
    JointPosition,
    JointSpeed,
    JointTorque,
    Mechanism,
    MotorPosition,
    MotorSpeed,
    PointPosition,
    PositionMotor,
    Ratio,
    Sensor,
    TorqueMotor,
    hinge,
)
from shadowfit.mechanism.leaves import Parts
from shadowfit.recordings import Recording

TURNED = (0.8, 0.0, 0.6, 0.0)
COUPLED = {"elbow": Ratio(20.0), "shoulder": Ratio(-7.0)}
SENSORS: dict[str, Sensor] = {
    "q": JointPosition("shoulder", std=1e-3),
    "rough": JointPosition("elbow", std=2e-2),
    "speed": JointSpeed("elbow", std=1e-2),
    "effort": JointTorque("shoulder", std=1e-2, gain=1.1),
    "felt": Accelerometer("fore", point=(0.1, 0.02, 0.2), std=0.1, mounting=TURNED),
    "marker": PointPosition("fore", point=(0.1, 0.0, 0.2), std=1e-3),
    "turn": BodyOrientation("fore", std=1e-2, mounting=TURNED),
    "gyro": BodyRate("fore", std=1e-2, mounting=TURNED),
    "motor": MotorPosition(Parts(COUPLED), std=1e-2),
    "turning": MotorSpeed(Parts(COUPLED), std=0.1),
    "worn": JointPosition("elbow", std=1e-3, scale=1.03, eccentric_sin=0.02, eccentric_cos=-0.01),
}


def arm(sensors: dict[str, Sensor] = SENSORS, **joint: float) -> Mechanism:
    """A shoulder in a position loop about a tilted axis, and an elbow that a torque drives."""
    loop = PositionMotor(kp=6.0, kd=joint.get("kd", 0.3), input="target")
    return Mechanism(
        {
            "upper": Body(0.8, (2e-2, 2e-2, 2e-3), com=(0, 0, -0.2)),
            "fore": Body(0.4, (8e-3, 7e-3, 3e-3), (0.02, 0, -0.1)),
        },
        {
            "shoulder": hinge("world", "upper", axis=(0, 1, 0.3), viscous=0.02, laws={"loop": loop}, compliance=1e-9),
            "elbow": hinge(
                "upper",
                "fore",
                axis=(0, 1, 0),
                parent_point=(0, 0, -0.4),
                viscous=joint.get("viscous", 0.01),
                laws={"motor": TorqueMotor(input="u")},
                compliance=1e-9,
            ),
        },
        sensors=sensors,
        inputs={"target": Input(unit="rad", delay=0.004, hold="linear"), "u": Input(unit="N m", hold="linear")},
        name="arm",
    )


def drive(time: np.ndarray) -> dict[str, np.ndarray]:
    """Smooth, as a step of 10 ms does not resolve the accelerations of jumps."""
    target = 0.5 * np.sin(5.0 * time + 3.0 * time**2) + 0.3 * np.cos(11.0 * time)
    return {"target": target, "u": 0.4 * np.cos(9.0 * time)}


def recorded(mechanism: Mechanism, steps: int, *, fine: int = 1, noise: bool = False) -> Recording:
    """What the sensors show of a driven motion, every 10 ms."""
    timestep = 0.01
    time = timestep * np.arange(steps + 1)
    # Between its samples a command goes straight, for the machine as for the fit.
    between = timestep / fine * np.arange(steps * fine)
    held = {name: np.interp(between, time, channel) for name, channel in drive(time).items()}
    start = place(mechanism, {"shoulder": 0.4, "elbow": -0.5}, {"shoulder": 1.0, "elbow": -2.0})
    run = simulate(
        mechanism,
        start,
        held,
        timestep=timestep / fine,
        steps=steps * fine,
        discretization="exact",
        joints="compliant",
        substeps=1,
    )
    rng = np.random.default_rng(3)
    channels = drive(time)
    for name, sensor in mechanism.sensors.items():
        values = np.asarray(run.readings[name])[::fine].reshape(steps + 1, -1)
        values = values + noise * float(sensor.std) * rng.standard_normal(values.shape)
        for part, column in zip(sensor.components, values.T, strict=True):
            channels[f"{name}.{part}" if part else name] = column
    return Recording(time, channels)


FREE = {
    **dict.fromkeys(
        ("fore.com.x", "shoulder.loop.kp", "gyro.mounting", "effort.gain", "felt.point.x", "felt.mounting")
    ),
    **dict.fromkeys(("motor.elbow.ratio", "turning.shoulder.ratio", "elbow.parent_point.z", "gravity.tilt")),
    **dict.fromkeys(("worn.scale", "worn.eccentric_sin", "worn.eccentric_cos", "speed.scale", "gyro.scale")),
    "target.delay": 0.0043,
    "target.gain": None,
}


SLOW = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.parametrize("between", [pytest.param(False, marks=SLOW, id="on steps"), pytest.param(True, id="between")])
@pytest.mark.parametrize("unknowns", ["joint", *(pytest.param(x, marks=SLOW) for x in ("configuration", "full"))])
def test_rows_have_the_derivatives_of_their_residuals(unknowns: str, between: bool) -> None:
    recording = recorded(arm(), 5)
    if between:
        later = recording.time + 0.003 * np.arange(6) / 5
        recording = Recording(later, recording.channels)
    problem = problem_of(arm(), recording, FREE, timestep=0.01, cutoff=1e3, unknowns=unknowns, discretization="exact")
    point = shaken(problem, 1e-5)
    rows = all_rows(problem, point)
    scale, still = problem.parameters.scales, np.zeros((problem.node_count(0), rows.node_size))

    def slope(states: np.ndarray, parameters: np.ndarray, step: float) -> np.ndarray:
        ends = [
            all_rows(problem, objective.plus(problem, point, (k * step * states,), k * step * parameters)).residual
            for k in (-2, -1, 1, 2)
        ]
        return (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * step)

    # The initial rows of compliant joints leave out a derivative (see test_linearise).
    counted = len(rows.residual) - (0 if unknowns == "joint" else 12 * len(problem.mechanism.bodies))
    for i, label in enumerate(problem.parameters.labels()):
        along = scale * (np.arange(len(scale)) == i)
        numeric = slope(still, along, 1e-6 if "point" in label else 1e-4)[:counted]
        own = (rows.parameters @ along)[:counted]
        np.testing.assert_allclose(own, numeric, rtol=0, atol=2e-6 * np.max(np.abs(numeric)) + 1e-8, err_msg=label)
    states = np.random.default_rng(2).standard_normal(still.shape)
    numeric = slope(states, np.zeros(len(scale)), 1e-8)[:counted]
    own = (rows.states @ states.ravel())[:counted]
    np.testing.assert_allclose(own, numeric, rtol=0, atol=3e-6 * np.max(np.abs(numeric)))


def test_an_accelerometer_feels_the_second_derivative_of_its_place_and_the_weight() -> None:
    fine = 1e-4
    sensors = {
        "felt": Accelerometer("fore", point=(0.1, 0.02, 0.2)),
        "place": PointPosition("fore", point=(0.1, 0.02, 0.2)),
        "turn": BodyOrientation("fore"),
    }
    mechanism = arm(sensors)
    start = place(mechanism, {"shoulder": 0.4, "elbow": -0.5}, {"shoulder": 1.0, "elbow": -2.0})
    run = simulate(mechanism, start, timestep=fine, steps=40, discretization="exact", joints="compliant", substeps=1)
    place_ = np.asarray(run.readings["place"])
    acceleration = (place_[2:] - 2.0 * place_[1:-1] + place_[:-2]) / fine**2
    w, x, y, z = np.asarray(run.readings["turn"])[1:-1].T
    turn = np.stack(
        [
            np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], 1),
            np.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], 1),
            np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], 1),
        ],
        1,
    )
    expected = np.einsum("tji,tj->ti", turn, acceleration + np.array([0.0, 0.0, 9.82]))
    np.testing.assert_allclose(np.asarray(run.readings["felt"])[1:-1], expected, rtol=0, atol=1e-3)


def test_rigid_joints_show_every_sensor_what_stiff_ones_do() -> None:
    mechanism = arm()
    start = place(mechanism, {"shoulder": 0.4, "elbow": -0.5}, {"shoulder": 1.0, "elbow": -2.0})
    held = drive(5e-3 * np.arange(60))
    rigid, stiff = (
        simulate(mechanism, start, held, timestep=5e-3, steps=60, joints=joints, substeps=1)
        for joints in ("rigid", "compliant")
    )
    for name in SENSORS:
        own, other = (np.asarray(run.readings[name]) for run in (rigid, stiff))
        assert np.max(np.abs(own - own[0])) > 0.1, name
        np.testing.assert_allclose(own, other, rtol=0, atol=0.01 * np.max(np.abs(own)), err_msg=name)


def test_joint_coordinates_give_the_bodies_accelerations() -> None:
    mechanism = arm()
    tree = tree_of(mechanism)
    state = place(mechanism, {"shoulder": 0.4, "elbow": -0.5})
    motion = motions(tree, mechanism, state.pose)
    rng = np.random.default_rng(0)
    rates, growth = (jnp.asarray(rng.standard_normal(tree.size) @ tree.selection()).reshape(-1, 6) for _ in range(2))

    def moving(time: float) -> MotionView:
        at = motion.plus(time * rates + 0.5 * time**2 * growth)
        return MotionView(tree, mechanism, State(at, rates + time * growth), Instant(growth))

    point, step = np.array([0.1, 0.02, 0.2]), 1e-4

    @jax.jit
    def places() -> list[jax.Array]:
        return [
            *(moving(t).point("fore", point) for t in (-step, 0.0, step)),
            moving(0.0).point_acceleration("fore", point),
        ]

    before, now, after, own = (np.asarray(x) for x in places())
    np.testing.assert_allclose(own, (after - 2 * now + before) / step**2, rtol=0, atol=1e-6)


TRUTHS = {
    "speed": (("q", "rough", "speed"), ("elbow.viscous", "fore.mass")),
    "pose": (("marker", "turn"), ("fore.mass", "elbow.viscous", "marker.point.x")),
    "torque": (("q", "rough", "effort"), ("shoulder.loop.kp", "shoulder.loop.kd", "fore.mass")),
    "inertial": (("q", "rough", "gyro", "felt"), ("fore.mass", "elbow.viscous", "felt.point.x")),
    "encoder": (("q", "marker", "worn"), ("fore.mass", "worn.scale", "worn.eccentric_sin", "worn.eccentric_cos")),
    "motor": (("q", "motor"), ("fore.mass", "elbow.viscous", "motor.shoulder.ratio")),
}


@pytest.mark.parametrize(
    "case", [pytest.param(name, marks=SLOW) for name in ("inertial", "speed", "torque", "pose", "encoder", "motor")]
)
def test_a_planted_truth_is_found(case: str) -> None:
    names, free = TRUTHS[case]
    truth = arm({name: SENSORS[name] for name in names})
    start = truth.set({name: 1.15 * truth.get(name) for name in free})
    options = Options(unknowns="joint", discretization="exact", correction="deferred", timestep=0.01)
    found = fit(start, recorded(truth, 150, fine=10, noise=True), free, options=options)
    assert found.converged, found.status
    for row in found.parameters:
        assert row.std < 0.1 * abs(row.value), row
        assert abs(row.value - truth.get(row.name)) < 4.0 * row.std, (row.name, row.value, row.std)
