"""The table: what kernels know about each primitive of JAX, one row each.

A row says how arrays of it are unrolled (:mod:`rules`), and, where that leaves a scalar operation of the same name, how
it is folded when its operands are known (by NumPy), its derivatives (:mod:`derivatives`) and its LLVM code
(:mod:`code`). What is not here raises `UnsupportedError` with its name. Tests are generated from the table;
docs/kernels.md shows how to add a row.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shadowfit.kernels import angles, code, derivatives
from shadowfit.kernels.derivatives import chosen, factors, within
from shadowfit.kernels.row import Row, register
from shadowfit.kernels.rules import control, entries, moves, sums
from shadowfit.kernels.rules.entries import composed, elementwise
from shadowfit.kernels.scalars import Node, Scalars


def _operation(fold: Any, slope: Any, written: Any, truths: int = 0, gives_truth: bool = False) -> Row:
    """A row of an operation entry by entry."""
    return Row(elementwise, fold, slope, written, truths, gives_truth)


def _quotient(a: Any, b: Any) -> Any:
    """``a / b``; of integers, towards zero."""
    ratio = np.divide(a, b)
    return np.trunc(ratio) if np.issubdtype(np.result_type(a, b), np.integer) else ratio


def _away(x: Any) -> Any:
    """Rounded to the nearest integer, from the middle away from zero."""
    below = np.trunc(x)
    return np.where(np.abs(x - below) >= 0.5, below + np.sign(x), below)


def _root_inverse(s: Scalars, x: Node) -> Node:
    return s.div(s.one, s.call("sqrt", x))


def _over(s: Scalars, numerator: float, denominator: Node) -> Node:
    return s.div(s.const(numerator), denominator)


def _square(s: Scalars, x: Node) -> Node:
    return s.mul(x, x)


def _one_minus_square(s: Scalars, x: Node) -> Node:
    """Of a product, since ``1 − x²`` loses digits where x is near one."""
    return s.mul(s.sub(s.one, x), s.add(s.one, x))


def _by_exponent(s: Scalars, base: Node, exponent: Node, value: Node) -> Node:
    del exponent
    return s.mul(s.call("log", s.select(s.compare("eq", base, s.zero), s.one, base)), value)


def _by_base(s: Scalars, base: Node, exponent: Node, value: Node) -> Node:
    del value
    return s.mul(exponent, s.call("pow", base, s.sub(exponent, s.one)))


def _by_divisor(s: Scalars, a: Node, b: Node, value: Node) -> Node:
    """Of the remainder."""
    del value
    ratio = s.div(a, b)
    return s.neg(s.mul(entries.sign(s, ratio), s.call("floor", s.call("abs", ratio))))


def _bell(s: Scalars, x: Node, factor: float) -> Node:
    return s.mul(s.const(factor / np.sqrt(np.pi)), s.call("exp", s.neg(_square(s, x))))


def _logistic(s: Scalars, x: Node) -> Node:
    return s.div(s.one, s.add(s.one, s.call("exp", s.neg(x))))


_flat = derivatives.none
_shares = factors(derivatives.share, lambda s, a, b, y: derivatives.share(s, b, a, y))

ARITHMETIC = {
    "add": _operation(np.add, derivatives.joined(Scalars.add), code.instruction("fadd contract")),
    "sub": _operation(np.subtract, derivatives.joined(Scalars.sub), code.instruction("fsub contract")),
    "mul": _operation(
        np.multiply, factors(lambda s, a, b, y: b, lambda s, a, b, y: a), code.instruction("fmul contract")
    ),
    "div": _operation(
        _quotient,
        factors(lambda s, a, b, y: _over(s, 1.0, b), lambda s, a, b, y: s.neg(s.mul(y, _over(s, 1.0, b)))),
        code.instruction("fdiv contract"),
    ),
    "rem": _operation(np.fmod, factors(lambda s, a, b, y: s.one, _by_divisor), code.library("fmod")),
    "neg": _operation(np.negative, factors(lambda s, x, y: s.const(-1.0)), code.instruction("fneg")),
    "add_any": Row(composed(Scalars.add)),
    "square": Row(composed(_square, lambda s, x, y: s.mul(s.const(2.0), x))),
    "one_minus_square": Row(composed(_one_minus_square, lambda s, x, y: s.mul(s.const(-2.0), x))),
    "integer_pow": Row(entries.integer_power),
    "pow": _operation(np.power, factors(_by_base, _by_exponent), code.library("pow")),
}

FUNCTIONS = {
    "sqrt": _operation(np.sqrt, factors(lambda s, x, y: _over(s, 0.5, y)), code.intrinsic("llvm.sqrt")),
    "rsqrt": Row(composed(_root_inverse, lambda s, x, y: s.mul(s.const(-0.5), s.div(y, x)))),
    "cbrt": _operation(np.cbrt, factors(lambda s, x, y: _over(s, 1 / 3, _square(s, y))), code.library("cbrt")),
    "exp": _operation(np.exp, factors(lambda s, x, y: y), code.library("exp")),
    "exp2": _operation(np.exp2, factors(lambda s, x, y: s.mul(s.const(np.log(2.0)), y)), code.library("exp2")),
    "expm1": _operation(np.expm1, factors(lambda s, x, y: s.add(y, s.one)), code.library("expm1")),
    "log": _operation(np.log, factors(lambda s, x, y: _over(s, 1.0, x)), code.library("log")),
    "log2": _operation(np.log2, factors(lambda s, x, y: _over(s, 1.0 / np.log(2.0), x)), code.library("log2")),
    "log1p": _operation(np.log1p, factors(lambda s, x, y: _over(s, 1.0, s.add(s.one, x))), code.library("log1p")),
    "sin": _operation(np.sin, factors(lambda s, x, y: s.call("cos", x)), angles.function("sin")),
    "cos": _operation(np.cos, factors(lambda s, x, y: s.neg(s.call("sin", x))), angles.function("cos")),
    "tan": _operation(np.tan, factors(lambda s, x, y: s.add(s.one, _square(s, y))), angles.function("tan")),
    "asin": _operation(
        np.arcsin, factors(lambda s, x, y: _root_inverse(s, s.sub(s.one, _square(s, x)))), code.library("asin")
    ),
    "acos": _operation(
        np.arccos, factors(lambda s, x, y: s.neg(_root_inverse(s, s.sub(s.one, _square(s, x))))), code.library("acos")
    ),
    "atan": _operation(
        np.arctan, factors(lambda s, x, y: _over(s, 1.0, s.add(s.one, _square(s, x)))), code.library("atan")
    ),
    "atan2": _operation(
        np.arctan2,
        factors(
            lambda s, a, b, y: s.div(b, s.add(_square(s, a), _square(s, b))),
            lambda s, a, b, y: s.neg(s.div(a, s.add(_square(s, a), _square(s, b)))),
        ),
        angles.function("atan2"),
    ),
    "sinh": _operation(np.sinh, factors(lambda s, x, y: s.call("cosh", x)), code.library("sinh")),
    "cosh": _operation(np.cosh, factors(lambda s, x, y: s.call("sinh", x)), code.library("cosh")),
    "tanh": _operation(np.tanh, factors(lambda s, x, y: s.mul(s.add(s.one, y), s.sub(s.one, y))), code.library("tanh")),
    "asinh": _operation(
        np.arcsinh, factors(lambda s, x, y: _root_inverse(s, s.add(_square(s, x), s.one))), code.library("asinh")
    ),
    "acosh": _operation(
        np.arccosh, factors(lambda s, x, y: _root_inverse(s, s.sub(_square(s, x), s.one))), code.library("acosh")
    ),
    "atanh": _operation(
        np.arctanh,
        factors(lambda s, x, y: s.mul(_over(s, 1.0, s.add(s.one, x)), _over(s, 1.0, s.sub(s.one, x)))),
        code.library("atanh"),
    ),
    "erf": _operation(np.vectorize(math.erf), factors(lambda s, x, y: _bell(s, x, 2.0)), code.library("erf")),
    "erfc": _operation(np.vectorize(math.erfc), factors(lambda s, x, y: _bell(s, x, -2.0)), code.library("erfc")),
    "logistic": Row(composed(_logistic, lambda s, x, y: s.mul(y, s.sub(s.one, y)))),
}

STEPS = {
    "abs": _operation(
        np.abs,
        factors(lambda s, x, y: s.select(s.compare("ge", x, s.zero), s.one, s.const(-1.0))),
        code.intrinsic("llvm.fabs"),
    ),
    "sign": Row(composed(entries.sign)),
    "floor": _operation(np.floor, _flat, code.intrinsic("llvm.floor")),
    "ceil": _operation(np.ceil, _flat, code.intrinsic("llvm.ceil")),
    "round": Row(entries.rounded, np.rint, _flat, code.intrinsic("llvm.rint")),
    "round_away": _operation(_away, _flat, code.intrinsic("llvm.round")),
    "max": _operation(np.maximum, _shares, code.largest),
    "min": _operation(np.minimum, _shares, code.smallest),
    "clamp": _operation(
        lambda low, x, high: np.minimum(np.maximum(x, low), high),
        factors(
            lambda s, low, x, high, y: within(s, ("gt", low, x), ("lt", low, high)),
            lambda s, low, x, high, y: within(s, ("gt", x, low), ("lt", x, high)),
            lambda s, low, x, high, y: within(s, ("lt", high, x)),
        ),
        code.clamp,
    ),
}

TRUTHS = {
    "lt": _operation(np.less, _flat, code.comparison("olt"), gives_truth=True),
    "le": _operation(np.less_equal, _flat, code.comparison("ole"), gives_truth=True),
    "gt": _operation(np.greater, _flat, code.comparison("ogt"), gives_truth=True),
    "ge": _operation(np.greater_equal, _flat, code.comparison("oge"), gives_truth=True),
    "eq": _operation(np.equal, _flat, code.comparison("oeq"), gives_truth=True),
    "ne": _operation(np.not_equal, _flat, code.comparison("une"), gives_truth=True),
    "and": _operation(np.bitwise_and, _flat, code.logic("and"), truths=2, gives_truth=True),
    "or": _operation(np.bitwise_or, _flat, code.logic("or"), truths=2, gives_truth=True),
    "xor": _operation(np.bitwise_xor, _flat, code.logic("xor"), truths=2, gives_truth=True),
    "not": _operation(np.invert, _flat, code.negation, truths=1, gives_truth=True),
    "is_finite": _operation(np.isfinite, _flat, code.is_finite, gives_truth=True),
    "select_n": Row(
        entries.select, lambda condition, *cases: np.choose(condition, cases), chosen, code.choice, truths=1
    ),
}

SUMS = {
    "dot_general": Row(sums.dot),
    "reduce_sum": Row(sums.chained(Scalars.add, 0.0)),
    "reduce_prod": Row(sums.chained(Scalars.mul, 1.0)),
    "reduce_max": Row(
        sums.extreme("reduce_max", -np.inf),
        lambda *x: np.maximum.reduce(x),
        derivatives.extreme,
        code.chain(code.largest),
    ),
    "reduce_min": Row(
        sums.extreme("reduce_min", np.inf),
        lambda *x: np.minimum.reduce(x),
        derivatives.extreme,
        code.chain(code.smallest),
    ),
    "reduce_and": Row(sums.chained(lambda s, a, b: s.logic("and", a, b), 1.0)),
    "reduce_or": Row(sums.chained(lambda s, a, b: s.logic("or", a, b), 0.0)),
    "reduce_xor": Row(sums.chained(lambda s, a, b: s.logic("xor", a, b), 0.0)),
    "cumsum": Row(sums.cumulative(Scalars.add)),
    "cumprod": Row(sums.cumulative(Scalars.mul)),
    "cummax": Row(sums.cumulative(lambda s, a, b: s.call("max", a, b))),
    "cummin": Row(sums.cumulative(lambda s, a, b: s.call("min", a, b))),
}

MOVES = {
    "reshape": Row(moves.moved(lambda x, p: x.reshape(p["new_sizes"]))),
    "transpose": Row(moves.moved(lambda x, p: x.transpose(p["permutation"]))),
    "squeeze": Row(moves.moved(lambda x, p: x.squeeze(tuple(p["dimensions"])))),
    "rev": Row(moves.moved(lambda x, p: np.flip(x, p["dimensions"]))),
    "broadcast_in_dim": Row(moves.moved(moves.broadcast)),
    "slice": Row(moves.moved(moves.sliced)),
    "concatenate": Row(moves.joined(lambda parts, p: np.concatenate(parts, axis=p["dimension"]))),
    "stack": Row(moves.joined(lambda parts, p: np.stack(parts, axis=p["axis"]))),
    "unstack": Row(moves.unstack),
    "split": Row(moves.split),
    "pad": Row(moves.padded),
    "iota": Row(moves.iota),
    "dynamic_slice": Row(moves.dynamic_slice),
    "dynamic_update_slice": Row(moves.dynamic_update),
    "gather": Row(moves.gather),
    "scatter": Row(moves.scatter(lambda s, old, new: new)),
    "scatter-add": Row(moves.scatter(Scalars.add)),
    "scatter-sub": Row(moves.scatter(Scalars.sub)),
    "scatter-mul": Row(moves.scatter(Scalars.mul)),
    "scatter-max": Row(moves.scatter(lambda s, old, new: s.call("max", old, new))),
    "scatter-min": Row(moves.scatter(lambda s, old, new: s.call("min", old, new))),
    "copy": Row(entries.same),
    "optimization_barrier": Row(entries.same),
    "reduce_precision": Row(entries.reduce_precision),
    "convert_element_type": Row(entries.convert),
}

CONTROL = {
    "jit": Row(control.call),
    "remat2": Row(control.call),
    "custom_jvp_call": Row(control.custom_jvp, slope=derivatives.given),
    "custom_vjp_call": Row(control.custom_vjp),
    "custom_vmap_call": Row(control.call),
    "stop_gradient": Row(elementwise, slope=_flat),
    "slopes": Row(control.slopes),
    "scan": Row(control.scan),
    "while": Row(control.while_loop),
    "cond": Row(control.cond),
    "platform_index": Row(control.platform),
}

for _rows in (ARITHMETIC, FUNCTIONS, STEPS, TRUTHS, SUMS, MOVES, CONTROL):
    for _name, _row in _rows.items():
        register(_name, _row)
