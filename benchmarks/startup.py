"""How long a user waits, from the shell to the answer: medians over fresh processes, in seconds.

Answers that need no computation (``--help``, ``models``: below 0.5 s), and the whole command ``shadowfit fit`` of six
parameters of a Furuta pendulum to 10 s at 500 Hz, the first time on a machine (empty caches, packages as an installer
leaves them, with their bytecode; at most 6 s) and later (at most 2.5 s). Where the latter's time goes is told by a run
in which the steps are timed. Processor time, which a busy machine does not change, stands beside wall time.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

RUNS = 5
SHADOWFIT = [sys.executable, "-m", "shadowfit"]
PROGRAMS = {
    "python alone": [sys.executable, "-c", "pass"],
    "import shadowfit": [sys.executable, "-c", "import shadowfit"],
    "shadowfit --help": [*SHADOWFIT, "--help"],
    "shadowfit models": [*SHADOWFIT, "models"],
    "shadowfit show furuta": [*SHADOWFIT, "show", "furuta"],
}
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
SPLIT = """
import sys, time
begin = time.process_time()
def told(what):
    global begin
    now = time.process_time()
    print(f"  {what:32} {now - begin:8.2f}")
    begin = now
import shadowfit.estimation.fit, shadowfit.evaluation.store, shadowfit.evaluation.report; told("import the estimator")
import shadowfit as s
model = s.load_model("furuta"); told("read the model")
recording = s.read_recording("recording.csv"); told("read the recording")
options = s.Options()
estimate = s.fit(model.mechanism, recording, sys.argv[1:], options=options); told("fit")
s.save_estimate(estimate, "split", model_text=model.text); told("write the result, with its rollout")
s.write_report(s.load_result("split")); told("write the report")
"""


class Taken(NamedTuple):
    """Wall and processor time [s]."""

    wall: float
    processor: float


def seconds(program: list[str], folder: str = ".", **variables: str) -> Taken:
    """One run."""
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, **variables}
    subprocess.run(program, check=True, stdout=subprocess.DEVNULL, cwd=folder, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(time.perf_counter() - begin, used)


def bytecode(folder: str) -> dict[str, str]:
    """Settings with which Python keeps what it compiles, as where a package was installed; an empty one is none."""
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(Path(folder) / "bytecode")}


def line(name: str, runs: list[Taken]) -> None:
    """A row of the table."""
    walls, used = ([run[i] for run in runs] for i in range(2))
    print(f"{name:34} {statistics.median(walls):8.2f} {max(walls):8.2f} {statistics.median(used):10.2f}")


def main() -> None:
    """Measure and print the table."""
    print(f"{'program':34} {'median':>8} {'slowest':>8} {'processor':>10}")
    for name, program in PROGRAMS.items():
        line(name, [seconds(program) for _ in range(RUNS)])
    with tempfile.TemporaryDirectory() as folder:
        caches = {"XDG_CACHE_HOME": str(Path(folder) / "cache"), **bytecode(folder)}
        seconds([sys.executable, "-c", RECORD], folder, **bytecode(folder))
        free = [part for name in FREE for part in ("--free", name)]
        fit = [*SHADOWFIT, "fit", "furuta", "recording.csv", *free, "--quiet", "--out", "result"]
        # Python compiles the packages' text when they are installed: once before, with caches that are thrown away.
        elsewhere = {**caches, "XDG_CACHE_HOME": str(Path(folder) / "elsewhere")}
        line("shadowfit fit, not even bytecode", [seconds(fit, folder, **elsewhere)])
        line("shadowfit fit, first time", [seconds(fit, folder, **caches)])
        line("shadowfit fit, later", [seconds(fit, folder, **caches) for _ in range(RUNS)])
        demo = [*SHADOWFIT, "demo", "--quiet"]
        line("shadowfit demo, first time", [seconds(demo, folder, **caches)])
        line("shadowfit demo, later", [seconds(demo, folder, **caches) for _ in range(RUNS)])
        print("Where the processor time of a later fit goes:", flush=True)
        for _ in range(2):
            run = subprocess.run(
                [sys.executable, "-c", SPLIT, *FREE],
                check=True,
                cwd=folder,
                env={**os.environ, **caches},
                capture_output=True,
                text=True,
            )
        print(run.stdout)


if __name__ == "__main__":
    main()
