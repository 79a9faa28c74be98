"""The built-in models: their names and where their files are. Imports neither JAX nor the rest of the library."""

from __future__ import annotations

import importlib.resources
import re
import tomllib
from importlib.resources.abc import Traversable

CHAIN = re.compile(r"chain([1-9][0-9]?)")
_CHAIN_EXAMPLE = {
    "chain4": "Planar chain of 4 hanging links; chain1, chain2, ... chain99 have as many links as they say"
}


def library() -> dict[str, str]:
    """Names of the built-in models and a line on each."""
    files = {file.name.removesuffix(".toml"): file for file in _folder().iterdir() if file.name.endswith(".toml")}
    described = {name: tomllib.loads(file.read_text("utf-8"))["description"] for name, file in files.items()}
    return dict(sorted({**described, **_CHAIN_EXAMPLE}.items()))


def is_builtin(name: str) -> bool:
    """Whether a built-in model has this name."""
    return name.isidentifier() and ((_folder() / f"{name}.toml").is_file() or CHAIN.fullmatch(name) is not None)


def builtin_text(name: str) -> str:
    """The text of a built-in model that is a file."""
    return (_folder() / f"{name}.toml").read_text("utf-8")


def _folder() -> Traversable:
    return importlib.resources.files("shadowfit.models") / "library"
