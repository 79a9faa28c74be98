"""Free parameters: which named numbers are estimated, where they start, and where they may go.

Numbers live in boxes, rotations (a stand's tilt) on the rotation group; the optimiser sees increments, one for a
number and three for a rotation, and :meth:`ParameterSet.plus` puts them back. A parameter marked ``per_recording``
has a value of its own in every recording.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Array, Float

from shadowfit.errors import ShadowfitError
from shadowfit.geometry import rotations
from shadowfit.kernels import mapped
from shadowfit.mechanism.mechanism import Mechanism

# A mass or inertia may shrink or grow by this factor: zero is not physical and cannot be simulated, and one that the
# data say nothing about would otherwise wander off.
INERTIAL_RANGE = 1e3
# Units of the numbers for which that holds.
INERTIAL_UNITS = ("kg", "kg m²")
# Typical size of a parameter that starts at zero, in its unit.
DEFAULT_SCALE = 1e-3


class ParameterError(ShadowfitError):
    """A free parameter with impossible start, bounds or prior."""


@dataclasses.dataclass(frozen=True)
class Free:
    """How one parameter is estimated; what is not given comes from the mechanism.

    ``prior`` is a standard deviation around the start value (a Gaussian prior), in the parameter's unit.
    """

    start: float | None = None
    lower: float | None = None
    upper: float | None = None
    prior: float | None = None
    per_recording: bool = False


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One free parameter, checked: a number, or a rotation with three increments."""

    name: str
    start: float | np.ndarray
    lower: float
    upper: float
    prior: float | None
    scale: float
    unit: str
    is_rotation: bool
    per_recording: bool

    @property
    def size(self) -> int:
        """Number of increments."""
        return 3 if self.is_rotation else 1


FreeParameters = str | Iterable[str] | Mapping[str, Free | float | None]


@dataclasses.dataclass(frozen=True)
class ParameterSet:
    """The free parameters of an estimation, in order."""

    parameters: tuple[Parameter, ...]
    recordings: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """Names, once each."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def local_size(self) -> int:
        """Increments that one recording sees."""
        return sum(parameter.size for parameter in self.parameters)

    @property
    def size(self) -> int:
        """Increments of the whole problem."""
        return sum(p.size * (self.recordings if p.per_recording else 1) for p in self.parameters)

    def places(self, recording: int) -> np.ndarray:
        """Places of a recording's increments among those of the whole problem."""
        places: list[int] = []
        start = 0
        for parameter in self.parameters:
            copies = self.recordings if parameter.per_recording else 1
            copy = recording if parameter.per_recording else 0
            places.extend(range(start + copy * parameter.size, start + (copy + 1) * parameter.size))
            start += copies * parameter.size
        return np.array(places, dtype=int)

    def labels(self) -> list[str]:
        """A name for each increment: ``name``, ``name.x`` for rotations, ``name@i`` for the value in recording i."""
        labels: list[str] = []
        for parameter in self.parameters:
            copies = [f"@{i}" for i in range(self.recordings)] if parameter.per_recording else [""]
            parts = [".x", ".y", ".z"] if parameter.is_rotation else [""]
            labels.extend(f"{parameter.name}{part}{copy}" for copy in copies for part in parts)
        return labels

    def spread(self, value: Any) -> np.ndarray:
        """A property of each parameter (``scale``, ``lower``...) for each increment; rotations have no bounds."""
        entries: list[float] = []
        for parameter in self.parameters:
            copies = self.recordings if parameter.per_recording else 1
            entries.extend([value(parameter)] * (parameter.size * copies))
        return np.array(entries, dtype=float)

    def start(self) -> Values:
        """Start values."""
        numbers = tuple(
            np.repeat(p.start, self.recordings if p.per_recording else 1) for p in self.parameters if not p.is_rotation
        )
        turns = tuple(
            np.tile(p.start, (self.recordings if p.per_recording else 1, 1)) for p in self.parameters if p.is_rotation
        )
        return Values(numbers, turns)

    def plus(self, values: Values, increments: np.ndarray) -> Values:
        """``χ ⊞ δ``. Rotations turn in their own frame: the part of a tilt about gravity is then one component."""
        numbers, turns, start = [], [], 0
        old_numbers, old_turns = iter(values.numbers), iter(values.turns)
        for parameter in self.parameters:
            copies = self.recordings if parameter.per_recording else 1
            own = increments[start : start + parameter.size * copies]
            if parameter.is_rotation:
                turns.append(_turned(next(old_turns), own.reshape(copies, 3)))
            else:
                # Adding and subtracting must not leave the box by rounding.
                numbers.append(np.clip(next(old_numbers) + own, parameter.lower, parameter.upper))
            start += parameter.size * copies
        return Values(tuple(numbers), tuple(turns))

    def minus(self, values: Values, other: Values) -> np.ndarray:
        """``χ ⊟ other``: the increments that take ``other`` to these values."""
        entries: list[np.ndarray] = []
        numbers, turns = zip(values.numbers, other.numbers, strict=True), zip(values.turns, other.turns, strict=True)
        for parameter in self.parameters:
            own, start = next(turns) if parameter.is_rotation else next(numbers)
            entries.append(_turned_by(own, start).ravel() if parameter.is_rotation else own - start)
        return np.concatenate(entries) if entries else np.zeros(0)

    def bounds(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest increments that stay in the box."""
        flat = self.flat(values)
        return self.spread(lambda p: p.lower) - flat, self.spread(lambda p: p.upper) - flat

    def flat(self, values: Values) -> np.ndarray:
        """Value behind each increment; zero for rotations."""
        entries: list[np.ndarray] = []
        numbers = iter(values.numbers)
        for parameter in self.parameters:
            copies = self.recordings if parameter.per_recording else 1
            entries.append(np.zeros(3 * copies) if parameter.is_rotation else next(numbers))
        return np.concatenate(entries) if entries else np.zeros(0)

    def named(self, values: Values, recording: int = 0) -> dict[str, Any]:
        """Values by name, as one recording sees them: floats, and quaternions for rotations."""
        named: dict[str, Any] = {}
        numbers, turns = iter(values.numbers), iter(values.turns)
        for parameter in self.parameters:
            value = next(turns) if parameter.is_rotation else next(numbers)
            own = value[recording if parameter.per_recording else 0]
            named[parameter.name] = own if parameter.is_rotation else float(own)
        return named


@dataclasses.dataclass(frozen=True)
class Values:
    """Current values: numbers and quaternions in order, one entry for each recording that has its own."""

    numbers: tuple[np.ndarray, ...]
    turns: tuple[np.ndarray, ...]


@mapped
def _turned(quaternion: Float[Array, "4"], increment: Float[Array, "3"]) -> Float[Array, "4"]:
    return rotations.normalise(rotations.plus_local(quaternion, increment))


@mapped
def _turned_by(quaternion: Float[Array, "4"], other: Float[Array, "4"]) -> Float[Array, "3"]:
    return rotations.log(rotations.multiply(rotations.conjugate(other), quaternion))


def parameter_set(mechanism: Mechanism, free: FreeParameters, recordings: int = 1) -> ParameterSet:
    """Resolve names and shell-style patterns to checked parameters.

    ``free`` is a name or lists names, or maps names to :class:`Free`, to a start value, or to None.
    """
    listed = [free] if isinstance(free, str) else free
    requests = dict(listed) if isinstance(listed, Mapping) else dict.fromkeys(listed)
    found: dict[str, Parameter] = {}
    for pattern, request in requests.items():
        options = request if isinstance(request, Free) else Free(start=request)
        for name in mechanism.expand(pattern):
            found[name] = _parameter(mechanism, name, options)
    return ParameterSet(tuple(found.values()), recordings)


def _parameter(mechanism: Mechanism, name: str, free: Free) -> Parameter:
    leaf = mechanism.leaf(name)
    unit = mechanism.unit(name)
    if not leaf.tunable:
        raise ParameterError(f"{name} is a setting, not a parameter of the mechanism; it cannot be estimated")
    for field in ("start", "lower", "upper", "prior"):
        _check_number(name, field, getattr(free, field))
    if free.prior is not None and not free.prior > 0.0:
        raise ParameterError(f"the prior standard deviation of {name} is {free.prior}; it must be positive")
    if leaf.kind == "rotation":
        if (free.start, free.lower, free.upper) != (None, None, None):
            raise ParameterError(
                f"{name} is a rotation: it starts where the mechanism has it and has no bounds; give neither"
            )
        start = mechanism.get(name)
        return Parameter(name, start, -np.inf, np.inf, free.prior, 0.1, unit, True, free.per_recording)
    start = float(mechanism.get(name) if free.start is None else free.start)
    inertial = unit in INERTIAL_UNITS and leaf.lower == 0.0
    least, most = (start / INERTIAL_RANGE, start * INERTIAL_RANGE) if inertial else (leaf.lower, np.inf)
    lower = float(least if free.lower is None else free.lower)
    upper = float(most if free.upper is None else free.upper)
    if not np.isfinite(start):
        raise ParameterError(f"{name} starts at {start}; it must be a finite number [{unit}]")
    if np.isnan(lower) or np.isnan(upper) or lower >= upper:
        raise ParameterError(f"{name} has bounds [{lower:g}, {upper:g}] {unit}; lower must be below upper")
    if not lower <= start <= upper:
        raise ParameterError(
            f"{name} starts at {start:g} {unit}, outside its bounds [{lower:g}, {upper:g}]; "
            "move the start or the bounds"
        )
    if lower < leaf.lower:
        raise ParameterError(f"{name} may not go below {leaf.lower:g} {unit}, but its lower bound is {lower:g}")
    scale = abs(start) if start != 0.0 else DEFAULT_SCALE
    return Parameter(name, start, lower, upper, free.prior, scale, unit, False, free.per_recording)


def _check_number(name: str, field: str, value: object) -> None:
    if value is None or (isinstance(value, int | float | np.number) and not isinstance(value, bool)):
        return
    raise ParameterError(f"the {field} of {name} is {value!r}; it must be a number (or None, for what the model has)")
