"""What the unknowns of a time step are: an interface that the rest of the estimator is written against.

A *node* is the unknown state of the machine at one time. A kind of unknowns says how many numbers a node has, how
increments of them move it, which rows the dynamics of a step and the initial state give, and how all that is seen as
bodies. One more kind is one more class, and its name in the table of :mod:`unknowns`.

Some methods are traced into the code of a time step (``step_rows``, ``view``, ``placed``, ``motions``); the others run
once per fit or iteration on whole trajectories, and evaluate compiled functions of the current parameters where they
need them (:class:`Evaluations`).
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics.state import Instant, State
from shadowfit.dynamics.tree import Placed
from shadowfit.estimation.linear.front import Rows
from shadowfit.estimation.residuals.axes import Axes
from shadowfit.estimation.residuals.equations import Equations
from shadowfit.estimation.residuals.frame import Frame
from shadowfit.estimation.residuals.inverse_kinematics import Iterate, Target
from shadowfit.estimation.residuals.nodes import Nodes
from shadowfit.estimation.residuals.parameter_layout import Layout, Parametrised, Values
from shadowfit.estimation.residuals.start_state import StartGaps
from shadowfit.estimation.residuals.stopping import Braked
from shadowfit.geometry import Pose
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.sensors import View
from shadowfit.pytrees import PyTree
from shadowfit.records import record


class Step(PyTree):
    """One time step, as its dynamics residual sees it."""

    machine: Parametrised
    nodes: Nodes
    """The first ``reach`` of the step's window."""
    command: Float[Array, "inputs"]
    command_slopes: Float[Array, "inputs columns"]
    """Derivatives of the command by the parameters that act through the inputs."""
    widths: Float[Array, "a"]
    """Of dry friction (:mod:`stopping`)."""
    timestep: Float[Array, ""]


Moves = Callable[[Array, Array], Array]
"""From increments of nodes and of the parameters to those of what `Nodes` holds, to first order."""


class Evaluations(Protocol):
    """Compiled functions along a trajectory, at the current values of the parameters."""

    def placed(self, poses: Pose) -> Placed:
        """Bodies at the poses of nodes."""
        ...

    def motions(self, bodies: Pose) -> Pose:
        """Poses of nodes at poses of the bodies."""
        ...

    def frames(self, bodies: Pose) -> Frame:
        """Gap rows and inertia at poses of the bodies."""
        ...

    def axes(self, bodies: Pose) -> Axes:
        """Free axes of the joints at poses of the bodies."""
        ...

    def gaps(self, nodes: Nodes) -> StartGaps:
        """Gaps of the joints at states of the bodies, with their derivatives."""
        ...

    def closer(self, poses: Pose) -> tuple[Pose, Float[np.ndarray, "n m"]]:
        """Poses of nodes with their loops closed a little better, and the gaps [m, rad] before that."""
        ...

    def closings(self, poses: Pose) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Gaps of loops at the poses of nodes, their derivatives by coordinates, and those by parameters."""
        ...


class Recursion(Protocol):
    """Rows of the dynamics of consecutive steps, by sweeps over the machine."""

    def prepare(self) -> None:
        """Have the code made in the background."""
        ...

    def rows(
        self,
        values: Values,
        poses: Pose,
        command: tuple[Array, Array],
        timestep: float,
        widths: Float[np.ndarray, "steps a"],
    ) -> Float[np.ndarray, "steps r width"]:
        """``[by three nodes | by parameters | residual]`` of each step, unweighted.

        ``poses`` are those of the nodes, two more than there are steps; ``command`` and its derivatives are as in
        `Step`, along time, and ``widths`` of dry friction are, too.
        """
        ...

    def missing(
        self, values: Values, poses: Pose, command: Array, timestep: float, widths: Float[np.ndarray, "steps a"]
    ) -> Float[np.ndarray, "steps r"]:
        """The residuals alone."""
        ...

    def braked(self, values: Values, poses: Pose, command: Array, timestep: float) -> Braked:
        """What the widths of dry friction follow from."""
        ...


@record(frozen=True)
class Start:
    """The initial state of a recording, whose distance from what the joints allow is a residual."""

    first: Nodes
    """``window − 1`` nodes."""
    weight: Float[np.ndarray, "r r"]
    """Square root of the weight of the impulses."""
    timestep: float
    parameters: int


@record(frozen=True)
class Along:
    """A motion through poses of nodes."""

    poses: Pose
    time: Float[np.ndarray, " n"]
    """[s]."""
    here: Evaluations


@record(frozen=True)
class Scope:
    """What a kind of unknowns can be combined with."""

    correction: bool
    """Deferred correction."""
    any_equations: bool
    """All residuals and discretisations; else ``implicit`` and ``exact``."""
    rigid: bool
    """Joints do not give, whatever their compliance, which may then be zero."""


@record(frozen=True)
class Unknowns(abc.ABC):
    """A kind of unknowns, for one mechanism; hashable, and its ``repr`` tells it from all others."""

    scope: ClassVar[Scope]
    reach: ClassVar[int]
    """Nodes that the dynamics of a step involve, from the first of its window on."""
    centre: ClassVar[int]
    """Place of the step's own node in its window."""

    bodies: int
    """Number of bodies."""

    @classmethod
    @abc.abstractmethod
    def of(cls, mechanism: Mechanism) -> Unknowns:
        """The unknowns of a mechanism; raises `MechanismError` where it has none of this kind."""

    # --- nodes ---

    @property
    @abc.abstractmethod
    def impulses(self) -> int:
        """Impulses of a step that can be missing."""

    @property
    @abc.abstractmethod
    def node_size(self) -> int:
        """Unknowns of a node, which is also the number of dynamics residuals in a step."""

    @property
    def level_places(self) -> Sequence[int]:
        """Coordinates of the tree that the equations of motion are those of."""
        return ()

    def level_names(self, mechanism: Mechanism) -> tuple[str, ...] | None:
        """Names of the impulses where the errors of each have a level of their own; None: one level for all."""
        return None

    def axis_names(self, mechanism: Mechanism) -> tuple[str, ...]:
        """Names of the joints along whose free axes forces may have errors of a given size."""
        return self.level_names(mechanism) or ()

    @abc.abstractmethod
    def directions(self, increments: Float[Array, "*n b"]) -> Float[Array, "*n bodies*k"]:
        """Increments of nodes as increments of the poses (and velocities) that `Nodes` holds."""

    def moves(self, machine: Parametrised, poses: Pose) -> Moves:
        """How nodes at given poses move with their unknowns, and with parameters that move them along."""
        return lambda increments, parameters: self.directions(increments)

    @abc.abstractmethod
    def nodes(self, poses: Pose, timestep: float) -> Nodes:
        """Nodes that move through given poses of theirs, a time-step apart."""

    def blank(self, count: int) -> Nodes:
        """As many nodes, all zero: arrays of the right shapes."""
        return Nodes(Pose(np.zeros((count, self.bodies, 3)), np.zeros((count, self.bodies, 4))), None)

    # --- what a node must satisfy by itself ---

    def constraints(self, mechanism: Mechanism, pose: Pose) -> Float[Array, "m"]:
        """What is zero at the poses of any node, whatever its unknowns and the parameters."""
        return jnp.zeros(0)

    def closed(self, poses: Pose, here: Evaluations) -> Pose:
        """Nodes with their constraints satisfied, not a number where that failed; unknowns stay as they are."""
        return poses

    def guesses(self, pose: Pose) -> list[Pose]:
        """Poses of a node from which to look for one that the sensors read, the likeliest first."""
        return [pose]

    @property
    def settled(self) -> bool:
        """Whether the unknowns are the same whatever the motion (`suited`)."""
        return True

    def suited(self, mechanism: Mechanism, parameters: Sequence[str], along: Sequence[Along]) -> Unknowns:
        """The unknowns that suit given motions of nodes, for parameters whose increments have these names."""
        return self

    # --- rows ---

    def recursion(self, layout: Layout, equations: Equations, mechanism: Mechanism) -> Recursion | None:
        """The same rows as `step_rows` of many steps, where writing out the code of a step would take too long."""
        return None

    def stick_times(self, mechanism: Mechanism) -> Float[np.ndarray, "a"]:
        """How long each axis creeps whose dry friction has a held width (:mod:`stopping`); none without such."""
        return np.zeros(0)

    def braked(
        self, equations: Equations, machine: Parametrised, poses: Pose, command: Array, timestep: Float[Array, ""]
    ) -> tuple[Float[Array, "a"], Float[Array, "a"], Float[Array, "d"]]:
        """What friction does to these axes (:class:`stopping.Braked`) in one step between three nodes."""
        raise NotImplementedError

    @abc.abstractmethod
    def step_rows(self, equations: Equations, step: Step) -> Rows:
        """Dynamics residuals of one step with their derivatives by ``reach`` nodes and the parameters, unweighted."""

    @abc.abstractmethod
    def view(self, mechanism: Mechanism, state: State, instant: Instant) -> View:
        """What the sensors see of a state that is given like a node, and of its rates and the inputs."""

    @abc.abstractmethod
    def start_rows(self, start: Start, here: Evaluations) -> Rows:
        """Weighted rows of the initial state, by the first nodes and the parameters."""

    @abc.abstractmethod
    def start_count(self, mechanism: Mechanism) -> int:
        """How many independent residuals these are."""

    # --- bodies ---

    @abc.abstractmethod
    def placed(self, mechanism: Mechanism, pose: Pose) -> Placed:
        """Bodies at the poses of a node, and how they move with it."""

    @abc.abstractmethod
    def motions(self, mechanism: Mechanism, pose: Pose) -> Pose:
        """Poses of a node at given poses of the bodies."""

    @abc.abstractmethod
    def towards(self, mechanism: Mechanism, pose: Pose, target: Target, weights: Float[Array, "sensors"]) -> Iterate:
        """One iteration of inverse kinematics from the poses of a node, towards readings of the sensors."""

    @abc.abstractmethod
    def bodies_at(self, poses: Pose, here: Evaluations) -> Pose:
        """Poses of the bodies at the poses of nodes."""

    @abc.abstractmethod
    def nodes_at(self, bodies: Pose, here: Evaluations) -> Pose:
        """Poses of nodes at poses of the bodies."""

    @abc.abstractmethod
    def body_covariance(
        self, covariance: Float[np.ndarray, "n b b"], poses: Pose, here: Evaluations
    ) -> Float[np.ndarray, "n bodies*k bodies*k"]:
        """Covariance of the bodies' states for one of the nodes."""

    # --- impulses ---

    @abc.abstractmethod
    def impulses_of(
        self, residuals: Float[np.ndarray, "n r"], poses: Pose, here: Evaluations
    ) -> Float[np.ndarray, "n r"]:
        """Missing impulses ``A (v' − φ)`` of dynamics residuals at poses of nodes."""

    @abc.abstractmethod
    def residuals_of(
        self, impulses: Float[np.ndarray, "n r"], around: Pose, here: Evaluations
    ) -> Float[np.ndarray, "n r"]:
        """Dynamics residuals of missing impulses; ``around`` has one pose more at each end."""

    def axis_answers(
        self, joints: Sequence[int], equations: Equations, around: Pose, timestep: float, here: Evaluations
    ) -> Float[np.ndarray, "n r j"]:
        """Dynamics residuals of a unit impulse along the free axes of joints; ``around`` as in `residuals_of`.

        Asked for where the residuals are not the impulses of the joints themselves.
        """
        raise NotImplementedError

    @abc.abstractmethod
    def impulses_on_bodies(
        self, errors: Float[np.ndarray, "n r"], poses: Pose, reference: Float[np.ndarray, "bodies 6"], here: Evaluations
    ) -> Float[np.ndarray, "n bodies 6"]:
        """Impulses on the bodies that cause errors of the dynamics residuals; ``reference`` is M₀."""

    @abc.abstractmethod
    def along_axes(
        self,
        impulses: Float[np.ndarray, "n r"],
        joints: Sequence[int],
        project: Callable[[Float[np.ndarray, "n r"]], Float[np.ndarray, "n j"]],
    ) -> Float[np.ndarray, "n j"]:
        """Missing impulses along the axes of joints; ``project`` gives these for impulses on the bodies."""
