"""Distances in the space around a machine: spheres on its bodies from planes, boxes and each other."""

from __future__ import annotations

import itertools

import numpy as np

from shadowfit.arrays import Float
from shadowfit.designs.limits import Box, Limits, Plane, Sphere
from shadowfit.dynamics.elements import center_of_mass
from shadowfit.geometry import Pose, rotations
from shadowfit.kernels import mapped
from shadowfit.mechanism.joint import WORLD
from shadowfit.mechanism.mechanism import Mechanism

_matrices = mapped(rotations.matrix)


def clearances(mechanism: Mechanism, limits: Limits, bodies: Pose) -> Float[np.ndarray, "t k"]:
    """Distances [m] along poses of the bodies, negative where a limit is broken; one column a sphere and obstacle."""
    if not (limits.planes or limits.boxes or limits.self_distance is not None):
        return np.zeros((len(bodies.position), 0))
    spheres = limits.spheres or default_spheres(mechanism)
    places = [_centers(mechanism, sphere, bodies) for sphere in spheres]
    columns = []
    for sphere, at in zip(spheres, places, strict=True):
        columns += [_above(plane, at) - sphere.radius for plane in limits.planes]
        columns += [_outside(box, at) - sphere.radius for box in limits.boxes]
    if limits.self_distance is not None:
        for i, k in itertools.combinations(range(len(spheres)), 2):
            if apart(mechanism, spheres[i].body, spheres[k].body):
                distance = np.linalg.norm(places[i] - places[k], axis=1)
                columns.append(distance - spheres[i].radius - spheres[k].radius - limits.self_distance)
    return np.stack(columns, axis=1) if columns else np.zeros((len(bodies.position), 0))


def default_spheres(mechanism: Mechanism) -> tuple[Sphere, ...]:
    """Points of all bodies that can hit something: centres of mass, and joints that move."""
    spheres = []
    for name, body in mechanism.bodies.items():
        spheres.append(Sphere(name, tuple(np.asarray(body.com, float).tolist())))
    for joint in mechanism.joints.values:
        # Where a joint holds a body to the world nothing moves.
        if joint.parent != WORLD:
            spheres.append(Sphere(joint.parent, tuple(np.asarray(joint.parent_point, float).tolist())))
    return tuple(spheres)


def apart(mechanism: Mechanism, first: str, second: str) -> bool:
    """Whether two bodies are neither the same nor connected by a joint."""
    ends = [{joint.parent, joint.child} for joint in mechanism.joints.values]
    return first != second and {first, second} not in ends


def _centers(mechanism: Mechanism, sphere: Sphere, bodies: Pose) -> Float[np.ndarray, "t 3"]:
    index = mechanism.bodies.index(sphere.body)
    lever = np.asarray(sphere.center) - np.asarray(center_of_mass(mechanism, sphere.body))
    turn = _matrices(np.asarray(bodies.orientation)[:, index])
    return np.asarray(bodies.position)[:, index] + turn @ lever


def _above(plane: Plane, at: Float[np.ndarray, "t 3"]) -> Float[np.ndarray, " t"]:
    normal = np.asarray(plane.normal) / np.linalg.norm(plane.normal)
    return (at - np.asarray(plane.point)) @ normal


def _outside(box: Box, at: Float[np.ndarray, "t 3"]) -> Float[np.ndarray, " t"]:
    """Distance from the surface of a box, negative inside."""
    away = np.maximum(np.asarray(box.lower) - at, at - np.asarray(box.upper))
    return np.linalg.norm(np.maximum(away, 0.0), axis=1) + np.minimum(np.max(away, axis=1), 0.0)
