"""The direction of dry friction, as a mean over a step.

Friction of a level L/h acts against the motion, in a direction that turns over a speed w. It grows from rest with the
slope 1/w, and what it lacks beyond w falls with the fourth power of the speed, lest slow motions have less friction
than the machine's:

    v/r (1 + u²/(2 r²)),    r = √(v² + u²),    u = 3w/2.

Along a step in which the speed of the axis goes evenly from s to s', its mean is the quotient of differences of its
integral ``r − u²/(2r)``,

    A = (s + s')/(r + r') (1 + u²/(2 r r')),

and the impulse is ``−L A``. A reversal inside the step counts for the part of the step before and after it, so friction
turns when the axis does; the law that takes the direction of the end of the step turns half a step early. A is smooth,
over speeds of the size of ``|s' − s|`` and w.

A stuck axis creeps at ``w`` times the part of the friction that it needs. ``w = max(stick_time, h/2) · d · L/h``, d the
mobility of the axis in the mechanism (change of its speed by an impulse along it). With less than h/2 the speed of a
stuck axis would change its sign from step to step. What the width does to an estimate falls with the step, and deferred
correction takes most of it off, which evaluates the same law in finer steps.

``d L/h`` is the deceleration by friction alone. Where a drive leads an axis along a path, friction may be many times
what the axis' own inertia could take up, and would fade over all speeds that the axis has. In a fit, which knows the
motion, w is at most a part of the largest of these (:func:`widest`): a tenth where the axis is said to creep
(``stick_time``), and a fiftieth where half a step is all that asks for it, less for finer steps. Sensors keep such an
axis from changing its sign from step to step, and finer steps do not take off what a larger width does: on a light
wrist behind a gear, 2 N m on 0.011 kg m², half a step of 10 ms is 0.9 rad/s of 11, and rotors were off by a third.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.lazy_jax import jnp

# Least width [rad/s, m/s]: keeps the direction of an axis at rest without friction finite.
LEAST = 1e-30
# u/w.
REACH = 1.5
# Largest w in a fit, as a part of the largest speed: of an axis that creeps (what is above is not near rest), and of
# the half step that others are given.
NEAR_REST, HALF_STEP = 0.1, 0.02


def stick_width(
    stick_time: Float[Array, "*#n"],
    stopped: Float[Array, "*n"],
    timestep: Float[Array, ""] | float,
    most: Float[Array, "*#n 2"] | None = None,
    library: Any = jnp,
) -> Float[Array, "*n"]:
    """Speed w [rad/s, m/s] over which friction reverses that stops an axis from a speed ``d L`` within a step.

    ``most``: the largest w of an axis that creeps and of half a step (:func:`widest`), where the motion is known;
    ``library`` computes it, NumPy or JAX.
    """
    creep, halfway = stick_time / timestep * stopped, 0.5 * stopped
    if most is not None:
        creep, halfway = library.minimum(creep, most[..., 0]), library.minimum(halfway, most[..., 1])
    return library.maximum(creep, halfway) + LEAST


def widest(fastest: Float[np.ndarray, " n"], corrected: bool) -> Float[np.ndarray, "n 2"]:
    """Largest w of axes that creep, and of those that half a step is given, by their largest speeds.

    Without correction the law is the stepper's, of which a simulation leaves nothing.
    """
    return np.multiply.outer(fastest, (NEAR_REST, HALF_STEP if corrected else NEAR_REST))


def mean_direction(
    before: Float[Array, "*n"], after: Float[Array, "*n"], width: Float[Array, "*n"], library: Any = jnp
) -> Float[Array, "*n"]:
    """A, from −1 to 1, between the speeds at the start and the end of the step."""
    first, last = _length(before, width, library), _length(after, width, library)
    return (before + after) / (first + last) * (1.0 + _near(width, first, last))


def slope(before: Float[Array, "*n"], after: Float[Array, "*n"], width: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """``∂A/∂s'``, which is never negative."""
    first, last = _length(before, width), _length(after, width)
    near, both = _near(width, first, last), first + last
    far = (first * last + (REACH * width) ** 2 - before * after) / (last * both**2)
    return far * (1.0 + near) - (before + after) / both * near * after / last**2


def _length(speed: Array, width: Array, library: Any = jnp) -> Array:
    """r."""
    return library.sqrt(speed**2 + (REACH * width) ** 2)


def _near(width: Array, first: Array, last: Array) -> Array:
    """``u²/(2 r r')``: what there is near rest beside ``v/r``."""
    return 0.5 * (REACH * width) ** 2 / (first * last)
