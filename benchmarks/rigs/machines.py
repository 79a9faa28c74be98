"""Machines of many joints: a step with all derivatives beside Pinocchio, and whole fits.

The row of a step holds derivatives by three configurations, and friction; Pinocchio's are the derivatives of inverse
dynamics by positions, speeds and accelerations and the regressor of the inertial parameters, of one configuration.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from shadowfit.estimation import Options, fit

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from estimation.arms import TIMESTEP, arm, as_motions, driven, paths, sweep_of, torso, widths_of

INERTIAL = ("*.mass", "*.com.?", "*.inertia.*")


# --- one step ---


def step_times(joints: int, branched: bool = False) -> tuple[float, float]:
    """Processor time of a step with all derivatives, here and by Pinocchio [s]."""
    parents = torso(joints) if branched else None
    mechanism = arm(joints, parents)
    free = (*INERTIAL, "*.viscous", "*.coulomb", "*.dry")
    sweep, values = sweep_of(mechanism, free)
    steps = 504
    motions = as_motions(paths(joints, steps))
    command = np.zeros((steps, joints)), np.zeros((steps, joints, 0))
    widths = widths_of(sweep, values, motions, command[0], TIMESTEP)
    sweep.rows(values, motions, command, TIMESTEP, widths)
    ours = min(_seconds(lambda: sweep.rows(values, motions, command, TIMESTEP, widths)) for _ in range(9)) / steps
    return ours, pinocchio_seconds(joints, parents)


def _seconds(work: Any) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def pinocchio_seconds(joints: int, parents: list[int] | None) -> float:
    """The same tree in Pinocchio: derivatives of inverse dynamics plus regressor."""
    model, known = pin.Model(), [0]
    kinds = (pin.JointModelRZ(), pin.JointModelRY(), pin.JointModelRX())
    rng = np.random.default_rng(0)
    for i in range(1, joints + 1):
        base = i - 1 if parents is None else parents[i - 1]
        at = pin.SE3(np.eye(3), np.array([0.0, 0.02, 0.2]))
        joint = model.addJoint(known[base], kinds[i % 3], at, f"joint{i}")
        inertia = np.diag(rng.uniform(0.01, 0.02, 3))
        model.appendBodyToJoint(joint, pin.Inertia(1.0, np.array([0.0, 0.0, 0.1]), inertia), pin.SE3.Identity())
        known.append(joint)
    data, (q, v, a) = model.createData(), rng.standard_normal((3, joints))

    def work() -> None:
        for _ in range(200):
            pin.computeRNEADerivatives(model, data, q, v, a)
            pin.computeJointTorqueRegressor(model, data, q, v, a)

    return min(_seconds(work) for _ in range(9)) / 200


# --- whole fits ---


def fit_once(name: str, plain: bool) -> dict[str, Any]:
    """One fit in this process, with plain defaults or given weights."""
    if name == "arm6":
        mechanism, seconds = arm(6), 30.0
        free = (*INERTIAL, "*.viscous", "*.coulomb", "*.dry", "*.shaft_inertia")
    else:
        mechanism, seconds = arm(int(name.removeprefix("chain"))), 10.0
        free = ("*.mass", "*.viscous", "*.coulomb")
    recording = driven(mechanism, round(seconds / TIMESTEP), noise=1e-4)
    names = [n for pattern in free for n in mechanism.expand(pattern)]
    rng = np.random.default_rng(2)
    start = {n: mechanism.get(n) * rng.uniform(0.8, 1.25) for n in names}
    given = Options(unknowns="joint", correction="none", state_weight=1e8)
    began = time.process_time()
    estimate = fit(mechanism, recording, start, options=Options() if plain else given)
    return {
        "seconds": time.process_time() - began,
        "iterations": len(estimate.log),
        "converged": estimate.converged,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
