"""Scalar programs: equal operations are one node, and what is known is folded."""

import math

import pytest

from shadowfit.kernels import TooLargeError
from shadowfit.kernels.scalars import Scalars


@pytest.fixture
def scalars():
    return Scalars(1000)


def test_equal_operations_are_one_node(scalars):
    a, b = scalars.input(0), scalars.input(1)
    assert scalars.add(a, b) == scalars.add(b, a)
    assert scalars.mul(a, b) == scalars.mul(b, a)
    assert scalars.sub(a, b) != scalars.sub(b, a)


def test_zeros_and_ones_vanish(scalars):
    a = scalars.input(0)
    zero, one = scalars.zero, scalars.one
    assert scalars.add(a, zero) == scalars.mul(one, a) == scalars.sub(a, zero) == scalars.div(a, one) == a
    assert scalars.mul(zero, a) == scalars.sub(a, a) == scalars.div(zero, a) == zero


def test_signs_are_taken_together(scalars):
    a, b = scalars.input(0), scalars.input(1)
    minus = scalars.neg(a)
    assert scalars.neg(minus) == a
    assert scalars.mul(minus, scalars.neg(b)) == scalars.mul(a, b)
    assert scalars.mul(scalars.const(-1.0), a) == minus
    assert scalars.add(b, minus) == scalars.sub(b, a)
    assert scalars.sub(b, minus) == scalars.add(a, b)
    assert scalars.neg(scalars.sub(a, b)) == scalars.sub(b, a)


def test_what_is_known_is_computed(scalars):
    two, three = scalars.const(2.0), scalars.const(3.0)
    assert scalars.value(scalars.add(two, three)) == 5.0
    assert scalars.value(scalars.div(two, three)) == 2.0 / 3.0
    assert scalars.value(scalars.call("atan2", two, three)) == math.atan2(2.0, 3.0)
    assert scalars.compare("lt", two, three) == scalars.one
    assert math.isnan(scalars.value(scalars.call("sqrt", scalars.const(-1.0))))
    assert scalars.const(-0.0) == scalars.zero


def test_choices_and_truths(scalars):
    a, b = scalars.input(0), scalars.input(1)
    smaller = scalars.compare("lt", a, b)
    assert scalars.select(scalars.one, a, b) == scalars.select(smaller, a, a) == a
    assert scalars.select(scalars.zero, a, b) == b
    assert scalars.logic("and", smaller, scalars.one) == scalars.logic("or", smaller, scalars.zero) == smaller
    assert scalars.logic("and", smaller, scalars.zero) == scalars.zero
    assert scalars.negation(scalars.one) == scalars.zero


def test_a_program_may_not_grow_without_end():
    scalars = Scalars(10)
    for place in range(8):
        scalars.input(place)
    with pytest.raises(TooLargeError, match="more than 10"):
        scalars.input(8)
