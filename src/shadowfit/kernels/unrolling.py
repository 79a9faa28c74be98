"""The walk through a traced function: each of its equations by the rule of its primitive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shadowfit.kernels.arrays import NodeArray, Value, known_or_nodes
from shadowfit.kernels.errors import UnsupportedError
from shadowfit.kernels.row import TABLE
from shadowfit.kernels.scalars import Scalars
from shadowfit.lazy_jax import core, jax


class Unrolling:
    """Scalars that a function is being unrolled to; ``order`` is how often they are to be differentiated."""

    def __init__(self, scalars: Scalars, order: int = 0) -> None:
        self.scalars = scalars
        self.order = order

    def run(self, jaxpr: Any, consts: Sequence[Any], inputs: Sequence[Value]) -> list[Value]:
        """Outputs of a traced function, or of one inside."""
        known: dict[Any, Value] = {}

        def read(atom: Any) -> Value:
            return np.asarray(atom.val) if isinstance(atom, core.Literal) else known[atom]

        fixed = (c if isinstance(c, NodeArray) else np.asarray(c) for c in consts)
        known.update(zip(jaxpr.constvars, fixed, strict=True))
        known.update(zip(jaxpr.invars, inputs, strict=True))
        for equation in jaxpr.eqns:
            outputs = self._apply(equation, [read(atom) for atom in equation.invars])
            for variable, value in zip(equation.outvars, outputs, strict=True):
                known[variable] = known_or_nodes(self.scalars, value, variable.aval.dtype)
        return [read(atom) for atom in jaxpr.outvars]

    def run_closed(self, closed: Any, inputs: Sequence[Value]) -> list[Value]:
        """The same with its constants."""
        return self.run(closed.jaxpr, closed.consts, inputs)

    def _apply(self, equation: Any, arguments: Sequence[Value]) -> Sequence[Value]:
        name = equation.primitive.name
        row = TABLE.get(name)
        if row is not None:
            outputs = row.unroll(self, equation, arguments)
            return outputs if isinstance(outputs, list) else [outputs]
        if any(isinstance(x, NodeArray) for x in arguments):
            raise UnsupportedError(f"the operation {name!r} cannot be written out in scalars", name)
        with jax.ensure_compile_time_eval():  # all is known
            result = equation.primitive.bind(*arguments, **equation.params)
        return [np.asarray(x) for x in (result if equation.primitive.multiple_results else [result])]
