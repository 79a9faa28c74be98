"""A mechanism as lines in space: for each body, from its centre of mass to the points where joints hold it."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from shadowfit.dynamics import State
from shadowfit.dynamics.elements import assembled
from shadowfit.geometry import rotations
from shadowfit.kernels import mapped
from shadowfit.mechanism import Mechanism

FRAMES = 600

_matrices = mapped(rotations.matrix)


def skeleton(mechanism: Mechanism, time: Float[np.ndarray, " k"], states: State) -> dict[str, Any]:
    """Frames of an animation as JSON values.

    ``bodies`` are names, ``spokes`` for each body the number of its points, and ``frames`` for each time the world
    coordinates [m] of all points, body by body: the centre of mass, then its joints' points.
    """
    chosen = np.unique(np.linspace(0, len(time) - 1, min(FRAMES, len(time))).round().astype(int))
    position = np.asarray(states.pose.position)[chosen]
    turn = _matrices(np.asarray(states.pose.orientation)[chosen])
    points, spokes = [], []
    for body, levers in enumerate(_levers(mechanism)):
        own = position[:, body, None, :] + np.einsum("tij,nj->tni", turn[:, body], levers)
        points.append(own)
        spokes.append(levers.shape[0])
    frames = np.concatenate(points, axis=1)
    return {
        "bodies": list(mechanism.bodies),
        "spokes": spokes,
        "time": np.round(time[chosen], 4).tolist(),
        "frames": np.round(frames, 4).tolist(),
    }


def _levers(mechanism: Mechanism) -> list[Float[np.ndarray, "n 3"]]:
    """For each body the points to draw, from its centre of mass in its own axes [m]; the first is that centre."""
    levers: list[list[np.ndarray]] = [[np.zeros(3)] for _ in mechanism.bodies]
    for group in assembled(mechanism).groups:
        for side in (group.a, group.b):
            for body, lever in zip(side.body_indices, np.asarray(side.levers), strict=True):
                if body < len(levers):  # the world comes last and is not drawn
                    levers[body].append(lever)
    return [np.array(own) for own in levers]
