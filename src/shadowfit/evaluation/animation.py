"""A mechanism as lines in space: for each body, from its centre of mass to the points where joints hold it.

A slider is a rail, as long as it is travelled, with a carriage on it. A body that nothing holds is a cross of three
rods along its principal axes, which together have its inertia.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from shadowfit.arrays import Float
from shadowfit.dynamics import State
from shadowfit.dynamics.elements import Attachments, assembled
from shadowfit.geometry import rotations
from shadowfit.kernels import mapped
from shadowfit.mechanism import Mechanism
from shadowfit.mechanism.body import Body

FRAMES = 600
# Half the length, width and height of a carriage, as fractions of half the machine's largest extent.
CARRIAGE = np.array([0.09, 0.05, 0.05])

_matrices = mapped(rotations.matrix)


def skeleton(mechanism: Mechanism, time: Float[np.ndarray, " k"], states: State) -> dict[str, Any]:
    """Frames of an animation as JSON values.

    ``bodies`` are names, ``spokes`` for each body the number of its points, and ``frames`` for each time the world
    coordinates [m] of all points, body by body: the centre of mass, then its joints' points. ``sliders`` have for each
    time the two ends of the ``rail`` and the eight corners of the ``carriage``, in the order of three binary digits.
    """
    chosen = np.unique(np.linspace(0, len(time) - 1, min(FRAMES, len(time))).round().astype(int))
    position = np.asarray(states.pose.position)[chosen]
    turn = _matrices(np.asarray(states.pose.orientation)[chosen])
    points, spokes = [], []
    for body, levers in enumerate(_levers(mechanism)):
        drawn = position[:, body, None, :] + np.einsum("tij,nj->tni", turn[:, body], levers)
        points.append(drawn)
        spokes.append(levers.shape[0])
    frames = np.concatenate(points, axis=1)
    return {
        "bodies": list(mechanism.bodies),
        "spokes": spokes,
        "time": np.round(time[chosen], 4).tolist(),
        "frames": np.round(frames, 4).tolist(),
        "sliders": _sliders(mechanism, position, turn, 0.5 * np.ptp(frames, axis=(0, 1)).max()),
    }


def _sliders(
    mechanism: Mechanism, position: Float[np.ndarray, "t b 3"], turn: Float[np.ndarray, "t b 3 3"], reach: float
) -> list[dict[str, Any]]:
    joints = mechanism.joints.values
    digits = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    sliders = []
    for group in assembled(mechanism).groups:
        for member, joint in enumerate(group.joints):
            if joints[joint].kind.axis_kind != "translation":
                continue
            start, axes = _frame(group.a, member, position, turn)
            at, frame = _frame(group.b, member, position, turn)
            travelled = np.einsum("ti,ti->t", axes[:, :, 0], at - start)
            half = CARRIAGE * max(reach, 0.5 * np.ptp(travelled))
            ends = np.array([travelled.min() - 1.5 * half[0], travelled.max() + 1.5 * half[0]])
            rail = start[:, None] + ends[:, None] * axes[:, None, :, 0]
            carriage = at[:, None] + np.einsum("tij,cj->tci", frame, digits * half)
            sliders.append(
                {
                    # The child, whose colour the carriage has, unless that is the world.
                    "body": min(group.b.body_indices[member], position.shape[1] - 1),
                    "rail": np.round(rail, 4).tolist(),
                    "carriage": np.round(carriage, 4).tolist(),
                }
            )
    return sliders


def _frame(
    side: Attachments, member: int, position: Float[np.ndarray, "t b 3"], turn: Float[np.ndarray, "t b 3 3"]
) -> tuple[Float[np.ndarray, "t 3"], Float[np.ndarray, "t 3 3"]]:
    """Place and axes of a joint's frame on one of its bodies, over time."""
    body, lever, axes = side.body_indices[member], np.asarray(side.levers)[member], np.asarray(side.frames)[member]
    if body == position.shape[1]:  # the world comes last
        return np.broadcast_to(lever, (len(position), 3)), np.broadcast_to(axes, (len(position), 3, 3))
    return position[:, body] + turn[:, body] @ lever, turn[:, body] @ axes


def _levers(mechanism: Mechanism) -> list[Float[np.ndarray, "n 3"]]:
    """For each body the points to draw, from its centre of mass in its own axes [m]; the first is that centre."""
    levers: list[list[np.ndarray]] = [[np.zeros(3)] for _ in mechanism.bodies]
    for group in assembled(mechanism).groups:
        for side in (group.a, group.b):
            for body, lever in zip(side.body_indices, np.asarray(side.levers), strict=True):
                if body < len(levers):  # the world comes last and is not drawn
                    levers[body].append(lever)
    return [
        np.array(lever) if len(lever) > 1 else np.vstack([lever, _cross(body)])
        for lever, body in zip(levers, mechanism.bodies.values, strict=True)
    ]


def _cross(body: Body) -> Float[np.ndarray, "6 3"]:
    """Ends of three rods, each a third of the mass, that have a body's inertia: half lengths of ``3 √(S/m)``."""
    inertia = np.array(body.inertia.rows(), float)
    moments, axes = np.linalg.eigh(0.5 * np.trace(inertia) * np.eye(3) - inertia)
    half = 3.0 * np.sqrt(np.maximum(moments, 0.0) / float(body.mass)) * axes
    return np.vstack([half.T, -half.T])
