"""Closed loops in joint coordinates: derivatives, planted truths, what is independent, and what cannot be fitted."""

import dataclasses

import numpy as np
import pytest

from dynamics.linkages import fourbar, parallelogram, rubbing_fourbar, slider_crank, standing
from estimation.scenes import all_rows, check_recursion, problem_of, pulses, shaken
from estimation.test_linearise import slope_along
from quick import quick
from shadowfit.dynamics import place, simulate
from shadowfit.errors import MechanismError
from shadowfit.estimation import LevenbergMarquardt, Options, fit
from shadowfit.estimation.problem.options import ProblemError
from shadowfit.estimation.residuals.independent import Closings, check_parameters
from shadowfit.models import builtin
from shadowfit.recordings import Recording

TIGHT = LevenbergMarquardt(max_iterations=15, decrease_tolerance=1e-13, step_tolerance=1e-9)
SPUN = {"fourbar": ({"a": -1.0}, {"a": 6.0}), "slider_crank": ({"shaft": 0.7}, {"shaft": 10.0})}


def recorded(mechanism, positions, speeds, steps=100, timestep=0.01, noise=0.0, size=0.02):
    """A recording of the rigid stepper."""
    inputs = {name: pulses(steps, timestep, size) for name in mechanism.inputs}
    start = place(mechanism, positions, speeds)
    run = simulate(mechanism, start, inputs, timestep=timestep, steps=steps, joints="rigid", substeps=1)
    rng = np.random.default_rng(0)
    channels = {name: np.asarray(run.readings[name]) for name in mechanism.sensors}
    channels = {name: value + noise * rng.standard_normal(value.shape) for name, value in channels.items()}
    channels.update({name: np.append(value, value[-1]) for name, value in inputs.items()})
    return Recording(np.asarray(run.time), channels)


def fitted(mechanism, recording, free, **options):
    settings = Options(**{"state_weight": 1e4, "correction": "none", "stick_time": None, **options})
    return fit(mechanism, recording, free, options=settings, optimiser=TIGHT)


@pytest.mark.parametrize("rubs", quick([False, True], False))
def test_rows_have_the_derivatives_of_their_residuals(rubs):
    """Along closed motions only: points of a fit follow the independent coordinate and the lengths."""
    mechanism = rubbing_fourbar() if rubs else fourbar()
    recording = recorded(mechanism, *SPUN["fourbar"], steps=8)
    free = ("rocker.inertia.yy", "coupler.com.x", "c.parent_point.x", "d.child_point.x", "d.spring.rest", "b.viscous")
    free = (*free, "a.dry", "d.coulomb") if rubs else free
    # Of the rounds in which loads follow friction, derivatives take two.
    exact = 1e-4 if rubs else 1e-6
    problem = problem_of(mechanism, recording, free, unknowns="joint", cutoff=1e3)
    point = shaken(problem, 1e-3)
    assert problem.plan.node_size == 1
    rows = all_rows(problem, point)
    scale = problem.parameters.scales
    still = np.zeros((problem.node_count(0), 1))
    for i, label in enumerate(problem.parameters.labels()):
        numeric = slope_along(problem, point, still, scale * (np.arange(len(scale)) == i), 1e-5)
        own = scale[i] * rows.parameters[:, i]
        np.testing.assert_allclose(own, numeric, rtol=0.0, atol=exact * np.max(np.abs(numeric)) + 1e-9, err_msg=label)
    states = np.random.default_rng(2).standard_normal(still.shape)
    numeric = slope_along(problem, point, states, np.zeros(len(scale)), 1e-6)
    own = rows.states @ states.ravel()
    np.testing.assert_allclose(own, numeric, rtol=0.0, atol=exact * np.max(np.abs(numeric)))


SWEPT = {
    "fourbar": (
        fourbar,
        SPUN["fourbar"],
        "coupler.mass coupler.com.x rocker.inertia.yy c.parent_point.x d.spring.rest d.viscous u.gain",
    ),
    "rubbing": (
        rubbing_fourbar,
        SPUN["fourbar"],
        "coupler.mass rocker.inertia.yy a.dry a.coulomb b.dry d.dry d.coulomb d.child_point.x",
    ),
    "slider_crank": (slider_crank, SPUN["slider_crank"], "piston.mass rod.com.x bore.viscous"),
    "three bars": (
        lambda: parallelogram(3),
        (standing(parallelogram(3)), {"bar0_foot": 3.0}),
        "beam.mass beam.com.? bar1.inertia.yy bar2_foot.viscous",
    ),
}


@pytest.mark.parametrize("name", quick(SWEPT))
def test_recursion_gives_the_rows_that_are_written_out(name):
    build, motion, free = SWEPT[name]
    mechanism = build()
    problem = problem_of(mechanism, recorded(mechanism, *motion, steps=8), free.split(), unknowns="joint", cutoff=1e3)
    # λ and friction that depend on each other are found in rounds, of which the rest is seen.
    check_recursion(problem, shaken(problem, 1e-3), 1e-10)


PLANTED = {
    "fourbar": (
        fourbar,
        SPUN["fourbar"],
        ("rocker.inertia.yy", "coupler.mass", "a.viscous", "d.spring.stiffness", "c.parent_point.x"),
    ),
    "slider_crank": (slider_crank, SPUN["slider_crank"], ("piston.mass", "shaft.viscous", "bore.viscous")),
    "three bars": (
        lambda: parallelogram(3),
        (standing(parallelogram(3)), {"bar0_foot": 3.0}),
        ("beam.mass", "bar?_foot.viscous"),
    ),
}


@pytest.mark.parametrize("name", quick(PLANTED))
def test_planted_truths_are_found_from_half_as_much_again(name):
    build, motion, names = PLANTED[name]
    mechanism = build()
    known = [one for pattern in names for one in mechanism.expand(pattern)]
    # Friction of the bars acts on one motion: only one of them can be told.
    known = [one for one in known if not one.startswith(("bar1", "bar2"))]
    # Half as long again is no start for a length, for which the readings could not be met at all.
    free = {one: (1.02 if "point" in one else 1.5) * mechanism.get(one) for one in known}
    estimate = fitted(mechanism, recorded(mechanism, *motion), free)
    assert estimate.problem.options.unknowns == "joint"
    assert estimate.problem.plan.node_size == 1
    assert estimate.converged
    assert estimate.cost < 1e-12
    for row in estimate.parameters:
        assert row.value == pytest.approx(mechanism.get(row.name), rel=1e-5), estimate.summary()


def in_continuous_time(mechanism, motion, finer, seeds):
    """Noisy recordings of 4 s at 100 Hz.

    Simulated with steps as long as a fit's they would have the errors of these: so many finer ones are made of each.
    """
    steps, timestep = 400, 0.01
    push = pulses(steps, timestep, 0.02)
    inputs = {name: np.repeat(push, finer) for name in mechanism.inputs}
    start = place(mechanism, *motion)
    run = simulate(mechanism, start, inputs, timestep=timestep / finer, steps=steps * finer, joints="rigid", substeps=1)
    held = {name: np.append(push, push[-1]) for name in mechanism.inputs}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        channels = {name: np.asarray(run.readings[name])[::finer] for name in mechanism.sensors}
        channels = {name: value + 1e-3 * rng.standard_normal(value.shape) for name, value in channels.items()}
        yield Recording(timestep * np.arange(steps + 1), {**channels, **held})


def distances_from_truth(mechanism, names, finer):
    """Of plain fits of a noisy four-bar, in standard deviations (seed, parameter)."""
    free = {one: 1.3 * mechanism.get(one) for one in names}
    distances = []
    for recording in in_continuous_time(mechanism, SPUN["fourbar"], finer, 3):
        estimate = fit(mechanism, recording, free)
        assert (estimate.problem.options.unknowns, estimate.problem.options.correction) == ("joint", "deferred")
        assert estimate.status.converged
        distances.append([(row.value - mechanism.get(row.name)) / row.std for row in estimate.parameters])
    return np.array(distances)


def is_without_bias(distances):
    return np.sqrt(np.mean(distances**2)) < 2.0 and np.all(
        np.abs(np.mean(distances, axis=0)) < 3.0 / np.sqrt(len(distances))
    )


@pytest.mark.slow
def test_a_noisy_fourbar_with_plain_defaults_is_without_bias():
    names = ("rocker.inertia.yy", "coupler.inertia.yy", "a.viscous")
    assert is_without_bias(distances_from_truth(fourbar(), names, finer=20))


def test_a_joint_that_stands_still_while_others_move_is_not_independent():
    """A piston is at its dead centre twice a turn; the crank decides it, though only the piston is read."""
    mechanism = slider_crank()
    recording = recorded(mechanism, *SPUN["slider_crank"], steps=80)
    problem = problem_of(mechanism, recording, ("piston.mass",), unknowns="joint")
    assert problem.level_names == ("shaft",)


BAD = {
    "a loop that cannot be closed": (
        lambda: (builtin.fourbar().set({"ground_rocker.parent_point.x": 0.9}), ()),
        r"joint 'coupler_rocker' cannot be closed",
    ),
    "a length of a redundant loop": (
        lambda: (parallelogram(3), ("bar2_head.parent_point.x",)),
        r"redundant: 'bar2_head.parent_point.x' cannot change without opening joint",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_fitted_is_named(name):
    build, words = BAD[name]
    mechanism, free = build()
    time = 0.01 * np.arange(20)
    channels = dict.fromkeys(mechanism.sensors, -1.0 + 0.3 * time)
    with pytest.raises(ProblemError, match=words):
        problem_of(mechanism, Recording(time, channels), free, unknowns="joint")


def test_a_singular_configuration_is_named():
    mechanism = parallelogram()
    time = 0.01 * np.arange(21)
    with pytest.raises(ProblemError, match=r"loop of joint 'bar._head' is in a singular configuration at 0\.1 s"):
        problem_of(
            mechanism,
            Recording(time, {"angle": -0.5 + 5.0 * time + 0.01 * np.sin(40.0 * (time - 0.1))}),
            (),
            unknowns="joint",
            cutoff=1e3,
        )


def test_rounding_opens_no_loop():
    """Centres of mass do not move the joints of a redundant loop, though rounding makes it seem so."""
    rows = np.array([[[1.0, 0.5, 0.2], [0.3, 1.0, 0.1], [1.3, 1.5, 0.3]]])
    effect = 1e-17 * np.random.default_rng(0).standard_normal((1, 3, 2))
    found = Closings(np.zeros((1, 3)), rows, effect, np.zeros(1), ("a", "b", "c"))
    check_parameters(found, ("link.com.x", "link.com.y"))
    pulled = dataclasses.replace(found, by_parameters=np.array([[[1.0], [1.0], [-1.0]]]))
    with pytest.raises(MechanismError, match="cannot change without opening joint"):
        check_parameters(pulled, ("length",))
