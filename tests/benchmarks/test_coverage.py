"""The coverage program: a small version of the study, resuming, tables."""

import json

import numpy as np
import pytest
from scipy import stats

from benchmarks.rigs import coverage


@pytest.fixture
def nominal():
    return next(condition for condition in coverage.CONDITIONS if condition.name == "nominal")


def entry(seed, value, covered):
    row = {"truth": 1.0, "value": value, "at_bound": False, "std": dict.fromkeys(coverage.KINDS, 0.1)}
    return {
        "study": "pendulum",
        "condition": "nominal",
        "seed": seed,
        "converged": True,
        "parameters": {"a": row | {"covered": dict.fromkeys(coverage.KINDS, covered)}},
    }


def test_counts_bias_and_ratio():
    values = [0.9, 1.0, 1.1, 1.2]
    found = coverage.coverages([entry(i, value, i < 3) for i, value in enumerate(values)])
    assert {one.kind for one in found} == set(coverage.KINDS)
    one = found[0]
    assert (one.fits, one.covered, one.fraction) == (4, 3, 0.75)
    assert one.ratio == pytest.approx(0.1 / np.std(values, ddof=1))
    assert one.bias == pytest.approx(0.05 / np.std(values, ddof=1))


@pytest.mark.parametrize(("covered", "sound"), [(190, True), (181, True), (180, False), (197, True), (198, False)])
def test_soundness_is_what_two_hundred_fits_can_tell(covered, sound):
    one = coverage.Coverage("s", "c", "p", "robust", 200, covered, 0.0, 1.0)
    assert one.sound is sound


def test_a_stopped_run_goes_on(tmp_path, monkeypatch, nominal):
    made = []

    def fake(study, condition, seed):
        made.append(seed)
        if len(made) == 3:
            raise KeyboardInterrupt
        return entry(seed, 1.0 + 0.1 * seed, True)

    monkeypatch.setattr(coverage, "line", fake)
    study = coverage.Study("pendulum", None, (), {}, 1)
    coverage.run(tmp_path, [(study, nominal)], 4)
    assert made == [0, 1, 2]
    with (tmp_path / "coverage.jsonl").open("a") as file:
        file.write('{"study": "pend')  # a line that was cut off
    coverage.run(tmp_path, [(study, nominal)], 4)
    assert made == [0, 1, 2, 2, 3]
    lines = [json.loads(text) for text in (tmp_path / "coverage.jsonl").read_text().splitlines()]
    assert [line["seed"] for line in lines] == [0, 1, 2, 3]
    assert "| pendulum | `a` | 4 |" in (tmp_path / "coverage.md").read_text()
    assert (tmp_path / "coverage.csv").read_text().startswith("study,condition,parameter")


def test_readings_are_disturbed_as_said():
    rng = np.random.default_rng(0)
    clean = np.linspace(0.0, 3.0, 4000)
    counted = coverage.disturbed(clean, "counts", rng) - clean
    assert np.std(counted) == pytest.approx(2 * np.pi / 4096 / np.sqrt(12), rel=0.05)
    coloured = coverage.disturbed(clean, "coloured", rng) - clean
    assert np.std(coloured) == pytest.approx(1e-3, rel=0.2)
    assert np.corrcoef(coloured[1:], coloured[:-1])[0, 1] == pytest.approx(0.8, abs=0.05)


@pytest.mark.slow
def test_intervals_of_the_pendulum_hold_the_truth(nominal):
    """Twenty-five seeds: limits that chance passes less than once in a hundred (count) or thousand (scatter) times."""
    scatter = np.sqrt(stats.chi2.ppf([0.0005, 0.9995], 24) / 24)
    study = coverage.studies()["pendulum"]
    lines = [coverage.line(study, nominal, seed) for seed in range(1000, 1025)]
    assert all(line["converged"] for line in lines)
    for one in coverage.coverages(lines):
        if one.kind != "paper":
            assert one.covered >= 20, one
            assert 1.0 / scatter[1] < one.ratio < 1.0 / scatter[0], one
            assert abs(one.bias) < 0.7, one
