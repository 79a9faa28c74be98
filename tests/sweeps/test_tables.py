"""Tables as CSV."""

from shadowfit.sweeps.tables import csv_text


def test_csv_of_mixed_cells():
    assert csv_text(["a", "b"], [[1.5, None], [True, 'x, "y"'], [float("nan"), 3]]) == (
        'a,b\n1.5,\ntrue,"x, ""y"""\n,3\n'
    )
