"""A function of one time step, run over many: by a kernel, or by XLA where it cannot be written out in scalars."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from shadowfit.kernels.errors import SlowerWarning, TooLargeError, UnsupportedError
from shadowfit.kernels.kernel import LARGEST, Leaves, Workspace, kernel
from shadowfit.lazy_jax import jax, quick_to_compile
from shadowfit.trees import leaves_of

OverTime = Callable[..., list[np.ndarray]]
"""Called as `Kernel` is."""

# Times, as many as a chunk of a recording has, beyond which XLA's programs are made for multiples.
MANY = 512


def over_time(
    function: Callable[..., Any],
    settings: Leaves,
    constants: Leaves,
    varying: Leaves,
    key: Any,
    carried: int = 0,
    largest: int = LARGEST,
) -> OverTime:
    """Compile ``function(settings, constants, varying)`` for one time, as :func:`kernel` does, whatever its size."""
    try:
        return kernel(function, settings, constants, varying, key, carried, largest)
    except (TooLargeError, UnsupportedError) as error:
        tell(error)
        return by_xla(function, carried)


def tell(error: TooLargeError | UnsupportedError) -> None:
    """Warn of what is left to XLA, why, and what can be done."""
    if isinstance(error, TooLargeError):
        advice = "joint coordinates (rigid joints, in simulations) take machines of any size"
    else:
        advice = (
            f"unless a law of your own asks for that, JAX {jax.version.__version__} is newer than this shadowfit "
            "knows: take an older one"
        )
    text = f"XLA computes a part of this model, which can take tens of times as long: {error}; {advice}"
    warnings.warn(text, SlowerWarning, stacklevel=2)


def by_xla(function: Callable[..., Any], carried: int = 0) -> OverTime:
    """The same by XLA, compiled for a few numbers of times: others are filled up with the last time."""
    compiled = functools.partial(jax.jit, compiler_options=quick_to_compile())
    side_by_side = compiled(jax.vmap(function, in_axes=(None, None, 0)))

    @compiled
    def one_after_another(settings: Any, constants: Any, varying: Any, carry: Any) -> Any:
        def advance(carry: Any, now: Any) -> tuple[Any, Any]:
            leaves = leaves_of(function(settings, constants, [*carry, *now]))
            return leaves[:carried], leaves

        return jax.lax.scan(advance, carry, varying)[1]

    def run(
        settings: Leaves,
        constants: Leaves,
        varying: Leaves,
        carry: Leaves | None = None,
        _: Workspace | None = None,
        within: int | None = None,
    ) -> list[np.ndarray]:
        if within is not None:
            varying = [_in_a_row(x, within) for x in varying]
        times = len(varying[0])
        missing = _filled_up(times) - times
        filled = [np.concatenate([x, np.repeat(x[-1:], missing, axis=0)]) if missing else x for x in varying]
        given = [list(settings), list(constants), filled]
        outputs = side_by_side(*given) if carry is None else one_after_another(*given, list(carry))
        return [np.asarray(leaf)[:times] for leaf in leaves_of(outputs)]

    return run


def _in_a_row(values: np.ndarray, within: int) -> np.ndarray:
    """Two axes of time as one; the second has so many times, or one where values are the same for all of these."""
    whole = np.broadcast_to(values, (len(values), within, *values.shape[2:]))
    return whole.reshape(len(values) * within, *values.shape[2:])


def _filled_up(times: int) -> int:
    """A power of two up to some hundred times, then multiples of that."""
    return 1 << (times - 1).bit_length() if times <= MANY else -(-times // MANY) * MANY
