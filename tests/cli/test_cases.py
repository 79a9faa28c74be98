"""Progress of many cases, and the commands that run them."""

import re
import subprocess
import sys

from shadowfit.cli.cases import case_progress
from shadowfit.sweeps.cases import Case, Outcome


def outcome(name, error=""):
    return Outcome(Case(name, "t:t", {}), None if error else {}, error, 1.25)


def test_plain_lines_without_a_terminal(capsys):
    with case_progress(3, "fits", quiet=False) as report:
        report(outcome("a"), True)
        report(outcome("b"), False)
        report(outcome("c", "Traceback\nValueError: no"), False)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "fits 1/3  a: kept from before"
    # How fast, and how long for the one that is left.
    assert re.fullmatch(r"fits 2/3  b: 1\.2 s  \(\S+/s, 0:00:00 left\)", lines[1])
    assert lines[2] == "fits 3/3  c: failed: ValueError: no"


def test_quiet(capsys):
    with case_progress(3, "fits", quiet=True) as report:
        assert report is None
    assert capsys.readouterr().err == ""


def test_help_answers_at_once():
    program = (
        "import sys; from shadowfit.cli import main; sys.argv[1:] = ['sweep', '--help']\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "assert not {'jax', 'numpy', 'polars', 'matplotlib'} & set(sys.modules), 'heavy imports'"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300, capture_output=True)
