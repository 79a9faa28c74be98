"""Joints that a fit took for rigid although the model says that they give, where that would matter.

A joint of compliance c that carries a mass m (an inertia, for turning) which moves at the rate ω gives by c m ω² of the
motion, and the mass seems larger by that fraction. It matters where estimated masses and inertias are known better.
"""

from __future__ import annotations

import numpy as np

from shadowfit.estimation import Estimate
from shadowfit.mechanism.joint import DEFAULT_COMPLIANCE, WORLD

INERTIAL_UNITS = ("kg", "kg m²")


def giving_joints(estimate: Estimate) -> list[tuple[float, str]]:
    """Of a fit with rigid joints whose model says that one gives by more than the error bars show: how much, in words.

    The number is the part by which inertias may be off.

    A bar of zero is that of a parameter that cannot move, such as one on the edge of what a body can have.
    """
    known = [
        row.std / abs(row.value)
        for row in estimate.parameters
        if row.unit in INERTIAL_UNITS and row.identifiable and not row.at_bound and row.value != 0.0 and row.std > 0.0
    ]
    if not estimate.problem.plan.unknowns.scope.rigid or not known:
        return []
    effects = _effects(estimate)
    name = max(effects, key=lambda joint: effects[joint], default="")
    if not name or not effects[name] > min(known):
        return []
    text = (
        f"joints are taken as rigid, but the model says that {name} gives: inertias may be off by "
        f"{100.0 * effects[name]:.2g} %, {effects[name] / min(known):.1f} of their standard deviations. If it does "
        "give, say so in the model file (`compliant = true`), or fit with poses of the bodies (`--unknowns "
        "configuration`); if not, lower its compliance"
    )
    return [(effects[name], text)]


def _effects(estimate: Estimate) -> dict[str, float]:
    """c m ω² of each joint whose compliance was stated; the default one of model files says nothing."""
    given, trajectory = estimate.problem.given, estimate.trajectory()
    velocity = np.asarray(trajectory.states.velocity)
    change = np.diff(velocity, axis=0) / estimate.problem.timestep
    effects = {}
    for name, joint in given.joints.items():
        if joint.compliant:
            continue
        carried = joint.child if joint.child != WORLD else joint.parent
        place, body = given.bodies.index(carried), given.bodies[carried]
        inertia = max(float(getattr(body.inertia, axis)) for axis in ("xx", "yy", "zz"))
        parts = (
            (joint.compliance.linear, float(body.mass), slice(0, 3)),
            (joint.compliance.rotational, inertia, slice(3, 6)),
        )
        effects[name] = max(
            (
                float(compliance) * carries * _squared_rate(velocity[:, place, axes], change[:, place, axes])
                for compliance, carries, axes in parts
                if float(compliance) != DEFAULT_COMPLIANCE
            ),
            default=0.0,
        )
    return effects


def _squared_rate(velocity: np.ndarray, change: np.ndarray) -> float:
    """ω² [1/s²] of a motion: mean squares of its acceleration over those of its velocity."""
    moving = float(np.mean(velocity**2))
    return float(np.mean(change**2)) / moving if moving > 0.0 else 0.0
