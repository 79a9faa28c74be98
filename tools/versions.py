"""Try the built wheel with the newest releases of what it needs, and with the lowest that pyproject.toml allows.

    python -m tools.versions dist/shadowfit-0.2.0-py3-none-any.whl [python3.12 ...]

Whoever installs the wheel gets no pins. For each Python of the machine that is new enough the wheel is installed with
all its extras and the newest releases, and for the oldest with the lowest as well; each runs the demonstration and the
tests of what other packages do for us: reading files, tracing programs, a page, the command line.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# What the command line, files and pages need; the other extras are for work on the library.
EXTRAS = ("bags", "dask", "hdf5", "mjcf", "plots", "web")
TOOLS = ("beartype", "hypothesis", "pytest", "pytest-xdist")
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
TESTS = (
    *("kernels", "parallel", "web", "models/robots/test_mjcf.py", "models/test_update.py", "cli/test_cli.py"),
    *(f"recordings/test_{name}.py" for name in ("archives", "bags", "read")),
    "evaluation/test_store.py",
)
# What old releases will be told by newer ones is no news.
PYTEST = ("-m", "pytest", "-n", "2", "--dist", "loadfile", "--quiet", "-W", "default::DeprecationWarning")


def lowest() -> list[str]:
    """The lowest version of each package that pyproject.toml allows, as constraints of pip."""
    wanted = [*PROJECT["dependencies"], *(text for extra in EXTRAS for text in PROJECT["optional-dependencies"][extra])]
    found = {}
    for requirement in map(Requirement, wanted):
        (bound,) = (each.version for each in requirement.specifier if each.operator == ">=")
        found[requirement.name] = f"{requirement.name}=={bound}"
    return sorted(found.values())


def pythons(names: tuple[str, ...]) -> list[str]:
    """Interpreters that are there and new enough."""
    allowed = SpecifierSet(PROJECT["requires-python"])
    question = "import platform, sys; print(platform.python_version(), sys.executable)"
    found = []
    for name in names:
        path = shutil.which(name)
        answer = subprocess.run([path or sys.executable, "-c", question], capture_output=True, text=True, check=False)
        version, _, executable = answer.stdout.strip().partition(" ")
        if path is None or answer.returncode:
            print(f"== {name}: not on this machine", flush=True)
        elif version in allowed:
            found.append(executable)
    return found


def tried(python: str, wheel: Path, constraints: list[str], folder: Path) -> bool:
    """Whether demonstration and tests pass in an environment of its own."""
    own, limits = folder / "bin" / "python", folder / "constraints.txt"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    # Nothing that another version has compiled.
    environment |= {"XDG_CACHE_HOME": str(folder / "cache"), "SHADOWFIT_KERNELS": str(folder / "kernels")}

    def run(*command: str | Path, where: Path = ROOT) -> bool:
        return not subprocess.run(command, cwd=where, env=environment, check=False).returncode

    if not run(python, "-m", "venv", folder):
        return False
    limits.write_text("\n".join(constraints), "utf-8")
    pip = (own, "-m", "pip", "--disable-pip-version-check", "install", "-qq", "--constraint", limits)
    return (
        run(*pip, f"{wheel}[{','.join(EXTRAS)}]", *TOOLS)
        and run(own.with_name("shadowfit"), "demo", "--quiet", "--out", "demo", where=folder)
        and run(own, *PYTEST, *(f"tests/{name}" for name in TESTS))
    )


def main(arguments: list[str]) -> int:
    """Try every Python with the newest releases, the oldest with the lowest; the exit code says whether all passed."""
    wheel, names = Path(arguments[0]).resolve(), tuple(arguments[1:]) or PYTHONS
    interpreters = pythons(names)
    trials = [(interpreters[0], "lowest", lowest()), *((each, "newest", []) for each in interpreters)]
    failed = []
    for python, label, constraints in trials:
        name = f"{label} releases, {python}"
        print(f"== {name}", flush=True)
        with tempfile.TemporaryDirectory(prefix="shadowfit-versions-") as folder:
            if not tried(python, wheel, constraints, Path(folder)):
                failed.append(name)
    for name in failed:
        print(f"failed with the {name}", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
