"""Where all machine code is in the cache, a command ends without having loaded JAX."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
from shadowfit.cli.app import for_arguments
try:
    for_arguments(sys.argv[1:])(sys.argv[1:], prog_name="shadowfit")
except SystemExit as end:
    assert not end.code, end.code
print("jax" in sys.modules)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("work")


def loads_jax(folder, *arguments):
    """Whether a command in a process of its own has loaded JAX when it ends."""
    environment = os.environ | {"SHADOWFIT_KERNELS": str(folder / "kernels"), "SHADOWFIT_HASTY": "1"}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        check=False,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return {"True": True, "False": False}[run.stdout.split()[-1]]


def test_showing_a_model(folder):
    assert not loads_jax(folder, "show", "furuta")


@pytest.mark.slow
def test_a_fit_and_what_comes_before_and_after_it(folder):
    commands = (
        ("simulate", "pendulum", "--duration", "3", "--out", "recording.csv"),
        ("check", "pendulum", "recording.csv", "--free", "hinge.viscous"),
        ("fit", "pendulum", "recording.csv", "--free", "hinge.viscous", "--out", "result"),
        ("validate", "result", "recording.csv"),
        ("report", "result"),
    )
    first = [loads_jax(folder, *command) for command in commands]
    assert first[0]
    assert first[2]
    assert not any(loads_jax(folder, *command) for command in commands)
