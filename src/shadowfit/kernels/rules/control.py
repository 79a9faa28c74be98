"""Calls, loops and branches, written out; derivatives of inner functions."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from shadowfit.kernels.arrays import NodeArray, Value, entries_of, static
from shadowfit.kernels.errors import UnsupportedError
from shadowfit.kernels.forward import Differentiable, differentiate
from shadowfit.kernels.scalars import Node, Scalars
from shadowfit.kernels.unrolling import Unrolling
from shadowfit.lazy_jax import core, jax


def call(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> list[Value]:
    """A function inside."""
    parameters = equation.params
    inner = next(parameters[key] for key in ("jaxpr", "call_jaxpr", "call") if key in parameters)
    if hasattr(inner, "consts"):
        return unrolling.run_closed(inner, arguments)
    return unrolling.run(inner, (), arguments)


def custom_vjp(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> list[Value]:
    """A function whose derivatives are known backwards only."""
    if unrolling.order and any(isinstance(x, NodeArray) for x in arguments):
        raise UnsupportedError("forward-mode derivatives of a function with custom_vjp", "custom_vjp_call")
    return call(unrolling, equation, arguments)


def custom_jvp(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> list[Value]:
    """A function with derivatives of its own: its values, with these as their slopes."""
    outputs = call(unrolling, equation, arguments)
    if not unrolling.order:
        return outputs
    scalars = unrolling.scalars
    variables = [x for x in dict.fromkeys(equation.invars) if not isinstance(x, core.Literal)]
    given = dict(zip(equation.invars, arguments, strict=True))
    moving = [x for x in variables if isinstance(given[x], NodeArray) and np.issubdtype(x.aval.dtype, np.floating)]
    if not moving:
        return outputs
    operands = [node for x in moving for node in entries_of(scalars, given[x]).ravel().tolist()]
    tables = _slopes_of_call(unrolling, equation, [given[x] for x in variables], variables, moving)
    results: list[Value] = []
    for i, value in enumerate(outputs):
        nodes = entries_of(scalars, value)
        by_operands = np.array([table[i].ravel() for table in tables], dtype=np.int64).T.tolist()
        sloped = [
            scalars.sloped(node, functools.partial(zip, operands, slopes))
            for node, slopes in zip(nodes.ravel().tolist(), by_operands, strict=True)
        ]
        results.append(NodeArray(np.array(sloped, dtype=np.int64).reshape(nodes.shape)))
    return results


def _slopes_of_call(
    unrolling: Unrolling, equation: Any, inputs: Sequence[Value], variables: Sequence[Any], moving: Sequence[Any]
) -> list[list[np.ndarray]]:
    """Derivatives of all outputs by each number of ``moving``: JAX's, along unit vectors."""
    whole = equation.params["call_jaxpr"].jaxpr
    inner = whole.replace(constvars=(), invars=list(variables), outvars=equation.outvars, eqns=[equation])
    at = [variables.index(x) for x in moving]

    def along(primals: list[Any], tangents: list[Any]) -> Any:
        def function(*some: Any) -> Any:
            whole = list(primals)
            for i, x in zip(at, some, strict=True):
                whole[i] = x
            return jax.core.eval_jaxpr(inner, (), *whole)

        return jax.jvp(function, tuple(primals[i] for i in at), tuple(tangents))[1]

    shapes = [jax.ShapeDtypeStruct(x.aval.shape, x.aval.dtype) for x in variables]
    closed = jax.make_jaxpr(along)(shapes, [shapes[i] for i in at])
    tables = []
    sizes = [int(np.prod(x.aval.shape, dtype=int)) for x in moving]
    for unit in np.eye(sum(sizes)):
        parts = np.split(unit, np.cumsum(sizes)[:-1])
        tangents = [part.reshape(x.aval.shape) for part, x in zip(parts, moving, strict=True)]
        # The rule may call the function again; its own derivatives are those of the next order.
        slopes = Unrolling(unrolling.scalars, unrolling.order - 1).run_closed(closed, [*inputs, *tangents])
        tables.append([entries_of(unrolling.scalars, x) for x in slopes])
    return tables


def scan(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> list[Value]:
    """A loop of known length.

    Which arguments and results are sequences is seen by the axis that they have beside those of a round: each version
    of JAX says it by other parameters.
    """
    parameters, inner = equation.params, equation.params["jaxpr"]
    carried = sum(map(_alike, equation.outvars, inner.out_avals))
    begins = sum(map(_alike, equation.invars, inner.in_avals))
    consts, carry = list(arguments[: begins - carried]), list(arguments[begins - carried : begins])
    sequences = arguments[begins:]
    rounds: list[list[Value]] = []
    order = range(parameters["length"])
    for i in reversed(order) if parameters["reverse"] else order:
        slices = [NodeArray(x.entries[i]) if isinstance(x, NodeArray) else np.asarray(x)[i] for x in sequences]
        outputs = unrolling.run_closed(inner, [*consts, *carry, *slices])
        carry = outputs[:carried]
        rounds.append(outputs[carried:])
    if parameters["reverse"]:
        rounds.reverse()
    stacked: list[Value] = []
    for i, variable in enumerate(equation.outvars[carried:]):
        entries = [entries_of(unrolling.scalars, outputs[i]) for outputs in rounds]
        stacked.append(NodeArray(np.array(entries, dtype=np.int64).reshape(variable.aval.shape)))
    return [*carry, *stacked]


def _alike(outside: Any, inside: Any) -> bool:
    """Whether a value has the same axes around a loop as in a round of it."""
    return len(outside.aval.shape) == len(inside.shape)


def while_loop(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> list[Value]:
    """A loop whose condition is known before it runs."""
    parameters = equation.params
    tested, fixed = parameters["cond_nconsts"], parameters["body_nconsts"]
    carry = list(arguments[tested + fixed :])
    while True:
        (going,) = unrolling.run_closed(parameters["cond_jaxpr"], [*arguments[:tested], *carry])
        if not bool(static(going, "the end of a loop")):
            return carry
        carry = unrolling.run_closed(parameters["body_jaxpr"], [*arguments[tested : tested + fixed], *carry])


def cond(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> list[Value]:
    """The branch that is known to be taken."""
    branches = equation.params["branches"]
    index = int(np.clip(static(arguments[0], "a branch"), 0, len(branches) - 1))
    return unrolling.run_closed(branches[index], arguments[1:])


def platform(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> Value:
    """The branch for processors."""
    del unrolling, arguments
    for index, platforms in enumerate(equation.params["platforms"]):
        if platforms is None or "cpu" in platforms:
            return np.asarray(index, dtype=np.int32)
    raise UnsupportedError("no branch for the processor", "platform_index")


def slopes(unrolling: Unrolling, equation: Any, arguments: Sequence[Value]) -> list[Value]:
    """Value and Jacobian of an inner function by its last argument (:mod:`shadowfit.kernels.slopes`)."""
    scalars = unrolling.scalars
    program = Differentiable(scalars.largest)
    at = entries_of(scalars, arguments[-1])
    variable = NodeArray(at)
    given: list[Node] = []
    inner: list[Value] = []
    for value in (*arguments[:-1], variable):
        if isinstance(value, NodeArray):
            places = range(len(given), len(given) + value.entries.size)
            given.extend(value.entries.ravel().tolist())
            nodes = [_inner(program, place, scalars.value(given[place]), value is variable) for place in places]
            inner.append(NodeArray(np.array(nodes, dtype=np.int64).reshape(value.shape)))
        else:
            inner.append(value)
    (output,) = Unrolling(program, unrolling.order + 1).run(equation.params["jaxpr"], inner[:-1], inner[-1:])
    entries = entries_of(program, output)
    first = len(given) - at.size
    variables = {first + i: i for i in range(at.size)}
    values, tangents = differentiate(program, entries.ravel().tolist(), given, variables, scalars)
    table = [[slope.get(i, scalars.zero) for i in range(at.size)] for slope in tangents]
    return [
        NodeArray(np.array(values, dtype=np.int64).reshape(entries.shape)),
        NodeArray(np.array(table, dtype=np.int64).reshape(*entries.shape, *at.shape)),
    ]


def _inner(program: Scalars, place: int, known: float | None, is_variable: bool) -> Node:
    """An input of an inner function; a variable counts as unknown even where its value is known."""
    return program.input(place) if known is None or is_variable else program.const(known)
