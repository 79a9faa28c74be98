"""Which joints are driven, and by what.

A machine whose drives outnumber the coordinates that nothing drives is *led*: its controller answers to every error of
the drives' forces, and what hangs loose on it (a wrist without a motor, a hook) is carried along. Where half of the
coordinates or more are left to themselves (a pendulum on a cart or an arm), they answer to the machine instead, and are
what was recorded for.
"""

from __future__ import annotations

import types

from shadowfit.estimation.problem.problem import Problem
from shadowfit.mechanism.laws import DcMotor, PositionMotor, Servo, TorqueMotor, VelocityMotor


def is_led(problem: Problem) -> bool:
    """Whether the drives' forces are known and lead the machine, so that a controller may have held it on its path."""
    return problem.plan.unknowns.reach == 3 and is_driven(problem, TorqueMotor)


def is_read(problem: Problem) -> bool:
    """Whether the forces that lead a machine were measured: they go on between samples, where commands are held."""
    sources = {source for motors in inputs_of(problem, TorqueMotor).values() for source in motors.values()}
    return is_led(problem) and all(problem.mechanism.inputs[name].hold == "linear" for name in sources)


def passes_rest(problem: Problem) -> bool:
    """Whether drives lead the machine through rest, by a known torque or towards a known target."""
    return problem.plan.unknowns.reach == 3 and is_driven(problem, TorqueMotor | PositionMotor | Servo)


def is_driven(problem: Problem, kind: type | types.UnionType = object) -> bool:
    """Whether motors (of a kind) that follow an input drive more coordinates than they leave."""
    return 2 * len(driven(problem, kind)) > problem.plan.node_size


def driven_by_force(problem: Problem) -> frozenset[str]:
    """Joints with a motor whose input is a force, but for what the speed takes of it; a target is none."""
    return driven(problem, TorqueMotor | DcMotor)


def targets(problem: Problem) -> dict[str, dict[str, str]]:
    """Joints whose motors follow a target, a position or a speed, with the inputs that give it."""
    return inputs_of(problem, PositionMotor | Servo | VelocityMotor)


def driven(problem: Problem, kind: type | types.UnionType = object) -> frozenset[str]:
    """Joints with a motor (of a kind) that follows an input."""
    return frozenset(inputs_of(problem, kind))


def inputs_of(problem: Problem, kind: type | types.UnionType = object) -> dict[str, dict[str, str]]:
    """Joints with laws (of a kind) that follow an input, the names of these laws, and their inputs.

    A joint may have several: a loop and the torque that is fed forward.
    """
    found: dict[str, dict[str, str]] = {}
    for name, joint in problem.mechanism.joints.items():
        for key, law in joint.laws.items():
            source = getattr(law, "input", None)
            if isinstance(law, kind) and source is not None:
                found.setdefault(name, {})[key] = source
    return found
