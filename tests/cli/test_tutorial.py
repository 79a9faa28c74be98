"""Pages that teach, done as their reader would: the blocks of a page are run one after the other."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from shadowfit.cli.app import app

DOCS = Path(__file__).parents[2] / "docs"
TRUTH = {"cart.mass": 0.62, "rail.viscous": 0.9, "pivot.viscous": 2e-3}


def blocks(page):
    """Language and contents of a page's blocks, in order."""
    return re.findall(r"^```(\w*)\n(.*?)^```", (DOCS / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)


def follow(page):
    """Do what a page says; what each of its commands printed."""
    said = []
    for language, text in blocks(page):
        if language == "toml":
            Path("cartpole.toml").write_text(text)
        elif language == "python":
            exec(compile(text, page, "exec"), {})
        elif text.startswith("shadowfit"):
            for line in text.strip().splitlines():
                _, *arguments = shlex.split(line)
                result = CliRunner().invoke(app, arguments)
                assert result.exit_code == 0, (line, result.output)
                said.append(result.stdout)
    return said


@pytest.mark.slow
def test_from_a_csv_to_a_number(tmp_path, monkeypatch):
    """Both days agree with each other and with the truth, and the page's verdicts are not red."""
    monkeypatch.chdir(tmp_path)
    assert len(follow("first-number.md")) == 7
    truth = 2.0 * np.pi * np.sqrt((0.0043 + 0.428 * 0.092**2) / (0.428 * 9.82 * 0.092))
    days = [json.loads(Path(f"{day}/result.json").read_text("utf-8")) for day in ("monday", "tuesday")]
    for day in days:
        assert day["verdict"] != "red"
        low, high = day["derived"]["period"]["interval"]
        assert low - 2e-3 * truth < truth < high + 2e-3 * truth
        assert high - low < 0.01 * truth
    ends = [day["derived"]["period"]["interval"] for day in days]
    assert max(end[0] for end in ends) < min(end[1] for end in ends), "the intervals overlap"


@pytest.mark.slow
def test_tutorial(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(follow("tutorial.md")) == 4
    summary = json.loads(Path("result/result.json").read_text("utf-8"))
    for name, truth in TRUTH.items():
        row = summary["parameters"][name]
        assert row["identifiable"], name
        assert abs(row["value"] - truth) < 5.0 * row["std"] + 0.02 * truth, (name, row)
    assert summary["recordings"][0]["sensors"]["theta"]["rmse"] < 3e-3
    assert Path("calibrated.csv").exists()
    assert Path("result/report.html").stat().st_size > 50_000
