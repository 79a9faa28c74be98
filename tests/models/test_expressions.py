"""Expressions: Python's own arithmetic, derivatives of finite differences, and nothing that is not arithmetic."""

import math

import numpy as np
import pytest

from shadowfit.models import parse_model, update_model
from shadowfit.models.catalogue import builtin_text
from shadowfit.models.errors import ModelFileError
from shadowfit.models.expressions import ExpressionError, parse_expression
from shadowfit.models.writer import format_model

VALUES = {"a.mass": 1.7, "a.inertia.zz": 0.3, "k": -0.6}
TEXTS = [
    "a.mass + 2 * k - 3",
    "sqrt(a.mass * 9.81 / a.inertia.zz) / (2 * pi)",
    "a.mass ** 2 / k ** 3",
    "a.mass ** k",
    "2 ** a.mass",
    "-sin(k) * cos(a.mass) + +exp(k) - log(a.mass)",
    "abs(k) * abs(a.mass)",
    "a.mass - a.mass",
    "3",
]


def python(text, values):
    for name in sorted(values, key=len, reverse=True):
        text = text.replace(name, f"({values[name]!r})")
    names = {name: getattr(math, name) for name in ("sqrt", "sin", "cos", "exp", "log", "pi")}
    return eval(text, {"__builtins__": {"abs": abs}, **names})


@pytest.mark.parametrize("text", TEXTS)
def test_values_are_pythons(text):
    assert parse_expression(text).evaluate(VALUES).value == pytest.approx(python(text, VALUES), rel=1e-14)


@pytest.mark.parametrize("text", TEXTS)
def test_slopes_are_finite_differences(text):
    expression = parse_expression(text)
    found = expression.evaluate(VALUES)
    assert set(found.slopes) == set(expression.names)
    for name in expression.names:
        ends = [expression.evaluate({**VALUES, name: VALUES[name] + step}).value for step in (1e-6, -1e-6)]
        np.testing.assert_allclose(found.slopes[name], (ends[0] - ends[1]) / 2e-6, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "a.",
            "a b",
            "a = 1",
            "a; b",
            "(",
            "__import__('os')",
            "a.mass()",
            "f'{a}'",
            "'x'",
            "True",
            "[a]",
            "a[0]",
        ),
        *(
            "lambda: 1",
            "a if b else 1",
            "a and b",
            "a < b",
            "a // b",
            "a % b",
            "a @ b",
            "~a",
            "not a",
            "1j",
            "sqrt(a, b)",
        ),
        *("sqrt(x=1)", "open(1)", "(1).real", "a.mass.sqrt(1)", "sqrt", "9" * 3000, "(" * 200 + "a" + ")" * 200),
        "-" * 100 + "1",
    ],
)
def test_nothing_else_is_read(text):
    if text == "sqrt":  # a name like others, which no machine has
        with pytest.raises(ExpressionError, match="there is no number 'sqrt'"):
            parse_expression(text).evaluate(VALUES)
        return
    if text.startswith("(((("):  # parentheses leave no trace
        assert parse_expression(text).names == ("a",)
        return
    with pytest.raises(ExpressionError):
        parse_expression(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / (k - k)", "has no value here"),
        ("log(k)", "has no value here"),
        ("k ** 0.5", "not a real number"),
        ("exp(exp(100))", "has no value here"),
        ("sqrt(a.mass - a.mass)", "has no value here"),
        ("a.maas", "did you mean 'a.mass'"),
        ("sqr(k)", "did you mean 'sqrt'"),
    ],
)
def test_mistakes_are_named(text, message):
    with pytest.raises(ExpressionError, match=message):
        parse_expression(text).evaluate(VALUES)


def test_in_a_model_file():
    text = builtin_text("pendulum") + '\n[derived]\nhalf = "pendulum.mass / 2"\n"of gravity" = "sqrt(9.81)"\n'
    model = parse_model(text)
    assert model.derived == {"half": "pendulum.mass / 2", "of gravity": "sqrt(9.81)"}
    assert parse_model(format_model(model.mechanism, derived=model.derived)).derived == model.derived
    assert parse_model(update_model(text, {"pendulum.mass": 0.5})).derived == model.derived
    with pytest.raises(ModelFileError, match=r"model:\d+: .*there is no function 'sqr'"):
        parse_model(text.replace("sqrt", "sqr"))
    with pytest.raises(ModelFileError, match=r"derived\.half"):
        parse_model(text.replace('"pendulum.mass / 2"', "3"))
