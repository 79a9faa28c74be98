"""Rows of the dynamics of a tree with loops: those of the tree by recursion, and what the loops make of them.

With the tree's rows r (:mod:`rows`), the loops' rows C, impulses λ and motions Z (:mod:`closure`), a step misses

    ρ = Zᵀ r(λ),      r(λ) = r_tree − p(λ),      λ = C K⁻¹ r

along its independent coordinates; p are the impulses along the coordinates of the joints that close loops: of their
gaps, ``Cᵀλ``, and of laws and friction along their own axes. Only p and the gaps are written out, which are small: they
know nothing of masses. Where joints rub in proportion to what they carry, each joint of the tree carries the wrench of
what hangs on it less that of the loops; r then depends on λ, which is found in a few rounds as in
:mod:`loop_transition`, whose rows these are. Impulses of compliant joints are those of :mod:`loop_springs`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import balance, loops
from shadowfit.dynamics.loop_law import LoopLaw, loop_law
from shadowfit.dynamics.sliding import stick_width
from shadowfit.dynamics.state import Moving
from shadowfit.dynamics.tree import Tree, forward_kinematics
from shadowfit.estimation.residuals import loop_springs
from shadowfit.estimation.residuals.closure import ROUNDS, all_loops
from shadowfit.estimation.residuals.equations import Friction
from shadowfit.estimation.residuals.loop_springs import LoopSprings, reference_inertia
from shadowfit.estimation.residuals.parameter_layout import Layout, Parametrised, Values
from shadowfit.estimation.residuals.recursion.elements import TIMES
from shadowfit.estimation.residuals.recursion.lanes import POSE
from shadowfit.estimation.residuals.recursion.links import Outwards, TreeLinks
from shadowfit.estimation.residuals.recursion.rows import TreeRows
from shadowfit.estimation.residuals.stopping import Braked, stick_times
from shadowfit.geometry import Pose
from shadowfit.kernels import OverTime, is_own, over_time, slopes, windowed
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.records import record
from shadowfit.trees import leaves_of, structure_of, unflatten


@record(frozen=True)
class _Closed:
    """Loops along nodes, and along the steps whose middle they are."""

    rows: Float[np.ndarray, "steps m d"]
    """C of the middle nodes."""
    reacting: Float[np.ndarray, "steps h d"]
    """``C K⁻¹`` of rigid rows, which gives λ."""
    moving: Float[np.ndarray, "nodes d n"]
    """Z."""
    following: Float[np.ndarray, "nodes d p"]
    """How coordinates follow the parameters."""
    compliant: np.ndarray
    """Places of the compliant rows,"""
    rigid: np.ndarray
    """and of the others."""
    springs: LoopSprings | None
    """Compliant rows of the middle nodes, over time."""

    def taken(
        self, left: Float[np.ndarray, "steps d x"], defect: Float[np.ndarray, "steps y x"]
    ) -> Float[np.ndarray, "steps m x"]:
        """What the joints that close loops take beside what they do; or the derivatives of that."""
        more = np.zeros((len(left), self.rows.shape[1], left.shape[2]))
        if self.springs is not None:
            more[:, self.compliant] = self.sprung(left, defect)
            left = left - np.swapaxes(self.rows[:, self.compliant], 1, 2) @ more[:, self.compliant]
        more[:, self.rigid] = self.reacting @ left
        return more

    def sprung(
        self, left: Float[np.ndarray, "steps d x"], defect: Float[np.ndarray, "steps y x"]
    ) -> Float[np.ndarray, "steps y x"]:
        """What of it compliant joints take."""
        assert self.springs is not None
        free = np.swapaxes(self.moving[1:-1], 1, 2) @ left
        return self.springs.inverse @ (self.springs.across @ free - defect)

    def free(
        self, left: Float[np.ndarray, "steps d x"], defect: Float[np.ndarray, "steps y x"]
    ) -> Float[np.ndarray, "steps n x"]:
        """What is missing along the independent coordinates."""
        along = np.swapaxes(self.moving[1:-1], 1, 2) @ left
        return along if self.springs is None else along - self.springs.along @ self.sprung(left, defect)


@record(frozen=True)
class _Pushed:
    """What the joints that close loops do at given λ."""

    along: Float[np.ndarray, "steps d *x"]
    """p, or its derivatives by three configurations, parameters and λ."""
    carried: Float[np.ndarray, "steps k 6 *x"]
    """Wrench on what hangs on each joint that rubs, about the world's origin; or its derivatives."""
    defect: Float[np.ndarray, "steps y *x"]
    """``Σ λ + d`` of compliant rows (:mod:`loop_springs`); or its derivatives."""


@record(frozen=True)
class _Balanced:
    """Steps with the impulses of their loops."""

    varying: list[Array]
    """What the loops' impulses depend on, λ among it."""
    pushed: _Pushed
    wrenches: Float[np.ndarray, "links times 6"]
    """What the joints of the tree carry."""
    limits: Float[np.ndarray, "steps d"]
    """Largest impulses of dry friction along the coordinates."""
    missing: Float[np.ndarray, "steps d"]
    """``r(λ)``."""


class LoopRows:
    """The dynamics of one tree with loops and free parameters."""

    def __init__(
        self,
        layout: Layout,
        tree: Tree,
        independent: tuple[int, ...],
        mechanism: Mechanism,
        friction: Friction = "stepper",
    ) -> None:
        """``friction`` is that of :class:`Equations`, and says how dampers of compliant loops act."""
        self.layout, self.tree, self.independent, self.mechanism = layout, tree, independent, mechanism
        self.friction: Friction = friction
        self.open = TreeRows(layout, tree, mechanism)
        self.rubs = any(joint.friction is not None for joint in mechanism.joints.values)
        self.rubbing = [
            i
            for i, link in enumerate(tree.links)
            if link.joint is not None and mechanism.joints.values[link.joint].friction is not None
        ]
        self.count = loops.row_count(tree, mechanism)
        self.compliant = np.flatnonzero(loops.compliant_rows(tree, mechanism))
        self._settings = [np.asarray(leaf) for leaf in leaves_of(mechanism)]
        self._made: dict[Callable[..., Any], OverTime] = {}
        self._lock = threading.Lock()

    def prepare(self) -> None:
        """Have the code of the tree made in the background."""
        self.open.prepare()

    def rows(
        self,
        values: Values,
        poses: Pose,
        command: tuple[Array, Array],
        timestep: float,
        widths: Float[np.ndarray, "steps a"],
    ) -> Float[np.ndarray, "steps n 3*n+p+1"]:
        """As those of `TreeRows`, along the independent coordinates."""
        steps = len(poses.position) - 2
        at = self.open.outwards(values, poses, command[0], timestep)
        closed = self._closed(values, poses, timestep, following=True)
        found = self._balanced(self.open, at, values, poses, command, timestep, closed, widths)
        axes = self.open.along_axes(at, found.wrenches, widths[:, : self.tree.size])
        rows = self.open.together(at, axes, command[1], steps)
        changed = self._pushed(values, timestep, found.varying, True, closed)
        return self._projected(rows, found.pushed, changed, axes, closed)

    def missing(
        self, values: Values, poses: Pose, command: Array, timestep: float, widths: Float[np.ndarray, "steps a"]
    ) -> Float[np.ndarray, "steps n"]:
        """The last column of `rows`, for a fraction of the work."""
        at = self.open.alone.outwards(values, poses, command, timestep)
        closed = self._closed(values, poses, timestep, following=False)
        no_slopes = np.zeros((*np.shape(command), len(self.layout.inputs)))
        found = self._balanced(self.open.alone, at, values, poses, (command, no_slopes), timestep, closed, widths)
        return closed.free(found.missing[..., None], found.pushed.defect[..., None])[..., 0]

    def braked(self, values: Values, poses: Pose, command: Array, timestep: float) -> Braked:
        """What the widths of dry friction follow from: found in rounds with friction, and the loads that these make."""
        steps, times = len(poses.position) - 2, np.array(stick_times(self.tree, self.mechanism), float)
        at = self.open.alone.outwards(values, poses, command, timestep)
        closed = self._closed(values, poses, timestep, following=False)
        mobility = self._mobility(at, values, poses, closed, timestep)
        no_slopes = np.zeros((*np.shape(command), len(self.layout.inputs)))
        stopped = np.zeros((steps, len(times)))
        for _ in range(2):
            widths = np.asarray(stick_width(times, stopped, timestep, library=np))
            found = self._balanced(self.open.alone, at, values, poses, (command, no_slopes), timestep, closed, widths)
            limits, speeds = self._run(_own_axes, values, [np.asarray(timestep)], found.varying)
            stopped = mobility * np.hstack([found.limits, limits])
        return Braked(stopped, np.hstack([self.open.alone.rates(poses, timestep), speeds]), found.limits)

    def _balanced(
        self,
        tree: TreeLinks,
        at: Outwards,
        values: Values,
        poses: Pose,
        command: tuple[Array, Array],
        timestep: float,
        closed: _Closed,
        widths: Float[np.ndarray, "steps a"],
    ) -> _Balanced:
        """λ of the loops, in a few rounds where joints rub in proportion to what they carry. No derivatives.

        ``tree`` is the one that went outwards.
        """
        steps, alone = len(poses.position) - 2, self.open.alone
        wrenches = tree.carried(at)[0] if self.rubs else np.array(alone.sums(at))
        whole, of_tree = self._inertial(at, wrenches, steps), widths[:, : self.tree.size]
        own = widths[:, self.tree.size :]
        windows = [windowed(np.asarray(x), TIMES, steps) for x in (poses.position, poses.orientation)]

        def found(reaction: np.ndarray) -> _Balanced:
            varying: list[Array] = [*windows, *command, reaction, own]
            pushed, reduced = self._pushed(values, timestep, varying, False, closed), wrenches.copy()
            for k, link in enumerate(self.rubbing):
                reduced[link, :steps] -= pushed.carried[:, k]
            axes = alone.along_axes(at, reduced, of_tree)
            along = self._along(axes, steps)
            return _Balanced(varying, pushed, reduced, alone.limits(axes, steps), whole - along - pushed.along)

        reaction = np.zeros((steps, self.count))
        last = found(reaction)
        for _ in range(ROUNDS if self.rubs else 1):
            reaction = reaction + closed.taken(last.missing[..., None], last.pushed.defect[..., None])[..., 0]
            last = found(reaction)
        return last

    def _projected(
        self,
        rows: Float[np.ndarray, "steps d 3*d+p+1"],
        pushed: _Pushed,
        changed: _Pushed,
        axes: Sequence[np.ndarray | None],
        closed: _Closed,
    ) -> Float[np.ndarray, "steps n 3*n+p+1"]:
        """Rows of the tree less the impulses of loops, along what these leave free."""
        steps, size, _ = rows.shape
        slopes = np.concatenate([rows[:, :, :-1], np.zeros((steps, size, self.count))], axis=2) - changed.along
        for k, link in enumerate(self.rubbing):
            # r has −l, and l the wrench of the tree less that of the loops.
            slopes[:, self._first(link)] += np.einsum(
                "kc,kcx->kx", self._by_wrench(axes[link], link, steps), changed.carried[:, k]
            )
        slopes = np.concatenate([slopes, changed.defect], axis=1)
        width = TIMES * size
        by_parameters = slopes[:, :, width : -self.count].copy()
        parts = []
        for t in range(TIMES):
            at_time = slopes[:, :, t * size : (t + 1) * size]
            parts.append(at_time @ closed.moving[t : t + steps])
            by_parameters += at_time @ closed.following[t : t + steps]
        moved, by_reaction = np.concatenate([*parts, by_parameters], axis=2), slopes[:, :, -self.count :]
        left = moved
        if self.rubs:
            # Loads move along, and friction with them.
            reaction = np.zeros((steps, self.count, moved.shape[2]))
            for _ in range(2):
                reaction = reaction + closed.taken(left[:, :size], left[:, size:])
                left = moved + by_reaction @ reaction
        value = np.concatenate([rows[:, :, -1] - pushed.along, pushed.defect], axis=1)
        whole = np.concatenate([left, value[:, :, None]], axis=2)
        return closed.free(whole[:, :size], whole[:, size:])

    # --- the tree ---

    def _first(self, link: int) -> int:
        """The first coordinate of a link."""
        return sum(len(one.freedom) for one in self.tree.links[:link])

    def _twists(self, at: Outwards, link: int, steps: int) -> Float[np.ndarray, "steps k 6"]:
        """S of a link's coordinates, at the middle of each step."""
        freedom = len(self.tree.links[link].freedom)
        return at.links[link][1 : steps + 1, POSE : POSE + 6 * freedom].reshape(steps, freedom, 6)

    def _inertial(self, at: Outwards, wrenches: np.ndarray, steps: int) -> Float[np.ndarray, "steps d"]:
        """What the bodies miss along the coordinates, without laws and friction."""
        parts = [
            np.einsum("kcx,kx->kc", self._twists(at, link, steps), wrenches[link, :steps])
            for link in range(len(self.tree.links))
        ]
        return np.concatenate(parts, axis=1)

    def _along(self, axes: Sequence[np.ndarray | None], steps: int) -> Float[np.ndarray, "steps d"]:
        """l."""
        along = np.zeros((steps, self.tree.size))
        for link, axis in enumerate(axes):
            if axis is not None:
                along[:, self._first(link)] = axis[:steps, 0]
        return along

    def _by_wrench(self, axis: np.ndarray | None, link: int, steps: int) -> Float[np.ndarray, "steps 6"]:
        """∂l/∂(wrench that the joint carries)."""
        element = self.open.axes[link]
        assert axis is not None
        assert element is not None
        first = 1 + (0 if element.kind.grounded else 6 * TIMES) + TIMES * len(self.tree.links[link].freedom)
        return axis[:steps, first : first + 6]

    def _mobility(
        self, at: Outwards, values: Values, poses: Pose, closed: _Closed, timestep: float
    ) -> Float[np.ndarray, "steps a"]:
        """Changes of the speeds of the coordinates, and of the loops' own axes, by impulses along them."""
        steps = len(poses.position) - 2
        inner = [poses.position[1:-1], poses.orientation[1:-1]]
        rows, inertia = self._run(_axes, values, [], inner)
        mass = np.swapaxes(rows, 1, 2) @ (inertia[:, :, None] * rows)
        order = {link.body: i for i, link in enumerate(self.tree.links)}
        for i, link in enumerate(self.tree.links):
            within, base = [i], order.get(link.base)
            while base is not None:
                within, base = [*within, base], order.get(self.tree.links[base].base)
            places = [self._first(w) + c for w in within for c in range(len(self.tree.links[w].freedom))]
            twists = np.concatenate([self._twists(at, w, steps) for w in within], axis=1)
            inertia = at.bodies[i][:steps, -36:].reshape(steps, 6, 6)
            mass[np.ix_(range(steps), places, places)] += twists @ inertia @ np.swapaxes(twists, 1, 2)
            if len(link.freedom) == 1:
                mass[:, self._first(i), self._first(i)] += at.links[i][1 : steps + 1, -1]
        (response,) = self._run(_response_of, values, [np.asarray(timestep)], [mass, closed.rows])
        along = np.diagonal(response, axis1=1, axis2=2)
        return np.hstack([along, np.einsum("kad,kde,kae->ka", rows, response, rows)])

    # --- the loops ---

    def _closed(self, values: Values, poses: Pose, timestep: float, *, following: bool) -> _Closed:
        """Loops along the nodes; see :mod:`closure` for the equations. ``following``: with what follows parameters."""
        function = _closings if following else _closing_rows
        whole, *changes = self._run(function, values, [], [poses.position, poses.orientation])
        rigid = np.setdiff1d(np.arange(self.count), self.compliant)
        rows = whole[:, rigid]
        size, scale = self.tree.size, np.ones((len(rows), 1, 1))
        if len(rigid):
            scale = np.sum(rows**2, axis=(1, 2))[:, None, None] / len(rigid)
        picked = np.eye(size)[list(self.independent)]
        across = np.swapaxes(rows, 1, 2)
        inverse = np.linalg.inv(across @ rows + scale * picked.T @ picked)
        followed = -inverse @ (across @ changes[0][:, rigid]) if following else np.zeros((len(rows), size, 0))
        moving = scale * inverse @ picked.T
        springs = self._springs(values, poses, timestep, whole, moving) if len(self.compliant) else None
        return _Closed(whole[1:-1], (rows @ inverse)[1:-1], moving, followed, self.compliant, rigid, springs)

    def _springs(
        self, values: Values, poses: Pose, timestep: float, rows: np.ndarray, moving: Float[np.ndarray, "nodes d n"]
    ) -> LoopSprings:
        """Compliant rows of the middle nodes."""
        (inertia,) = self._run(_inertia, values, [], [poses.position[1:-1], poses.orientation[1:-1]])
        middle, given = moving[1:-1], rows[:, self.compliant]
        along, ahead = np.swapaxes(given[1:-1] @ middle, 1, 2), given[2:] @ moving[2:]
        varying = [along, ahead, np.swapaxes(middle, 1, 2) @ inertia @ middle]
        return LoopSprings(*self._run(_springs_of, values, [np.asarray(timestep)], varying))

    def _pushed(
        self, values: Values, timestep: float, varying: Sequence[Array], slopes_wanted: bool, closed: _Closed
    ) -> _Pushed:
        steps, size, k = len(varying[0]), self.tree.size, len(self.rubbing)
        function = _pushes if slopes_wanted else _push
        (pushed,) = self._run(function, values, [np.asarray(timestep)], varying)
        along, carried, defect = np.split(pushed, [size, size + 6 * k], axis=1)
        if closed.springs is not None:
            firm = closed.springs.firmness
            if slopes_wanted:
                places = self.compliant - self.count + defect.shape[2]
                defect[:, np.arange(len(places)), places] += firm
            else:
                defect = defect + firm * varying[4][:, self.compliant]
        return _Pushed(along, carried.reshape(steps, k, 6, *pushed.shape[2:]), defect)

    def _run(
        self,
        function: Callable[..., Any],
        values: Values,
        constants: list[np.ndarray],
        varying: Sequence[Any],
    ) -> list[np.ndarray]:
        """Outputs of a function of one step, over time."""
        given = [np.asarray(values.numbers), np.asarray(values.turns), *constants]
        with self._lock:
            if function not in self._made:
                structure = structure_of(self.mechanism)

                def one(settings: list[Any], constants: list[Any], varying: list[Any]) -> Any:
                    plain = unflatten(structure, settings)
                    machine = Parametrised(self.layout, plain, Values(*constants[:2]))
                    return function(self, machine, constants[2:], varying)

                own = is_own(self.mechanism)
                key = (function, self.tree, self.independent, self.friction, self.layout, structure) if own else None
                shapes = [np.empty(x.shape[1:]) for x in varying]
                self._made[function] = over_time(one, self._settings, given, shapes, key)
            made = self._made[function]
        return made(self._settings, given, varying, None, None)


def _closings(loop: LoopRows, machine: Parametrised, _: list[Any], varying: list[Any]) -> tuple[Array, Array]:
    """C at one node, and derivatives of the gaps by the parameters."""
    motion = Pose(*varying)
    rows = all_loops(loop.tree, machine.mechanism(), motion).rows
    _gap, by_parameters = slopes(
        lambda p: all_loops(loop.tree, machine.moved(p), motion).gap, jnp.zeros(loop.layout.size)
    )
    return rows, by_parameters


def _closing_rows(loop: LoopRows, machine: Parametrised, _: list[Any], varying: list[Any]) -> tuple[Array]:
    """C at one node."""
    return (all_loops(loop.tree, machine.mechanism(), Pose(*varying)).rows,)


def _axes(loop: LoopRows, machine: Parametrised, _: list[Any], varying: list[Any]) -> tuple[Array, Array]:
    """Rows of the loops' own axes by the coordinates, and inertias of shafts along them."""
    mechanism = machine.mechanism()
    now = forward_kinematics(loop.tree, mechanism, Pose(*varying))
    rows, inertia = loops.axes(loops.closing(loop.tree, mechanism), now.pose)
    return rows @ now.twists.reshape(-1, loop.tree.size), inertia


def _law(loop: LoopRows, machine: Parametrised, timestep: Array) -> LoopLaw:
    return loop_law(loop.tree, loops.closing(loop.tree, machine.mechanism()), timestep)


def _response_of(loop: LoopRows, machine: Parametrised, constants: list[Any], varying: list[Any]) -> Array:
    mass, closed = varying
    return loops.response(mass, closed, _law(loop, machine, constants[0]))


def _inertia(loop: LoopRows, machine: Parametrised, _: list[Any], varying: list[Any]) -> Array:
    """B at one node."""
    now = forward_kinematics(loop.tree, machine.mechanism(), Pose(*varying))
    return reference_inertia(loop.tree, machine, now.twists)


def _springs_of(loop: LoopRows, machine: Parametrised, constants: list[Any], varying: list[Any]) -> list[Array]:
    """Compliant rows of a step, from ``C_kᵀ``, ``C_{k+1}`` and B."""
    along, ahead, inertia = varying
    own = _law(loop, machine, constants[0]).part(loop.compliant)
    springs = LoopSprings.at(own, along, ahead, inertia, loop.friction)
    return leaves_of(springs.beside_contacts() if len(loop.mechanism.contacts) else springs)


def _own_axes(loop: LoopRows, machine: Parametrised, constants: list[Any], varying: list[Any]) -> tuple[Array, Array]:
    """Largest impulses of dry friction along the loops' own axes, and their speeds before the step."""
    position, orientation, command, _, reaction, widths = varying
    mechanism, timestep = machine.mechanism(), constants[0]
    poses = Pose(position, orientation)
    before, now, after = (forward_kinematics(loop.tree, mechanism, poses[t]).pose for t in range(TIMES))
    moving = Moving(now, now.minus(before) / timestep, after.minus(now) / timestep, command, timestep)
    axes = loops.along_axes(loops.closing(loop.tree, mechanism), moving, reaction, balance.Turning(None, widths))
    return axes.limit, axes.speed


def _push(loop: LoopRows, machine: Parametrised, constants: list[Any], varying: list[Any]) -> Array:
    return _on_tree(loop, machine, constants[0], varying, jnp.zeros(_width(loop)))


def _pushes(loop: LoopRows, machine: Parametrised, constants: list[Any], varying: list[Any]) -> Array:
    return slopes(lambda x: _on_tree(loop, machine, constants[0], varying, x), jnp.zeros(_width(loop)))[1]


def _width(loop: LoopRows) -> int:
    """Increments of three configurations, of the parameters and of λ."""
    return TIMES * loop.tree.size + loop.layout.size + loop.count


def _on_tree(
    loop: LoopRows, machine: Parametrised, timestep: Array, varying: list[Any], increments: Array
) -> Float[Array, "d+6*k+y"]:
    """Impulses of the joints that close loops along the coordinates, and wrenches on what hangs on joints that rub.

    Behind them the defects of compliant joints.
    """
    position, orientation, command, command_slopes, reaction, widths = varying
    tree, width = loop.tree, TIMES * loop.tree.size
    moves, parameters, more = jnp.split(increments, [width, width + loop.layout.size])
    mechanism = machine.moved(parameters)
    spread = moves.reshape(TIMES, tree.size) @ tree.selection()
    moved = Pose(position, orientation).plus(spread.reshape(TIMES, len(tree.links), 6))
    before, now, after = (forward_kinematics(tree, mechanism, moved[t]) for t in range(TIMES))
    old, new = now.pose.minus(before.pose) / timestep, after.pose.minus(now.pose) / timestep
    acting = command + command_slopes @ parameters[np.array(loop.layout.inputs, int)]
    closers, acted = loops.closing(tree, mechanism), reaction + more
    moving = Moving(now.pose, old, new, acting, timestep)
    axes = loops.along_axes(closers, moving, acted, balance.Turning(None, widths))
    pushed = loops.on_bodies(closers, now.pose, acted, axes)
    about = jnp.concatenate([pushed[:, :3], pushed[:, 3:] + jnp.cross(now.pose.position, pushed[:, :3])], axis=1)
    carried = [about[np.array(tree.hanging_on(tree.links[link].body))].sum(0) for link in loop.rubbing]
    open_by: list[Array] = []
    if tree.compliant:
        bodies = (before.pose, now.pose, after.pose)
        open_by = [loop_springs.defect(tree, mechanism, bodies, acted[loop.compliant], timestep, loop.friction)]
    return jnp.concatenate([jnp.einsum("bid,bi->d", now.twists, pushed), *carried, *open_by])
