"""How much there is to read: lines, numbers set by hand, modules of a plain fit, words of the method."""

from __future__ import annotations

import ast
import dataclasses
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.peers import shadowfit_fit, tasks
from benchmarks.scoreboard.case import Case, Form
from benchmarks.scoreboard.outcome import fitted, outcome
from benchmarks.scoreboard.outcomes import FOLDER, ROOT

SOURCE = ROOT / "src" / "shadowfit"
# What algebra is written with: signs, halves, squares, the first and the second of something.
ALGEBRA = {0.0, 0.5, 1.0, 2.0}


@dataclasses.dataclass(frozen=True)
class Scenario:
    """What is counted."""

    says: str
    counts: Callable[[], dict[str, Any]]


def numbers(text: str) -> Iterator[float]:
    """Numbers of a module that somebody has set: literals that are neither of algebra nor an index or a slice."""
    tree = ast.parse(text)
    places = {id(inner) for node in ast.walk(tree) if isinstance(node, ast.Subscript) for inner in ast.walk(node.slice)}
    literals = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in places]
    yield from (
        float(node.value) for node in literals if type(node.value) in (int, float) and node.value not in ALGEBRA
    )


def constants(text: str) -> Iterator[str]:
    """Names in capitals that a module gives to numbers."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            held = [type(leaf.value) for leaf in ast.walk(node.value) if isinstance(leaf, ast.Constant)]
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name)]
            if held and set(held) <= {int, float}:
                yield from (name for name in names if name.isupper())


def _folder(name: str) -> Callable[[], dict[str, Any]]:
    def counts() -> dict[str, Any]:
        texts = [path.read_text(encoding="utf-8") for path in sorted((SOURCE / name).rglob("*.py"))]
        return {
            "lines": sum(len(text.splitlines()) for text in texts),
            "constants": sum(len(list(constants(text))) for text in texts),
            "numbers": sum(len(list(numbers(text))) for text in texts),
        }

    return counts


def _page(name: str) -> Callable[[], dict[str, Any]]:
    return lambda: {"words": len(Path(ROOT / "docs" / name).read_text(encoding="utf-8").split())}


def _plain_fit() -> dict[str, Any]:
    """Modules of the package that a plain fit of a rotary pendulum and its result load."""
    task = tasks.TASKS["furuta-pulse-near"]
    data = tasks.measure(task, 0, FOLDER / "truth")
    outcome(fitted(shadowfit_fit.mechanism(task), shadowfit_fit.recording(task, data), task.starts))
    return {"modules": sum(name.startswith("shadowfit") for name in sys.modules)}


SCENARIOS: dict[str, Scenario] = {
    "estimation": Scenario("`estimation/`", _folder("estimation")),
    "evaluation": Scenario("`evaluation/`", _folder("evaluation")),
    "method": Scenario("`docs/method.md`", _page("method.md")),
    "plain-fit": Scenario("modules that a plain fit and its result have loaded", _plain_fit),
}


def cases(form: Form) -> list[Case]:
    """One for each scenario, in both forms."""
    del form
    return [Case("size", name, "count") for name in SCENARIOS]


def run(case: Case) -> dict[str, Any]:
    """The counts."""
    return SCENARIOS[case.scenario].counts()
