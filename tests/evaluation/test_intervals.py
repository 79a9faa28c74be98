"""Intervals as text: their ends differ wherever the numbers do."""

import pytest

from shadowfit.evaluation.intervals import interval, rounded


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((31.19998, 31.20002), "31.199980 … 31.200020"),
        ((1.0, 3.0), "1.000 … 3.000"),
        ((0.0, 2.5e-4), "0 … 0.0002500"),
        ((None, 4.0), " … 4"),
        ((None, None), " … "),
    ],
)
def test_interval(ends, text):
    assert interval({"interval": list(ends)}) == text


def test_digits_follow_the_width():
    assert rounded(9.80665, 1e-4) == "9.80665"
    assert float(rounded(123456.0, 10.0)) == 123456.0
