"""Imports go one way, down the list of folders in docs/architecture.md, and nothing loads what it does not use."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from shadowfit.kernels.fingerprint import UNCOMPILED

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "shadowfit"
SUBDIVIDED = "estimation"


@cache
def layers() -> list[str]:
    """Folders and modules from the bottom to the top: the rows of the two tables, the second one in its place."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    folders, parts = (
        re.findall(r"^\| `([\w/.]+)` \|", text.split(f"## {heading}\n")[1].split("\n## ")[0], re.MULTILINE)
        for heading in ("Folders", "Inside `estimation/`")
    )
    listed = [name.removesuffix("/").removesuffix(".py") for name in folders]
    inside = [f"{SUBDIVIDED}.{name.removesuffix('/').removesuffix('.py')}" for name in parts]
    place = listed.index(SUBDIVIDED)
    # The package itself collects names of its parts, and so does the folder of the estimator.
    return [*listed[:place], *inside, *listed[place:], "", "__main__"]


@cache
def modules() -> dict[str, Path]:
    """Every module by its dotted name below the package."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports(module: str, inside_functions: bool = True) -> frozenset[str]:
    """Modules of the package that a module names in its imports, but not for types alone."""
    tree = ast.parse(modules()[module].read_text("utf-8"))
    left_out = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and not inside_functions
        for inner in ast.walk(node)
    }
    left_out |= {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in left_out:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "shadowfit":
            home = (node.module or "").removeprefix("shadowfit").removeprefix(".")
            for alias in node.names:
                inner = f"{home}.{alias.name}".removeprefix(".")
                found.add(inner if inner in modules() else home)
        elif isinstance(node, ast.Import):
            found |= {a.name.removeprefix("shadowfit.") for a in node.names if a.name.startswith("shadowfit.")}
    return frozenset(found)


def layer_of(module: str) -> str:
    """The layer that a module belongs to."""
    first, *rest = module.split(".")
    return f"{first}.{rest[0]}" if first == SUBDIVIDED and rest else first


def test_every_module_belongs_to_a_layer():
    assert {layer_of(module) for module in modules()} == set(layers())


@pytest.mark.parametrize("module", sorted(modules()))
def test_imports_go_down(module):
    order = layers()
    here = order.index(layer_of(module))
    upwards = [other for other in imports(module) if order.index(layer_of(other)) > here]
    assert not upwards, f"{module} is in a lower layer than {', '.join(upwards)}"


def test_doors_to_layers_above_are_known():
    """A method may ask the package for what lies above its class, when it is called."""
    asking = [m for m, path in modules().items() if 'import_module(f"shadowfit.{module}")' in path.read_text("utf-8")]
    assert asking == ["estimation.result"]


def test_no_module_imports_itself_in_a_circle():
    finished, under_way = set(), []

    def visit(module):
        assert module not in under_way, f"a circle: {' → '.join([*under_way, module])}"
        if module in finished:
            return
        under_way.append(module)
        for other in imports(module, inside_functions=False):
            if other != module:
                visit(other)
        under_way.pop()
        finished.add(module)

    for module in modules():
        visit(module)


def loaded_by(program: str) -> set[str]:
    """Layers of the package that a program has loaded when it ends."""
    listing = "import sys; print(*[m for m in sys.modules if m.startswith('shadowfit.') or m == 'jax'])"
    done = subprocess.run([sys.executable, "-c", f"{program}\n{listing}"], capture_output=True, text=True, check=True)
    return {layer_of(name.removeprefix("shadowfit.")) for name in done.stdout.split()}


def test_importing_the_package_loads_nothing():
    assert loaded_by("import shadowfit") == set()


def test_simulating_does_not_load_the_estimator():
    loaded = loaded_by(
        "import shadowfit as s; model = s.load_model('pendulum')\n"
        "s.simulate(model.mechanism, model.start.state(model.mechanism), timestep=0.01, steps=3)"
    )
    assert "dynamics" in loaded
    assert not [name for name in loaded if name.startswith(("estimation", "evaluation", "sweeps", "cli"))]


def test_folders_left_out_of_the_fingerprint_make_no_kernels():
    """Except by the two ways that keep code by the source of the function itself."""
    harmless = {"along", "mapped", "making_seconds"}
    harmless |= {"FOLDER_VARIABLE", "MOST_BYTES", "folder", "kept", "key_path", "remove_all", "user_key"}
    for module, path in modules().items():
        if layer_of(module) in UNCOMPILED:
            taken = {
                alias.name
                for node in ast.walk(ast.parse(path.read_text("utf-8")))
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("shadowfit.kernels")
                for alias in node.names
            }
            assert taken <= harmless, module
