"""Numbers as people read them."""

import pytest

from paper.tables import percent, with_uncertainty


@pytest.mark.parametrize(
    ("value", "std", "text"),
    [
        (0.0039162, 0.0000021, "0.003916(2)"),
        (0.00025, 3.4e-5, "0.00025(3)"),
        (0.0, 3e-5, "0(3e-05)"),
        (7.284, 0.018, "7.28(2)"),
        (0.0019, 0.00099, "0.002(1)"),
        (123.4, 20.0, "123(20)"),
        (0.5, None, "0.5"),
        (None, 1.0, "–"),
    ],
)
def test_uncertainty_in_the_last_digit(value, std, text):
    assert with_uncertainty(value, std) == text


def test_percent_of_truth():
    assert percent(1.012, 1.0) == "+1.2 %"
    assert percent(4.0, 1.0) == "+300 %"
    assert percent(1.0, 0.0) == "–"
