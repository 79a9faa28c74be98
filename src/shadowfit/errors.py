"""Named errors: each says what is wrong, where, and what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ShadowfitError(ValueError):
    """Base of all errors that a user's input can cause."""


class UnknownNameError(ShadowfitError):
    """A name of a part, parameter, sensor, input or channel that does not exist."""


class MechanismError(ShadowfitError):
    """A mechanism that is not physical or not consistent."""


class RecordingError(ShadowfitError):
    """A recording that cannot be read or used."""


class WriteError(ShadowfitError):
    """A file or folder that cannot be written."""


class SimulationError(ShadowfitError):
    """A simulation that could not be started or that stopped early; ``partial`` holds what was computed."""

    def __init__(self, message: str, partial: object = None):
        super().__init__(message)
        self.partial = partial


class OpenJointError(SimulationError):
    """An initial state in which a joint is open, or opens."""


def nearest(name: str, valid: Iterable[str], count: int = 3) -> str:
    """The end of an error message: the valid names nearest to a wrong one."""
    valid = list(valid)
    close = difflib.get_close_matches(name, valid, n=count, cutoff=0.5)
    if close:
        return "; did you mean " + " or ".join(repr(match) for match in close) + "?"
    if not valid:
        return "; there are none"
    shown = ", ".join(valid[:12]) + (", ..." if len(valid) > 12 else "")
    return f"; there are: {shown}"
