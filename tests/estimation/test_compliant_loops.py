"""Compliant joints in joint coordinates: rows vanish along simulations, have their derivatives, find truths."""

import numpy as np
import pytest

from dynamics.linkages import compliant, fourbar, parallelogram, rubbing_fourbar, slider_crank, standing
from dynamics.test_compliant_loops import footed
from dynamics.test_rigid_contacts import jammed
from estimation.scenes import all_rows, check_recursion, problem_of, shaken
from estimation.test_linearise import slope_along
from estimation.test_loops import (
    SPUN,
    SWEPT,
    distances_from_truth,
    fitted,
    in_continuous_time,
    is_without_bias,
    recorded,
)
from estimation.test_touched import H, along
from quick import quick
from shadowfit.dynamics import place
from shadowfit.estimation import fit
from shadowfit.estimation.problem.options import Options, ProblemError
from shadowfit.evaluation.compliance import giving_joints
from shadowfit.models import builtin
from shadowfit.recordings import Recording

SCENES = {
    "fourbar": (
        lambda: compliant(fourbar(), "d", 1e-4),
        SPUN["fourbar"],
        ("rocker.inertia.yy", "c.parent_point.x", "d.spring.rest", "b.viscous", "d.compliance.linear", "d.damping"),
    ),
    "stiff": (lambda: compliant(fourbar(), "d", 1e-7), SPUN["fourbar"], ("coupler.mass", "d.compliance.linear")),
    "rubbing": (
        lambda: compliant(rubbing_fourbar(), "d", 1e-4),
        SPUN["fourbar"],
        ("rocker.inertia.yy", "a.dry", "d.coulomb", "d.compliance.linear", "d.damping"),
    ),
    "one of two loops": (
        lambda: compliant(parallelogram(3), "bar2_head", 1e-4),
        (standing(parallelogram(3)), {"bar0_foot": 3.0}),
        ("beam.mass", "bar2_head.compliance.linear", "bar2_foot.viscous"),
    ),
    "at a stop": (
        lambda: compliant(jammed(), "d", 1e-4),
        ({"a": 0.9}, {"a": 2.0}),
        ("stop.damping", "coupler.mass", "d.compliance.linear"),
    ),
    "no loop": (footed, ({"pin": 0.5}, {}), ("arm.mass", "feet.compliance.linear", "feet.damping")),
}
# Loads and friction are found in rounds of which the rest is seen.
LEFT = {"rubbing": 1e-6}
EXACT = {"rubbing": 1e-3}


@pytest.mark.parametrize("name", quick(SCENES, "no loop"))
def test_rows_vanish_along_simulations_and_have_the_derivatives_of_their_residuals(name):
    build, motion, free = SCENES[name]
    mechanism = build()
    problem, point = along(mechanism, place(mechanism, *motion), free)
    left = problem.at(point.values, 0).dynamics_residuals(point.nodes[0].pose, problem.commands_at(point.values, 0), H)
    assert np.max(np.abs(left)) < LEFT.get(name, 1e-11)  # [N s, N m s]
    rows, exact = all_rows(problem, point), EXACT.get(name, 2e-4 if name in ("stiff", "at a stop") else 1e-6)
    still = np.zeros((problem.node_count(0), problem.plan.node_size))
    states = np.random.default_rng(2).standard_normal(still.shape)
    numeric = slope_along(problem, point, states, np.zeros(len(free)), 1e-8)
    np.testing.assert_allclose(
        rows.states @ states.ravel(), numeric, rtol=0.0, atol=max(exact, 1e-5) * np.max(np.abs(numeric))
    )
    scale = problem.parameters.scales
    for i, label in enumerate(problem.parameters.labels()):
        numeric = slope_along(problem, point, still, scale * (np.arange(len(scale)) == i), 1e-5)
        assert np.max(np.abs(numeric)) > 0.0, label
        own = scale[i] * rows.parameters[:, i]
        np.testing.assert_allclose(own, numeric, rtol=0.0, atol=exact * np.max(np.abs(numeric)), err_msg=label)


@pytest.mark.slow
@pytest.mark.parametrize("correction", ["none", "deferred"])
@pytest.mark.parametrize("name", ["fourbar", "rubbing", "one of two loops"])
def test_recursion_gives_the_rows_that_are_written_out(name, correction):
    build, motion, _ = SCENES[name]
    mechanism = build()
    kept = {"fourbar": "fourbar", "rubbing": "rubbing", "one of two loops": "three bars"}[name]
    soft = next(one for one, part in mechanism.joints.items() if part.compliant)
    free = [*SWEPT[kept][2].split(), f"{soft}.compliance.linear", f"{soft}.damping"]
    recording = recorded(mechanism, *motion, steps=8)
    problem = problem_of(mechanism, recording, free, unknowns="joint", cutoff=1e3, correction=correction)
    check_recursion(problem, shaken(problem, 1e-3), 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("compliance", [1e-3, 1e-8])
def test_what_is_missing_along_closed_motions_is_that_of_the_rigid_loop(compliance):
    """``Zᵀ ρ = Zᵀ r`` whatever the joint's stiffness: its impulses open the loop, and do nothing else."""
    rigid, soft = fourbar(), compliant(fourbar(), "d", compliance)
    recording = recorded(rigid, *SPUN["fourbar"], steps=20)
    problems = [problem_of(one, recording, ("coupler.mass",), unknowns="joint", cutoff=1e3) for one in (rigid, soft)]
    point = shaken(problems[0], 1e-3)  # closed
    poses, values = point.nodes[0].pose, point.values
    missing, moving = [], []
    for problem in problems:
        here = problem.at(values, 0)
        missing.append(here.dynamics_residuals(poses, problem.commands_at(values, 0), problem.timestep))
        twists = np.asarray(here.placed(poses[1:-1]).twists)
        moving.append(twists.reshape(len(twists), -1, problem.plan.node_size))
    assert [x.shape[1] for x in missing] == [1, 3]
    freely = np.linalg.pinv(moving[1]) @ moving[0]
    own = np.einsum("kdn,kd->kn", freely, missing[1])
    np.testing.assert_allclose(own, missing[0], rtol=0.0, atol=1e-12 + 1e-9 * np.max(np.abs(missing[0])))


def preloaded():
    """A parallelogram whose third bar stands 2 mm too far away, and carries a load for that."""
    return compliant(parallelogram(3), "bar2_head", 1e-4).set({"bar2_foot.parent_point.x": 0.302})


PLANTED = {
    "fourbar": (
        lambda: compliant(fourbar(), "d", 1e-4),
        SPUN["fourbar"],
        ("rocker.inertia.yy", "coupler.mass", "a.viscous", "d.compliance.linear", "d.damping"),
    ),
    "stiff fourbar": (
        lambda: compliant(fourbar(), "d", 1e-6),
        SPUN["fourbar"],
        ("rocker.inertia.yy", "coupler.mass", "d.compliance.linear"),
    ),
    "slider_crank": (
        lambda: compliant(slider_crank(), "bore", 1e-4),
        SPUN["slider_crank"],
        ("piston.mass", "shaft.viscous", "bore.viscous", "bore.compliance.linear"),
    ),
    "third bar": (
        preloaded,
        (standing(parallelogram(3)), {"bar0_foot": 3.0}),
        ("beam.mass", "bar0_foot.viscous", "bar2_head.compliance.linear"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_planted_compliances_are_found_from_half_as_much_again(name):
    build, motion, names = PLANTED[name]
    mechanism = build()
    free = {one: 1.5 * mechanism.get(one) for one in names}
    estimate = fitted(mechanism, recorded(mechanism, *motion), free)
    assert estimate.problem.options.unknowns == "joint"
    assert estimate.problem.plan.node_size == (2 if name == "third bar" else 3)
    assert estimate.converged
    for row in estimate.parameters:
        assert row.value == pytest.approx(mechanism.get(row.name), rel=1e-5), estimate.summary()
    # The calibrated model gives where the fit found that it does, and is not said to have been taken as rigid.
    giver = next(name for name, part in mechanism.joints.items() if part.compliant)
    written = estimate.mechanism().get(f"{giver}.compliance.linear")
    assert written == pytest.approx(mechanism.get(f"{giver}.compliance.linear"), rel=1e-5)
    assert not any(giver in text for _, text in giving_joints(estimate))


@pytest.mark.slow
@pytest.mark.parametrize("compliance", [1e-3, 1e-4])
def test_a_noisy_fourbar_with_plain_defaults_is_without_bias(compliance):
    """The stepper's damper acts half a step late: the finer its steps, the better."""
    names = ("rocker.inertia.yy", "coupler.inertia.yy", "a.viscous", "d.compliance.linear")
    assert is_without_bias(distances_from_truth(compliant(fourbar(), "d", compliance), names, finer=40))


@pytest.mark.slow
def test_a_far_start_ends_where_a_near_one_does_where_steps_are_short():
    """No sensor sees the third bar: with steps of 10 ms, where a fit ends depends on where it starts."""
    mechanism, name = preloaded(), "bar2_head.compliance.linear"
    motion = standing(parallelogram(3)), {"bar0_foot": 3.0}
    (recording,) = in_continuous_time(mechanism, motion, 40, 1)
    found = []
    for factor in (1.3, 13.0):
        free = {one: 1.3 * mechanism.get(one) for one in ("beam.mass", "bar0_foot.viscous")}
        free[name] = factor * mechanism.get(name)
        estimate = fit(mechanism, recording, free, options=Options(timestep=0.005))
        assert estimate.status.converged
        found.append(next(row.value for row in estimate.parameters if row.name == name))
    near, far = found
    assert far == pytest.approx(near, rel=1e-4)


@pytest.mark.slow
def test_a_joint_that_does_not_give_ends_without_compliance():
    """Zero is an ordinary value, also where the loop's rows are redundant."""
    recording = recorded(fourbar(), *SPUN["fourbar"])
    mechanism = compliant(fourbar(), "d", 1e-6)
    estimate = fitted(
        mechanism, recording, {"coupler.mass": 1.2 * mechanism.get("coupler.mass"), "d.compliance.linear": 1e-6}
    )
    mass, compliance = estimate.parameters
    assert mass.value == pytest.approx(fourbar().get("coupler.mass"), rel=1e-4)
    assert compliance.value < 1e-8


def test_a_compliant_loop_that_cannot_be_closed_is_named():
    plain = builtin.fourbar().set({"ground_rocker.parent_point.x": 0.9})
    mechanism = compliant(plain, "coupler_rocker", 1e-4)
    time = 0.01 * np.arange(20)
    recording = Recording(time, dict.fromkeys(mechanism.sensors, -1.0 + 0.3 * time))
    with pytest.raises(ProblemError, match=r"joint 'coupler_rocker' cannot be closed"):
        problem_of(mechanism, recording, (), unknowns="joint")


def test_lengths_of_redundant_loops_and_singular_configurations_are_fine_where_joints_give():
    """Both are refused of rigid joints (`test_loops`)."""
    mechanism = compliant(parallelogram(3), "bar2_head", 1e-4)
    time = 0.01 * np.arange(21)
    swing = Recording(time, {"angle": -1.0 + 0.3 * time})
    problem_of(mechanism, swing, ("bar2_head.parent_point.x",), unknowns="joint")
    flat = Recording(time, {"angle": -0.5 + 5.0 * time + 0.01 * np.sin(40.0 * (time - 0.1))})
    problem = problem_of(compliant(parallelogram(), "bar1_head", 1e-4), flat, (), unknowns="joint", cutoff=1e3)
    assert problem.plan.node_size == 3


def test_options_are_those_of_rigid_loops():
    resolved = Options.physical(compliant(fourbar(), "d", 1e-4))
    assert (resolved.unknowns, resolved.correction) == ("joint", "deferred")
