"""Settings for all tests: double precision, compilation cache, property-based testing, recordings."""

import gc
import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

# One thread for each worker: small products in several threads wait for each other on busy cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Most of the tests' time is XLA's, compiling programs that run once: without optimisations it takes half of it, and a
# quarter of that with its older code generator for fused loops, in one piece. (XLA ends a program for a flag that it
# does not know: the older generator is asked for where there is one.) What the caller sets comes last and wins.
os.environ["XLA_FLAGS"] = (
    "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_parallel_codegen_split_count=1 "
    + ("--xla_cpu_use_fusion_emitters=false " if version("jaxlib").split(".")[:2] < ["0", "12"] else "")
    + os.environ.get("XLA_FLAGS", "")
)

import hypothesis
import jax
import jaxtyping
import pytest

from array_shapes import check_shapes

check_shapes(["shadowfit"])
from shadowfit.dynamics import compliant, rigid  # noqa: E402  behind the hook that checks shapes
from shadowfit.kernels import codegen  # noqa: E402

# Folders and files of tests in which they are: those that call each part of the package. Checks take a tenth of time.
SHAPES_ARE_CHECKED = {
    "complementarity",
    "designs/test_limits.py",
    "dynamics/test_balance.py",
    "dynamics/test_elements.py",
    "dynamics/test_loops.py",
    "dynamics/test_placement.py",
    "dynamics/test_rigid.py",
    "dynamics/test_tree.py",
    "estimation/test_box_step.py",
    "estimation/test_cone_step.py",
    "estimation/test_front.py",
    "estimation/test_joint_unknowns.py",
    "estimation/test_projection.py",
    "estimation/test_result.py",
    "evaluation/test_derived.py",
    "geometry",
    "kernels",
    "mechanism",
    "models",
    "recordings",
    "reference",
}

jax.config.update("jax_enable_x64", True)

# Each pytest-xdist worker keeps a cache of its own: JAX writes entries in place, so a worker could read half
# of another's. Programs that compile in a blink are cheaper to compile again than to store.
_worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
jax.config.update("jax_compilation_cache_dir", str(Path(__file__).parents[1] / ".cache" / "jax" / _worker))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)

os.environ.setdefault("SHADOWFIT_KERNELS", str(Path(__file__).parents[1] / ".cache" / "kernels"))
# The same for machine code of the library's own.
os.environ.setdefault("SHADOWFIT_HASTY", "1")

# Compilation makes the first example slow, hence no deadline. In continuous integration every run sees the
# same examples; elsewhere each run explores new ones.
hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")

# Traced programs are many small objects that live on: looking through all of them again and again for garbage took a
# seventh of the time.
gc.freeze()
gc.set_threshold(200_000, 20, 20)

# A third of what Linux grants a process by default (vm.max_map_count); the program of a simulation takes some 300.
MOST_MAPPINGS = 22_000


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    file = item.path.relative_to(Path(__file__).parent)
    jaxtyping.config.update("jaxtyping_disable", SHAPES_ARE_CHECKED.isdisjoint((file.parts[0], file.as_posix())))


@pytest.fixture(autouse=True, scope="module")
def compiled_programs_are_released() -> Iterator[None]:
    """Let go of compiled programs once there are thousands: they exhaust the memory mappings of a process.

    Not after each file: the next one may use the same machine.
    """
    yield
    try:
        mappings = Path("/proc/self/maps").read_bytes().count(b"\n")
    except OSError:
        mappings = MOST_MAPPINGS
    if mappings >= MOST_MAPPINGS:
        jax.clear_caches()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder with recordings of real machines, from the environment variable SHADOWFIT_DATA."""
    folder = os.environ.get("SHADOWFIT_DATA")
    if not folder:
        pytest.skip("SHADOWFIT_DATA is not set: this test needs the folder with recordings of real machines")
    if not Path(folder).is_dir():
        pytest.fail(f"SHADOWFIT_DATA is {folder!r}, which is not a folder")
    return Path(folder)


@pytest.fixture
def careful_code(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Machine code as users have it: what is made in haste rounds otherwise in vectors than alone."""
    monkeypatch.delenv(codegen.HASTY, raising=False)
    kept = (compliant._stepper, rigid._stepper)
    for steppers in kept:
        steppers.cache_clear()
    yield
    for steppers in kept:
        steppers.cache_clear()
