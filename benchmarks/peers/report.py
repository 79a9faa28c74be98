"""Writes ``docs/record/benchmarks.md`` and its figures from the results that ``run.py`` has left.

Every number on the page comes from the files; a task without results is named as such.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.peers import results, user_code
from benchmarks.peers.figures import draw_errors, draw_times
from benchmarks.peers.measures import (
    OURS,
    PLAIN,
    Key,
    covered,
    errors,
    grouped,
    median,
    middle,
    ratios,
    successes,
    warm,
)
from benchmarks.peers.methods import METHODS
from benchmarks.peers.notation import number, percent, table
from benchmarks.peers.results import Result
from benchmarks.peers.targets import ACCURACY, verdicts
from benchmarks.peers.tasks import TASKS
from shadowfit.models.atomic import write_text

PACKAGES = ("shadowfit", "jax", "jaxlib", "numpy", "scipy", "casadi", "mujoco", "pin")


def summary_table(groups: dict[Key, list[Result]], task: str) -> str:
    """Times, success, coverage, rollout, memory and lines of code of all methods on a task."""
    head = ["method", "seeds", "success", "cold [s]", "cold again [s]", "warm [s]", "warm, CPU [s]", "coverage"]
    head += ["rollout [mrad]", "memory [MB]", "lines: program + model"]
    rows = []
    for method in METHODS.values():
        group = groups.get((task, method.name))
        if not group:
            continue
        inside, total = covered(group)
        fits = warm(group)
        answered = [r for r in group if not r.error]
        rows.append(
            [
                method.label,
                str(len(group)),
                f"{successes(group)}/{len(group)}",
                number(median(r.since_start for r in answered if r.fresh)),
                number(median(r.since_start for r in answered if not r.fresh)) if method.compiles else "as cold",
                number(median(r.seconds for r in fits)),
                number(median(r.cpu_seconds for r in fits)),
                f"{inside / total:.0%} of {total}" if total else "none given",
                number(1e3 * middle([r.rollout for r in group])),
                number(max((r.memory for r in answered), default=math.nan), 3),
                "{} + {}".format(*user_code.lines(method, TASKS[task].system)),
            ]
        )
    return table(head, rows)


def error_table(groups: dict[Key, list[Result]], task: str) -> str:
    """Median and worst relative error of each unknown."""
    names = list(TASKS[task].starts)
    rows = []
    for method in METHODS.values():
        group = groups.get((task, method.name))
        if not group or all(r.error for r in group):
            continue
        cells = []
        for name in names:
            found = errors(group, name)
            cells.append(f"{percent(middle(found))} ({percent(max(found))})")
        rows.append([method.label, *cells])
    return table(["error [%]: median (worst)", *(f"`{name}`" for name in names)], rows)


def failures(groups: dict[Key, list[Result]], task: str) -> str:
    """Seeds without an answer, and why."""
    lines = []
    for method in METHODS.values():
        bad = [r for r in groups.get((task, method.name), []) if r.error]
        if bad:
            reasons = sorted({r.error for r in bad})
            lines.append(f"- {method.label}: no answer for {len(bad)} seed(s): {'; '.join(reasons)}")
    return "\n".join(lines)


def ratio_table(groups: dict[Key, list[Result]]) -> str:
    """Errors of shadowfit beside those of CasADi, which has the exact equations."""
    rows = []
    for method in (OURS, PLAIN):
        for task, name, own, bound, seeds in ratios(groups, method):
            ratio = own / bound if bound > 0.0 else math.inf
            verdict = "yes" if ratio <= ACCURACY else "**no**"
            cells = [task, METHODS[method].label, f"`{name}`", str(seeds), percent(own), percent(bound), number(ratio)]
            rows.append([*cells, verdict])
    head = ["task", "method", "unknown", "seeds", "error [%]", "CasADi's [%]", "ratio", f"≤ {ACCURACY}"]
    return table(head, rows)


def versions() -> str:
    """Packages and machine, without its name."""
    lines = []
    for name in PACKAGES:
        try:
            lines.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            lines.append(f"{name} not installed")
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return f"Python {platform.python_version()}, {', '.join(lines)}; {machine}."


def page(groups: dict[Key, list[Result]], notes: str, figures: list[str]) -> str:
    """The whole page."""
    parts = ["# Benchmarks", (Path(__file__).parent / "introduction.md").read_text(encoding="utf-8").strip()]
    seeds = [len(group) for (_, method), group in groups.items() if method == OURS]
    asked = f"The targets ask for ten seeds of {len(TASKS)} tasks; shadowfit has run {sum(seeds)} fits of {len(seeds)}."
    parts += ["## Targets", verdicts(groups), asked, notes.strip()]
    parts += [f"![{name.removesuffix('.png')}](figures/{name})" for name in figures]
    parts += ["## Accuracy beside the exact equations", ratio_table(groups), "## Task by task"]
    for task in TASKS:
        if any(key[0] == task for key in groups):
            parts += [f"### {task}", summary_table(groups, task), error_table(groups, task), failures(groups, task)]
    missing = [task for task in TASKS if not any(key[0] == task for key in groups)]
    if missing:
        parts.append(f"Not run: {', '.join(missing)}.")
    parts += ["## Versions and machine", versions()]
    return "\n\n".join(part for part in parts if part) + "\n"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=results.FOLDER)
    parser.add_argument("--docs", type=Path, default=Path("docs/record"))
    given = parser.parse_args()
    groups = grouped(results.load(given.folder))
    if not groups:
        parser.error(f"{given.folder} holds no results; run python -m benchmarks.peers.run first")
    figures = draw_times(groups, given.docs / "figures") + draw_errors(groups, given.docs / "figures")
    notes = (Path(__file__).parent / "findings.md").read_text(encoding="utf-8")
    write_text(given.docs / "benchmarks.md", page(groups, notes, figures))
    print(f"wrote {given.docs / 'benchmarks.md'}: {sum(map(len, groups.values()))} fits")


if __name__ == "__main__":
    main()
