"""Study: computing time of the swing-up fit (the paper's Section 4.8), cold and warm.

Cold is a new process with an empty compilation cache, from the first import to the result; warm is the same fit once
more in that process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paper import furuta
from paper.document import Results, ResultTable, Section, check
from paper.methods import Size, StudyModel, fit_case
from shadowfit.errors import ShadowfitError
from shadowfit.sweeps import fitting
from shadowfit.sweeps.cases import Case, Outcome

TASK = f"{__name__}:timed_case"
PAPER_SECONDS, PAPER_ITERATIONS = 6.6, 6
WARM_RUNS = 3


def twins(size: Size) -> list[Case]:
    """The swing-up."""
    return [case for case in furuta.twins(size) if case.name == "twin-furuta-swingup"]


def cases(size: Size, made: Mapping[str, Outcome]) -> list[Case]:
    """Both methods."""
    del size
    listed = []
    for method in furuta.METHODS:
        model = StudyModel("furuta", {"*.compliance.*": furuta.COMPLIANCE[method.key]}, furuta.FREE)
        fit = fit_case(f"time-{method.key}", method, model, made, ["furuta-swingup"])
        listed.append(Case(fit.name, TASK, fit.arguments, "time"))
    return listed


def timed_case(arguments: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Seconds of a fit in a new process, cold and warm."""
    with tempfile.TemporaryDirectory() as cache:
        began = time.perf_counter()
        run = subprocess.run(
            [sys.executable, "-m", __name__],
            cwd=Path(__file__).parents[1],
            input=json.dumps([dict(arguments), str(folder.resolve())]),
            env={**os.environ, "JAX_COMPILATION_CACHE_DIR": cache, "JAX_ENABLE_X64": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        total = time.perf_counter() - began
    if run.returncode != 0:
        raise ShadowfitError(f"the timed process failed: {run.stderr.strip()[-500:]}")
    seconds = json.loads(run.stdout.strip().rsplit("\n", 1)[-1])
    return {**seconds, "cold": total - sum(seconds["warm"])}


def _timed() -> None:
    """The new process: fit several times, print the seconds of the repetitions."""
    threading.Thread(target=_end_without_parent, args=(os.getppid(),), daemon=True).start()
    arguments, folder = json.loads(sys.stdin.read())
    first = fitting.fit_case(arguments, Path(folder))
    warm, solve = [], []
    for _ in range(WARM_RUNS):
        began = time.perf_counter()
        again = fitting.fit_case(arguments, Path(folder))
        warm.append(time.perf_counter() - began)
        solve.append(again["seconds"]["total"])
    print(
        json.dumps(
            {"warm": warm, "solve": solve, "iterations": first["iterations"], "steps": first["recordings"][0]["steps"]}
        )
    )


def _end_without_parent(parent: int) -> None:
    """A worker that is stopped cannot stop the process it has started."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def report(results: Results, size: Size, folder: Path) -> Section:
    """Seconds beside the paper's."""
    del size, folder
    rows = [
        [
            "paper, on its machine",
            str(PAPER_ITERATIONS),
            "",
            f"{PAPER_SECONDS:g}",
            f"{PAPER_SECONDS / PAPER_ITERATIONS:.2f}",
        ]
    ]
    for method in furuta.METHODS:
        seconds = results.get(f"time-{method.key}")
        if seconds is not None:
            best = min(seconds["solve"])
            each = best / max(seconds["iterations"], 1)
            rows.append(
                [method.label, str(seconds["iterations"]), f"{seconds['cold']:.1f}", f"{best:.2f}", f"{each:.3f}"]
            )

    def faster() -> tuple[bool, str]:
        seconds = results["time-ours"]
        best = min(seconds["solve"])
        return best < PAPER_SECONDS, f"{best:.2f} s warm, {seconds['cold']:.1f} s cold"

    cores = os.cpu_count()
    return Section(
        "Computing time",
        [
            "Fit of thirteen parameters to the swing-up (1200 steps). Cold: a new process with an empty compilation "
            "cache, from its start to the result. Warm: the fit alone, once more in the same process; best of "
            f"{WARM_RUNS}. This machine has {cores} cores and may have been busy with other work; the paper's is an "
            "i7-10700 at 4.8 GHz, one core, and 6.6 s are for six iterations.",
        ],
        [
            ResultTable(
                "time", "Seconds of a fit", ["", "iterations", "cold [s]", "warm [s]", "warm, an iteration [s]"], rows
            )
        ],
        [],
        [check("A warm fit takes less than the paper's 6.6 s", faster)],
    )


if __name__ == "__main__":
    _timed()
