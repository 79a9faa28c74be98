"""A tiny version of each study runs from end to end, and goes on after a stop."""

import contextlib
import csv
import dataclasses
import json

import pytest

from paper import reproduce
from paper.methods import Size
from paper.rig import Rig

TINY = Size(duration=0.1, points=3, series=2)


@contextlib.contextmanager
def silent(total, what):
    yield None


def run(which, folder):
    return reproduce.reproduce(which, folder, size=TINY, n_jobs=1, start=None, stage=silent)


def test_sweeps_are_thinned_from_end_to_end():
    assert Size(points=3).thin([1, 2, 3, 4, 5]) == [1, 3, 5]
    assert Size(points=1).thin([1, 2, 3]) == [1]
    assert Size().thin([1, 2, 3]) == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("which", ["pendulum", "furuta", "synthetic"])
def test_a_tiny_study(which, tmp_path):
    sections = run(which, tmp_path)
    assert len(sections) == len(reproduce.STUDIES[which])
    assert all(section.tables for section in sections)
    record = json.loads((tmp_path / "results.json").read_text())
    assert record["failed"] == []
    page, text = (tmp_path / "index.html").read_text(), (tmp_path / "reproduction.md").read_text()
    for section in sections:
        assert section.title in text
        for table in section.tables:
            assert (tmp_path / "tables" / f"{table.name}.csv").read_text().count("\n") == len(table.rows) + 1
        for figure in section.figures:
            assert (tmp_path / "figures" / figure.file).read_bytes().startswith(b"\x89PNG")
            assert figure.file in text
    assert page.count("data:image/png") == sum(len(section.figures) for section in sections)
    times = {file: file.stat().st_mtime_ns for file in (tmp_path / "cases").iterdir()}
    run(which, tmp_path)
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "cases").iterdir()} == times, "all cases are kept"


@pytest.mark.slow
def test_the_pendulum_study_of_a_rig(tmp_path):
    """The twins' own recordings, taken for those of a rig: same fits, nothing about a truth."""
    run("pendulum", tmp_path / "twins")
    rig = Rig(tmp_path / "twins" / "twins")
    size = dataclasses.replace(TINY, rig=rig, series=rig.series())
    (section,) = reproduce.reproduce("pendulum", tmp_path / "rig", size=size, n_jobs=1, start=None, stage=silent)
    assert json.loads((tmp_path / "rig" / "results.json").read_text())["failed"] == []
    assert [table.name for table in section.tables] == ["pendulum_dry", "pendulum_costs"]
    # A rig's fits start where its model file has it, not where the twins' do; the paper's rule stops both early.
    own, other = (costs(tmp_path / name / "tables" / "pendulum_costs.csv") for name in ("rig", "twins"))
    assert own.keys() == other.keys()
    for model, values in own.items():
        assert values == pytest.approx(other[model], rel=0.02)


def costs(path):
    """Costs of each model."""
    _, *rows = csv.reader(path.read_text().splitlines())
    return {model: [float(value) for value in values] for model, *values in rows}
