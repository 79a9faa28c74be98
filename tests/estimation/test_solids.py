"""Possible bodies at every step of a fit: on data that pull outward, for any free subset, and in the written model."""

import dataclasses

import numpy as np
import pytest

from estimation.arms import arm, driven
from estimation.scenes import twin
from quick import quick
from shadowfit.estimation import Free, LevenbergMarquardt, Options, fit
from shadowfit.estimation.fit import solve
from shadowfit.estimation.problem.parameter import ParameterError
from shadowfit.estimation.problem.parameters import parameter_set
from shadowfit.estimation.problem.problem import build_problem
from shadowfit.evaluation import load_result, save_estimate
from shadowfit.evaluation.rules import judge
from shadowfit.mechanism.second_moments import ENTRIES, inertia_matrix, thickness
from shadowfit.models import builtin

OPTIONS = Options(unknowns="joint", correction="none", state_weight=1e6)
MOMENTS = tuple(f"link3.inertia.{entry}" for entry in ENTRIES)


def slab():
    """An arm whose last link is nearly flat: its smallest second moment is 1e-3 of the trace of its inertia."""
    values = dict(zip(MOMENTS, (0.01, 0.012, 0.02196, 0.0, 0.0, 0.0), strict=True))
    return arm(3).set(values)


def thickness_of(values):
    return float(thickness(inertia_matrix(np.array([values[name] for name in MOMENTS]))))


def recorded(noise, steps=120):
    return driven(slab(), steps, noise)


def round_start(mechanism):
    """The last link as a ball of about the right size."""
    return mechanism.set(dict(zip(MOMENTS, (0.015, 0.015, 0.015, 0.0, 0.0, 0.0), strict=True)))


@pytest.mark.slow
def test_a_planted_slab_is_found():
    estimate = fit(round_start(slab()), recorded(0.0), "link3.inertial", options=OPTIONS)
    assert estimate.converged
    truth = slab()
    for row in estimate.parameters:
        assert row.value == pytest.approx(truth.get(row.name), abs=1e-5), row
    assert estimate.on_edge == ()


@pytest.fixture(scope="module")
def pulled():
    """A fit of readings that ask for an impossible body, with noise; and the same fit without the cones."""
    mechanism = round_start(slab())
    recording = driven(slab().write({"link3.inertia.zz": 0.025}), 120, 1e-4)
    problem = build_problem(mechanism, [recording], parameter_set(mechanism, MOMENTS), OPTIONS)
    free = dataclasses.replace(problem, parameters=dataclasses.replace(problem.parameters, solids=()))
    return solve(problem, LevenbergMarquardt()), solve(free, LevenbergMarquardt())


def test_every_iterate_is_possible_where_data_pull_outward(pulled):
    inside, outside = pulled
    assert thickness_of(outside.values) < -1e-3
    assert inside.converged
    for entry in inside.log:
        assert thickness_of(entry.parameters) > 0.0
    assert inside.on_edge == ("link3",)
    assert inside.cost >= outside.cost
    inside.mechanism().check()


def test_the_edge_is_said_and_intervals_know_of_it(pulled):
    inside, outside = pulled
    assert any("link3: on the edge of what a body can have" in notice.text for notice in judge(inside))
    for interval, free in zip(inside.uncertainty().intervals(), outside.parameters, strict=True):
        assert interval.lower <= free.value <= interval.upper


def test_the_model_file_is_the_fitted_model(pulled, tmp_path):
    inside, _ = pulled
    summary = save_estimate(inside, tmp_path / "slab")
    assert summary["bodies"] == {"on_edge": ["link3"], "followers": {}}
    model = load_result(tmp_path / "slab").mechanism()
    for row in inside.parameters:
        assert model.get(row.name) == row.value == summary["parameters"][row.name]["value"]


@pytest.mark.parametrize(
    "free",
    quick(
        [["link3.mass", "link3.com.x"], ["link3.inertia.xx", "link3.inertia.yz", "link3.com.y"]],
        ["link3.mass", "link3.com.x"],
    ),
)
def test_any_subset_stays_possible_and_finds_the_truth(free):
    start = {"link3.mass": 1.6, "link3.inertia.xx": 0.0105}
    estimate = fit(slab(), recorded(1e-5), {name: Free(start.get(name)) for name in free}, options=OPTIONS)
    assert estimate.converged
    for entry in estimate.log:
        slab().write(entry.parameters).bodies["link3"].check("link3")
    for interval in estimate.uncertainty().intervals(0.9999):
        assert interval.lower <= slab().get(interval.name) <= interval.upper, interval


def test_held_numbers_that_no_motion_sees_give_way(tmp_path):
    """Of a pendulum only yy matters: it may go where the held ones, as they stand, forbid."""
    pendulum = builtin.pendulum()
    parameters = parameter_set(pendulum, {"pendulum.inertia.yy": 0.0095})
    (solid,) = parameters.solids
    assert solid.hidden
    assert len(parameters.cones(parameters.start())) == 0
    followed = parameters.followers(parameters.start())
    assert set(followed) == {f"pendulum.inertia.{entry}" for entry in ENTRIES if entry != "yy"}
    body = pendulum.write({"pendulum.inertia.yy": 0.0095, **followed}).bodies["pendulum"]
    body.check("pendulum")
    # Both give way alike, to the sum that is needed and no further.
    lacking = 0.0095 - 0.0039 - 1e-4
    assert followed["pendulum.inertia.xx"] == pytest.approx(1e-4 + lacking / 2, rel=1e-5)
    assert followed["pendulum.inertia.zz"] == pytest.approx(0.0039 + lacking / 2, rel=1e-5)
    possible = parameter_set(pendulum, {"pendulum.inertia.yy": 0.0039})
    assert possible.followers(possible.start()) == {}


def test_held_numbers_that_the_motion_sees_count_as_known_where_they_leave_room():
    furuta = builtin.furuta()
    thick = furuta.set({f"pendulum.inertia.{entry}": 0.01 for entry in ("xx", "yy", "zz")})
    parameters = parameter_set(thick, "pendulum.inertia.yy")
    assert not parameters.solids[0].follows
    assert len(parameters.cones(parameters.start())) == 2
    # Of a thin rod, or where the start is impossible beside them, they are no knowledge.
    for start in (0.0099, 0.003):
        (doubted,) = parameter_set(furuta, {"pendulum.inertia.yy": start}).solids
        assert doubted.follows
        assert not doubted.hidden


def test_a_fit_goes_on_beside_held_numbers_that_gave_way():
    """A rod that is lighter across than the file says: the fitted model is possible, and is the calibrated one."""
    truth = builtin.furuta().set({"pendulum.inertia.yy": 0.008, "pendulum.inertia.zz": 0.008})
    recording = twin(truth, {"hinge1": 0.3, "hinge2": 1.0}, 100, noise=1e-4)
    estimate = fit(builtin.furuta(), recording, {"pendulum.inertia.yy": 0.01}, options=Options(timestep=0.01))
    assert estimate.converged
    held = estimate.mechanism().get("pendulum.inertia.zz")
    assert held == estimate.problem.mechanism.get("pendulum.inertia.zz")
    assert held < 0.0095
    estimate.mechanism().bodies["pendulum"].check("pendulum")


def test_flat_bodies_start_inside():
    flat = arm(3).set(dict(zip(MOMENTS, (0.01, 0.012, 0.022, 0.0, 0.0, 0.0), strict=True)))
    parameters = parameter_set(flat, "link3.inertial")
    start = parameters.possible(parameters.start())
    assert thickness_of(parameters.named(start)) > 0.0
    np.testing.assert_allclose(start.numbers, parameters.start().numbers, rtol=1e-6, atol=1e-9)


def test_bounds_that_no_body_has():
    free = {name: Free() for name in MOMENTS} | {"link3.inertia.zz": Free(0.3, 0.2, 0.4)}
    free |= {name: Free(0.01, 0.009, 0.011) for name in MOMENTS[:2]}
    with pytest.raises(ParameterError, match=r"no body has moments of inertia within these bounds \(link3\)"):
        parameter_set(arm(3), free)


def test_values_for_each_recording_stay_possible_by_themselves():
    free = {"link3.inertia.zz": Free(per_recording=True), "link3.inertia.xx": None, "link3.inertia.yy": None}
    parameters = parameter_set(slab(), free, 2)
    assert [solid.places[2] for solid in parameters.solids] == [0, 1]
    assert len(parameters.cones(parameters.start())) == 4
