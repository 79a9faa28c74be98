"""Equations of motion of the benchmark's machines in minimal coordinates, written once for all who need them.

The truth, the SciPy and the CasADi peers and the rollouts use these functions; none of it knows our simulator. They are
written for any set of elementary functions ``m`` (the module ``math`` or ``casadi``), so that numbers and symbols see
the same equations. ``p`` maps dotted names, those of shadowfit's models, to numbers or symbols; what is not in it comes
from ``System.known``.

Frames and signs are those of the built-in models. Dry friction is ``c tanh(speed/STICK_SPEED)``: smooth, so that it
creeps instead of sticking. Units are SI with angles in radians.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shadowfit.models.twins import STICK_SPEED

GRAVITY = 9.82  # m/s²

Accelerations = Callable[[Sequence[Any], Sequence[Any], Sequence[Any], Mapping[str, Any], Any], list[Any]]


@dataclasses.dataclass(frozen=True)
class System:
    """A machine: its coordinates, its inputs, its equations of motion and the numbers that everybody knows."""

    name: str
    joints: tuple[str, ...]
    """One joint for each coordinate, in the order of the coordinates."""
    sensors: tuple[str, ...]
    """Channel of each coordinate in a recording."""
    inputs: Mapping[str, str]
    """Channel of an input → the joint that it drives."""
    known: Mapping[str, float]
    """Dotted name → value of the numbers that are never estimated."""
    truth: Mapping[str, float]
    """Dotted name → true value of the numbers that may be estimated."""
    paper_start: Mapping[str, float]
    """Start values by the end of the name; empty: there are none."""
    accelerations: Accelerations

    def parameters(self, p: Mapping[str, Any]) -> dict[str, Any]:
        """All numbers: the known ones, the true ones, and over them what is given."""
        return {**self.known, **self.truth, **p}


def _friction(p: Mapping[str, Any], joint: str, speed: Any, m: Any) -> Any:
    """Torque or force against the motion of a joint; without dry friction no kink is evaluated."""
    viscous = -p[f"{joint}.viscous"] * speed
    level = p.get(f"{joint}.coulomb", 0.0)
    return viscous if isinstance(level, float) and level == 0.0 else viscous - level * m.tanh(speed / STICK_SPEED)


def _solve2(a: Any, b: Any, c: Any, f: Any, g: Any) -> list[Any]:
    """x, y of ``a x + b y = f, b x + c y = g``."""
    determinant = a * c - b * b
    return [(c * f - b * g) / determinant, (a * g - b * f) / determinant]


def _furuta(q: Sequence[Any], v: Sequence[Any], u: Sequence[Any], p: Mapping[str, Any], m: Any) -> list[Any]:
    """Lagrange's equations of the rotary pendulum; the derivation is in ``shadowfit.models.twins``."""
    s, c = m.sin(q[1]), m.cos(q[1])
    mass, l2, reach = p["pendulum.mass"], p["pendulum.centre"], p["arm.length"]
    along, across = p["pendulum.inertia.xx"], mass * l2**2 + p["pendulum.inertia.zz"]
    m11 = p["hinge1.motor.shaft_inertia"] + p["arm.inertia.zz"] + p["arm.mass"] * p["arm.centre"] ** 2
    m11 = m11 + mass * reach**2 + across * s * s + along * c * c
    m12 = mass * reach * l2 * c
    m22 = p["pendulum.inertia.yy"] + mass * l2**2
    slope11 = 2.0 * s * c * (across - along)
    slope12 = -mass * reach * l2 * s
    f1 = p["hinge1.motor.gain"] * u[0] + _friction(p, "hinge1", v[0], m) - slope11 * v[0] * v[1] - slope12 * v[1] ** 2
    f2 = -mass * GRAVITY * l2 * s + _friction(p, "hinge2", v[1], m) + 0.5 * slope11 * v[0] ** 2
    return _solve2(m11, m12, m22, f1, f2)


def _pendulum(q: Sequence[Any], v: Sequence[Any], u: Sequence[Any], p: Mapping[str, Any], m: Any) -> list[Any]:
    """One rod on a horizontal hinge."""
    del u
    inertia = p["pendulum.inertia.yy"] + p["pendulum.mass"] * p["pendulum.centre"] ** 2
    weight = -p["pendulum.mass"] * GRAVITY * p["pendulum.centre"] * m.sin(q[0])
    return [(weight + _friction(p, "hinge", v[0], m)) / inertia]


def _cartpole(q: Sequence[Any], v: Sequence[Any], u: Sequence[Any], p: Mapping[str, Any], m: Any) -> list[Any]:
    """A cart at x with a pole at θ that swings towards −x: its centre is at ``(x − l sin θ, −l cos θ)``."""
    s, c = m.sin(q[1]), m.cos(q[1])
    moment = p["pole.mass"] * p["pole.centre"]
    hinge = p["pole.inertia.yy"] + moment * p["pole.centre"]
    f1 = u[0] - moment * s * v[1] ** 2 + _friction(p, "rail", v[0], m)
    f2 = -GRAVITY * moment * s + _friction(p, "pivot", v[1], m)
    return _solve2(p["cart.mass"] + p["pole.mass"], -moment * c, hinge, f1, f2)


def _arm(q: Sequence[Any], v: Sequence[Any], u: Sequence[Any], p: Mapping[str, Any], m: Any) -> list[Any]:
    """Two links on parallel horizontal hinges, hanging at zero, a motor in each; q₂ is relative to the first link."""
    m1, m2, l1, c1, c2 = p["upper.mass"], p["lower.mass"], p["upper.length"], p["upper.centre"], p["lower.centre"]
    lower = p["lower.inertia.yy"] + m2 * c2**2
    cross = m2 * l1 * c2 * m.cos(q[1])
    spin = m2 * l1 * c2 * m.sin(q[1])
    m11 = p["upper.inertia.yy"] + m1 * c1**2 + m2 * l1**2 + lower + 2.0 * cross
    weight2 = -m2 * GRAVITY * c2 * m.sin(q[0] + q[1])
    weight1 = -(m1 * c1 + m2 * l1) * GRAVITY * m.sin(q[0]) + weight2
    f1 = p["shoulder.motor.gain"] * u[0] + weight1 + spin * (2.0 * v[0] * v[1] + v[1] ** 2)
    f2 = p["elbow.motor.gain"] * u[1] + weight2 - spin * v[0] ** 2
    return _solve2(
        m11, lower + cross, lower, f1 + _friction(p, "shoulder", v[0], m), f2 + _friction(p, "elbow", v[1], m)
    )


FURUTA = System(
    "furuta",
    joints=("hinge1", "hinge2"),
    sensors=("theta1", "theta2"),
    inputs={"u": "hinge1"},
    known={
        "arm.mass": 0.238,
        "arm.centre": 0.128,
        "arm.length": 0.376,
        "pendulum.mass": 0.428,
        "pendulum.centre": 0.092,
        "pendulum.inertia.xx": 1e-4,
        "hinge1.motor.shaft_inertia": 4e-4,
    },
    truth={
        "arm.inertia.zz": 0.003,
        "pendulum.inertia.yy": 0.004,
        "pendulum.inertia.zz": 0.00395,
        "hinge1.viscous": 1e-3,
        "hinge2.viscous": 1e-4,
        "hinge1.motor.gain": 0.073,
        "hinge1.coulomb": 5e-3,
        "hinge2.coulomb": 1e-3,
    },
    # The paper's table; its dry friction is a coefficient, which makes about 1e-3 N m of a level.
    paper_start={"inertia.yy": 0.01, "inertia.zz": 0.01, "viscous": 1e-4, "gain": 0.1, "coulomb": 1e-3},
    accelerations=_furuta,
)

PENDULUM = System(
    "pendulum",
    joints=("hinge",),
    sensors=("theta",),
    inputs={},
    known={"pendulum.mass": 0.428, "pendulum.centre": 0.092},
    truth={"pendulum.inertia.yy": 0.0039, "hinge.viscous": 2e-4, "hinge.coulomb": 2e-3},
    paper_start={},
    accelerations=_pendulum,
)

CARTPOLE = System(
    "cartpole",
    joints=("rail", "pivot"),
    sensors=("x", "theta"),
    inputs={"u": "rail"},
    known={"pole.mass": 0.2, "pole.centre": 0.3},
    truth={"cart.mass": 0.5, "pole.inertia.yy": 0.006, "rail.viscous": 0.5, "pivot.viscous": 1e-3},
    paper_start={},
    accelerations=_cartpole,
)

ARM = System(
    "arm",
    joints=("shoulder", "elbow"),
    sensors=("q1", "q2"),
    inputs={"u1": "shoulder", "u2": "elbow"},
    known={"upper.mass": 1.2, "upper.length": 0.3, "upper.centre": 0.14, "lower.mass": 0.8, "lower.centre": 0.13},
    truth={
        "upper.inertia.yy": 0.011,
        "lower.inertia.yy": 0.0065,
        "shoulder.viscous": 0.05,
        "elbow.viscous": 0.02,
        "shoulder.motor.gain": 0.9,
        "elbow.motor.gain": 0.5,
    },
    paper_start={},
    accelerations=_arm,
)
