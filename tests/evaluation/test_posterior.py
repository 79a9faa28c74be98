"""Draws of a saved result: those of its estimate, files of them, and what is refused."""

import io

import numpy as np
import polars
import pytest

from benchmarks.scoreboard.outcome import held_pairs
from shadowfit.estimation import fit
from shadowfit.estimation.posterior import DrawError
from shadowfit.evaluation import load_result, save_estimate
from shadowfit.evaluation.draw_files import check_target, write_draws
from shadowfit.models import load_model


def test_a_saved_result_draws_the_machines_of_its_estimate(saved, estimate):
    np.testing.assert_allclose(saved.draw(20, 4).table, estimate.draw(20, 4).table, rtol=1e-12)


def test_its_machines_are_the_calibrated_one_but_for_what_was_free(saved):
    one, before = saved.draw(2, 0).mechanism(1), saved.mechanism()
    differing = {name for name in one.leaves() if not np.array_equal(one.get(name), before.get(name))}
    assert differing == set(saved.labels)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npz"])
def test_files_hold_the_table(saved, tmp_path, ending):
    draws = saved.draw(7, 1)
    path = tmp_path / f"machines{ending}"
    write_draws(draws, path)
    if ending == ".npz":
        with np.load(io.BytesIO(path.read_bytes())) as archive:
            names, table = archive["parameters"].tolist(), archive["values"]
    else:
        frame = polars.read_csv(path) if ending == ".csv" else polars.read_parquet(path)
        names, table = frame.columns, frame.to_numpy()
    assert tuple(names) == draws.labels
    np.testing.assert_array_equal(table, draws.table)


def test_files_of_other_kinds_and_files_that_exist_are_refused(tmp_path):
    with pytest.raises(DrawError, match=r"\.csv, \.parquet, \.npz, not as \.xlsx"):
        check_target(tmp_path / "machines.xlsx")
    (tmp_path / "machines.csv").write_text("mine")
    with pytest.raises(DrawError, match="exists"):
        check_target(tmp_path / "machines.csv")
    check_target(tmp_path / "machines.csv", replace=True)


def test_a_result_of_an_earlier_version_says_so(estimate, tmp_path):
    save_estimate(estimate, tmp_path)
    with np.load(tmp_path / "state.npz") as archive:
        kept = {name: archive[name] for name in archive if name != "posterior"}
    np.savez(tmp_path / "state.npz", **kept)
    with pytest.raises(DrawError, match="earlier version"):
        load_result(tmp_path, force=True).draw(3)


@pytest.mark.slow
def test_regions_of_pairs_hold_over_whole_fits(make_swing, base, truth):
    """Pendulums with two kinds of friction, simulated and fitted with default options."""
    machine = load_model("pendulum").mechanism.set(base | truth)
    names = ("hinge.viscous", "hinge.dry", "pendulum.inertia.yy")
    values = {name: float(machine.get(name)) for name in names}
    held: list[bool] = []
    for seed in range(100):
        held += held_pairs(fit(machine, make_swing(seed, 2.0), names), values)
    assert 0.93 <= np.mean(held) <= 0.97
