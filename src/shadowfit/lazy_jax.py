"""JAX, loaded when something of it is first used.

    from shadowfit.lazy_jax import jax, jnp

Where all machine code comes from the cache nothing is traced, and a program ends without JAX, whose import takes
longer than most fits. What has to happen when it comes, whoever imports it (classes become trees, double precision is
switched on), waits for it here (`once_loaded`).
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import sys
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from shadowfit.undisturbed import undisturbed

P = ParamSpec("P")
R = TypeVar("R")

NAME = "jax"


class _Lazy:
    """A module whose import waits for the first of its names that is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what Python asks of any value
            raise AttributeError(f"{self._name} is loaded when it is used; {name} is not asked of it")
        return getattr(importlib.import_module(self._name), name)

    def __reduce__(self) -> tuple[type[_Lazy], tuple[str]]:
        return _Lazy, (self._name,)


if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.extend import core
    from jax.interpreters import ad, batching, mlir
else:
    jax, jnp, lax, core = map(_Lazy, ("jax", "jax.numpy", "jax.lax", "jax.extend.core"))
    ad, batching, mlir = (_Lazy(f"jax.interpreters.{name}") for name in ("ad", "batching", "mlir"))

__all__ = [
    "ad",
    "at_first_call",
    "batching",
    "core",
    "is_array",
    "is_loaded",
    "is_traced",
    "jax",
    "jnp",
    "lax",
    "mlir",
    "namespace",
    "once_loaded",
    "quick_to_compile",
    "with_jvp",
    "with_vmap",
]


def at_first_call(transform: Callable[[Callable[P, R]], Callable[P, R]]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: what ``transform`` (of JAX: ``jit``, own derivatives, …) makes of a function when it is called."""

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        made = functools.cache(lambda: transform(function))

        @functools.wraps(function)
        def call(*arguments: P.args, **named: P.kwargs) -> R:
            return made()(*arguments, **named)

        return call

    return decorated


@functools.cache
def quick_to_compile() -> dict[str, bool]:
    """Options of `jax.jit` that halve the time to compile, for code that runs as fast; none if XLA lacks them."""
    options = {"xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(lambda: 0, compiler_options=options).lower().compile()
    except RuntimeError:  # "No such compile option"
        return {}
    return options


def with_jvp(function: Callable[P, R], rule: Callable[..., Any]) -> Callable[P, R]:
    """The function with derivatives of its own (`jax.custom_jvp`)."""
    whole = jax.custom_jvp(function)
    whole.defjvp(rule)
    return whole


def with_vmap(function: Callable[P, R], rule: Callable[..., Any]) -> Callable[P, R]:
    """The function with a way of its own to treat many at once (`jax.custom_batching.custom_vmap`)."""
    whole = jax.custom_batching.custom_vmap(function)
    whole.def_vmap(rule)
    return whole


def is_loaded() -> bool:
    """Whether anybody has imported JAX; if not, nothing can be one of its arrays."""
    return NAME in sys.modules


def is_array(value: Any) -> bool:
    """Whether a value is an array of JAX, a traced one included."""
    return is_loaded() and isinstance(value, jax.Array)


def is_traced(value: Any) -> bool:
    """Whether a value stands for numbers that are not known yet."""
    return is_loaded() and isinstance(value, jax.core.Tracer)


def namespace(*values: Any) -> Any:
    """The library to compute with: NumPy, unless a value is an array of JAX."""
    return jnp if any(map(is_array, values)) else np


class _Arrival(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Sees JAX being imported, and then does what waits for it."""

    def __init__(self) -> None:
        self._waiting: list[Callable[[], None]] = []
        self._lock = threading.RLock()
        self._here = is_loaded()
        self._loader: importlib.abc.Loader | None = None
        if not self._here:
            sys.meta_path.insert(0, self)

    def then(self, act: Callable[[], None]) -> None:
        with self._lock:
            if not self._here:
                self._waiting.append(act)
                return
        act()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != NAME or self._here:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is not None and spec.loader is not None:
            self._loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        assert self._loader is not None
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert self._loader is not None
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        with undisturbed():
            self._loader.exec_module(module)
        with self._lock:
            self._here = True
            waiting, self._waiting = self._waiting, []
        for act in waiting:
            act()


_arrival = _Arrival()


def once_loaded(act: Callable[[], None]) -> None:
    """Do something as soon as JAX is there: at once, or at the end of its import."""
    _arrival.then(act)
