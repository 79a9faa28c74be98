"""Named numeric leaves: every number of a mechanism has one dotted name, used in fits, tables, files and errors.

A part (body, joint, motor, ...) is a tree (:mod:`shadowfit.pytrees`) whose numeric fields are declared with
:func:`number`, :func:`vector` or :func:`rotation`; the field's name is the last word of the leaf's name and the
declaration carries unit and allowed range. :func:`walk` lists the leaves of a part, :func:`read` and :func:`write`
access them.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np

from shadowfit.errors import MechanismError, UnknownNameError, nearest
from shadowfit.lazy_jax import is_array, jnp
from shadowfit.pytrees import PyTree, field
from shadowfit.records import record

COMPONENTS = ("x", "y", "z")


def as_number(value: Any) -> Any:
    """A float64 NumPy array, or the JAX array or tracer it already is."""
    if is_array(value):
        return value
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise MechanismError(f"{value!r} is not a number (or an array of numbers)") from error


def number(unit: str, *, default: Any = dataclasses.MISSING, lower: float = -np.inf, tunable: bool = True) -> Any:
    """Declare a scalar leaf in ``unit``, allowed to be at least ``lower``."""
    return _field("number", unit, default, lower, tunable)


def vector(unit: str, *, default: Any = (0.0, 0.0, 0.0), lower: float = -np.inf) -> Any:
    """Declare a leaf of three components, named ``.x``, ``.y``, ``.z``, each allowed to be at least ``lower``."""
    return _field("vector", unit, default, lower, True)


def rotation(*, default: Any = (1.0, 0.0, 0.0, 0.0)) -> Any:
    """Declare a rotation (unit quaternion ``wxyz``): one leaf, three degrees of freedom when estimated."""
    return _field("rotation", "rad", default, -np.inf, True)


def _field(kind: str, unit: str, default: Any, lower: float, tunable: bool) -> Any:
    metadata = {"leaf": kind, "unit": unit, "lower": lower, "tunable": tunable}
    options = {} if default is dataclasses.MISSING else {"default": default}
    return field(converter=as_number, metadata=metadata, **options)


# Of a sub-part whose leaves carry the name of its owner: ``hinge1.dry``, not ``hinge1.friction.dry``.
TRANSPARENT = {"transparent": True}


class Parts(PyTree):
    """An ordered mapping of names to parts; the names are static, so they survive every tree transformation."""

    names: tuple[str, ...] = field(static=True)
    values: tuple[Any, ...]

    def __init__(self, parts: Mapping[str, Any] | None = None):
        parts = parts or {}
        self.names = tuple(parts)
        self.values = tuple(parts.values())

    def __getitem__(self, name: str) -> Any:
        return self.values[self.index(name)]

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Pairs of name and part, in order."""
        return iter(zip(self.names, self.values, strict=True))

    def index(self, name: str) -> int:
        """Position of a name; an unknown one raises with the nearest valid names."""
        if name not in self._places:
            raise UnknownNameError(f"there is no part {name!r}{nearest(name, self.names)}")
        return self._places[name]

    @functools.cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}


@record(frozen=True)
class Leaf:
    """Where a named number sits and what it may be."""

    name: str
    path: tuple[str | int, ...]
    kind: Literal["number", "rotation"]
    unit: str
    lower: float
    tunable: bool
    component: int | None = None


def walk(part: Any, prefix: str = "", path: tuple[str | int, ...] = ()) -> Iterator[Leaf]:
    """The leaves of a part and its sub-parts, depth first, in order of declaration."""
    if isinstance(part, Parts):
        for index, (name, value) in enumerate(part.items()):
            yield from walk(value, _join(prefix, name), (*path, "values", index))
        return
    for declared in dataclasses.fields(part):
        value = getattr(part, declared.name)
        here = (*path, declared.name)
        if "leaf" in declared.metadata:
            yield from _leaf(declared, _join(prefix, declared.name), here)
        elif isinstance(value, PyTree):
            inside = declared.metadata.get("transparent", False) or isinstance(value, Parts)
            yield from walk(value, prefix if inside else _join(prefix, declared.name), here)


def _leaf(field: dataclasses.Field, name: str, path: tuple[str | int, ...]) -> Iterator[Leaf]:
    meta = field.metadata
    common = {"unit": meta["unit"], "lower": meta["lower"], "tunable": meta["tunable"]}
    if meta["leaf"] == "vector":
        for component, letter in enumerate(COMPONENTS):
            yield Leaf(f"{name}.{letter}", path, "number", component=component, **common)
    else:
        yield Leaf(name, path, meta["leaf"], **common)


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _follow(part: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        part = part[step] if isinstance(step, int) else getattr(part, step)
    return part


def read(part: Any, leaf: Leaf) -> Any:
    """The value of a leaf: a scalar, or four quaternion components."""
    value = _follow(part, leaf.path)
    return value if leaf.component is None else value[leaf.component]


def check_shape(part: Any, leaf: Leaf) -> None:
    """Raise unless the field that holds a leaf has as many numbers as it was declared with."""
    size = len(COMPONENTS) if leaf.component is not None else 4 if leaf.kind == "rotation" else None
    expected = () if size is None else (size,)
    shape = np.shape(_follow(part, leaf.path))
    if shape != expected:
        name = leaf.name if leaf.component is None else leaf.name.rsplit(".", 1)[0]
        count = "one number" if size is None else f"{size} numbers"
        raise MechanismError(f"{name} has shape {shape}; it must be {count} [{leaf.unit}]")


def write(part: Any, values: Mapping[Leaf, Any]) -> Any:
    """The part with new values in some of its leaves; works on tracers."""
    arrays: dict[tuple[str | int, ...], Any] = {}
    for leaf, value in values.items():
        if leaf.component is None:
            arrays[leaf.path] = as_number(value)
            continue
        current = arrays.get(leaf.path, _follow(part, leaf.path))
        if is_array(value) or is_array(current):
            arrays[leaf.path] = jnp.asarray(current).at[leaf.component].set(value)
        else:
            current = np.array(current, dtype=float)
            current[leaf.component] = value
            arrays[leaf.path] = current
    return _put(part, arrays)


def _put(part: Any, values: Mapping[tuple[str | int, ...], Any]) -> Any:
    """A part, or a tuple of parts, with other values at the ends of some paths."""
    if () in values:
        return values[()]
    inside: dict[str | int, dict[tuple[str | int, ...], Any]] = {}
    for (first, *rest), value in values.items():
        inside.setdefault(first, {})[tuple(rest)] = value
    if isinstance(part, tuple):
        return tuple(_put(one, inside[i]) if i in inside else one for i, one in enumerate(part))
    return part.having(**{str(name): _put(getattr(part, str(name)), below) for name, below in inside.items()})
