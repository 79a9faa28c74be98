"""Machines of many joints: time and memory of linearising a step, and of whole fits, beside Pinocchio.

    python -m benchmarks.machines step          one step with all derivatives, trees of 7 to 32 joints
    python -m benchmarks.machines fit [NAME …]  whole fits in processes of their own: arm6, chain12, chain20 (given
                                                weights), arm6-plain, chain12-plain, … (plain defaults)

Times are of one core. `step` states the ratio to what Pinocchio takes for the derivatives of inverse dynamics by
positions, speeds and accelerations and for the regressor of the inertial parameters, of one configuration; the row of a
step here holds derivatives by three configurations, and friction, besides. Fits are timed in a process of their own:
`first` with an empty cache of kernels, `warm` with a full one; `seconds` and `processor_seconds` are those of the fit
alone, `cpu` is of the whole process, with the simulation of the recording, imports, and processes that make code.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from shadowfit.estimation import Options, fit
from shadowfit.runtime import start_jax

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from estimation.arms import TIMESTEP, arm, as_motions, driven, paths, sweep_of, torso

INERTIAL = ("*.mass", "*.com.?", "*.inertia.*")


# --- one step ---


def step_times(joints: int, parents: list[int] | None) -> dict[str, Any]:
    """Microseconds for a step, here and by Pinocchio."""
    mechanism = arm(joints, parents)
    free = (*INERTIAL, "*.viscous", "*.coulomb", "*.dry")
    sweep, values = sweep_of(mechanism, free)
    steps = 504
    motions = as_motions(paths(joints, steps))
    command = np.zeros((steps, joints)), np.zeros((steps, joints, 0))
    sweep.rows(values, motions, command, TIMESTEP)
    ours = min(_seconds(lambda: sweep.rows(values, motions, command, TIMESTEP)) for _ in range(9)) / steps
    theirs = pinocchio_seconds(joints, parents)
    return {"joints": joints, "parameters": len(values.numbers), "us": 1e6 * ours, "pinocchio_us": 1e6 * theirs}


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


def fit_once(name: str) -> dict[str, Any]:
    """One fit in this process."""
    whole, name = name, name.removesuffix("-plain")
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
    began = time.perf_counter()
    began_processor = time.process_time()
    given = Options(unknowns="joint", correction="none", state_weight=1e8)
    estimate = fit(mechanism, recording, start, options=Options() if whole != name else given)
    wall, processor = time.perf_counter() - began, time.process_time() - began_processor
    errors = [abs(row.value - mechanism.get(row.name)) / max(row.std, 1e-300) for row in estimate.parameters]
    return {
        "name": whole,
        "joints": len(mechanism.joints),
        "parameters": len(names),
        "steps": round(seconds / TIMESTEP),
        "seconds": wall,
        "processor_seconds": processor,
        "cpu": sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)),
        "iterations": len(estimate.log),
        "status": str(estimate.status),
        "memory_MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "median_error_in_std": float(np.nanmedian(errors)),
    }


def main(arguments: list[str]) -> None:
    """Run what is asked for and print one line of JSON each."""
    start_jax()
    if arguments[:1] == ["one"]:
        print(json.dumps(fit_once(arguments[1])))
        return
    if arguments[:1] == ["fit"]:
        for name in arguments[1:] or ["arm6", "chain12", "chain20"]:
            with tempfile.TemporaryDirectory() as folder:
                environment = {**os.environ, "SHADOWFIT_KERNELS": folder}
                for which in ("first", "warm"):
                    command = [sys.executable, "-m", "benchmarks.machines", "one", name]
                    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
                    print(json.dumps({"run": which, **json.loads(found.stdout.splitlines()[-1])}), flush=True)
        return
    for joints, parents in ((7, None), (8, None), (12, torso(12)), (18, torso(18)), (32, torso(32))):
        found = step_times(joints, parents)
        print(json.dumps({**found, "ratio": found["us"] / found["pinocchio_us"]}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
