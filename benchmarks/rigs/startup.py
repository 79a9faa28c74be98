"""How long a user waits, from the shell to the answer of ``shadowfit fit``.

Six parameters of a rotary pendulum, 10 s at 500 Hz: the first time on a machine (empty caches, packages as an installer
leaves them, with their bytecode), and later.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

SHADOWFIT = [sys.executable, "-m", "shadowfit"]
FREE = (
    "arm.inertia.zz",
    "pendulum.inertia.yy",
    "pendulum.inertia.zz",
    "pendulum.mass",
    "hinge1.viscous",
    "hinge2.viscous",
)
RECORD = """
import numpy as np
from shadowfit import load_model, simulate
from shadowfit.evaluation.columns import write_csv
model, steps, h = load_model("furuta"), 5000, 2e-3
time, rng = h * np.arange(steps), np.random.default_rng(0)
volt = 1.5 * np.sin(2 * np.pi * (0.5 * time + 0.1 * time**2))
state = model.start.with_joints({"hinge2": 0.3}, {}).state(model.mechanism)
run = simulate(model.mechanism, state, {"u": volt}, timestep=h, steps=steps, joints="rigid", substeps=1)
table = {"time [s]": time, "u [V]": volt}
for name in ("theta1", "theta2"):
    table[f"{name} [rad]"] = np.asarray(run.readings[name])[:steps] + 1e-3 * rng.normal(size=steps)
write_csv("recording.csv", table)
"""


def seconds(program: list[str], folder: str = ".", **variables: str) -> float:
    """Processor time of one run, its processes included [s]."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, **variables}
    subprocess.run(program, check=True, stdout=subprocess.DEVNULL, cwd=folder, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def bytecode(folder: str) -> dict[str, str]:
    """Settings with which Python keeps what it compiles, as where a package was installed; an empty one is none."""
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(Path(folder) / "bytecode")}


def first_and_later() -> tuple[float, float]:
    """Processor times of a whole command: the first time on a machine, and the best of two later ones [s]."""
    with tempfile.TemporaryDirectory() as folder:
        caches = {"XDG_CACHE_HOME": str(Path(folder) / "cache"), **bytecode(folder)}
        seconds([sys.executable, "-c", RECORD], folder, **bytecode(folder))
        fit = [*SHADOWFIT, "fit", "furuta", "recording.csv", *(part for name in FREE for part in ("--free", name))]
        fit += ["--quiet", "--out", "result"]
        # Python compiles the packages' text when they are installed: once before, with caches that are thrown away.
        seconds(fit, folder, **{**caches, "XDG_CACHE_HOME": str(Path(folder) / "elsewhere")})
        first = seconds(fit, folder, **caches)
        return first, min(seconds(fit, folder, **caches) for _ in range(2))


def libraries() -> float:
    """Processor time of a program that imports what any such program needs [s]."""
    return min(seconds([sys.executable, "-c", "import jax.numpy, scipy.optimize"]) for _ in range(2))
