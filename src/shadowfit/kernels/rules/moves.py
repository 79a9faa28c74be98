"""Operations that move entries about: indexing of arrays of nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shadowfit.kernels.arrays import NodeArray, Rule, Value, entries_of, static
from shadowfit.kernels.errors import UnsupportedError
from shadowfit.kernels.scalars import Node, Scalars
from shadowfit.kernels.unrolling import Unrolling


def moved(move: Callable[[np.ndarray, dict[str, Any]], np.ndarray]) -> Rule:
    """An operation on one array; ``move(array, parameters)``."""

    def rule(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> Value:
        del unrolling
        (value,) = arguments
        if isinstance(value, NodeArray):
            return NodeArray(move(value.entries, equation.params))
        return move(np.asarray(value), equation.params)

    return rule


def joined(join: Callable[[list[np.ndarray], dict[str, Any]], np.ndarray]) -> Rule:
    """An operation on several arrays; ``join(arrays, parameters)``."""

    def rule(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> Value:
        if any(isinstance(x, NodeArray) for x in arguments):
            return NodeArray(join([entries_of(unrolling.scalars, x) for x in arguments], equation.params))
        return join([np.asarray(x) for x in arguments], equation.params)

    return rule


def broadcast(array: np.ndarray, parameters: dict[str, Any]) -> np.ndarray:
    """Repeated along new axes."""
    shape, places = parameters["shape"], parameters["broadcast_dimensions"]
    wide = [1] * len(shape)
    for axis, place in enumerate(places):
        wide[place] = array.shape[axis]
    return np.broadcast_to(array.reshape(wide), shape)


def sliced(array: np.ndarray, parameters: dict[str, Any]) -> np.ndarray:
    """Some of the entries along each axis."""
    strides = parameters["strides"] or (1,) * array.ndim
    bounds = zip(parameters["start_indices"], parameters["limit_indices"], strides, strict=True)
    return array[tuple(slice(*bound) for bound in bounds)]


def unstack(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> list[Value]:
    """One array for each place along an axis."""
    del unrolling
    (value,) = arguments
    axis = equation.params["axis"]
    if isinstance(value, NodeArray):
        return [NodeArray(part) for part in np.moveaxis(value.entries, axis, 0)]
    return list(np.moveaxis(np.asarray(value), axis, 0))


def split(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> list[Value]:
    """Cut into pieces along an axis."""
    del unrolling
    (value,) = arguments
    places, axis = np.cumsum(equation.params["sizes"])[:-1], equation.params["axis"]
    if isinstance(value, NodeArray):
        return [NodeArray(part) for part in np.split(value.entries, places, axis=axis)]
    return list(np.split(np.asarray(value), places, axis=axis))


def padded(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> Value:
    """With entries before, behind and between; negative numbers cut off."""
    scalars = unrolling.scalars
    entries, filling = entries_of(scalars, arguments[0]), int(entries_of(scalars, arguments[1]))
    for axis, (low, high, inner) in enumerate(equation.params["padding_config"]):
        entries = np.moveaxis(entries, axis, 0)
        spread = max(0, len(entries) + max(0, len(entries) - 1) * inner)
        wide = np.full((max(0, low) + spread + max(0, high), *entries.shape[1:]), filling)
        wide[max(0, low) : max(0, low) + spread : inner + 1] = entries
        entries = np.moveaxis(wide[max(0, -low) : len(wide) - max(0, -high)], 0, axis)
    return NodeArray(entries)


def iota(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> Value:
    """Numbers 0, 1, … along an axis."""
    del unrolling, arguments
    shape, axis = equation.params["shape"], equation.params["dimension"]
    along = np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return np.broadcast_to(along, shape).astype(equation.params["dtype"])


def dynamic_slice(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> Value:
    """A window."""
    del unrolling
    operand, *starts = arguments
    picked = _window(operand.shape, equation.params["slice_sizes"], starts)
    return NodeArray(operand.entries[picked]) if isinstance(operand, NodeArray) else np.asarray(operand)[picked]


def dynamic_update(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> Value:
    """A window overwritten."""
    del equation
    operand, update, *starts = arguments
    entries, part = np.array(entries_of(unrolling.scalars, operand)), entries_of(unrolling.scalars, update)
    entries[_window(entries.shape, part.shape, starts)] = part
    return NodeArray(entries)


def _window(shape: Sequence[int], sizes: Sequence[int], starts: Sequence[Value]) -> tuple[slice, ...]:
    """Moved inside where it would reach beyond the array."""
    first = [
        int(np.clip(static(start, "an index"), 0, whole - size))
        for start, whole, size in zip(starts, shape, sizes, strict=True)
    ]
    return tuple(slice(begin, begin + size) for begin, size in zip(first, sizes, strict=True))


def gather(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> Value:
    """Windows of an array."""
    del unrolling
    operand, indices = arguments[0], static(arguments[1], "an index")
    numbers, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    removed = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    axes = [axis for axis in range(len(sizes)) if axis not in removed]
    batching = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    windows = _places(
        indices, operand.shape, numbers.start_index_map, list(batching), {axis: sizes[axis] for axis in axes}
    )
    array = operand.entries if isinstance(operand, NodeArray) else np.asarray(operand)
    gathered = array[tuple(np.moveaxis(windows, -1, 0))]
    batch = [axis for axis in range(gathered.ndim) if axis not in numbers.offset_dims]
    gathered = np.moveaxis(gathered, range(gathered.ndim), [*batch, *numbers.offset_dims])
    return NodeArray(gathered) if isinstance(operand, NodeArray) else gathered


def scatter(combine: Callable[[Scalars, Node, Node], Node]) -> Rule:
    """Entries put into windows of an array: ``combine(scalars, old, new)``."""

    def rule(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> Value:
        scalars = unrolling.scalars
        entries = np.array(entries_of(scalars, arguments[0]))
        indices, updates = static(arguments[1], "an index"), entries_of(scalars, arguments[2])
        numbers = equation.params["dimension_numbers"]
        removed = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
        axes = [axis for axis in range(entries.ndim) if axis not in removed]
        batch = [axis for axis in range(updates.ndim) if axis not in numbers.update_window_dims]
        ordered = updates.transpose([*batch, *numbers.update_window_dims])
        batching = zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
        window = dict(zip(axes, ordered.shape[len(batch) :], strict=True))
        places = _places(indices, entries.shape, numbers.scatter_dims_to_operand_dims, list(batching), window)
        flat = places.reshape(-1, entries.ndim).tolist()
        for place, update in zip(flat, ordered.ravel().tolist(), strict=True):
            entries[tuple(place)] = combine(scalars, int(entries[tuple(place)]), update)
        return NodeArray(entries)

    return rule


def _places(
    indices: np.ndarray,
    shape: Sequence[int],
    index_axes: Sequence[int],
    batching: Sequence[tuple[int, int]],
    window: dict[int, int],
) -> np.ndarray:
    """Place in the operand of each entry of all windows: ``(*batch, *window, rank)``.

    Args:
        indices: ``(*batch, k)``, of the windows' beginnings along ``index_axes`` of the operand.
        shape: of the operand.
        index_axes: axes of the operand.
        batching: axes of the operand that go along with one of the indices' batch.
        window: sizes of the windows by axis of the operand.
    """
    batch_shape = indices.shape[:-1]
    places = np.zeros((*batch_shape, *window.values(), len(shape)), dtype=int)
    ones = (1,) * len(window)
    for k, axis in enumerate(index_axes):
        places[..., axis] += indices[..., k].reshape((*batch_shape, *ones))
    for operand_axis, index_axis in batching:
        along = [-1 if i == index_axis else 1 for i in range(len(batch_shape))]
        places[..., operand_axis] += np.arange(batch_shape[index_axis]).reshape((*along, *ones))
    for k, (axis, size) in enumerate(window.items()):
        along = [-1 if i == k else 1 for i in range(len(window))]
        places[..., axis] += np.arange(size).reshape([1] * len(batch_shape) + along)
    if places.size and (places.min() < 0 or np.any(places >= np.array(shape))):
        raise UnsupportedError("an index outside of its array")
    return places
