"""Write the pinned requirement files from the packages installed in the running environment.

Each file holds the exact versions of everything its group needs, directly or through other packages.
Groups other than `runtime` and `build` leave out what `runtime` already pins and refer to it instead.

Run by `make pins`, in a fresh environment that has all groups installed.
"""

import tomllib
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).parent
PINNED_EXTRAS = (
    "bags",
    "dask",
    "arviz",
    "hdf5",
    "mjcf",
    "mjx",
    "pandas",
    "plots",
    "usd",
    "web",
    "test",
    "dev",
    "docs",
    "bench",
)


def closure(requirements: list[str]) -> dict[str, str]:
    """Names and installed versions of all packages that `requirements` need here, themselves included."""
    versions: dict[str, str] = {}
    visited: set[tuple[str, str]] = set()
    pending = [(Requirement(text), "") for text in requirements]
    while pending:
        requirement, extra_of_parent = pending.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra_of_parent}):
            continue
        name = canonicalize_name(requirement.name)
        installed = distribution(name)
        versions[name] = installed.version
        for extra in {"", *requirement.extras} - {seen for seen_name, seen in visited if seen_name == name}:
            visited.add((name, extra))
            pending += [(Requirement(text), extra) for text in installed.requires or []]
    return versions


def write(group: str, versions: dict[str, str], *, on_top_of: str | None = None) -> None:
    """Write `requirements/<group>.txt`, sorted by name."""
    lines = ["# Written by `make pins`."]
    if on_top_of is not None:
        lines.append(f"-r {on_top_of}.txt")
    lines += [f"{name}=={version}" for name, version in sorted(versions.items())]
    (HERE / f"{group}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Write one file for each group named in pyproject.toml."""
    pyproject = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    runtime = closure(pyproject["project"]["dependencies"])
    write("runtime", runtime)
    write("build", closure(pyproject["build-system"]["requires"]))
    for extra in PINNED_EXTRAS:
        needed = closure(pyproject["project"]["optional-dependencies"][extra])
        own = {name: version for name, version in needed.items() if name not in runtime}
        write(extra, own, on_top_of="runtime")


if __name__ == "__main__":
    main()
