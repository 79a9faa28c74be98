"""Impulses of shafts that several joints turn (:mod:`shadowfit.mechanism.shaft`), along the coordinates of a tree.

Over a step in which the shaft's speed goes from s to s' its impulse is

    p = −J (s' − s) − h b (s + s')/2 − h c A(s, s'),

with dry friction's mean direction A (:mod:`sliding`); each coordinate feels its ratio times p. The width of A follows
from the shaft's mobility, ``m/(1 + J m)`` with ``m = Σ ratio² (mobility of the coordinate)``.
"""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import sliding
from shadowfit.dynamics.tree import Tree
from shadowfit.lazy_jax import jax, jnp
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.shaft import Shaft

NUMBERS = ("viscous", "coulomb", "shaft_inertia")
"""Numbers of a shaft that can be free, in the order of :func:`impulse`."""


def impulse(
    numbers: Float[Array, "3"],
    speeds: Float[Array, "2"],
    width: Float[Array, ""],
    timestep: Float[Array, ""],
) -> Float[Array, ""]:
    """p between two speeds [N m s]; ``width`` is that of A."""
    viscous, coulomb, inertia = numbers[0], numbers[1], numbers[2]
    before, after = speeds[0], speeds[1]
    rubbing = timestep * coulomb * sliding.mean_direction(before, after, width)
    return -inertia * (after - before) - 0.5 * timestep * viscous * (before + after) - rubbing


def stopped(
    numbers: Float[Array, "3"], mobility: Float[Array, "*n"], timestep: Float[Array, ""] | float
) -> Float[Array, "*n"]:
    """Speed from which its friction stops a shaft of mobility m within a step."""
    _, coulomb, inertia = numbers
    return mobility / (1.0 + inertia * mobility) * timestep * coulomb


def ratios(tree: Tree, mechanism: Mechanism, shaft: Shaft) -> Float[Array, "d"]:
    """Turns of a shaft for one of each coordinate."""
    turns_of = jnp.zeros(tree.size)
    for joint, turns in shaft.ratios.items():
        turns_of = turns_of.at[tree.coordinate(mechanism.joints.index(joint))].set(turns.ratio)
    return turns_of


def numbers(shaft: Shaft) -> Float[Array, "3"]:
    """Those of :data:`NUMBERS`."""
    return jnp.stack([jnp.asarray(getattr(shaft, name)) for name in NUMBERS])


def along(
    tree: Tree,
    mechanism: Mechanism,
    before: Float[Array, "d"],
    after: Float[Array, "d"],
    widths: Float[Array, "s"],
    timestep: Float[Array, ""],
) -> tuple[Float[Array, "d"], Float[Array, "d d"]]:
    """Impulses of all shafts along the coordinates, whose rates go from ``before`` to ``after``; slopes by these."""
    impulses, slopes = jnp.zeros(tree.size), jnp.zeros((tree.size, tree.size))
    for row, shaft in enumerate(mechanism.shafts.values):
        turns, values = ratios(tree, mechanism, shaft), numbers(shaft)
        speed = turns @ before

        def moved(last: Array, values: Array = values, speed: Array = speed, width: Array = widths[row]) -> Array:
            return impulse(values, jnp.stack([speed, last]), width, timestep)

        value, slope = jax.jvp(moved, (turns @ after,), (jnp.ones(()),))
        impulses, slopes = impulses + turns * value, slopes + slope * turns[:, None] * turns
    return impulses, slopes


def stopped_along(
    tree: Tree, mechanism: Mechanism, mobility: Float[Array, "d"], timestep: Float[Array, ""]
) -> Float[Array, "s"]:
    """Speeds from which friction stops the shafts within a step, by the mobilities of the coordinates."""
    speeds: list[Array] = [jnp.zeros(0)]
    for shaft in mechanism.shafts.values:
        of_shaft = ratios(tree, mechanism, shaft) ** 2 @ mobility
        speeds.append(stopped(numbers(shaft), of_shaft, timestep)[None])
    return jnp.concatenate(speeds)


def coordinates(tree: Tree, mechanism: Mechanism, shaft: Shaft) -> tuple[np.ndarray, np.ndarray]:
    """Places of the coordinates that turn a shaft, and their ratios, as plain numbers."""
    places = [tree.coordinate(mechanism.joints.index(joint)) for joint in shaft.ratios]
    return np.array(places, int), np.array([float(turns.ratio) for turns in shaft.ratios.values])
