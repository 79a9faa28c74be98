"""How far motions break their limits: numbers that must not be positive, in units of the limits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shadowfit.arrays import Float
from shadowfit.designs.ending import resting
from shadowfit.designs.experiment import Experiment
from shadowfit.designs.limits import InputLimits, JointLimits, Limits
from shadowfit.designs.motions import Motions
from shadowfit.designs.workspace import clearances
from shadowfit.dynamics.tree import coordinate_names
from shadowfit.geometry import Pose
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.scales import scales_of

# A motion is judged piece by piece, so that a change that lowers one peak and raises another is seen to do both.
PIECES = 8
# What a motion that cannot be simulated counts as.
IMPOSSIBLE = 10.0
# Factors between which motions are scaled to their limits, and rounds of narrowing them down.
MOST, SMALLEST, ROUNDS = 4.0, 2.5e-4, 3


def violations(experiment: Experiment, limits: Limits, motions: Motions) -> Float[np.ndarray, "count k"]:
    """The largest excess over each limit in each piece of time, relative to the limit; not positive where it holds."""
    excess = [*_joints(experiment, limits, motions), *_inputs(experiment, limits, motions)]
    excess += _space(experiment, limits, motions)
    if not excess:
        return np.where(motions.good, -1.0, IMPOSSIBLE)[:, None]
    return np.where(motions.good[:, None], _pieces(excess), IMPOSSIBLE)


def broken(experiment: Experiment, limits: Limits, motions: Motions) -> list[str]:
    """Names of the limits that motions break."""
    return [name for name, limit in limits.apart() if np.max(violations(experiment, limit, motions)) > 0.0]


def _pieces(excess: list[np.ndarray]) -> Float[np.ndarray, "count k"]:
    """The largest of each limit in each piece of time."""
    table = np.stack(excess, axis=2)
    count, nodes = table.shape[:2]
    pieces = np.maximum.reduceat(table, np.linspace(0, nodes, PIECES + 1).astype(int)[:-1], axis=1)
    return pieces.reshape(count, -1)


def moving_violations(
    experiment: Experiment, limits: Limits, coordinates: Float[np.ndarray, "count n d"]
) -> Float[np.ndarray, "count k"]:
    """The same of limits of position, speed and acceleration alone, for which coordinates suffice."""
    names = coordinate_names(experiment.tree, experiment.mechanism)
    excess = [
        values
        for name, joint in limits.joints.items()
        for values in _moving(experiment, joint, coordinates[:, :, names.index(name)])
    ]
    return _pieces(excess) if excess else np.zeros((len(coordinates), 0))


def axis_torques(experiment: Experiment, motions: Motions, joint: str) -> Float[np.ndarray, "count n"]:
    """Torque or force of the motors of a joint [N m, N]."""
    mechanism = experiment.mechanism
    place = coordinate_names(experiment.tree, mechanism).index(joint)
    position, speed = motions.coordinates[:, :, place], motions.speeds[:, :, place]
    total = np.zeros_like(position)
    parts = mechanism.inputs.values
    gain, offset = (np.array([float(getattr(part, key)) for part in parts]) for key in ("gain", "offset"))
    commands = gain * motions.inputs + offset
    for law in mechanism.joints[joint].laws.values:
        if law.input is not None:
            total = total + np.asarray(law.torque(position, speed, mechanism.command_of(law, commands)))
    return total


def _joints(experiment: Experiment, limits: Limits, motions: Motions) -> list[np.ndarray]:
    names = coordinate_names(experiment.tree, experiment.mechanism)
    excess = []
    for name, joint in limits.joints.items():
        excess += _moving(experiment, joint, motions.coordinates[:, :, names.index(name)])
        if joint.torque is not None:
            excess.append(np.abs(axis_torques(experiment, motions, name)) / joint.torque - 1.0)
    return excess


def _moving(experiment: Experiment, joint: JointLimits, positions: Float[np.ndarray, "count n"]) -> list[np.ndarray]:
    time = experiment.sampling.times
    excess = [] if joint.position is None else _within(positions, joint.position)
    speeds = np.gradient(positions, time, axis=1)
    if joint.speed is not None:
        excess.append(np.abs(speeds) / joint.speed - 1.0)
    if joint.acceleration is not None:
        excess.append(np.abs(np.gradient(speeds, time, axis=1)) / joint.acceleration - 1.0)
    if joint.end_speed is not None:
        excess.append(np.where(resting(experiment), np.abs(speeds) / joint.end_speed, 0.0) - 1.0)
    return excess


def _inputs(experiment: Experiment, limits: Limits, motions: Motions) -> list[np.ndarray]:
    excess = []
    for name, limit in limits.inputs.items():
        signal = motions.inputs[:, :, experiment.mechanism.inputs.index(name)]
        excess += _one_input(limit, signal, motions.time)
    return excess


def _one_input(limit: InputLimits, signal: Float[np.ndarray, "count n"], time: np.ndarray) -> list[np.ndarray]:
    excess = [] if limit.range is None else _within(signal, limit.range)
    if limit.rate is not None:
        excess.append(np.abs(np.gradient(signal, time, axis=1)) / limit.rate - 1.0)
    return excess


def _within(values: Float[np.ndarray, "count n"], pair: tuple[float, float]) -> list[np.ndarray]:
    half = 0.5 * (pair[1] - pair[0])
    return [(values - pair[1]) / half, (pair[0] - values) / half]


def _space(experiment: Experiment, limits: Limits, motions: Motions) -> list[np.ndarray]:
    if not (limits.planes or limits.boxes or limits.self_distance is not None):
        return []
    mechanism: Mechanism = experiment.mechanism
    bodies = experiment.bodies(motions.pose)
    shape = bodies.position.shape[:2]
    flat = Pose(*(x.reshape(-1, *x.shape[2:]) for x in (bodies.position, bodies.orientation)))
    free = clearances(mechanism, limits, flat).reshape(*shape, -1)
    return list(np.moveaxis(-free / scales_of(mechanism).length, 2, 0))


Excess = Callable[[Float[np.ndarray, "count n"]], Float[np.ndarray, " count"]]


def largest_factors(
    excess: Excess, coefficients: Float[np.ndarray, "s n"], most: float = MOST
) -> Float[np.ndarray, " s"]:
    """How much each set of coefficients may be multiplied with so that all limits hold; zero where nothing helps.

    ``excess`` is the largest over any limit, not positive where all hold.
    """
    held, broken = np.zeros(len(coefficients)), np.full(len(coefficients), most)
    tried = np.tile(np.geomspace(most, SMALLEST * most, 12), (len(coefficients), 1))
    for _ in range(ROUNDS):
        # The largest first: what is smaller than a factor that holds need not be looked at.
        waiting = np.arange(len(coefficients))
        for factors in tried.T:
            fine = excess(factors[waiting, None] * coefficients[waiting]) <= 0.0
            held[waiting[fine]] = np.maximum(held, factors)[waiting[fine]]
            waiting = waiting[~fine]
            broken[waiting] = np.minimum(broken, factors)[waiting]
            if not len(waiting):
                break
        broken = np.maximum(held, broken)
        tried = np.linspace(broken, held, 6, axis=1)[:, 1:-1]
    return held
