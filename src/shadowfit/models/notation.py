"""How numbers, vectors, directions and rotations are written in a model file."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shadowfit.geometry import rotations
from shadowfit.magnitudes import LARGEST
from shadowfit.mechanism import hinge
from shadowfit.mechanism.mechanism import UNIT_TOLERANCE
from shadowfit.models.table import Table, shown

# People write 0.707: this far from unit length or a right angle, a rotation is put right; beyond, it is a mistake.
ROUGH = 1e-3

AXES = ("x", "y", "z")
IDENTITY = (1.0, 0.0, 0.0, 0.0)


def number(table: Table, key: str, unit: str, *, lower: float = -math.inf, infinite: bool = False) -> float:
    """A number of at least ``lower``, finite unless ``infinite`` is allowed."""
    return _number(table, key, table[key], unit, lower, infinite)


def vector(table: Table, key: str, unit: str, size: int = 3) -> np.ndarray:
    """An array of ``size`` finite numbers."""
    return _vector(table, key, table[key], unit, size)


def direction(table: Table, key: str) -> np.ndarray:
    """A unit vector from three numbers of any length but zero."""
    value = vector(table, key, "1")
    if not np.any(value):
        raise table.error(f"{table.name(key)} is zero; a direction needs some length", key)
    return unit_vector(value)


def unit_vector(value: np.ndarray) -> np.ndarray:
    """The direction that a vector of any length but zero is read as."""
    value = value / np.max(np.abs(value))
    return value / np.linalg.norm(value)


def rotation(table: Table, key: str) -> np.ndarray:
    """A unit quaternion ``wxyz``, from one of three notations.

    ``[w, x, y, z]``; ``{ axis = [..], angle = rad }``; or two axes of the turned frame, ``{ x = [..], y = [..] }``.
    """
    value = table[key]
    if isinstance(value, list):
        return _quaternion(table, key)
    if not isinstance(value, dict):
        raise table.error(
            f"{table.name(key)} must be a rotation: a quaternion [w, x, y, z], {{ axis = [..], angle = .. }} or two "
            f"axes {{ x = [..], y = [..] }}; it is {shown(value)}",
            key,
        )
    inner = table.table(key)
    return _turn(inner) if "angle" in inner or "axis" in inner else _axes(inner)


def joint_frames(axis: np.ndarray, zero_rotation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotations of a joint's two attachments from its axis and the child's rotation at zero, both in the parent."""
    joint = hinge("", "", axis=axis, zero_rotation=zero_rotation)
    return joint.parent_rotation, joint.child_rotation


def _quaternion(table: Table, key: str) -> np.ndarray:
    value = vector(table, key, "1", size=4)
    off = abs(np.linalg.norm(value) - 1.0)
    if off > ROUGH:
        raise table.error(
            f"{table.name(key)} has length {np.linalg.norm(value):.4g}; a quaternion [w, x, y, z] has length 1", key
        )
    # What a mechanism takes as it is stays as it is, so that a file keeps the numbers of the mechanism it was made of.
    return value if off < UNIT_TOLERANCE else value / np.linalg.norm(value)


def _turn(table: Table) -> np.ndarray:
    table.allow(("axis", "angle"))
    half = 0.5 * number(table, "angle", "rad")
    return np.concatenate([[math.cos(half)], math.sin(half) * direction(table, "axis")])


def _axes(table: Table) -> np.ndarray:
    table.allow((*AXES, "axis", "angle"))
    if len(table.values) != 2:
        raise table.error(f"{table.name()} needs exactly two of the axes x, y and z; the third follows from them")
    axes = {key: direction(table, key) for key in AXES if key in table}
    first, second = axes.values()
    if abs(first @ second) > ROUGH:
        raise table.error(f"the two axes of {table.name()} must be perpendicular; their cosine is {first @ second:.3g}")
    if "x" not in axes:
        axes["x"] = np.cross(axes["y"], axes["z"])
    if "y" not in axes:
        axes["y"] = np.cross(axes["z"], axes["x"])
    return rotations.from_axes(axes["x"], axes["y"])


def _vector(table: Table, key: str, value: Any, unit: str, size: int) -> np.ndarray:
    if not isinstance(value, list) or len(value) != size:
        what = f"an array of {len(value)}" if isinstance(value, list) else shown(value)
        raise table.error(f"{table.name(key)} must be an array of {size} numbers{bracketed(unit)}, not {what}", key)
    return np.array([_number(table, key, element, unit, -math.inf, False) for element in value])


def _number(table: Table, key: str, value: Any, unit: str, lower: float, infinite: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise table.error(f"{table.name(key)} must be a number{bracketed(unit)}, not {shown(value)}", key)
    # Comparisons, which hold for whole numbers beyond any float and fail for NaN.
    if not (abs(value) <= LARGEST or (infinite and abs(value) == math.inf)):
        raise table.error(f"{table.name(key)} is {shown(value)}; it must be a finite number{bracketed(unit)}", key)
    if value < lower:
        raise table.error(f"{table.name(key)} is {value:g}; it must be at least {lower:g}{bracketed(unit)}", key)
    return float(value)


def bracketed(unit: str) -> str:
    """A unit at the end of a clause: `` [N m or N]``; nothing for pure numbers."""
    return "" if unit in ("", "1") else f" [{unit.replace(' | ', ' or ')}]"
