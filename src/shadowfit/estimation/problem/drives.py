"""Which joints are driven, and by what."""

from __future__ import annotations

import types

from shadowfit.estimation.problem.problem import Problem
from shadowfit.mechanism.laws import DcMotor, PositionMotor, TorqueMotor


def is_led(problem: Problem) -> bool:
    """Whether the force of every joint is known, so that a controller may have led the machine along its path."""
    return problem.plan.unknowns.reach == 3 and all_driven(problem, TorqueMotor)


def passes_rest(problem: Problem) -> bool:
    """Whether drives lead every joint through rest, by a known torque or towards a known target."""
    return problem.plan.unknowns.reach == 3 and all_driven(problem, TorqueMotor | PositionMotor)


def all_driven(problem: Problem, kind: type | types.UnionType = object) -> bool:
    """Whether every joint has a motor (of a kind) that follows an input."""
    return len(_driven(problem, kind)) == problem.plan.node_size


def driven_by_force(problem: Problem) -> set[str]:
    """Joints with a motor whose input is a force, but for what the speed takes of it; a target is none."""
    return _driven(problem, TorqueMotor | DcMotor)


def _driven(problem: Problem, kind: type | types.UnionType) -> set[str]:
    """Joints with a motor of a kind that follows an input."""
    return {
        name
        for name, joint in problem.mechanism.joints.items()
        if any(isinstance(law, kind) and getattr(law, "input", None) is not None for law in joint.laws.values)
    }
