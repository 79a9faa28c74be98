"""Arms and trees of many hinges, and recordings of them that come from inverse dynamics: the truth is known exactly."""

from __future__ import annotations

import numpy as np

from shadowfit.estimation import Options
from shadowfit.estimation.problem.dependencies import make_plan
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.estimation.residuals.recursion import TreeRows
from shadowfit.estimation.residuals.stopping import Stopping, stick_times
from shadowfit.estimation.residuals.unknowns.joint import Joint
from shadowfit.geometry import Pose
from shadowfit.mechanism import Body, Coulomb, Input, JointPosition, Mechanism, Shaft, TorqueMotor, Turns, hinge
from shadowfit.mechanism.leaves import Parts
from shadowfit.recordings import Recording

AXES = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
TIMESTEP = 0.01


def arm(joints: int, parents: list[int] | None = None, *, seed: int = 0) -> Mechanism:
    """Hinges about changing axes, each with a motor, viscous and dry friction, and an encoder.

    ``parents`` are the numbers of the links that links hang on (0: the world); None: a chain.
    """
    rng = np.random.default_rng(seed)
    bodies, hinges, sensors, inputs = {}, {}, {}, {}
    for i in range(1, joints + 1):
        base = i - 1 if parents is None else parents[i - 1]
        inertia = np.diag(rng.uniform(0.01, 0.02, 3)) + 1e-3 * np.array([[0, 1, 0.5], [1, 0, 0.3], [0.5, 0.3, 0]])
        bodies[f"link{i}"] = Body(
            rng.uniform(0.8, 2.0), inertia, com=np.array([0.0, 0.0, 0.1]) + rng.uniform(-0.05, 0.05, 3)
        )
        hinges[f"joint{i}"] = hinge(
            "world" if base == 0 else f"link{base}",
            f"link{i}",
            axis=AXES[i % 3],
            parent_point=(0.0, 0.02, 0.2) if base else (0.0, 0.0, 0.0),
            viscous=0.2,
            friction=Coulomb(dry=1e-2, coulomb=0.3, dry_radius=0.02),
            laws={"motor": TorqueMotor(1.0, 0.02, input=f"u{i}")},
            compliance=1e-9,
        )
        sensors[f"q{i}"] = JointPosition(joint=f"joint{i}", std=1e-4)
        # Half a step of delay: each sample of the input then acts on exactly one step.
        inputs[f"u{i}"] = Input(delay=0.5 * TIMESTEP, unit="N m")
    return Mechanism(bodies, hinges, sensors=sensors, inputs=inputs, name=f"arm{joints}")


def coupled(joints: int) -> Mechanism:
    """An arm whose last motor also turns with the joint before."""
    plain = arm(joints)
    names = (f"joint{joints - 1}", f"joint{joints}")
    ratios = Parts({name: Turns(ratio) for name, ratio in zip(names, (0.7, -1.3), strict=True)})
    shaft = Shaft(ratios, viscous=0.15, coulomb=0.2, shaft_inertia=0.03)
    return Mechanism(
        dict(plain.bodies.items()),
        dict(plain.joints.items()),
        sensors=dict(plain.sensors.items()),
        inputs=dict(plain.inputs.items()),
        shafts={"shaft": shaft},
        name=f"coupled{joints}",
    )


def torso(joints: int) -> list[int]:
    """Parents of a tree of four limbs of equal length on a short trunk."""
    trunk = joints % 4 + 4
    limb = (joints - trunk) // 4
    parents = list(range(trunk))
    for i in range(4):
        parents += [trunk if i < 2 else 1, *range(trunk + i * limb + 1, trunk + (i + 1) * limb)]
    return parents[:joints]


def paths(joints: int, steps: int, seed: int = 1) -> np.ndarray:
    """Smooth motions of all joints [rad], sums of a few sines, from a step before the first to one behind the last."""
    rng = np.random.default_rng(seed)
    at = TIMESTEP * np.arange(-1, steps + 1)[:, None, None]
    waves = rng.uniform(0.1, 0.4, (joints, 4)) * np.sin(
        2 * np.pi * rng.uniform(0.1, 1.0, (joints, 4)) * at + rng.uniform(0, 6, (joints, 4))
    )
    return waves.sum(axis=2)


def as_motions(path: np.ndarray) -> Pose:
    """Turns about the hinges' axes."""
    half = 0.5 * path[..., None]
    turn = np.concatenate([np.cos(half), np.sin(half), np.zeros_like(half), np.zeros_like(half)], axis=-1)
    return Pose(np.zeros((*path.shape, 3)), turn)


def sweep_of(mechanism: Mechanism, free: tuple[str, ...]) -> tuple[TreeRows, Values]:
    """The recursion, and the start values of what is free."""
    parameters = parameter_set(mechanism, free)
    plan = make_plan(mechanism, parameters, Options(unknowns="joint"), 3, True)
    named = parameters.named(parameters.start(), 0)
    numbers = np.array([named[name] for name in plan.layout.numbers])
    assert isinstance(plan.unknowns, Joint)
    return TreeRows(plan.layout, plan.unknowns.tree, mechanism), Values(numbers, np.zeros((0, 4)))


def widths_of(sweep: TreeRows, values: Values, motions: Pose, command: np.ndarray, timestep: float) -> np.ndarray:
    """Widths of dry friction along a motion, as a simulation has them."""
    braked = sweep.braked(values, motions, command, timestep)
    return Stopping(braked.stopped).widths(np.array(stick_times(sweep.tree, sweep.mechanism), float), timestep)


def impulses(
    sweep: TreeRows, values: Values, motions: Pose, command: np.ndarray, timestep: float = TIMESTEP
) -> np.ndarray:
    """Impulses [N m s, N s] that a motion needs beside those of a command."""
    return sweep.missing(values, motions, command, timestep, widths_of(sweep, values, motions, command, timestep))


def driven(mechanism: Mechanism, steps: int, noise: float = 0.0, seed: int = 1) -> Recording:
    """A recording of a given motion with the torques that it needs, by inverse dynamics: the truth is the mechanism."""
    joints = len(mechanism.joints)
    path = paths(joints, steps, seed)
    sweep, values = sweep_of(mechanism, ())
    torque = impulses(sweep, values, as_motions(path), np.zeros((steps, joints))) / TIMESTEP
    rng = np.random.default_rng(seed)
    channels = {f"q{i + 1}": path[1:-1, i] + noise * rng.standard_normal(steps) for i in range(joints)}
    for i in range(joints):
        channels[f"u{i + 1}"] = np.append(torque[1:, i], torque[-1, i])
    return Recording(TIMESTEP * np.arange(steps), channels, name=mechanism.name)
