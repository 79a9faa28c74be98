"""What shafts that several joints turn add to the rows of a tree (:mod:`shadowfit.dynamics.shafts`)."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import shafts
from shadowfit.dynamics.tree import Tree
from shadowfit.estimation.residuals.parameter_layout import Layout, Values
from shadowfit.estimation.residuals.recursion.elements import TIMES
from shadowfit.kernels import OverTime, over_time, slopes
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.shaft import Shaft
from shadowfit.records import record


@record(frozen=True)
class _Turning:
    """One shaft over time."""

    places: np.ndarray
    """Coordinates that turn it,"""
    turns: np.ndarray
    """and by how much."""
    outputs: Float[np.ndarray, "steps 6"]
    """Impulse, and its derivatives by both speeds and its numbers."""
    columns: list[int | None]
    """Increment of each number."""


class ShaftRows:
    """All shafts of a mechanism."""

    def __init__(self, layout: Layout, tree: Tree, mechanism: Mechanism) -> None:
        self.layout, self.tree, self.mechanism = layout, tree, mechanism

    def prepare(self) -> None:
        """Have the code made in the background."""
        if len(self.mechanism.shafts):
            _ = self._kernel

    def add(
        self,
        rows: Float[np.ndarray, "steps d 3*d+p+1"],
        values: Values,
        motions: Float[np.ndarray, "nodes bodies 7"],
        widths: Float[np.ndarray, "steps s"],
        timestep: float,
    ) -> None:
        """Take the shafts' impulses, and their derivatives, off the rows."""
        size = self.tree.size
        for one in self._turning(values, motions[: len(rows) + 2], widths, timestep):
            by_speed = one.outputs[:, 1:3] / timestep
            by_node = (-by_speed[:, 0], by_speed[:, 0] - by_speed[:, 1], by_speed[:, 1])
            for place, ratio in zip(one.places, one.turns, strict=True):
                rows[:, place, -1] -= ratio * one.outputs[:, 0]
                for t in range(TIMES):
                    rows[:, place, t * size + one.places] -= ratio * by_node[t][:, None] * one.turns
                for number, column in enumerate(one.columns):
                    if column is not None:
                        rows[:, place, TIMES * size + column] -= ratio * one.outputs[:, 3 + number]

    def take_off(
        self,
        missing: Float[np.ndarray, "steps d"],
        values: Values,
        motions: Float[np.ndarray, "nodes bodies 7"],
        widths: Float[np.ndarray, "steps s"],
        timestep: float,
    ) -> None:
        """Take the shafts' impulses off what is missing."""
        for one in self._turning(values, motions[: len(missing) + 2], widths, timestep):
            missing[:, one.places] -= one.outputs[:, :1] * one.turns

    def _turning(
        self,
        values: Values,
        motions: Float[np.ndarray, "nodes bodies 7"],
        widths: Float[np.ndarray, "steps s"],
        timestep: float,
    ) -> Iterator[_Turning]:
        """All shafts along the steps between nodes."""
        for row, (name, shaft) in enumerate(self.mechanism.shafts.items()):
            places, turns = shafts.coordinates(self.tree, self.mechanism, shaft)
            moved = np.diff(self._positions(motions, places), axis=0)
            # Turns of hinges are known up to whole ones.
            moved = np.where(self._rotary(places), (moved + np.pi) % (2.0 * np.pi) - np.pi, moved)
            speed = moved @ turns / timestep
            varying = np.column_stack([speed[:-1], speed[1:], widths[:, row]])
            columns = [self._column(f"{name}.{leaf}") for leaf in shafts.NUMBERS]
            numbers = self._numbers(values, name, shaft)
            outputs = self._kernel([], [numbers, np.asarray(timestep)], [varying], None)[0]
            yield _Turning(places, turns, outputs, [None if column is None else column[1] for column in columns])

    def braked(
        self,
        values: Values,
        mobility: Float[np.ndarray, "d steps"],
        rates: Float[np.ndarray, "steps d"],
        timestep: float,
    ) -> tuple[Float[np.ndarray, "steps s"], Float[np.ndarray, "steps s"]]:
        """Speeds from which friction stops the shafts within a step, and those that they have."""
        stopped, speeds = np.zeros((2, len(rates), len(self.mechanism.shafts)))
        for row, (name, shaft) in enumerate(self.mechanism.shafts.items()):
            places, turns = shafts.coordinates(self.tree, self.mechanism, shaft)
            stopped[:, row] = shafts.stopped(self._numbers(values, name, shaft), turns**2 @ mobility[places], timestep)
            speeds[:, row] = rates[:, places] @ turns
        return stopped, speeds

    def _numbers(self, values: Values, name: str, shaft: Shaft) -> Float[np.ndarray, "3"]:
        """Numbers of a shaft, free ones as they are."""
        columns = [self._column(f"{name}.{leaf}") for leaf in shafts.NUMBERS]
        return np.array(
            [
                float(getattr(shaft, leaf)) if column is None else float(values.numbers[column[0]])
                for leaf, column in zip(shafts.NUMBERS, columns, strict=True)
            ]
        )

    def _column(self, name: str) -> tuple[int, int] | None:
        """Place of a free number among the values, and of its increment."""
        if name not in self.layout.numbers:
            return None
        place = self.layout.numbers.index(name)
        return place, self.layout.order[place]

    def _link(self, place: int) -> tuple[int, int]:
        """Body and direction of a coordinate."""
        every = [(link.body, direction) for link in self.tree.links for direction in link.freedom]
        return every[place]

    def _rotary(self, places: np.ndarray) -> np.ndarray:
        return np.array([self._link(place)[1] >= 3 for place in places])

    def _positions(self, motions: np.ndarray, places: np.ndarray) -> Float[np.ndarray, "nodes k"]:
        """Coordinates [rad, m] of joints with one axis."""
        coordinates = []
        for place in places:
            body, direction = self._link(place)
            motion = motions[:, body]
            turned = (
                2.0 * np.arctan2(motion[:, 3 + direction - 2], motion[:, 3]) if direction >= 3 else motion[:, direction]
            )
            coordinates.append(turned)
        return np.stack(coordinates, axis=1)

    @functools.cached_property
    def _kernel(self) -> OverTime:
        return over_time(_row, [], [np.empty(3), np.empty(())], [np.empty(3)], "shaft rows")


def _row(_: list[Any], constants: list[Any], varying: list[Any]) -> Float[Array, "6"]:
    """``[p | ∂p/∂(both speeds, numbers)]``."""
    numbers, timestep = constants
    (given,) = varying

    def moved(increments: Array) -> Array:
        shifted, speeds = numbers + increments[2:], given[:2] + increments[:2]
        return shafts.impulse(shifted, speeds, given[2], timestep)[None]

    value, table = slopes(moved, jnp.zeros(5))
    return jnp.concatenate([value, table[0]])
