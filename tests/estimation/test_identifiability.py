"""Directions without information, named."""

import numpy as np

from shadowfit.estimation.uncertainty.identifiability import findings

LABELS = ("a", "b", "c", "d")


def information(rows):
    table = np.array(rows, float)
    return table.T @ table


def test_nothing_to_report():
    assert findings(information(np.diag([3.0, 4.0, 5.0, 6.0])), np.ones(4), LABELS) == ()


def test_parameters_without_information_are_named_one_by_one():
    found = findings(information([[0, 30, 0, 0], [0, 10, 0, 20]]), np.ones(4), LABELS)
    assert [finding.text for finding in found] == [
        "a: no information in these data",
        "c: no information in these data",
    ]


def test_a_pair_is_told_by_its_known_combination():
    """The rows see a + 0.5 b only, in units where b is ten times as large."""
    rows = [[100, 50, 0, 0], [0, 0, 90, 0], [0, 0, 0, 80]]
    (found,) = findings(information(rows), np.array([1.0, 10.0, 1.0, 1.0]), LABELS)
    assert found.text == "a and b: only the combination a + 0.5·b is known"
    np.testing.assert_allclose(np.array(rows)[:, :2] @ found.direction, 0.0, atol=1e-9)


def test_mixed_directions_are_told_apart():
    """b alone, and the pair c − d: eigenvectors of a common eigenvalue mix them."""
    found = findings(information([[70, 0, 0, 0], [0, 0, 40, 40]]), np.ones(4), LABELS)
    assert [finding.names for finding in found] == [("b",), ("c", "d")]
    assert "c + d" in found[1].text


def test_three_are_told_by_what_leaves_the_data_alone():
    rows = [[100, 100, 0, 0], [0, 100, 100, 0], [0, 0, 0, 50]]
    (found,) = findings(information(rows), np.ones(4), LABELS)
    assert found.names == ("a", "b", "c")
    np.testing.assert_allclose(np.array(rows)[:, :3] @ found.direction, 0.0, atol=1e-9)
    assert "a, b and c" in found.text


def test_the_threshold_is_a_standard_deviation_of_one_typical_size():
    barely = np.diag([1.1, 100.0, 100.0, 100.0])
    assert findings(barely, np.ones(4), LABELS) == ()
    assert [f.names for f in findings(barely, np.array([0.9, 1.0, 1.0, 1.0]), LABELS)] == [("a",)]
