"""How much of a machine's forces its model leaves unexplained.

Along each coordinate of the motion the equations of motion add up terms of which the largest, inertia, gravity or what
a drive gives, says how strong the machine's forces are:

    Q_inertia = Tᵀ d(M v)/dt,   Q_gravity = Tᵀ M g,   share = rms(Δp/h) / max(rms Q_inertia, rms Q_gravity, rms Q_drive)

with T the motion of all bodies per unit speed of a joint and Δp/h the force that a step lacks. (Drives of geared joints
work against friction and rotors, many times the inertia and weight of what they turn.) A drive's force is known where
it was measured, and where it is that of a loop whose target was recorded and whose gains were given. With poses as
unknowns there are no joints' motions, and the force on each body is taken instead. A model without errors has a share
near zero; of noise, or of a recording that belongs to another machine, it cannot explain anything.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

from shadowfit.arrays import Float
from shadowfit.dynamics.elements import assembled
from shadowfit.dynamics.tree import Tree
from shadowfit.estimation import Estimate
from shadowfit.estimation.linear.threads import one_thread
from shadowfit.estimation.problem.axis_noise import unweighted
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import unit_weights
from shadowfit.estimation.residuals.unknowns.joint import Joint
from shadowfit.estimation.solve import objective
from shadowfit.evaluation.loop_forces import given_loops, loop_forces
from shadowfit.evaluation.torques import driven_joints
from shadowfit.geometry import rotations
from shadowfit.kernels import mapped
from shadowfit.records import record

# Forces below this fraction of the strongest coordinate's are those of something at rest.
RESTING = 1e-6

Drive = Literal["measured", "loop"]

_matrices = mapped(rotations.matrix)


@record(frozen=True)
class Unexplained:
    """The missing force of one coordinate or body, over all recordings."""

    name: str
    unit: str
    level: float
    """Root mean square of what the equations of motion lack [N or N m]."""
    typical: float
    """Root mean square of the strongest term along the same coordinate."""
    gain: float
    """Correlation of the missing force with the speed, −1 to 1: positive where it drives the motion."""
    driven: Drive | None = None
    """Whether a measured torque or force acts along the coordinate, or that of a loop with given gains."""

    @property
    def share(self) -> float:
        """Part of the force that the model does not explain."""
        return self.level / self.typical if self.typical > 0.0 else 0.0


@record(frozen=True)
class Terms:
    """Terms of the equations of motion along each coordinate, each of shape (steps, coordinates, components)."""

    missing: Float[np.ndarray, "n d c"]
    """What the step lacks: inertia − gravity − all forces of the model."""
    inertia: Float[np.ndarray, "n d c"]
    gravity: Float[np.ndarray, "n d c"]
    speed: Float[np.ndarray, "n d c"]


def unexplained(estimate: Estimate) -> list[Unexplained]:
    """Missing force of each joint's coordinate, or of each body where poses are the unknowns."""
    parts = [force_terms(estimate, index) for index in range(len(estimate.problem.tracks))]
    names, units = coordinate_names(estimate)
    fields = [field.name for field in dataclasses.fields(Terms)]
    missing, inertia, gravity, speed = (np.concatenate([getattr(part, name) for part in parts]) for name in fields)
    drives = _drives(estimate)
    driving = np.array([drives.get(name, 0.0) for name in names])
    level, typical = _rms(missing), np.maximum(np.maximum(_rms(inertia), _rms(gravity)), driving)
    if estimate.noise_choice is not None and estimate.problem.level_names is not None:
        # Where weight was added to the equations of motion their residuals are small by force; the levels are not.
        level = np.array(list(estimate.unexplained.values()))
    product = _rms(missing) * _rms(speed)
    gain = np.mean(missing * speed, axis=(0, 2)) * missing.shape[2] / np.where(product > 0.0, product, np.inf)
    measured = driven_joints(estimate.problem)
    kinds: dict[str, Drive] = {
        name: "measured" if name in measured else "loop" for name in drives if drives[name] > 0.0
    }
    strongest = {unit: max(typical[i] for i, other in enumerate(units) if other == unit) for unit in units}
    return [
        Unexplained(name, unit, float(level[i]), float(typical[i]), float(gain[i]), kinds.get(name))
        for i, (name, unit) in enumerate(zip(names, units, strict=True))
        if typical[i] > RESTING * strongest[unit]
    ]


def _drives(estimate: Estimate) -> dict[str, float]:
    """Root mean square of the known torque or force of each coordinate's drive."""
    problem, point = estimate.problem, estimate.outcome.linearisation.point
    coordinates = problem.level_names or ()
    measured = [name for name in driven_joints(problem) if name in coordinates]
    loops = [name for name in given_loops(problem) if name in coordinates and name not in measured]
    known = {name: np.sqrt(np.mean(force**2)) for name, force in loop_forces(estimate, loops).items()}
    if measured:
        with one_thread():
            impulses = [given for _, given in objective.missing_and_known(problem, point, unit_weights(problem))]
        forces = _rms(np.concatenate(impulses)[..., None] / problem.timestep)
        # Commands of other drives, such as targets, are no forces.
        known |= {name: forces[coordinates.index(name)] for name in measured}
    return {name: float(size) for name, size in known.items()}


def tree_behind(problem: Problem) -> Tree | None:
    """The tree of the joints, where their coordinates are the unknowns."""
    return problem.plan.unknowns.tree if isinstance(problem.plan.unknowns, Joint) else None


def coordinate_names(estimate: Estimate) -> tuple[list[str], list[str]]:
    """Names and units of the coordinates, or of the forces and moments on bodies."""
    mechanism, tree = estimate.problem.mechanism, tree_behind(estimate.problem)
    bodies, joints = list(mechanism.bodies), list(mechanism.joints)
    if tree is None:
        pairs = [(body, unit) for body in bodies for unit in ("N", "N m")]
        return [name for name, _ in pairs], [unit for _, unit in pairs]
    names, units = [], []
    for link in tree.links:
        holder = bodies[link.body] if link.joint is None else joints[link.joint]
        for direction in link.freedom:
            names.append(holder if len(link.freedom) == 1 else f"{holder} ({'xyz'[direction % 3]})")
            units.append("N" if direction < 3 else "N m")
    kept = estimate.problem.plan.unknowns
    assert isinstance(kept, Joint)
    return [names[place] for place in kept.independent], [units[place] for place in kept.independent]


def force_terms(estimate: Estimate, index: int, missing: Float[np.ndarray, "n d"] | None = None) -> Terms:
    """The terms along one recording; ``missing`` forces are those of the estimate's residuals unless they are given."""
    problem = estimate.problem
    point = estimate.outcome.linearisation.point
    if missing is None:
        size = estimate.evidence.layouts[index][0].size
        weighted = estimate.evidence.projections[index].residual[:, :size][:, -problem.plan.impulses :]
        missing = unweighted(point, estimate.weights, index, weighted) / problem.timestep
    inertia, gravity = _wrenches(estimate, index)
    velocity = np.asarray(estimate.trajectory(index).states.velocity)
    steps = min(len(missing), len(inertia))
    missing, inertia, gravity, velocity = (x[:steps] for x in (missing, inertia, gravity, velocity))
    if tree_behind(problem) is None:
        return Terms(*(np.reshape(x, (steps, -1, 3)) for x in (missing, inertia, gravity, velocity)))
    first = problem.plan.centre
    moving = np.asarray(problem.at(point.values, index).placed(point.nodes[index].pose).twists)
    moving = moving[first : first + steps].reshape(steps, -1, moving.shape[-1])

    def along(wrench: np.ndarray) -> np.ndarray:
        return np.einsum("nxd,nx->nd", moving, wrench.reshape(steps, -1))[..., None]

    # Speeds of coordinates: the motions that span the bodies' velocities.
    speed = np.einsum("ndx,nx->nd", np.linalg.pinv(moving), velocity.reshape(steps, -1))
    return Terms(missing[..., None], along(inertia), along(gravity), speed[..., None])


def _wrenches(estimate: Estimate, index: int) -> tuple[Float[np.ndarray, "n b 6"], Float[np.ndarray, "n b 6"]]:
    """Rate of change of each body's momentum, and its weight, about its centre of mass [N, N m]."""
    mechanism, states = estimate.mechanism(index), estimate.trajectory(index).states
    velocity = np.asarray(states.velocity)
    turn = _matrices(np.asarray(states.pose.orientation))
    elements = assembled(mechanism)
    mass, moments = np.asarray(elements.bodies.mass), np.asarray(elements.bodies.inertia)
    world = turn @ moments @ np.swapaxes(turn, -1, -2)
    momentum = np.concatenate(
        [mass[:, None] * velocity[..., :3], np.einsum("nbij,nbj->nbi", world, velocity[..., 3:])], axis=-1
    )
    rate = np.gradient(momentum, estimate.problem.timestep, axis=0)
    weight = np.zeros_like(rate)
    weight[..., :3] = mass[:, None] * np.asarray(elements.gravity)
    return rate, weight


def _rms(values: Float[np.ndarray, "n d c"]) -> Float[np.ndarray, " d"]:
    """Root of the mean squared length over time."""
    return np.sqrt(np.mean(np.sum(values**2, axis=2), axis=0))
