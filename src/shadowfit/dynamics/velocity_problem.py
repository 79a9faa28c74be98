"""The velocity update of one time step as a mixed linear complementarity problem, and its solution.

With the free velocity ``v_f`` (what the bodies would do without constraints) the unknown impulses obey

    v₊ = v_f + M⁻¹ (Pᵀ λ + Cᵀ z_c)
    A v₊ + Σ λ + a − N s = 0                     equality rows: gaps, axes, tangents of dry friction
    0 ≤ z ⟂ w ≥ 0                                complementarity rows

where ``P = A`` for SPOOK (the rows are also the directions of the impulses; the Schur complement ``A M⁻¹ Aᵀ + Σ`` is
symmetric and is factored block by block on the mechanism's graph), and ``P ≠ A`` for the exact-constraint stepper
(dense LU).

**Joint friction.** The paper doubles a joint's rows into ``±g ≥ 0`` to reach ``|λ_i|`` and doubles the tangent row
into both signs. With ``Σ > 0`` that equals the smaller problem solved here: the multipliers stay equality rows, their
negative parts ``n_i = max(−λ_i, 0)`` obey ``0 ≤ n_i ⟂ λ_i + n_i ≥ 0`` so that ``|λ_i| = λ_i + 2 n_i``, and two slacks
let the tangent row slide,

    Ḡ v₊ + Σ_t λ_t = s₊ − s₋,    0 ≤ s_± ⟂ L ± λ_t ≥ 0,    L = Σ_i U_i |λ_i| + h·level.

**Contacts.** For each contact point, as in the paper: ``0 ≤ λ_n ⟂ C v₊ + Σ λ_n + (4/h) Υ c − Υ C v ≥ 0`` (with ``c/h``
for the last two terms before it touches), four tangent impulses ``0 ≤ λ_t ⟂ D v₊ + Σ_t λ_t + σ ≥ 0``, and
``0 ≤ σ ⟂ μ λ_n − Σ λ_t ≥ 0``.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from shadowfit.arrays import Array, Bool, Float, Int
from shadowfit.complementarity import Status, block_ldl, dense, solve_mlcp
from shadowfit.dynamics.elements import Elements, JointGroup, StopElement
from shadowfit.lazy_jax import jnp
from shadowfit.pytrees import PyTree, field

# Relative to the mobility along a tangential row: with this regularisation the row has next to no effect. Derivatives
# by the friction are off by rounding errors times this number, derivatives at rest by one over it.
FREE = 1e7


class EqualityRows(PyTree):
    """Equality rows of a group of joints: ``row·v₊ + sigma λ + bias = 0``, the impulse is ``pushᵀ λ``.

    Where rows are scaled, or a part of their impulse is in the free velocity already, the impulse along a row in its
    own units is ``scale λ + explicit``.
    """

    row_a: Float[Array, "n r 6"]
    row_b: Float[Array, "n r 6"]
    push_a: Float[Array, "n r 6"]
    push_b: Float[Array, "n r 6"]
    sigma: Float[Array, "n r"]
    bias: Float[Array, "n r"]
    scale: Float[Array, "n r"] | None = None
    explicit: Float[Array, "n r"] | None = None

    def impulses(self, multipliers: Float[Array, "n r"]) -> Float[Array, "n r"]:
        """Impulses along the rows [N s, N m s]."""
        if self.scale is None or self.explicit is None:
            return multipliers
        return self.scale * multipliers + self.explicit


class FrictionRows(PyTree):
    """Limit of a group's dry friction: weights of the gap multipliers, constant impulse [N m s or N s]; and ``Σ_t``."""

    weights: Float[Array, "n m"]
    level: Float[Array, "n"]
    stick: Float[Array, "n"]


class ContactRows(PyTree):
    """Complementarity rows of one contact with c points: normals, and for friction four tangents for each."""

    normal: Float[Array, "c bodies+1 6"]
    sigma: Float[Array, "c"]
    bias: Float[Array, "c"]
    tangent: Float[Array, "c 4 bodies+1 6"] | None
    tangent_sigma: Float[Array, "c"] | None
    coefficient: Float[Array, ""] | None


class VelocityProblem(PyTree):
    """Everything that determines ``v₊``. The bodies include the world (zero inverse mass) as the last one."""

    inverse_mass: Float[Array, "bodies+1 6 6"]
    free_velocity: Float[Array, "bodies+1 6"]
    equality: tuple[EqualityRows, ...]
    friction: tuple[FrictionRows | None, ...]
    contacts: tuple[ContactRows, ...]


class VelocitySolution(PyTree):
    """``v₊`` with the impulses behind it: along the equality rows of each group, and the complementarity unknowns."""

    velocity: Float[Array, "bodies+1 6"]
    equality: tuple[Float[Array, "n r"], ...]
    complementary: Float[Array, "z"]
    active: Bool[Array, "z"]
    status: Int[Array, ""]


def stick_sigma(
    stick_time: Float[Array, "..."], frictionless: Bool[Array, "..."], mobility: Float[Array, "n"], timestep: Array
) -> Float[Array, "n"]:
    """``Σ_t = stick_time/h`` times the mobility: sticking creeps at ``stick_time`` times the acceleration it prevents.

    Without friction there is no sticking, not even at rest, where free and stuck have the same velocity but not the
    same derivatives.
    """
    return jnp.where(frictionless, FREE, stick_time / timestep) * mobility


def no_impulses(elements: Elements, velocity: Float[Array, "bodies+1 6"], guess: Bool[Array, "z"]) -> VelocitySolution:
    """A solution in which nothing acts: where a search may start."""
    equality = tuple(jnp.zeros((group.size, group.rows)) for group in elements.groups)
    status = jnp.full((), Status.SOLVED, jnp.int32)
    return VelocitySolution(velocity, equality, jnp.zeros(guess.shape), guess, status)


def complementary_count(elements: Elements) -> int:
    """Number of complementarity rows."""
    joints = sum(g.size * (g.gap_rows + 2) for g in elements.groups if g.friction is not None)
    return joints + sum(2 if isinstance(c, StopElement) else 6 * c.points for c in elements.contacts)


def _contact_size(contact: ContactRows) -> int:
    points = contact.bias.shape[0]
    return points if contact.tangent is None else 6 * points


def solve(elements: Elements, problem: VelocityProblem, guess: Bool[Array, "z"], symmetric: bool) -> VelocitySolution:
    """Solve for ``v₊`` and the impulses, trying the active set ``guess`` first."""
    factor = _block_factor(elements, problem) if symmetric else dense.factor(schur_complement(elements, problem))
    coupling = _complementarity(elements, problem)
    bias = equality_bias(elements, problem), _complementary_bias(elements, problem)
    solution = solve_mlcp(factor, *coupling, *bias, guess)
    velocity, impulses = behind(elements, problem, solution.free)
    if problem.contacts:
        jacobian = _contact_jacobian(elements, problem)
        impulse = jnp.einsum("zbi,z->bi", jacobian, solution.complementary)
        velocity = velocity + jnp.einsum("bij,bj->bi", problem.inverse_mass, impulse)
    return VelocitySolution(velocity, impulses, solution.complementary, solution.active, solution.status)


def equality_bias(elements: Elements, problem: VelocityProblem) -> Float[Array, "a"]:
    """``A v_f + a`` of all equality rows."""
    return jnp.concatenate(
        [
            (rows.bias + _rows_times(rows.row_a, rows.row_b, group, problem.free_velocity)).ravel()
            for group, rows in zip(elements.groups, problem.equality, strict=True)
        ]
        or [jnp.zeros(0)]
    )


def behind(
    elements: Elements, problem: VelocityProblem, stacked: Float[Array, "a"]
) -> tuple[Float[Array, "bodies+1 6"], tuple[Float[Array, "n r"], ...]]:
    """Velocity that multipliers λ of the equality rows give, without contacts, and impulses along the rows."""
    multipliers = _split(elements, stacked)
    impulses = tuple(rows.impulses(value) for rows, value in zip(problem.equality, multipliers, strict=True))
    return problem.free_velocity + _response(elements, problem, multipliers), impulses


def _rows_times(row_a: Array, row_b: Array, group: JointGroup, velocity: Array) -> Array:
    on_a = jnp.einsum("nri,ni->nr", row_a, velocity[group.a.bodies])
    return on_a + jnp.einsum("nri,ni->nr", row_b, velocity[group.b.bodies])


def _split(elements: Elements, stacked: Array) -> tuple[Array, ...]:
    parts, start = [], 0
    for group in elements.groups:
        stop = start + group.size * group.rows
        parts.append(stacked[start:stop].reshape(group.size, group.rows))
        start = stop
    return tuple(parts)


def _response(elements: Elements, problem: VelocityProblem, multipliers: tuple[Array, ...]) -> Array:
    """``M⁻¹ Pᵀ λ``."""
    impulse = jnp.zeros_like(problem.free_velocity)
    for group, rows, value in zip(elements.groups, problem.equality, multipliers, strict=True):
        impulse = impulse.at[group.a.bodies].add(jnp.einsum("nri,nr->ni", rows.push_a, value))
        impulse = impulse.at[group.b.bodies].add(jnp.einsum("nri,nr->ni", rows.push_b, value))
    return jnp.einsum("bij,bj->bi", problem.inverse_mass, impulse)


# --- Schur complement of the equality rows ---


class _Side(PyTree):
    """One joint's rows on one of its bodies."""

    joint: int = field(static=True)
    row: Array
    weighted: Array  # M⁻¹ Pᵀ


def _block_factor(elements: Elements, problem: VelocityProblem) -> block_ldl.Factor:
    """Block LDLᵀ of ``A M⁻¹ Aᵀ + Σ``; two joints couple where they share a moving body."""
    sizes, edges = _graph(elements)
    blocks: dict[tuple[int, int], Array] = {}
    on_body: dict[int, list[_Side]] = {}
    joint = 0
    for group, rows in zip(elements.groups, problem.equality, strict=True):
        weighted_a = rows.row_a @ problem.inverse_mass[group.a.bodies]
        weighted_b = rows.row_b @ problem.inverse_mass[group.b.bodies]
        diagonal = weighted_a @ rows.row_a.mT + weighted_b @ rows.row_b.mT
        diagonal = diagonal + rows.sigma[..., None] * np.eye(group.rows)
        for member in range(group.size):
            blocks[joint, joint] = diagonal[member]
            sides = (
                (group.a.bodies[member], rows.row_a[member], weighted_a[member]),
                (group.b.bodies[member], rows.row_b[member], weighted_b[member]),
            )
            for body, row, weighted in sides:
                if body < elements.body_count:
                    on_body.setdefault(int(body), []).append(_Side(joint, row, weighted))
            joint += 1
    for sides_here in on_body.values():
        for position, first in enumerate(sides_here):
            for second in sides_here[:position]:
                key = (first.joint, second.joint)
                value = first.weighted @ second.row.T
                blocks[key] = blocks[key] + value if key in blocks else value
    return block_ldl.factor(block_ldl.plan(sizes, edges), blocks)


def _graph(elements: Elements) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
    sizes = tuple(group.rows for group in elements.groups for _ in range(group.size))
    bodies = [
        {int(a), int(b)} - {elements.body_count}
        for group in elements.groups
        for a, b in zip(group.a.bodies, group.b.bodies, strict=True)
    ]
    edges = tuple((i, j) for i in range(len(bodies)) for j in range(i) if bodies[i] & bodies[j])
    return sizes, edges


def schur_complement(elements: Elements, problem: VelocityProblem) -> Float[Array, "r r"]:
    """``A M⁻¹ Pᵀ + Σ`` of all equality rows."""
    rows = dense_rows(elements, [(r.row_a, r.row_b) for r in problem.equality])
    push = dense_rows(elements, [(r.push_a, r.push_b) for r in problem.equality])
    response = jnp.einsum("bij,rbj->bir", problem.inverse_mass, push)
    schur = jnp.einsum("rbi,bis->rs", rows, response)
    sigma = jnp.concatenate([r.sigma.ravel() for r in problem.equality] or [jnp.zeros(0)])
    return schur + jnp.diag(sigma)


def dense_rows(elements: Elements, parts: list[tuple[Array, Array]]) -> Float[Array, "r bodies+1 6"]:
    """Rows of all joints over all bodies."""
    blocks = [jnp.zeros((0, elements.body_count + 1, 6))]
    for group, (on_a, on_b) in zip(elements.groups, parts, strict=True):
        block = jnp.zeros((group.size, group.rows, elements.body_count + 1, 6))
        members = np.arange(group.size)
        block = block.at[members, :, group.a.bodies].add(on_a)
        block = block.at[members, :, group.b.bodies].add(on_b)
        blocks.append(block.reshape(-1, elements.body_count + 1, 6))
    return jnp.concatenate(blocks)


# --- complementarity rows ---


class _FrictionPattern(NamedTuple):
    """Constant entries (±1) of the coupling matrices of joint friction, and where the weights go in two of them."""

    s_ab: np.ndarray
    s_ba: np.ndarray
    s_bb: np.ndarray
    weights_ba: np.ndarray
    weights_bb: np.ndarray


@functools.lru_cache(maxsize=64)
def _friction_pattern(shapes: tuple[tuple[int, int, int, bool], ...]) -> _FrictionPattern:
    """The pattern for groups of the given shapes: (size, gap rows, rows, frictional)."""
    equality = sum(size * rows for size, _, rows, _ in shapes)
    count = sum(size * (gaps + 2) for size, gaps, _, frictional in shapes if frictional)
    s_ab, s_ba, s_bb = np.zeros((equality, count)), np.zeros((count, equality)), np.zeros((count, count))
    weights_ba, weights_bb = np.zeros_like(s_ba), np.zeros_like(s_bb)
    row, start = 0, 0
    for size, gaps, rows, frictional in shapes:
        for _ in range(size):
            if frictional:
                tangent, plus, minus = row + rows - 1, start + gaps, start + gaps + 1
                s_ab[tangent, plus], s_ab[tangent, minus] = -1.0, 1.0
                s_ba[plus, tangent], s_ba[minus, tangent] = 1.0, -1.0
                for i in range(gaps):
                    s_ba[start + i, row + i] = 1.0
                    s_bb[start + i, start + i] = 1.0
                weights_ba[plus : minus + 1, row : row + gaps] = 1.0
                weights_bb[plus : minus + 1, start : start + gaps] = 2.0
                start += gaps + 2
            row += rows
    return _FrictionPattern(s_ab, s_ba, s_bb, weights_ba, weights_bb)


def _friction_couplings(elements: Elements, problem: VelocityProblem) -> tuple[Array, Array, Array]:
    """``S_AB, S_BA, S_BB`` of joint friction: ``|λ_i| = λ_i + 2 n_i`` in the limits, with its weight."""
    shapes = tuple((g.size, g.gap_rows, g.rows, g.friction is not None) for g in elements.groups)
    pattern = _friction_pattern(shapes)
    of_equality, of_unknowns = [jnp.zeros(0)], [jnp.zeros(0)]
    for group, friction in zip(elements.groups, problem.friction, strict=True):
        if friction is None:
            of_equality.append(jnp.zeros(group.size * group.rows))
            continue
        for weights, width in ((of_equality, group.rows), (of_unknowns, group.gap_rows + 2)):
            weights.append(jnp.pad(friction.weights, ((0, 0), (0, width - group.gap_rows))).ravel())
    s_ba = pattern.s_ba + pattern.weights_ba * jnp.concatenate(of_equality)
    s_bb = pattern.s_bb + pattern.weights_bb * jnp.concatenate(of_unknowns)
    return jnp.asarray(pattern.s_ab), s_ba, s_bb


def _complementarity(elements: Elements, problem: VelocityProblem) -> tuple[Array, Array, Array]:
    """``S_AB, S_BA, S_BB`` for joint friction first, contacts after it."""
    s_ab, s_ba, s_bb = _friction_couplings(elements, problem)
    if not problem.contacts:
        return s_ab, s_ba, s_bb
    jacobian = _contact_jacobian(elements, problem)
    response = jnp.einsum("bij,zbj->biz", problem.inverse_mass, jacobian)
    rows = dense_rows(elements, [(r.row_a, r.row_b) for r in problem.equality])
    push = dense_rows(elements, [(r.push_a, r.push_b) for r in problem.equality])
    pushed = jnp.einsum("bij,rbj->bir", problem.inverse_mass, push)
    size, joints = jacobian.shape[0], s_ab.shape[1]
    widen = ((0, 0), (0, size - joints))
    s_ab = jnp.pad(s_ab, widen) + jnp.einsum("rbi,biz->rz", rows, response)
    s_ba = jnp.pad(s_ba, widen[::-1]) + jnp.einsum("zbi,bir->zr", jacobian, pushed)
    s_bb = jnp.pad(s_bb, (widen[1], widen[1])) + jnp.einsum("zbi,biy->zy", jacobian, response)
    return s_ab, s_ba, s_bb + _contact_couplings(problem, joints, size)


def _complementary_bias(elements: Elements, problem: VelocityProblem) -> Float[Array, "z"]:
    parts: list[Array] = [jnp.zeros(0)]
    for group, friction in zip(elements.groups, problem.friction, strict=True):
        if friction is not None:
            zero = jnp.zeros((group.size, group.gap_rows))
            parts.append(jnp.concatenate([zero, friction.level[:, None], friction.level[:, None]], axis=1).ravel())
    for contact in problem.contacts:
        normal = contact.bias + jnp.einsum("cbi,bi->c", contact.normal, problem.free_velocity)
        parts.append(normal)
        if contact.tangent is not None:
            parts.append(jnp.einsum("ctbi,bi->ct", contact.tangent, problem.free_velocity).ravel())
            parts.append(jnp.zeros_like(contact.bias))
    return jnp.concatenate(parts)


def _contact_jacobian(elements: Elements, problem: VelocityProblem) -> Float[Array, "z bodies+1 6"]:
    """Jacobian of all complementarity rows; bookkeeping rows (negative parts, slacks, σ) act on no body."""
    bodies = elements.body_count + 1
    joints = sum(g.size * (g.gap_rows + 2) for g in elements.groups if g.friction is not None)
    parts: list[Array] = [jnp.zeros((joints, bodies, 6))]
    for contact in problem.contacts:
        parts.append(contact.normal)
        if contact.tangent is not None:
            parts.append(contact.tangent.reshape(-1, bodies, 6))
            parts.append(jnp.zeros_like(contact.normal))
    return jnp.concatenate(parts)


def _contact_couplings(problem: VelocityProblem, start: int, size: int) -> Float[Array, "z z"]:
    """Entries of ``S_BB`` that do not come from the bodies: Σ, Σ_t, the ones of σ, and μ."""
    matrix: Any = jnp.zeros((size, size))
    for contact in problem.contacts:
        points = contact.bias.shape[0]
        normal = start + np.arange(points)
        matrix = matrix.at[normal, normal].add(contact.sigma)
        if contact.tangent_sigma is not None:
            tangent = start + points + np.arange(4 * points).reshape(points, 4)
            cone = start + 5 * points + np.arange(points)
            matrix = matrix.at[tangent, tangent].add(contact.tangent_sigma[:, None])
            matrix = matrix.at[tangent, cone[:, None]].add(1.0)
            matrix = matrix.at[cone[:, None], tangent].add(-1.0)
            matrix = matrix.at[cone, normal].add(contact.coefficient)
        start += _contact_size(contact)
    return matrix
