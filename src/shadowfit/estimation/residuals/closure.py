"""Loops of a tree in its coordinates: which motions leave them closed, and the equations of motion along these.

Only rigid joints have to be closed; what compliant ones do is a matter of forces (:mod:`loop_springs`).
Some of the d coordinates are *independent*; W picks them. With the rows C of the loops' gaps c and

    K = CᵀC + s² WᵀW,

regular where the independent coordinates decide all others (s makes both parts alike), everything follows without
saying which rows are redundant:

    Z = s² K⁻¹ Wᵀ        motions that leave the gaps as they are, one for each independent coordinate (C Z = 0, W Z = 1)
    −K⁻¹ Cᵀ c            closes gaps to first order, and leaves the independent coordinates where they are
    λ = C K⁻¹ r          the smallest impulses of the loops that take the missing impulses r off dependent coordinates
    ρ = Zᵀ r             what is missing then, along the independent ones: the residual of a step

Nodes of a fit are always closed. Its unknowns are the independent coordinates; dependent ones follow them, and the
parameters: ``δq = Z u − K⁻¹ Cᵀ (∂c/∂χ) δχ``. Derivatives of ρ are ``Zᵀ ∂(r − Cᵀλ)`` at fixed λ, since ``C Z = 0``.
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.complementarity.small_solve import small_solve
from shadowfit.dynamics import loops
from shadowfit.dynamics.kinematics import gap_values
from shadowfit.dynamics.tree import Tree, forward_kinematics
from shadowfit.estimation.residuals.parameter_layout import Parametrised
from shadowfit.geometry import Pose
from shadowfit.kernels import slopes
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.pytrees import PyTree

# Rounds for loads that depend on friction which depends on them: each leaves a few hundredths.
ROUNDS = 5


class Closing(PyTree):
    """Loops at one configuration."""

    gap: Float[Array, "m"]
    """c [m, rad]."""
    rows: Float[Array, "m d"]
    """C."""
    twists: Float[Array, "bodies 6 d"]
    """T."""
    pose: Pose
    """Of the bodies."""


def all_loops(tree: Tree, mechanism: Mechanism, motion: Pose) -> Closing:
    """The loops at motions of the tree's joints, those of compliant joints included."""
    closers, placed = loops.closing(tree, mechanism), forward_kinematics(tree, mechanism, motion)
    rows = loops.jacobian(closers, placed.pose, placed.twists)
    return Closing(gap_values(closers, placed.pose), rows, placed.twists, placed.pose)


def closing(tree: Tree, mechanism: Mechanism, motion: Pose) -> Closing:
    """The loops that have to be closed, at motions of the tree's joints."""
    whole = all_loops(tree, mechanism, motion)
    held = ~np.array(loops.compliant_rows(tree, mechanism), bool)
    return Closing(whole.gap[held], whole.rows[held], whole.twists, whole.pose)


class Independence(PyTree):
    """What independent coordinates decide at one configuration."""

    rows: Float[Array, "m d"]
    inverse: Float[Array, "d d"]
    """K⁻¹."""
    moving: Float[Array, "d n"]
    """Z."""

    def closing_step(self, gap: Float[Array, "m *k"]) -> Float[Array, "d *k"]:
        """Steps of the coordinates that close gaps."""
        return -self.inverse @ (self.rows.T @ gap)

    def reaction(self, missing: Float[Array, "d"]) -> Float[Array, "m"]:
        """λ."""
        return self.rows @ (self.inverse @ missing)


def independence(independent: tuple[int, ...], rows: Float[Array, "m d"]) -> Independence:
    """With given places of the independent coordinates."""
    count, size = rows.shape
    picked = np.eye(size)[np.array(independent, int)].reshape(-1, size)
    scale: Array = jnp.sum(rows**2) / count if count else jnp.ones(())
    inverse = small_solve(rows.T @ rows + scale * picked.T @ picked, jnp.eye(size), definite=True)
    return Independence(rows, inverse, scale * inverse @ picked.T)


class Tangent(PyTree):
    """How the coordinates of a closed configuration move."""

    by_unknowns: Float[Array, "d n"]
    by_parameters: Float[Array, "d p"]


def tangent(tree: Tree, independent: tuple[int, ...], machine: Parametrised, motion: Pose) -> Tangent:
    """With the independent coordinates, and with parameters that change the loops' gaps."""
    held = independence(independent, closing(tree, machine.mechanism(), motion).rows)
    _, by_parameters = slopes(lambda p: closing(tree, machine.moved(p), motion).gap, jnp.zeros(machine.layout.size))
    return Tangent(held.moving, held.closing_step(by_parameters))


def closer(
    tree: Tree, independent: tuple[int, ...], mechanism: Mechanism, motion: Pose
) -> tuple[Pose, Float[Array, "m"]]:
    """One iteration towards closed loops with the independent coordinates held, and the gaps before it."""
    gaps = closing(tree, mechanism, motion)
    step = independence(independent, gaps.rows).closing_step(gaps.gap)
    return motion.plus((step @ tree.selection()).reshape(len(tree.links), 6)), gaps.gap
