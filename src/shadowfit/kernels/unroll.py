"""A traced JAX function as scalar operations.

Arrays become arrays of nodes (:mod:`scalars`); operations that only move entries about become indexing, products of
matrices become sums of products, loops of known length are written out. Linear systems (`small_solve`) are
eliminated without pivoting, skipping what is known to be zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core

from shadowfit.kernels.forward import Differentiable, differentiate
from shadowfit.kernels.scalars import COMPARISONS, Node, Scalars, UnsupportedError


class Nodes:
    """An array whose entries are nodes."""

    def __init__(self, entries: np.ndarray) -> None:
        """``entries`` are integers."""
        self.entries = entries

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.entries.shape


Value = np.ndarray | Nodes
"""What is known now is an ordinary array."""
Rule = Callable[[Scalars, Any, Sequence[Value], dict[str, Any]], Any]


def unroll(scalars: Scalars, closed: core.ClosedJaxpr, inputs: Sequence[Value]) -> list[np.ndarray]:
    """Entries (nodes) of the outputs of a traced function."""
    outputs = _run(scalars, closed.jaxpr, closed.consts, inputs)
    return [_entries(scalars, value) for value in outputs]


def _run(scalars: Scalars, jaxpr: Any, consts: Sequence[Any], inputs: Sequence[Value]) -> list[Value]:
    known: dict[Any, Value] = {}

    def read(atom: Any) -> Value:
        return np.asarray(atom.val) if isinstance(atom, core.Literal) else known[atom]

    fixed = (c if isinstance(c, Nodes) else np.asarray(c) for c in consts)
    known.update(zip(jaxpr.constvars, fixed, strict=True))
    known.update(zip(jaxpr.invars, inputs, strict=True))
    for equation in jaxpr.eqns:
        arguments = [read(atom) for atom in equation.invars]
        outputs = _apply(scalars, equation, arguments)
        known.update(zip(equation.outvars, outputs, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _apply(scalars: Scalars, equation: Any, arguments: Sequence[Value]) -> Sequence[Value]:
    name = equation.primitive.name
    if name in _CALLS or name == "jit":
        return _call(scalars, equation, arguments)
    rule = _RULES.get(name)
    if rule is None:
        raise UnsupportedError(f"the operation {name!r} cannot be written out in scalars")
    found = rule(scalars, equation, arguments, equation.params)
    return found if isinstance(found, list) else [found]


def _entries(scalars: Scalars, value: Value) -> np.ndarray:
    """Nodes of any array."""
    if isinstance(value, Nodes):
        return value.entries
    array = np.asarray(value)
    flat = [scalars.const(x) for x in array.ravel().tolist()]
    return np.array(flat, dtype=np.int64).reshape(array.shape)


def _static(value: Value, name: str) -> np.ndarray:
    if isinstance(value, Nodes):
        raise UnsupportedError(f"{name} depends on data")
    return np.asarray(value)


# --- calls ---

_CALLS = frozenset(
    {
        "pjit",
        "closed_call",
        "core_call",
        "remat",
        "checkpoint",
        "custom_jvp_call",
        "custom_vjp_call",
        "custom_vmap_call",
    }
)


def _call(scalars: Scalars, equation: Any, arguments: Sequence[Value]) -> Sequence[Value]:
    parameters = equation.params
    if parameters.get("name") == "small_solve":
        return [_solve(scalars, *(_entries(scalars, x) for x in arguments))]
    inner = next(parameters[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr", "call") if key in parameters)
    if hasattr(inner, "consts"):
        return _run(scalars, inner.jaxpr, inner.consts, arguments)
    return _run(scalars, inner, (), arguments)


def _scan(scalars: Scalars, equation: Any, arguments: Sequence[Value], parameters: dict[str, Any]) -> list[Value]:
    fixed, carried = parameters["num_consts"], parameters["num_carry"]
    body = parameters["jaxpr"]
    consts, carry = list(arguments[:fixed]), list(arguments[fixed : fixed + carried])
    sequences = arguments[fixed + carried :]
    rounds: list[list[Value]] = []
    order = range(parameters["length"])
    for i in reversed(order) if parameters["reverse"] else order:
        slices = [Nodes(x.entries[i]) if isinstance(x, Nodes) else np.asarray(x)[i] for x in sequences]
        outputs = _run(scalars, body.jaxpr, body.consts, [*consts, *carry, *slices])
        carry = outputs[:carried]
        rounds.append(outputs[carried:])
    if parameters["reverse"]:
        rounds.reverse()
    stacked: list[Value] = []
    for i, variable in enumerate(equation.outvars[carried:]):
        entries = [_entries(scalars, outputs[i]) for outputs in rounds]
        stacked.append(Nodes(np.array(entries, dtype=np.int64).reshape(variable.aval.shape)))
    return [*carry, *stacked]


def _while(scalars: Scalars, _: Any, arguments: Sequence[Value], parameters: dict[str, Any]) -> list[Value]:
    """A loop whose condition is known before it runs."""
    tested, fixed = parameters["cond_nconsts"], parameters["body_nconsts"]
    test, body = parameters["cond_jaxpr"], parameters["body_jaxpr"]
    carry = list(arguments[tested + fixed :])
    while True:
        (going,) = _run(scalars, test.jaxpr, test.consts, [*arguments[:tested], *carry])
        if not bool(_static(going, "the end of a loop")):
            return carry
        carry = _run(scalars, body.jaxpr, body.consts, [*arguments[tested : tested + fixed], *carry])


def _cond(scalars: Scalars, _: Any, arguments: Sequence[Value], parameters: dict[str, Any]) -> list[Value]:
    index = int(_static(arguments[0], "a branch"))
    branch = parameters["branches"][index]
    return _run(scalars, branch.jaxpr, branch.consts, arguments[1:])


def _platform(_: Scalars, __: Any, ___: Sequence[Value], parameters: dict[str, Any]) -> Value:
    for index, platforms in enumerate(parameters["platforms"]):
        if platforms is None or "cpu" in platforms:
            return np.asarray(index, dtype=np.int32)
    raise UnsupportedError("no branch for the processor")


def _slopes(scalars: Scalars, _: Any, arguments: Sequence[Value], parameters: dict[str, Any]) -> list[Value]:
    """Value and Jacobian of an inner function by its last argument (:mod:`slopes`)."""
    program = Differentiable(scalars.largest)
    at = _entries(scalars, arguments[-1])
    variable = Nodes(at)
    given: list[Node] = []
    inner: list[Value] = []
    for value in (*arguments[:-1], variable):
        if isinstance(value, Nodes):
            places = range(len(given), len(given) + value.entries.size)
            given.extend(value.entries.ravel().tolist())
            own = [_inner(program, place, scalars.value(given[place]), value is variable) for place in places]
            inner.append(Nodes(np.array(own, dtype=np.int64).reshape(value.shape)))
        else:
            inner.append(value)
    (found,) = _run(program, parameters["jaxpr"], inner[:-1], inner[-1:])
    entries = _entries(program, found)
    first = len(given) - at.size
    variables = {first + i: i for i in range(at.size)}
    values, slopes = differentiate(program, entries.ravel().tolist(), given, variables, scalars)
    table = [[own.get(i, scalars.zero) for i in range(at.size)] for own in slopes]
    shape = entries.shape
    return [
        Nodes(np.array(values, dtype=np.int64).reshape(shape)),
        Nodes(np.array(table, dtype=np.int64).reshape(*shape, *at.shape)),
    ]


def _inner(program: Scalars, place: int, known: float | None, is_variable: bool) -> Node:
    """An input of an inner function; a variable counts as unknown even where its value is known."""
    return program.input(place) if known is None or is_variable else program.const(known)


def _solve(scalars: Scalars, matrix: np.ndarray, right: np.ndarray) -> Nodes:
    """``A⁻¹ B`` by elimination without pivoting."""
    if matrix.ndim != 2:
        raise UnsupportedError("several linear systems at once")
    size = len(matrix)
    a, b = matrix.tolist(), right.tolist()
    zero = scalars.zero

    def reduce(row: list[Node], factor: Node, other: list[Node], first: int) -> None:
        for j in range(first, len(other)):
            if other[j] != zero:
                row[j] = scalars.sub(row[j], scalars.mul(factor, other[j]))

    for k in range(size):
        inverse = scalars.div(scalars.one, a[k][k])
        for j in range(k + 1, size):
            a[k][j] = scalars.mul(a[k][j], inverse)
        b[k] = [scalars.mul(x, inverse) for x in b[k]]
        for i in range(k + 1, size):
            factor = a[i][k]
            if factor != zero:
                reduce(a[i], factor, a[k], k + 1)
                reduce(b[i], factor, b[k], 0)
    for k in range(size - 1, -1, -1):
        for i in range(k):
            if a[i][k] != zero:
                reduce(b[i], a[i][k], b[k], 0)
    return Nodes(np.array(b, dtype=np.int64).reshape(right.shape))


# --- entry by entry ---


def _elementwise(operation: Callable[..., Node]) -> Rule:
    """A rule for an operation on single entries; ``operation(scalars, *nodes)``."""

    def rule(scalars: Scalars, equation: Any, arguments: Sequence[Value], _: dict[str, Any]) -> Value:
        shape = equation.outvars[0].aval.shape
        columns = [np.broadcast_to(_entries(scalars, x), shape).ravel().tolist() for x in arguments]
        found = [operation(scalars, *entries) for entries in zip(*columns, strict=True)]
        return _known_or_nodes(scalars, np.array(found, dtype=np.int64).reshape(shape), equation)

    return rule


def _known_or_nodes(scalars: Scalars, entries: np.ndarray, equation: Any) -> Value:
    """An ordinary array where every entry is known, so that indices and conditions stay known."""
    dtype = equation.outvars[0].aval.dtype
    if np.issubdtype(dtype, np.floating):
        return Nodes(entries)
    values = [scalars.value(node) for node in entries.ravel().tolist()]
    if any(value is None for value in values):
        if dtype != np.bool_:
            raise UnsupportedError("an integer depends on data")
        return Nodes(entries)
    return np.array(values).astype(dtype).reshape(entries.shape)


def _integer_power(scalars: Scalars, equation: Any, arguments: Sequence[Value], parameters: dict[str, Any]) -> Value:
    exponent = parameters["y"]

    def power(scalars: Scalars, x: Node) -> Node:
        result, base, left = scalars.one, x, abs(exponent)
        while left:
            if left & 1:
                result = scalars.mul(result, base)
            base, left = scalars.mul(base, base), left >> 1
        return scalars.div(scalars.one, result) if exponent < 0 else result

    return _elementwise(power)(scalars, equation, arguments, {})


def _divide(scalars: Scalars, equation: Any, arguments: Sequence[Value], _: dict[str, Any]) -> Value:
    if np.issubdtype(equation.outvars[0].aval.dtype, np.floating):
        return _elementwise(Scalars.div)(scalars, equation, arguments, {})
    above, below = (_static(x, "an integer") for x in arguments)
    return np.trunc(above / below).astype(equation.outvars[0].aval.dtype)


def _sign(scalars: Scalars, x: Node) -> Node:
    negative = scalars.select(scalars.compare("lt", x, scalars.zero), scalars.const(-1.0), scalars.zero)
    return scalars.select(scalars.compare("gt", x, scalars.zero), scalars.one, negative)


def _larger(scalars: Scalars, a: Node, b: Node) -> Node:
    return scalars.select(scalars.compare("gt", a, b), a, b)


def _smaller(scalars: Scalars, a: Node, b: Node) -> Node:
    return scalars.select(scalars.compare("lt", a, b), a, b)


def _select(scalars: Scalars, equation: Any, arguments: Sequence[Value], _: dict[str, Any]) -> Value:
    if len(arguments) != 3:
        raise UnsupportedError("a choice among more than two")
    truths = equation.outvars[0].aval.dtype == np.bool_

    def pick(scalars: Scalars, condition: Node, if_false: Node, if_true: Node) -> Node:
        if not truths:
            return scalars.select(condition, if_true, if_false)
        return scalars.logic(
            "or",
            scalars.logic("and", condition, if_true),
            scalars.logic("and", scalars.negation(condition), if_false),
        )

    return _elementwise(pick)(scalars, equation, arguments, {})


def _convert(scalars: Scalars, equation: Any, arguments: Sequence[Value], parameters: dict[str, Any]) -> Value:
    (value,) = arguments
    dtype = np.dtype(parameters["new_dtype"])
    if not isinstance(value, Nodes):
        return np.asarray(value).astype(dtype)
    if equation.invars[0].aval.dtype != np.bool_:
        if not np.issubdtype(dtype, np.floating):
            raise UnsupportedError("a number of the data is made an integer")
        return value
    as_number = _elementwise(lambda s, x: s.select(x, s.one, s.zero))
    return as_number(scalars, equation, arguments, {})


def _is_finite(scalars: Scalars, x: Node) -> Node:
    return scalars.compare("eq", scalars._node("sub", x, x), scalars.zero)


# --- sums ---


def _dot(scalars: Scalars, _: Any, arguments: Sequence[Value], parameters: dict[str, Any]) -> Value:
    left, right = (_entries(scalars, x) for x in arguments)
    (left_sum, right_sum), (left_batch, right_batch) = parameters["dimension_numbers"]

    def arranged(entries: np.ndarray, batch: Sequence[int], summed: Sequence[int]) -> tuple[np.ndarray, list[int]]:
        rest = [axis for axis in range(entries.ndim) if axis not in (*batch, *summed)]
        moved = entries.transpose([*batch, *rest, *summed])
        count = int(np.prod([entries.shape[axis] for axis in summed], dtype=int))
        groups = int(np.prod([entries.shape[axis] for axis in batch], dtype=int))
        # Not -1: the sum may be over nothing, as over the gaps of a free body.
        lines = int(np.prod([entries.shape[axis] for axis in rest], dtype=int))
        return moved.reshape(groups, lines, count), [entries.shape[axis] for axis in rest]

    a, a_rest = arranged(left, left_batch, left_sum)
    b, b_rest = arranged(right, right_batch, right_sum)
    zero = scalars.zero
    sparse_b = [[[(k, x) for k, x in enumerate(row) if x != zero] for row in group] for group in b.tolist()]
    found = []
    for rows, columns in zip(a.tolist(), sparse_b, strict=True):
        for row in rows:
            for column in columns:
                total = zero
                for k, x in column:
                    if row[k] != zero:
                        total = scalars.add(total, scalars.mul(row[k], x))
                found.append(total)
    shape = [left.shape[axis] for axis in left_batch] + a_rest + b_rest
    return Nodes(np.array(found, dtype=np.int64).reshape(shape))


def _reduce(operation: Callable[[Scalars, Node, Node], Node]) -> Rule:
    def rule(scalars: Scalars, equation: Any, arguments: Sequence[Value], parameters: dict[str, Any]) -> Value:
        entries = _entries(scalars, arguments[0])
        axes = parameters["axes"]
        rest = [axis for axis in range(entries.ndim) if axis not in axes]
        # Not -1: an array may be empty, as in fits without free parameters.
        length = math.prod(entries.shape[axis] for axis in axes)
        rows = entries.transpose([*rest, *axes]).reshape([*[entries.shape[axis] for axis in rest], length])
        found = np.empty(rows.shape[:-1], dtype=np.int64)
        for place in np.ndindex(*found.shape):
            row = rows[place].tolist()
            total = row[0]
            for x in row[1:]:
                total = operation(scalars, total, x)
            found[place] = total
        return _known_or_nodes(scalars, found, equation)

    return rule


# --- moving entries ---


def _moving(move: Callable[..., np.ndarray]) -> Rule:
    """A rule for an operation that only moves entries; ``move(array, parameters)``."""

    def rule(_: Scalars, __: Any, arguments: Sequence[Value], parameters: dict[str, Any]) -> Value:
        (value,) = arguments
        if isinstance(value, Nodes):
            return Nodes(move(value.entries, parameters))
        return move(np.asarray(value), parameters)

    return rule


def _broadcast(array: np.ndarray, parameters: dict[str, Any]) -> np.ndarray:
    shape, places = parameters["shape"], parameters["broadcast_dimensions"]
    wide = [1] * len(shape)
    for axis, place in enumerate(places):
        wide[place] = array.shape[axis]
    return np.broadcast_to(array.reshape(wide), shape)


def _slice(array: np.ndarray, parameters: dict[str, Any]) -> np.ndarray:
    strides = parameters["strides"] or (1,) * array.ndim
    return array[
        tuple(
            slice(*bounds)
            for bounds in zip(parameters["start_indices"], parameters["limit_indices"], strides, strict=True)
        )
    ]


def _joining(join: Callable[..., np.ndarray]) -> Rule:
    def rule(scalars: Scalars, _: Any, arguments: Sequence[Value], parameters: dict[str, Any]) -> Value:
        if any(isinstance(x, Nodes) for x in arguments):
            return Nodes(join([_entries(scalars, x) for x in arguments], parameters))
        return join([np.asarray(x) for x in arguments], parameters)

    return rule


def _split(_: Scalars, __: Any, arguments: Sequence[Value], parameters: dict[str, Any]) -> list[Value]:
    (value,) = arguments
    places = np.cumsum(parameters["sizes"])[:-1]
    if isinstance(value, Nodes):
        return [Nodes(part) for part in np.split(value.entries, places, axis=parameters["axis"])]
    return list(np.split(np.asarray(value), places, axis=parameters["axis"]))


def _pad(scalars: Scalars, _: Any, arguments: Sequence[Value], parameters: dict[str, Any]) -> Value:
    entries, filling = _entries(scalars, arguments[0]), _entries(scalars, arguments[1])
    config = parameters["padding_config"]
    if any(low < 0 or high < 0 or inner for low, high, inner in config):
        raise UnsupportedError("padding that cuts or spreads")
    return Nodes(np.pad(entries, [(low, high) for low, high, _ in config], constant_values=int(filling)))


def _iota(_: Scalars, __: Any, ___: Sequence[Value], parameters: dict[str, Any]) -> Value:
    shape, axis = parameters["shape"], parameters["dimension"]
    along = np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return np.broadcast_to(along, shape).astype(parameters["dtype"])


def _dynamic_slice(scalars: Scalars, _: Any, arguments: Sequence[Value], parameters: dict[str, Any]) -> Value:
    operand, *starts = arguments
    sizes = parameters["slice_sizes"]
    shape = operand.shape
    picked = []
    for axis, start in enumerate(starts):
        first = int(np.clip(_static(start, "an index"), 0, shape[axis] - sizes[axis]))
        picked.append(slice(first, first + sizes[axis]))
    if isinstance(operand, Nodes):
        return Nodes(operand.entries[tuple(picked)])
    return np.asarray(operand)[tuple(picked)]


def _dynamic_update(scalars: Scalars, _: Any, arguments: Sequence[Value], __: dict[str, Any]) -> Value:
    operand, update, *starts = arguments
    entries, part = np.array(_entries(scalars, operand)), _entries(scalars, update)
    picked = []
    for axis, start in enumerate(starts):
        size = part.shape[axis]
        first = int(np.clip(_static(start, "an index"), 0, entries.shape[axis] - size))
        picked.append(slice(first, first + size))
    entries[tuple(picked)] = part
    return Nodes(entries)


def _window_places(
    indices: np.ndarray,
    batch_shape: tuple[int, ...],
    window_shape: tuple[int, ...],
    window_axes: Sequence[int],
    index_axes: Sequence[int],
    batching: Sequence[tuple[int, int]],
    rank: int,
) -> np.ndarray:
    """Place in the operand of each entry of all windows: ``(*batch, *window, rank)``."""
    places = np.zeros((*batch_shape, *window_shape, rank), dtype=int)
    ones = (1,) * len(window_shape)
    for k, axis in enumerate(index_axes):
        places[..., axis] += indices[..., k].reshape((*batch_shape, *ones))
    for operand_axis, index_axis in batching:
        along = np.arange(batch_shape[index_axis])
        shape = [-1 if i == index_axis else 1 for i in range(len(batch_shape))]
        places[..., operand_axis] += along.reshape((*shape, *ones))
    for k, axis in enumerate(window_axes):
        shape = [-1 if i == k else 1 for i in range(len(window_shape))]
        places[..., axis] += np.arange(window_shape[k]).reshape([1] * len(batch_shape) + shape)
    return places


def _gather(scalars: Scalars, equation: Any, arguments: Sequence[Value], parameters: dict[str, Any]) -> Value:
    operand = arguments[0]
    indices = _static(arguments[1], "an index")
    numbers, sizes = parameters["dimension_numbers"], parameters["slice_sizes"]
    removed = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    window_axes = [axis for axis in range(len(sizes)) if axis not in removed]
    places = _window_places(
        indices,
        indices.shape[:-1],
        tuple(sizes[axis] for axis in window_axes),
        window_axes,
        numbers.start_index_map,
        list(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)),
        len(sizes),
    )
    _check_inside(places, operand.shape)
    array = operand.entries if isinstance(operand, Nodes) else np.asarray(operand)
    found = array[tuple(np.moveaxis(places, -1, 0))]
    batch = [axis for axis in range(found.ndim) if axis not in numbers.offset_dims]
    found = np.moveaxis(found, range(found.ndim), [*batch, *numbers.offset_dims])
    return Nodes(found) if isinstance(operand, Nodes) else found


def _scatter(combine: Callable[[Scalars, Node, Node], Node]) -> Rule:
    def rule(scalars: Scalars, _: Any, arguments: Sequence[Value], parameters: dict[str, Any]) -> Value:
        entries = np.array(_entries(scalars, arguments[0]))
        indices = _static(arguments[1], "an index")
        updates = _entries(scalars, arguments[2])
        numbers = parameters["dimension_numbers"]
        removed = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
        window_axes = [axis for axis in range(entries.ndim) if axis not in removed]
        batch = [axis for axis in range(updates.ndim) if axis not in numbers.update_window_dims]
        moved = updates.transpose([*batch, *numbers.update_window_dims])
        places = _window_places(
            indices,
            indices.shape[:-1],
            moved.shape[len(batch) :],
            window_axes,
            numbers.scatter_dims_to_operand_dims,
            list(zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)),
            entries.ndim,
        )
        _check_inside(places, entries.shape)
        flat = places.reshape(-1, entries.ndim).tolist()
        for place, update in zip(flat, moved.ravel().tolist(), strict=True):
            entries[tuple(place)] = combine(scalars, int(entries[tuple(place)]), update)
        return Nodes(entries)

    return rule


def _check_inside(places: np.ndarray, shape: Sequence[int]) -> None:
    if places.size and (places.min() < 0 or np.any(places >= np.array(shape))):
        raise UnsupportedError("an index outside of its array")


_RULES: dict[str, Rule] = {
    "add": _elementwise(Scalars.add),
    "add_any": _elementwise(Scalars.add),
    "sub": _elementwise(Scalars.sub),
    "mul": _elementwise(Scalars.mul),
    "div": _divide,
    "neg": _elementwise(Scalars.neg),
    "square": _elementwise(lambda s, x: s.mul(x, x)),
    "rsqrt": _elementwise(lambda s, x: s.div(s.one, s.call("sqrt", x))),
    "abs": _elementwise(lambda s, x: s.call("abs", x)),
    "sign": _elementwise(_sign),
    "max": _elementwise(_larger),
    "min": _elementwise(_smaller),
    "clamp": _elementwise(lambda s, low, x, high: _smaller(s, _larger(s, x, low), high)),
    "select_n": _select,
    "integer_pow": _integer_power,
    "not": _elementwise(Scalars.negation),
    "is_finite": _elementwise(_is_finite),
    "round": _elementwise(lambda s, x: s.call("rint", x)),
    "rem": _elementwise(lambda s, a, b: s.call("rem", a, b)),
    "convert_element_type": _convert,
    "dot_general": _dot,
    "reduce_sum": _reduce(Scalars.add),
    "reduce_prod": _reduce(Scalars.mul),
    "reduce_max": _reduce(_larger),
    "reduce_min": _reduce(_smaller),
    "reduce_and": _reduce(lambda s, a, b: s.logic("and", a, b)),
    "reduce_or": _reduce(lambda s, a, b: s.logic("or", a, b)),
    "reshape": _moving(lambda x, p: x.reshape(p["new_sizes"])),
    "transpose": _moving(lambda x, p: x.transpose(p["permutation"])),
    "squeeze": _moving(lambda x, p: x.squeeze(tuple(p["dimensions"]))),
    "expand_dims": _moving(lambda x, p: np.expand_dims(x, tuple(p["dimensions"]))),
    "rev": _moving(lambda x, p: np.flip(x, p["dimensions"])),
    "broadcast_in_dim": _moving(_broadcast),
    "slice": _moving(_slice),
    "copy": _moving(lambda x, p: x),
    "stop_gradient": _elementwise(lambda s, a: s.hold(a)),
    "slopes": _slopes,
    "concatenate": _joining(lambda parts, p: np.concatenate(parts, axis=p["dimension"])),
    "stack": _joining(lambda parts, p: np.stack(parts, axis=p["axis"])),
    "split": _split,
    "pad": _pad,
    "iota": _iota,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update,
    "gather": _gather,
    "scatter": _scatter(lambda s, old, new: new),
    "scatter-add": _scatter(Scalars.add),
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "platform_index": _platform,
}
_RULES.update({name: _elementwise(lambda s, a, b, name=name: s.compare(name, a, b)) for name in COMPARISONS})
_RULES.update({name: _elementwise(lambda s, a, b, name=name: s.logic(name, a, b)) for name in ("and", "or", "xor")})
_RULES.update(
    {
        name: _elementwise(lambda s, *x, name=name: s.call(name, *x))
        for name in (
            "sqrt",
            "sin",
            "cos",
            "tan",
            "exp",
            "expm1",
            "log",
            "log1p",
            "tanh",
            "atan2",
            "pow",
            "floor",
            "acos",
        )
    }
)


def trace(function: Callable, *arguments: Any) -> core.ClosedJaxpr:
    """The operations of a function for arguments of given shapes."""
    return jax.make_jaxpr(function)(*arguments)


__all__ = ["Nodes", "UnsupportedError", "trace", "unroll"]
