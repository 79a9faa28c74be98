"""Lines of code that a user of a method writes: program, equations of motion and model file, without words about it."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

from benchmarks.peers import mjcf, systems
from benchmarks.peers.methods import Method
from benchmarks.peers.systems import System


def program_lines(source: str) -> int:
    """Lines of Python that are neither blank, nor comment, nor docstring."""
    words: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            text = node.body[0]
            words |= set(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    lines = enumerate(source.splitlines(), start=1)
    return sum(1 for i, line in lines if line.strip() and not line.strip().startswith("#") and i not in words)


def model_lines(text: str) -> int:
    """Lines of a model file that are neither blank nor comment."""
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("#"))


def lines(method: Method, system: System) -> tuple[int, int]:
    """Lines of the program, and of what describes the machine."""
    here = Path(__file__).parent
    program = program_lines((here / f"{method.module}.py").read_text(encoding="utf-8"))
    if method.equations:
        helpers = (system.accelerations, systems._friction, systems._solve2)
        return program, sum(program_lines(inspect.getsource(function)) for function in helpers)
    file = mjcf.FOLDER / f"{system.name}.{method.model}"
    if not file.exists():
        file = here.parents[1] / "src" / "shadowfit" / "models" / "library" / file.name
    return program, model_lines(file.read_text(encoding="utf-8"))
