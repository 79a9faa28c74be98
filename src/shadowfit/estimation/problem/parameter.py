"""One free parameter: how it is asked for, and what is made of that: start, bounds, prior and typical size."""

from __future__ import annotations

import numpy as np

from shadowfit.errors import ShadowfitError
from shadowfit.magnitudes import LARGEST, SMALLEST, is_positive, is_usable
from shadowfit.mechanism import leaves
from shadowfit.mechanism.leaves import Leaf
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.natural_size import natural_size
from shadowfit.mechanism.scales import scales_of
from shadowfit.records import record

# A mass or inertia may shrink or grow by this factor: zero is not physical and cannot be simulated, and one that the
# data say nothing about would otherwise wander off.
INERTIAL_RANGE = 1e3
# Units of the numbers for which that holds.
INERTIAL_UNITS = ("kg", "kg m²")
# Typical size of a parameter that starts at zero, as a fraction of what is large for the machine (:mod:`scales`).
SMALL = 0.01


class ParameterError(ShadowfitError):
    """A free parameter with impossible start, bounds or prior."""


@record(frozen=True)
class Free:
    """How one parameter is estimated; what is not given comes from the mechanism.

    ``prior`` is a standard deviation around the start value (a Gaussian prior), in the parameter's unit. ``entropic``
    is one of a body instead, the same for all ten of its inertial numbers: its spread (:mod:`priors`).
    """

    start: float | None = None
    lower: float | None = None
    upper: float | None = None
    prior: float | None = None
    per_recording: bool = False
    entropic: float | None = None


@record(frozen=True)
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
    bounds_given: bool = False
    """Whether the user gave a bound."""
    entropic: float | None = None
    """Spread of the prior of the body that it belongs to."""

    @property
    def size(self) -> int:
        """Number of increments."""
        return 3 if self.is_rotation else 1


def checked(mechanism: Mechanism, leaf: Leaf, free: Free) -> Parameter:
    """A parameter as it is asked for, with what the mechanism says of it.

    Raises:
        ParameterError: its start, bounds or prior are impossible.
    """
    name, unit, value = (
        leaf.name,
        mechanism.applicable(leaf.unit, leaf.name),
        np.asarray(leaves.read(mechanism, leaf), float),
    )
    if not leaf.tunable:
        raise ParameterError(f"{name} is a setting, not a parameter of the mechanism; it cannot be estimated")
    for field in ("start", "lower", "upper", "prior", "entropic"):
        _check_number(name, field, getattr(free, field))
    for what, spread in (("prior standard deviation", free.prior), ("entropic prior", free.entropic)):
        if spread is not None and not (is_positive(spread) or spread == np.inf):
            raise ParameterError(f"the {what} of {name} is {spread}; it must be positive{_too_far(spread)}")
    if leaf.kind == "rotation":
        if (free.start, free.lower, free.upper) != (None, None, None):
            raise ParameterError(
                f"{name} is a rotation: it starts where the mechanism has it and has no bounds; give neither"
            )
        return Parameter(name, value, -np.inf, np.inf, free.prior, 0.1, unit, True, free.per_recording)
    start = float(value if free.start is None else free.start)
    # A rotor that a robot file does not mention starts at zero, and may become anything.
    inertial = unit in INERTIAL_UNITS and leaf.lower == 0.0 and start > 0.0
    least, most = (start / INERTIAL_RANGE, start * INERTIAL_RANGE) if inertial else (leaf.lower, np.inf)
    lower = float(least if free.lower is None else free.lower)
    upper = float(most if free.upper is None else free.upper)
    if not is_usable(start):
        raise ParameterError(f"{name} starts at {start}; it must be a finite number{_too_far(start)} [{unit}]")
    if np.isnan(lower) or np.isnan(upper) or lower >= upper:
        raise ParameterError(f"{name} has bounds [{lower:g}, {upper:g}] {unit}; lower must be below upper")
    if not lower <= start <= upper:
        raise ParameterError(
            f"{name} starts at {start:g} {unit}, outside its bounds [{lower:g}, {upper:g}]; "
            "move the start or the bounds"
        )
    if lower < leaf.lower:
        raise ParameterError(f"{name} may not go below {leaf.lower:g} {unit}, but its lower bound is {lower:g}")
    scale = _typical_size(mechanism, name, start, unit)
    given = free.lower is not None or free.upper is not None
    return Parameter(
        name, start, lower, upper, free.prior, scale, unit, False, free.per_recording, given, free.entropic
    )


def _too_far(value: float) -> str:
    """The range that a number has left, unless it is none."""
    return f", between {SMALLEST:g} and {LARGEST:g}" if np.isfinite(value) and value > 0.0 else ""


def _typical_size(mechanism: Mechanism, name: str, start: float, unit: str) -> float:
    """Size of a parameter: its start, or a small part of what is large for its link or machine where that is nothing.

    Coordinates of a centre of mass, and moments of inertia, may start at rounding errors of other programs.
    """
    part, _, number = name.partition(".")
    if part in mechanism.bodies and number.startswith(("com.", "inertia.")):
        return max(abs(start), SMALL * natural_size(mechanism, name))
    return abs(start) if start != 0.0 else SMALL * scales_of(mechanism).of(unit)


def _check_number(name: str, field: str, value: object) -> None:
    if value is None or (isinstance(value, int | float | np.number) and not isinstance(value, bool)):
        return
    raise ParameterError(f"the {field} of {name} is {value!r}; it must be a number (or None, for what the model has)")
