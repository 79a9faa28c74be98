"""Reports of studies: findings that were checked, Markdown, and one HTML page."""

import pytest

from paper.document import Figure, MissingCase, Results, ResultTable, Section, check, html, markdown
from shadowfit.sweeps.cases import Case, Outcome


def results():
    done = Outcome(Case("done", "t:t", {}), {"cost": 2.0}, "", 1.0)
    failed = Outcome(Case("failed", "t:t", {}), None, "Traceback\nNo: memory", 1.0)
    return Results({"done": done, "failed": failed})


def section():
    found = results()
    return Section(
        "Costs & more",
        ["Some <text>.", "- a `b`\n- c"],
        [ResultTable("costs", "Costs", ["case", "a|b"], [["done", "2"]])],
        [Figure("reproduction-x.png", "A picture")],
        [
            check("The cost is large", lambda: (found["done"]["cost"] > 1.0, "2")),
            check("The cost is larger", lambda: (found["done"]["cost"] > 3.0, "2"), "it is small"),
            check("It has run", lambda: (found["failed"]["cost"] > 0.0, "")),
        ],
    )


def test_findings_hold_or_not_or_are_not_checked():
    holds = [finding.holds for finding in section().findings]
    assert holds == [True, False, None]
    assert section().findings[0].reason == ""
    assert section().findings[1].reason == "it is small"
    assert "No: memory" in section().findings[2].evidence


def test_results_that_are_missing():
    found = results()
    assert found.get("failed") is None
    assert found.get("unheard of") is None
    assert found.existing(["failed", "done", "unheard of"]) == [{"cost": 2.0}]
    with pytest.raises(MissingCase, match="unheard of"):
        found["unheard of"]


def test_markdown():
    text = markdown("Title", "Note.", [section()])
    assert "| The cost is larger | does not hold | 2 (it is small) |" in text
    assert "| case | a\\|b |" in text
    assert "![A picture](figures/reproduction-x.png)" in text


def test_html_needs_no_other_file(tmp_path):
    (tmp_path / "reproduction-x.png").write_bytes(b"picture")
    text = html("Title", "Note.", [section()], tmp_path)
    assert "Some &lt;text&gt;." in text
    assert "<ul><li>a <code>b</code></li><li>c</li></ul>" in text
    assert 'src="data:image/png;base64,cGljdHVyZQ=="' in text
    assert "http" not in text
