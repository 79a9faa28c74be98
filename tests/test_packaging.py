"""What is declared is what is imported: no dependency too many and none too few; every extra has its pins."""

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tools.versions import lowest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = ("bags", "hdf5", "mjcf", "plots", "web")
# Imported by its name in a string (``need("rosbags", ...)``), once the format asks for it.
NAMED = re.compile(r'need\("(\w+)')


def names(requirements):
    return {re.split(r"[\[<>=~!; ]", text)[0].lower().replace("-", "_") for text in requirements}


@cache
def imported():
    """Packages from outside that the source names."""
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text("utf-8")
        found |= set(NAMED.findall(text))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                found.add((node.module or "").partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"shadowfit"}


def test_every_dependency_is_imported():
    assert names(PROJECT["dependencies"]) <= imported()


def test_every_import_is_declared():
    declared = names(PROJECT["dependencies"])
    for extra, needs in PROJECT["optional-dependencies"].items():
        declared |= names(needs) if extra not in ("test", "docs", "dev", "bench") else set()
    assert imported() <= declared


def test_every_package_has_a_lowest_version():
    """`make test-versions` tries these, and the newest there are."""
    wanted = [*PROJECT["dependencies"], *(text for extra in EXTRAS for text in PROJECT["optional-dependencies"][extra])]
    assert [text for text in wanted if not re.match(r"[\w-]+>=[\d.]+", text)] == []
    assert {text.partition(",")[0].replace(">=", "==") for text in wanted} <= set(lowest())


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_is_pinned(extra):
    needs = names(PROJECT["optional-dependencies"][extra])
    assert needs <= imported()
    lines = [line.replace("-", "_") for line in (ROOT / "requirements" / f"{extra}.txt").read_text().splitlines()]
    assert "_r runtime.txt" in lines
    assert needs <= {line.partition("==")[0] for line in lines if "==" in line}


def test_whoever_tests_has_all_extras():
    test = names(PROJECT["optional-dependencies"]["test"])
    assert {"h5py", "matplotlib", "mujoco", "nicegui", "rosbags"} <= test
