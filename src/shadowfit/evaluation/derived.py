"""Quantities that follow from the parameters, with error bars.

For ``y = f(χ)`` with derivatives ``J = ∂f/∂χ`` at the estimate, and Σ the joint covariance of the parameters,

    var y = J Σ Jᵀ,     95 % interval y ± t √(var y)

with t of the covariance's degrees of freedom (the delta method): right where f is nearly linear over the error bars.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from shadowfit.arrays import Float
from shadowfit.errors import nearest
from shadowfit.estimation import Estimate
from shadowfit.estimation.uncertainty.distributions import student_quantile
from shadowfit.estimation.uncertainty.evidence import Kind
from shadowfit.mechanism import Mechanism, Servo
from shadowfit.models.dimensions import unit_of
from shadowfit.models.expressions import Expression, ExpressionError, parse_expression


def read_expressions(texts: Mapping[str, str], mechanism: Mechanism) -> dict[str, Expression]:
    """Name → expression, checked against the names of a mechanism's numbers.

    A name may state a unit, as headings do: ``period [s]``.

    Raises:
        ExpressionError: one cannot be read, or names what is not a number of the mechanism.
    """
    leaves = mechanism.leaves()
    expressions = {}
    for heading, text in texts.items():
        label, unit = _name_and_unit(heading)
        expressions[label] = dataclasses.replace(parse_expression(text), unit=unit)
        for name in expressions[label].names:
            if name not in leaves:
                raise ExpressionError(f"{text}: there is no number {name!r}{nearest(name, leaves)}")
            if leaves[name].kind == "rotation":
                raise ExpressionError(f"{text}: {name} is a rotation, not a number")
        expressions[label].evaluate({name: float(mechanism.get(name)) for name in expressions[label].names})
    return expressions


def visible_in_drives(mechanism: Mechanism, free: Collection[str]) -> dict[str, str]:
    """What a motion tells of servos with a free winding where no current was read: name → expression."""
    visible = {}
    for joint, part in mechanism.joints.items():
        for name, law in part.laws.items():
            k, r = (f"{joint}.{name}.{number}" for number in ("torque_constant", "resistance"))
            if isinstance(law, Servo) and (k in free or r in free):
                visible[f"{joint}.{name}: torque per volt [N m/V]"] = f"{k} / {r}"
                visible[f"{joint}.{name}: braking by back-EMF [N m s/rad]"] = f"{k}**2 / {r}"
    return visible


def _name_and_unit(heading: str) -> tuple[str, str | None]:
    """Name and unit of ``period [s]``."""
    match = re.fullmatch(r"(.*\S)\s*\[([^\[\]]*)\]", heading.strip())
    return (match[1], match[2].strip() or None) if match else (heading, None)


def derived(
    estimate: Estimate, expressions: Mapping[str, Expression], kind: Kind = "robust", level: float = 0.95
) -> dict[str, dict[str, Any]]:
    """Name → ``expression``, ``unit``, ``value``, ``std``, ``interval``, ``at_bound``, ``identifiable``, ``problem``.

    ``unit``: as stated, or as it follows from the units of the numbers; None where neither tells. ``at_bound``: a
    parameter in it sits on a bound, and the error bars are conditional on that. ``identifiable``: the standard
    deviation is below the value's own size. ``problem`` says why there is no value, where there is none.
    """
    spread, mechanism = estimate.uncertainty(kind), estimate.mechanism()
    rows = {}
    for label, expression in expressions.items():
        unit = expression.unit or unit_of(expression, mechanism.unit)
        row: dict[str, Any] = {"expression": expression.text, "unit": unit}
        row |= {"value": None, "std": None, "interval": None}
        try:
            value, slopes = _linearised(expression, mechanism, spread.labels)
        except ExpressionError as error:
            rows[label] = {**row, "at_bound": False, "identifiable": False, "problem": str(error)}
            continue
        std = float(np.sqrt(max(slopes @ spread.covariance @ slopes, 0.0)))
        # Of what it depends on, the parameter with the fewest degrees of freedom has its say.
        degrees = float(np.min(spread.degrees[slopes != 0.0], initial=np.inf))
        factor = float(student_quantile(degrees, 0.5 + 0.5 * level))
        rows[label] = {
            **row,
            "value": value,
            "std": std,
            "interval": [value - factor * std, value + factor * std],
            "at_bound": bool(np.any(spread.evidence.at_bound & (slopes != 0.0))),
            "identifiable": bool(std <= abs(value)),
            "problem": "",
        }
    return rows


def _linearised(
    expression: Expression, mechanism: Mechanism, labels: Sequence[str]
) -> tuple[float, Float[np.ndarray, " p"]]:
    """Value of an expression for a mechanism, and its derivatives by the parameters with these labels."""
    separate = {label.partition("@")[0] for label in labels if "@" in label}
    for name in expression.names:
        if name in separate:
            raise ExpressionError(f"{expression.text}: {name} has a value for each recording")
    dual = expression.evaluate({name: float(mechanism.get(name)) for name in expression.names})
    return dual.value, np.array([dual.slopes.get(label, 0.0) for label in labels])
