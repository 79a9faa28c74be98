"""The tutorial, done as its reader would: the blocks of docs/tutorial.md are run one after the other."""

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shadowfit.cli.app import app

TEXT = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text("utf-8")
TRUTH = {"cart.mass": 0.62, "rail.viscous": 0.9, "pivot.viscous": 2e-3}


def blocks():
    """Language and contents of the page's blocks, in order."""
    return re.findall(r"^```(\w*)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_tutorial(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    commands = 0
    for language, text in blocks():
        if language == "toml":
            Path("cartpole.toml").write_text(text)
        elif language == "python":
            exec(compile(text, "tutorial.md", "exec"), {})
        else:
            for line in text.strip().splitlines():
                program, *arguments = shlex.split(line)
                assert program == "shadowfit"
                result = CliRunner().invoke(app, arguments)
                assert result.exit_code == 0, (line, result.output)
                commands += 1
    assert commands == 4
    summary = json.loads(Path("result/result.json").read_text("utf-8"))
    for name, truth in TRUTH.items():
        row = summary["parameters"][name]
        assert row["identifiable"], name
        assert abs(row["value"] - truth) < 5.0 * row["std"] + 0.02 * truth, (name, row)
    assert summary["recordings"][0]["sensors"]["theta"]["rmse"] < 3e-3
    assert Path("calibrated.csv").exists()
    assert Path("result/report.html").stat().st_size > 50_000
