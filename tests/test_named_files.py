"""Files and modules that the documentation and docstrings name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "benchmarks", "paper", "studies", "examples", "tools", "torture", "docs", "requirements")
FILES = [
    path.relative_to(ROOT).as_posix() for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()
]
FILES += [path.name for path in ROOT.iterdir() if path.is_file()]
MODULES = {path.stem for path in (ROOT / "src").rglob("*.py")} | {
    path.parent.name for path in (ROOT / "src").rglob("__init__.py")
}
# Files that users write or a result holds.
OF_USERS = {"model.toml", "rod.toml", "project.toml", "channels.toml", "result/model.toml"}
PAGES = sorted([*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md"), ROOT / "benchmarks" / "README.md"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page):
    named = set(re.findall(r"`([\w/.]+\.(?:py|toml|md|js))(?:::\w+)?`", page.read_text("utf-8"))) - OF_USERS
    missing = [name for name in named if not any(f"/{file}".endswith(f"/{name}") for file in FILES)]
    assert not missing


def test_modules_that_docstrings_name_exist():
    missing = {
        f"{path.name}: {name}"
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r":mod:`([\w.]+)`", path.read_text("utf-8"))
        if name.rpartition(".")[2] not in MODULES
    }
    assert not missing
