"""The velocity problem of a step on fixed branches: one linear system, and which branches its solution is on.

Each complementarity condition of :mod:`velocity_problem` says that something is on one of two or three *branches*, on
each of which it is an equation. With the impulses x along all rows, and ``w = S x + b`` what the rows leave
(``S = A M⁻¹ Pᵀ + Σ``, ``b = A v_f + bias``),

    gap row with dry friction    sign σ_i of its impulse: |x_i| = σ_i x_i
    tangent of that friction     sticks, w = 0; or slides along d = ±1, x = −d L, L = Σ U_i σ_i x_i + h·level
    contact point                touches, w = 0; or is open, x = 0
    its two tangents             stick, w = 0; or slide along one of them, x = −d μ x_n and x = 0, or along both,
                                 d₁ x₁ + d₂ x₂ = −μ x_n and d₁ w₁ = d₂ w₂

A point solves the complementarity problem where ``x = P(x − ρ w)``, with P the projection on what is allowed; its
branches are those of the projection. Going to the branches of the last point is Newton's method
on the projections, and mostly takes one or two rounds. It can go round in circles, for bodies that rest on more points
than they need above all; there it helps to change only some of the wrong branches in a round, other ones in each. Boxes
tossed on a floor (288 tosses of 300 steps of 1 to 10 ms, friction 0.5 and 1) settle all steps of all but 5 tosses that
way; changing one at a time, the first that is wrong (Murty's rule), leaves 60.
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.complementarity.small_solve import small_solve
from shadowfit.dynamics.contact_law import Points, projected, slip_of, stacked
from shadowfit.dynamics.elements import Elements, StopElement
from shadowfit.dynamics.velocity_problem import VelocityProblem, behind, dense_rows, equality_bias
from shadowfit.lazy_jax import jnp
from shadowfit.pytrees import PyTree, field

# Rounds in which all branches that are wrong change at once.
TOGETHER = 8


class Solved(PyTree):
    """The solution on given branches."""

    velocity: Float[Array, "bodies+1 6"]
    impulses: tuple[Float[Array, "n r"], ...]
    """Along the rows of each group of joints [N s, N m s]."""
    branches: Float[Array, "k"]
    """That this solution is on."""
    violation: Float[Array, ""]
    """How far it is from a solution of the complementarity problem, as a speed [m/s or rad/s]."""


def branch_count(elements: Elements) -> int:
    """Numbers that say on which branches a solution is."""
    joints = sum(group.size * (group.gap_rows + 1) for group in elements.groups if group.friction is not None)
    return joints + sum(2 if isinstance(contact, StopElement) else 3 * contact.points for contact in elements.contacts)


def towards(old: Float[Array, "k"], new: Float[Array, "k"], round: Float[Array, ""]) -> Float[Array, "k"]:
    """The branches of the next round: the new ones, after some rounds only half of those that differ.

    Multiples of different irrational numbers say which: they never repeat and do not go together.
    """
    lots = (round + 1.0) * np.sqrt(2.5 + np.arange(len(old)))
    waits = lots - jnp.floor(lots) > 0.5
    return jnp.where((round >= TOGETHER) & waits, old, new)


def solve_on(elements: Elements, problem: VelocityProblem, branches: Float[Array, "k"]) -> Solved:
    """Solve for the velocity and all impulses on fixed branches."""
    system = _System.of(elements, problem)
    parts = _Parts.of(elements, problem, system, branches)
    # Rows of joints come first: their block is symmetric but for small angles and scales of rows, and needs no search
    # for pivots. Behind it a pivot vanishes where friction jams, and there is no solution then.
    solution = small_solve(parts.matrix, -parts.constant[:, None], definite=True)[:, 0]
    joints = system.joints
    velocity, impulses = behind(elements, problem, solution[:joints])
    if system.points is not None:
        pushed = (solution[joints:] @ system.rows[joints:]).reshape(-1, 6)
        velocity = jnp.asarray(velocity).at[:-1].add(jnp.einsum("bij,bj->bi", problem.inverse_mass[:-1], pushed))
    branches, off = parts.repaired(solution)
    return Solved(velocity, impulses, branches, jnp.max(jnp.abs(jnp.append(off, 0.0))))


class _System(PyTree):
    """``w = S x + b`` of all rows: those of the joints, normals of contact points, and their tangents by twos."""

    rows: Float[Array, "r v"]
    matrix: Float[Array, "r r"]
    constant: Float[Array, "r"]
    points: Points | None
    joints: int = field(static=True)

    @classmethod
    def of(cls, elements: Elements, problem: VelocityProblem) -> _System:
        size = 6 * elements.body_count
        along = dense_rows(elements, [(r.row_a, r.row_b) for r in problem.equality])[:, :-1].reshape(-1, size)
        push = dense_rows(elements, [(r.push_a, r.push_b) for r in problem.equality])[:, :-1].reshape(-1, size)
        sigma = [rows.sigma.ravel() for rows in problem.equality] or [jnp.zeros(0)]
        constant = [equality_bias(elements, problem)]
        joints, points = along.shape[0], None
        if problem.contacts:
            points = stacked(problem.contacts)
            touching = jnp.concatenate([points.normal, points.tangent.reshape(-1, size)])
            along, push = jnp.concatenate([along, touching]), jnp.concatenate([push, touching])
            sigma += [points.sigma, jnp.repeat(points.tangent_sigma, 2)]
            free = problem.free_velocity[:-1].ravel()
            constant += [points.closing(free), points.sliding(free).ravel()]
        pushed = jnp.einsum("bij,rbj->rbi", problem.inverse_mass[:-1], push.reshape(-1, elements.body_count, 6))
        matrix = along @ pushed.reshape(-1, size).T + jnp.diag(jnp.concatenate(sigma))
        return cls(along, matrix, jnp.concatenate(constant), points, joints)


class _Parts(PyTree):
    """What acts with complementarity, on given branches: the equations of all rows, and what they are repaired by."""

    matrix: Float[Array, "r r"]
    constant: Float[Array, "r"]
    """The system on its branches: ``matrix x + constant = 0``."""
    system: _System
    dry: tuple[_DryGroup, ...]

    @classmethod
    def of(cls, elements: Elements, problem: VelocityProblem, system: _System, branches: Float[Array, "k"]) -> _Parts:
        matrix, constant = list(system.matrix), list(system.constant)
        dry, start, row = [], 0, 0
        for group, limit in zip(elements.groups, problem.friction, strict=True):
            for member in range(group.size):
                gaps = np.arange(row, row + group.gap_rows)
                row += group.rows
                if limit is None:
                    continue
                joint = _DryGroup(limit.weights[member], limit.level[member], tuple(gaps.tolist()), row - 1)
                stop = start + joint.size
                matrix[row - 1], constant[row - 1] = joint.equation(system, branches[start:stop])
                dry.append(joint)
                start = stop
        if system.points is not None:
            _write_points(system, branches[start:], matrix, constant)
        stacked_rows = jnp.stack(matrix) if matrix else system.matrix
        return cls(stacked_rows, jnp.stack(constant) if constant else system.constant, system, tuple(dry))

    def repaired(self, impulses: Float[Array, "r"]) -> tuple[Float[Array, "k"], Float[Array, "s"]]:
        """Branches of the projection of ``x − ρ w``, and how far it is from x, as speeds ``(x − P)/ρ``."""
        left = self.system.matrix @ impulses + self.system.constant
        repaired = [joint.repaired(self.system, impulses, left) for joint in self.dry]
        if self.system.points is not None:
            repaired.append(_repaired_points(self.system, self.system.points, impulses, left))
        branches, off = zip(*repaired, strict=True) if repaired else ([jnp.zeros(0)], [jnp.zeros(0)])
        return jnp.concatenate(branches), jnp.concatenate(off)


class _DryGroup(PyTree):
    """Dry friction of a joint; its branches are the signs of its gap impulses, and the direction of sliding."""

    weights: Float[Array, "m"]
    level: Float[Array, ""]
    gaps: tuple[int, ...] = field(static=True)
    tangent: int = field(static=True)

    @property
    def size(self) -> int:
        return len(self.gaps) + 1

    def equation(self, system: _System, branches: Float[Array, "m+1"]) -> tuple[Array, Array]:
        """Row of the tangent, in the units of its own row of S."""
        signs, slip = branches[:-1], branches[-1]
        scale = system.matrix[self.tangent, self.tangent]
        row = jnp.zeros(len(system.matrix)).at[self.tangent].set(scale)
        row = row.at[np.array(self.gaps)].set(scale * slip * self.weights * signs)
        stuck = slip == 0.0
        constant = jnp.where(stuck, system.constant[self.tangent], scale * slip * self.level)
        return jnp.where(stuck, system.matrix[self.tangent], row), constant

    def repaired(self, system: _System, impulses: Array, left: Array) -> tuple[Float[Array, "m+1"], Float[Array, "1"]]:
        loads = impulses[np.array(self.gaps)]
        # Loads that do not matter have no branches.
        signs = jnp.where((loads < 0.0) & (self.weights > 0.0), -1.0, 1.0)
        limit = jnp.sum(self.weights * jnp.abs(loads)) + self.level
        impulse, mobility = impulses[self.tangent], system.matrix[self.tangent, self.tangent]
        trial = impulse - left[self.tangent] / mobility
        slip = jnp.where(jnp.abs(trial) <= limit, 0.0, -jnp.sign(trial))
        off = mobility * (impulse - jnp.clip(trial, -limit, limit))
        # What has no friction slides, whichever way.
        return jnp.append(signs, jnp.where(limit == 0.0, 1.0, slip)), off[None]


def _write_points(system: _System, branches: Array, matrix: list[Array], constant: list[Array]) -> None:
    """Equations of contact points on their branches, each in the units of its own row of S."""
    points = system.points
    assert points is not None
    size, count = len(matrix), len(points.bias)
    for i in range(count):
        row = system.joints + i
        matrix[row], constant[row] = _if(branches[i] > 0.0, (matrix[row], constant[row]), _no_impulse(system, row))
    for j, i in enumerate(points.frictional):
        first = system.joints + count + 2 * j
        d = branches[count + 2 * j : count + 2 * j + 2]
        one, two = (system.matrix[first + k, first + k] for k in range(2))
        limited = jnp.zeros(size).at[system.joints + i].set(points.coefficient[j])
        both = (d[0] != 0.0) & (d[1] != 0.0)
        sticks = (d[0] == 0.0) & (d[1] == 0.0)
        turn = d[0] * d[1]
        slides = [one * (d[0] * limited).at[first].set(1.0), two * (d[1] * limited).at[first + 1].set(1.0)]
        edge = one * (d[0] * limited).at[first].set(1.0).at[first + 1].set(turn)
        even = system.matrix[first + 1] - turn * system.matrix[first]
        even_constant = system.constant[first + 1] - turn * system.constant[first]
        zero = jnp.zeros(())
        moving = [
            _if(both, (edge, zero), (slides[0], zero)),
            _if(both, (even, even_constant), (slides[1], zero)),
        ]
        for k in range(2):
            row = first + k
            rubbing = _if(sticks, (matrix[row], constant[row]), moving[k])
            matrix[row], constant[row] = _if(branches[i] > 0.0, rubbing, _no_impulse(system, row))


def _no_impulse(system: _System, row: int) -> tuple[Array, Array]:
    return jnp.zeros(len(system.matrix)).at[row].set(system.matrix[row, row]), jnp.zeros(())


def _if(condition: Array, first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
    return jnp.where(condition, first[0], second[0]), jnp.where(condition, first[1], second[1])


def _repaired_points(system: _System, points: Points, impulses: Array, left: Array) -> tuple[Array, Array]:
    joints, count = system.joints, len(points.bias)
    normals = slice(joints, joints + count)
    normal, mobility = impulses[normals], jnp.diag(system.matrix)[normals]
    trial = normal - left[normals] / mobility
    touching = trial > 0.0
    branches, off = [jnp.where(touching, 1.0, 0.0)], [mobility * (normal - jnp.maximum(trial, 0.0))]
    for j, i in enumerate(points.frictional):
        pair = slice(joints + count + 2 * j, joints + count + 2 * j + 2)
        # One step for both tangents: a bound of the largest eigenvalue of their coupling.
        widest = jnp.max(jnp.sum(jnp.abs(system.matrix[pair, pair]), axis=1))
        along = impulses[pair] - left[pair] / widest
        limit = points.coefficient[j] * jnp.maximum(normal[i], 0.0)
        branches.append(jnp.where(touching[i], slip_of(along, limit), 0.0))
        off.append(widest * (impulses[pair] - projected(along, limit)))
    return jnp.concatenate(branches), jnp.concatenate(off)
