"""What acts on a mechanism from outside: gravity, inputs, and forces on bodies."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.errors import MechanismError
from shadowfit.geometry import rotations
from shadowfit.mechanism.leaves import number, rotation, vector
from shadowfit.pytrees import PyTree, field


class Gravity(PyTree):
    """Gravity: ``tilt`` turns the vector ``(0, 0, −acceleration)``, as a stand that is not level does."""

    acceleration: Any = number("m/s²", default=9.82, lower=0.0)
    tilt: Any = rotation()

    def vector(self) -> Float[Array, "3"]:
        """Acceleration of gravity in the world [m/s²]."""
        down = -self.acceleration * np.array([0.0, 0.0, 1.0])
        return rotations.rotate(self.tilt, down)


class Input(PyTree):
    """A recorded signal that drives the mechanism: ``gain·u(t − delay) + offset``, held between its samples.

    ``hold`` says what happens between samples: ``zero`` keeps the last one, ``linear`` connects them.
    """

    gain: Any = number("1", default=1.0)
    offset: Any = number("unit", default=0.0)
    delay: Any = number("s", default=0.0, lower=0.0)
    hold: Literal["zero", "linear"] = field(static=True, default="zero")
    unit: str = field(static=True, default="1")

    def check(self, name: str) -> None:
        """Raise unless the hold is known."""
        if self.hold not in ("zero", "linear"):
            raise MechanismError(f"input {name!r}: hold must be 'zero' or 'linear', not {self.hold!r}")


class Wrench(PyTree):
    """A force [N] and torque [N m] on a body at its centre of mass, constant or times an input.

    ``frame`` says whether the components are in the world's or in the body's axes.
    """

    body: str = field(static=True)
    force: Any = vector("N")
    torque: Any = vector("N m")
    input: str | None = field(static=True, default=None)
    frame: Literal["world", "body"] = field(static=True, default="world")

    def check(self, name: str) -> None:
        """Raise unless the frame is known."""
        if self.frame not in ("world", "body"):
            raise MechanismError(f"force {name!r}: frame must be 'world' or 'body', not {self.frame!r}")
