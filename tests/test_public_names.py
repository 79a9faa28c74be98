"""The package's public names exist, and are those that the type checker sees."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import shadowfit
from shadowfit import models


@pytest.mark.parametrize("package", [shadowfit, models])
def test_names(package):
    tree = ast.parse(Path(package.__file__).read_text("utf-8"))
    imported = {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    assert imported == set(package.__all__)
    for name in package.__all__:
        assert getattr(package, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing


def test_version():
    assert shadowfit.__version__.count(".") == 2
    assert set(shadowfit.__all__) <= set(dir(shadowfit))


def test_a_program_needs_no_preparation():
    """Double precision is on when the first mechanism is built, with nothing said about it."""
    program = (
        "from shadowfit import load_model, place\n"
        "state = place(load_model('pendulum').mechanism.set({'hinge.viscous': 1e-4}), {'hinge': 0.3})\n"
        "print(state.pose.orientation.dtype)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "float64"
