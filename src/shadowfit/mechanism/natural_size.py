"""The size against which a number of a part counts as little or much: for priors in per cent.

Of a body's ten inertial numbers each has the size of its link, also where it is zero itself: the mass m, for the centre
of mass the radius of gyration √(tr J/2m), and for all entries of the inertia J the mean moment tr J/3. For all other
numbers it is their own value.
"""

from __future__ import annotations

import numpy as np

from shadowfit.errors import MechanismError
from shadowfit.mechanism.mechanism import Mechanism


def natural_size(mechanism: Mechanism, name: str) -> float:
    """Size of a number, in its unit.

    Raises:
        MechanismError: the number is zero (or a rotation), so that nothing tells its size.
    """
    part, _, rest = name.partition(".")
    if part in mechanism.bodies:
        body = mechanism.bodies[part]
        moments = sum(float(getattr(body.inertia, axis)) for axis in ("xx", "yy", "zz"))
        sizes = {
            "mass": float(body.mass),
            "com": float(np.sqrt(moments / (2.0 * float(body.mass)))),
            "inertia": moments / 3.0,
        }
        return sizes[rest.partition(".")[0]]
    value = np.asarray(mechanism.get(name))
    if value.ndim > 0 or value == 0.0:
        raise MechanismError(f"{name} has no size of its own; give it a number in {mechanism.unit(name)}, not per cent")
    return float(abs(value))
