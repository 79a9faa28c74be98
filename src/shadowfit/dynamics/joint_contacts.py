"""Contacts in joint coordinates: planes and end stops, with the rates of the coordinates in place of velocities.

A contact point has the rows C, D for the bodies' velocities (:mod:`contact_law`). Its impulses λ act on the coordinates
along ``(C T)ᵀ`` and ``(D T)ᵀ``, T at the start of the step, and follow from the new velocities v' as they do with
compliant joints. v' is a function of the coordinates' rates u; near given ones it is ``v' + V (u − rates)``.

An end stop is a pair of torques between two bodies along the axis that they share: along the coordinates it pushes one.
"""

from __future__ import annotations

from shadowfit.arrays import Array, Float
from shadowfit.complementarity.small_solve import small_solve
from shadowfit.dynamics import contact_problem, dry_friction
from shadowfit.dynamics.composites import VelocityMaps
from shadowfit.dynamics.contact_law import Branch, Impulses, Points, branch_at, contact_points, impulses_on
from shadowfit.dynamics.elements import Elements, StopElement
from shadowfit.dynamics.state import Moving, with_world
from shadowfit.dynamics.tree import Hung, Tree, velocities_by
from shadowfit.lazy_jax import jax, jnp
from shadowfit.pytrees import PyTree

# Linear solves of the contact problem in a round of Newton's iteration, which starts where the last round ended.
ROUNDS = 2


def impulse_count(elements: Elements) -> int:
    """Numbers that the impulses of all contact points are: one of an end stop's side, three of a point on a plane."""
    return sum(2 if isinstance(contact, StopElement) else 3 * contact.points for contact in elements.contacts)


def contact_branches(
    points: Points,
    slope: Float[Array, "d d"],
    free: Float[Array, "d"],
    start: Impulses | None,
    rounds: int,
) -> Branch:
    """Branches of points on what would go at the rates ``free`` without them; ``slope`` is its inertia."""
    size = len(free)
    answers = contact_problem.responses(points, small_solve(slope, contact_problem.point_rows(points).T, definite=True))
    problem = contact_problem.ContactProblem(slope, free, points, answers, dry_friction.no_axes(size))
    friction, none = contact_problem.no_impulses(points, 0)
    _, branches = contact_problem.settle(problem, (friction, none if start is None else start), rounds)
    return branches.branch


class Touching(PyTree):
    """Contact points in a round of Newton's iteration of a step (:mod:`rigid_step`)."""

    rates: Float[Array, "d"]
    """Where the round starts."""
    here: Points
    """Of the coordinates: rows are those along which impulses act."""
    ahead: Points
    """Rows are those of the velocities at the end of the step."""

    @classmethod
    def at(
        cls,
        elements: Elements,
        tree: Tree,
        moving: Moving,
        now: Hung,
        ahead: tuple[list[Float[Array, "6"]], VelocityMaps],
        rates: Float[Array, "d"],
    ) -> Touching:
        """``ahead``: twists of the coordinates at the end of the step, and how velocities follow from them."""
        points = contact_points(elements, *with_world(now.pose, moving.velocity), moving.timestep)
        velocity = moving.new_velocity.ravel()
        acting = velocities_by(tree, now.twists, now.pose.position).reshape(-1, tree.size)
        twists, maps = ahead
        seen = velocities_by(tree, twists, maps.position)
        turned = jnp.einsum("bij,bjd->bid", maps.turning, seen[:, 3:])
        leading = jnp.concatenate([seen[:, :3], turned], axis=1).reshape(-1, tree.size)
        return cls(rates, points.as_seen(acting, velocity, rates), points.as_seen(leading, velocity, rates))

    def branches(self, matrix: Float[Array, "d d"], missing: Float[Array, "d"], start: Float[Array, "c"]) -> Branch:
        """Branches beside Newton's equations without contacts; the search starts from given impulses."""
        free = self.rates - small_solve(matrix, missing[:, None], definite=True)[:, 0]
        return contact_branches(self.here, matrix, free, _impulses(self.here, start), ROUNDS)

    def branches_here(self) -> Branch:
        """Branches at the rates where the round starts."""
        return branch_at(self.ahead, self.rates)

    def pushed(self, branch: Branch) -> tuple[Float[Array, "d"], Float[Array, "d d"]]:
        """Impulses along the coordinates on fixed branches, and their derivatives by the rates."""

        def push(rates: Array) -> tuple[Array, Array]:
            along = self.here.push(impulses_on(self.ahead, branch, rates))
            return along, along

        slope, value = jax.jacfwd(push, has_aux=True)(self.rates)
        return value, slope

    def holds(self, branch: Branch, rates: Float[Array, "d"]) -> Array:
        """Whether points at rates that branches led to are on these branches."""
        there = branch_at(self.ahead, rates)
        off = jnp.append((there.slip - branch.slip).ravel(), there.touching - branch.touching)
        return jnp.max(jnp.abs(off)) == 0.0

    def impulses(self, branch: Branch, rates: Float[Array, "d"]) -> Float[Array, "c"]:
        """Impulses of all points on fixed branches."""
        impulses_of_points = impulses_on(self.ahead, branch, rates)
        return jnp.concatenate([impulses_of_points.normal, impulses_of_points.tangent.ravel()])


def on_bodies(elements: Elements, moving: Moving, impulses: Float[Array, "c"]) -> Float[Array, "bodies 6"]:
    """What contact points of given impulses do to the bodies."""
    points = contact_points(elements, *with_world(moving.pose, moving.velocity), moving.timestep)
    return points.push(_impulses(points, impulses)).reshape(-1, 6)


def _impulses(points: Points, flat: Float[Array, "c"]) -> Impulses:
    count = points.bias.shape[0]
    return Impulses(flat[:count], flat[count:].reshape(-1, 2))
