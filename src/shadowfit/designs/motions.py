"""Motions of a machine, many side by side: joint coordinates over time, and the inputs that go with them."""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Bool, Float
from shadowfit.dynamics.tree import Tree
from shadowfit.geometry import Pose
from shadowfit.records import record


@record(frozen=True)
class Motions:
    """Motions of one machine at the same times."""

    time: Float[np.ndarray, " n"]
    """[s]."""
    pose: Pose
    """Motions of the joints (:mod:`shadowfit.dynamics.tree`), shape (count, n, bodies, 3 and 4)."""
    coordinates: Float[np.ndarray, "count n d"]
    """Of joints with one axis [rad, m]; zero for those of balls and of bodies that float."""
    inputs: Float[np.ndarray, "count n inputs"]
    """Samples of the inputs."""
    good: Bool[np.ndarray, " count"]
    """Whether the machine can be simulated that long; a motion that cannot stands still here."""

    def __len__(self) -> int:
        return len(self.good)

    @property
    def speeds(self) -> Float[np.ndarray, "count n d"]:
        """Rates of the coordinates [rad/s, m/s]."""
        return np.gradient(self.coordinates, self.time, axis=1)

    def __getitem__(self, which: slice | Bool[np.ndarray, " count"]) -> Motions:
        pose = Pose(self.pose.position[which], self.pose.orientation[which])
        return Motions(self.time, pose, self.coordinates[which], self.inputs[which], self.good[which])


def single_axes(tree: Tree) -> list[tuple[int, int, int]]:
    """Coordinates of joints with one axis: place among all, body that moves, and direction (translations 0–2)."""
    axes, place = [], 0
    for link in tree.links:
        if len(link.freedom) == 1:
            axes.append((place, link.body, link.freedom[0]))
        place += len(link.freedom)
    return axes


def rotary(tree: Tree) -> list[bool]:
    """Whether each coordinate is an angle."""
    return [direction >= 3 for link in tree.links for direction in link.freedom]


def moved(tree: Tree, rest: Pose, coordinates: Float[np.ndarray, "*batch d"]) -> Pose:
    """Motions at given coordinates; joints of several axes stay where they are at rest."""
    batch = coordinates.shape[:-1]
    position = np.broadcast_to(np.asarray(rest.position), (*batch, *np.shape(rest.position))).copy()
    orientation = np.broadcast_to(np.asarray(rest.orientation), (*batch, *np.shape(rest.orientation))).copy()
    for place, body, direction in single_axes(tree):
        value = coordinates[..., place]
        if direction < 3:
            position[..., body, direction] = value
        else:
            orientation[..., body, :] = 0.0
            orientation[..., body, 0] = np.cos(0.5 * value)
            orientation[..., body, 1 + direction - 3] = np.sin(0.5 * value)
    return Pose(position, orientation)


def coordinates_of(tree: Tree, pose: Pose) -> Float[np.ndarray, "*batch n d"]:
    """Coordinates along motions; angles are followed over turns."""
    position, orientation = np.asarray(pose.position), np.asarray(pose.orientation)
    coordinates = np.zeros((*position.shape[:-2], tree.size))
    for place, body, direction in single_axes(tree):
        if direction < 3:
            coordinates[..., place] = position[..., body, direction]
        else:
            half = np.arctan2(orientation[..., body, 1 + direction - 3], orientation[..., body, 0])
            coordinates[..., place] = np.unwrap(2.0 * half, axis=-1)
    return coordinates
