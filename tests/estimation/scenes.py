"""Mechanisms, twin recordings and whole-problem views that several tests of the estimation share."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimation.dense import DenseRows, dense_rows
from shadowfit.dynamics import place, simulate
from shadowfit.estimation import Options
from shadowfit.estimation.fit import start_point
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem, build_problem
from shadowfit.estimation.problem.weights import Weights, default_weights
from shadowfit.estimation.residuals.recursion import LoopRows
from shadowfit.estimation.residuals.unknowns.joint import Joint
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.chunks import RecordingRows
from shadowfit.mechanism import (
    Coulomb,
    DcMotor,
    Drag,
    Input,
    JointPosition,
    Mechanism,
    Spring,
    Stribeck,
    TorqueMotor,
    Wrench,
    slider,
)
from shadowfit.mechanism.body import Body
from shadowfit.mechanism.leaves import Parts
from shadowfit.models import builtin
from shadowfit.recordings import Recording

# Settings of tests about poses and the stepper's own equations, which nothing corrects; the second with the paper's κ.
POSES: dict[str, Any] = {"unknowns": "configuration", "correction": "none"}
STEPPER: dict[str, Any] = {**POSES, "state_weight": 100.0}


def with_joint(mechanism: Mechanism, name: str, **fields: Any) -> Mechanism:
    """The mechanism with other fields in one joint."""
    joints = dict(mechanism.joints.items())
    joints[name] = dataclasses.replace(joints[name], **fields)
    return mechanism.having(joints=Parts(joints))


def full_furuta() -> Mechanism:
    """A Furuta pendulum with every law: Stribeck friction, motor with shaft, spring, drag, a driven wrench."""
    plain = builtin.furuta()
    friction = Stribeck(dry=6e-4, stribeck=4e-4, coulomb=1e-3, stribeck_coulomb=5e-4, stribeck_rate=0.3)
    friction = dataclasses.replace(friction, asymmetry=2e-4, gear_loss=0.1)
    moved = with_joint(plain, "hinge1", friction=friction, laws=Parts({"motor": TorqueMotor(0.1, 4e-4)}))
    moved = with_joint(
        moved, "hinge2", laws=Parts({"spring": Spring(0.05, 1e-3, 0.2), "drag": Drag(1e-4)}), viscous=2e-4
    )
    return Mechanism(
        dict(moved.bodies.items()),
        dict(moved.joints.items()),
        forces={"push": Wrench("pendulum", force=(0.2, -0.1, 0.3), torque=(0.01, 0.02, -0.01), input="w")},
        sensors=dict(moved.sensors.items()),
        inputs={"u": Input(), "w": Input(hold="linear")},
        name="full_furuta",
    )


def dc_cartpole() -> Mechanism:
    """A cart-pole with a geared DC motor under voltage and friction in both joints."""
    plain = builtin.cartpole(friction=True)
    return with_joint(plain, "rail", laws=Parts({"motor": DcMotor(2.0, 0.05, 0.05, 40.0, 1e-5)}))


def stiff_fourbar() -> Mechanism:
    """The four-bar loop with friction and viscous damping at the ground."""
    damped = with_joint(builtin.fourbar(), "crank_coupler", viscous=2e-4)
    return with_joint(damped, "ground_crank", friction=Coulomb(coulomb=2e-3), viscous=1e-3)


def spring_slider(mass: float = 0.7, stiffness: float = 9.0, damping: float = 0.4, std: float = 1e-2) -> Mechanism:
    """A mass on a horizontal slider with a spring: linear dynamics."""
    rail = slider("world", "block", axis=(1.0, 0.0, 0.0), laws={"spring": Spring(stiffness, damping)})
    sensors = {"x": JointPosition(joint="rail", std=std, rotary=False)}
    return Mechanism({"block": Body(mass, (1e-2, 1e-2, 1e-2))}, {"rail": rail}, sensors=sensors, name="spring_slider")


def twin(
    mechanism: Mechanism,
    positions: Mapping[str, float],
    steps: int,
    *,
    speeds: Mapping[str, float] | None = None,
    timestep: float = 0.01,
    discretization: str = "exact",
    every: int = 1,
    skip: int = 0,
    noise: float = 0.0,
    inputs: Mapping[str, NDArray] | None = None,
    seed: int = 0,
    name: str = "twin",
) -> Recording:
    """A simulated recording: sensors, and inputs (one value a step, held); ``skip`` leaves out the first times."""
    inputs = inputs or {}
    motion = simulate(
        mechanism,
        place(mechanism, positions, speeds),
        {key: value[:steps] for key, value in inputs.items()},
        timestep=timestep,
        steps=steps,
        discretization=discretization,
        joints="compliant",
        substeps=1,
    )
    rng = np.random.default_rng(seed)
    channels = {}
    for key in mechanism.sensors:
        values = np.asarray(motion.readings[key])[skip::every]
        channels[key] = values + noise * rng.standard_normal(values.shape)
    for key in mechanism.inputs:
        signal = np.asarray(inputs.get(key, np.zeros(steps)))
        channels[key] = np.append(signal[:steps], signal[steps - 1])[skip::every]
    return Recording(np.asarray(motion.time)[skip::every], channels, name=name)


def pulses(steps: int, timestep: float = 0.01, size: float = 1.0) -> NDArray:
    """A square-like drive with a changing period and size."""
    t = timestep * np.arange(steps)
    return size * np.sign(np.sin(2 * np.pi * 0.7 * t + 0.3 * t**1.5)) * (1.5 - 0.5 * np.cos(t))


def blank(mechanism: Mechanism, steps: int = 4, timestep: float = 0.01) -> Recording:
    """A recording of nothing in particular, for tests of what does not depend on data."""
    time = timestep * np.arange(steps)
    names = (*mechanism.sensors, *mechanism.inputs)
    return Recording(time, {name: 0.3 * np.cos(3.0 * time + i) for i, name in enumerate(names)})


def problem_of(mechanism: Mechanism, recordings: Any, free: Any = (), **options: Any) -> Problem:
    """A problem with options by name."""
    listed = [recordings] if isinstance(recordings, Recording) else list(recordings)
    return build_problem(
        mechanism,
        listed,
        parameter_set(mechanism, free, len(listed)),
        Options(**{**STEPPER, "stick_time": None, **options}),
    )


def shaken(problem: Problem, size: float, seed: int = 1) -> Point:
    """The initial point with all states and parameters moved a little (parameters relative to their size), and held."""
    rng = np.random.default_rng(seed)
    start = start_point(problem)
    states = []
    for nodes in start.nodes:
        states.append(size * rng.standard_normal((len(nodes.pose.position), problem.plan.node_size)))
    scale = problem.parameters.scales
    moved = objective.plus(problem, start, tuple(states), size * scale * rng.standard_normal(len(scale)))
    return objective.held(problem, moved)


def check_recursion(problem: Problem, point: Point, exact: float) -> None:
    """Rows of loops by recursion, and what widths of friction follow from, are those of the step written out."""
    plan, poses = problem.plan, point.nodes[0].pose
    assert isinstance(plan.unknowns, Joint)
    assert problem.kernels.recursion is None
    sweep = LoopRows(
        plan.layout, plan.unknowns.tree, plan.unknowns.independent, problem.mechanism, plan.equations.friction
    )
    chunk = RecordingRows(problem, point, default_weights(problem, 1.0), 0).chunk(0)
    plain = dataclasses.replace(chunk, dynamics_weight=np.eye(plan.node_size))
    written = problem.kernels.dynamics_rows(plain).wide
    commands, h = problem.commands_at(point.values, 0), problem.timestep
    swept = sweep.rows(chunk.values, poses, commands, h, chunk.data.widths)
    alone = sweep.missing(chunk.values, poses, commands[0], h, chunk.data.widths)
    for own, other in ((swept, written), (alone, written[:, :, -1])):
        np.testing.assert_allclose(own, other, rtol=0.0, atol=exact * np.max(np.abs(other)))
    if len(problem.kernels.stick_times):
        braked = (each.braked(chunk.values, poses, commands[0], h) for each in (sweep, problem.kernels))
        # Friction and loads that depend on each other are found in rounds, of which the rest is seen.
        for own, other in zip(*braked, strict=True):
            np.testing.assert_allclose(own, other, rtol=0.0, atol=1e-6 * np.max(np.abs(other)))


def all_rows(problem: Problem, point: Point, weights: Weights | None = None, recording: int = 0) -> DenseRows:
    """Residuals of one recording and the Jacobian as full matrices."""
    weights = weights or default_weights(problem, problem.options.state_weight)
    chunks = list(objective.chunk_rows(problem, point, weights, recording))
    start = objective.start_rows_of(problem, point, weights, recording)
    return dense_rows(chunks, len(point.nodes[recording].pose.position), start)
