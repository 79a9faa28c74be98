"""Pieces of the data beside the whole: what agrees is said to agree, what was changed between recordings is named."""

import json
import re

import numpy as np
import pytest

from shadowfit.estimation import fit
from shadowfit.evaluation.forest import as_fields, compared, piece_label, short
from shadowfit.evaluation.report import page
from shadowfit.evaluation.rules import pieces
from shadowfit.models import load_model


def numbers_of(text):
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_pieces_of_a_right_model_agree(estimate):
    rows = compared(estimate)
    assert [row.name for row in rows] == [row.name for row in estimate.parameters]
    for row in rows:
        assert row.spread == 0.0
        assert row.wider < 1.1
        assert np.all(np.abs(row.values - row.value) < 4.5 * row.std)
        assert row.partition == len(estimate.evidence.disagreement.pieces) - 1, "the finest cut where all agree"
    assert not list(pieces(estimate))


def test_a_changed_machine_is_named(make_swing, base):
    """Damping of the second recording is larger: its own estimate is, its name is said, and what to try."""
    model = load_model("pendulum").mechanism.set(base)
    one, other = make_swing(1, 2.0, name="one"), make_swing(2, 2.0, name="other", viscous=1.2e-3)
    estimate = fit(model, [one, other], ["pendulum.inertia.yy", "hinge.viscous"])
    row = next(row for row in compared(estimate) if row.name == "hinge.viscous")
    assert row.wider > 1.5
    assert row.spread == pytest.approx(8e-4 / np.sqrt(2.0), rel=0.5)
    for piece, value in zip(row.pieces, row.values, strict=True):
        assert value == pytest.approx((4e-4, 1.2e-3)[piece.recording], rel=0.35)
    (notice,) = [notice for notice in pieces(estimate) if "hinge.viscous" in notice.text]
    for word in ("one", "other", "disagree"):
        assert word in notice.text
    assert "advise" in notice.advice
    fields = as_fields(estimate)
    assert fields["parameters"]["hinge.viscous"]["spread"] == fields["spread"]["hinge.viscous"] == row.spread


def test_the_report_draws_them(saved):
    drawn = {chart["name"]: chart for chart in numbers_of(page(saved))["forest"]}
    found = saved.summary["disagreement"]
    for name, row in saved.summary["parameters"].items():
        chart = drawn[name]
        cut = found["pieces"][found["parameters"][name]["partition"]]
        assert [one["value"] for one in chart["rows"]] == [row["value"] + p["difference"][name] for p in cut]
        assert chart["low"] < row["interval"][0] < row["value"] < row["interval"][1] < chart["high"]
        assert not chart["apart"]
    assert "agree about all" in page(saved)


def test_labels():
    assert piece_label(["a"], 0, 0.0, 1.25, False) == "0–1.25 s"
    assert piece_label(["a"], 0, 10.0, 19.99, False) == "10–20 s"
    assert piece_label(["a", "b"], 1, 0.0, 1.0, True) == "b"
    assert piece_label(["a", "b"], 1, 0.0, 1.0, False) == "b 0–1 s"
    assert short(["swing_long_name_1", "swing_long_name_2"]) == ["1", "2"]
    assert short(["one", "other"]) == ["one", "other"]
