"""Whole fits: planted truths, the paper's synthetic study, several recordings, inputs, robust loss, doors."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest

from dynamics.scenes import with_joints
from estimation.scenes import POSES, STEPPER, pulses, twin, with_joint
from shadowfit.dynamics import place, simulate
from shadowfit.errors import ShadowfitError, UnknownNameError
from shadowfit.estimation import Free, LevenbergMarquardt, Options, fit
from shadowfit.estimation.fit import start_point
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.levenberg_marquardt import minimise
from shadowfit.mechanism import Input, Mechanism, TorqueMotor
from shadowfit.mechanism.leaves import Parts
from shadowfit.models import builtin
from shadowfit.recordings import Recording

pytestmark = pytest.mark.slow


def stiff(mechanism):
    """Joints so stiff that they do not sag: the estimated first state has no gaps, that of a soft twin would."""
    return with_joints(mechanism, compliance=1e-8)


PENDULUM = stiff(builtin.pendulum())
# All fits of the pendulum free these three, so that one compiled program serves them.
THREE = ("pendulum.inertia.yy", "hinge.viscous", "hinge.dry")
AWAY = {"pendulum.inertia.yy": 0.01, "hinge.viscous": 1e-3, "hinge.dry": 5e-4}
TIGHT = LevenbergMarquardt(max_iterations=60, decrease_tolerance=1e-12, step_tolerance=1e-10)
ROUNDS = 6


def values_of(estimate):
    return {row.name: row.value for row in estimate.parameters}


def planted(mechanism, recordings, free, **options):
    """A fit to data without noise, continued beyond where it is worth while for data with noise."""
    estimate = fit(
        mechanism,
        recordings,
        free,
        options=Options(**{**POSES, "state_weight": 1e4, "stick_time": None, **options}),
        optimiser=TIGHT,
    )
    again = dataclasses.replace(TIGHT, start_damping=1e-8)
    for _ in range(ROUNDS):
        outcome = minimise(estimate.problem, estimate.outcome.linearisation.point, estimate.weights, again)
        estimate = dataclasses.replace(estimate, outcome=outcome)
    return estimate


def assert_planted(estimate, truth, names, tolerance=1e-5):
    assert estimate.converged, estimate.summary()
    found = values_of(estimate)
    for name in names:
        assert found[name] == pytest.approx(truth.get(name), rel=tolerance), estimate.summary()


@pytest.fixture(scope="module")
def release():
    return twin(PENDULUM, {"hinge": 2.5}, 200)


@pytest.fixture(scope="module")
def noisy():
    return twin(PENDULUM, {"hinge": 2.5}, 200, noise=1e-3)


# --- planted truths -------------------------------------------------------------------------------------------------


def test_planted_pendulum(release):
    estimate = planted(PENDULUM, release, AWAY)
    assert_planted(estimate, PENDULUM, THREE)
    assert estimate.cost < 1e-12


FURUTA = stiff(builtin.furuta()).set(
    {
        "arm.inertia.xx": 1e-4,
        "arm.inertia.yy": 0.003,
        "arm.inertia.zz": 0.003,
        "pendulum.inertia.yy": 0.004,
        "pendulum.inertia.zz": 0.00395,
        "hinge1.viscous": 1e-3,
        "hinge2.viscous": 2e-4,
        "hinge1.dry": 6e-4,
        "hinge2.dry": 2e-4,
        "hinge1.motor.gain": 0.12,
    }
)
# The paper's thirteen: five inertias, four frictions, the gain, and the tilt's three.
THIRTEEN = {
    "arm.inertia.xx": 0.01,
    "arm.inertia.yy": 0.01,
    "arm.inertia.zz": 0.01,
    "pendulum.inertia.yy": 0.01,
    "pendulum.inertia.zz": 0.01,
    "hinge1.viscous": 1e-4,
    "hinge2.viscous": 1e-4,
    "hinge1.dry": 1e-4,
    "hinge2.dry": 1e-4,
    "hinge1.motor.gain": 0.2,
    "gravity.tilt": None,
}


def test_planted_furuta_with_thirteen_parameters():
    turn = np.array([np.cos(0.01), np.sin(0.01), 0.0, 0.0])
    truth = FURUTA.set({"gravity.tilt": turn})
    recording = twin(truth, {"hinge2": 2.0}, 250, inputs={"u": pulses(250, size=0.4)})
    estimate = planted(FURUTA, recording, THIRTEEN)
    seen = ["arm.inertia.zz", "pendulum.inertia.yy", "pendulum.inertia.zz", "hinge1.motor.gain"]
    frictions = ["hinge1.viscous", "hinge2.viscous", "hinge1.dry", "hinge2.dry"]
    assert_planted(estimate, truth, [*seen, *frictions])
    rows = {row.name: row for row in estimate.parameters}
    # Of the tilt only gravity's direction is seen, whatever the turn about the vertical.
    np.testing.assert_allclose(estimate.mechanism().gravity.vector(), truth.gravity.vector(), atol=1e-5)
    # The arm turns about one axis, and gravity about itself is no turn: the data say nothing about these.
    for name in ("arm.inertia.xx", "arm.inertia.yy", "gravity.tilt.z"):
        assert not rows[name].identifiable or rows[name].at_bound, estimate.summary()
    assert all(rows[name].identifiable for name in (*seen, *frictions))


def test_planted_cartpole():
    truth = stiff(builtin.cartpole())
    free = {"cart.mass": 1.0, "pole.inertia.yy": 0.02, "rail.viscous": 0.1, "pivot.viscous": 5e-3}
    recording = twin(truth, {"pivot": 2.0}, 150, inputs={"u": pulses(150, size=2.0)})
    assert_planted(planted(truth, recording, free), truth, free)


def test_planted_chain_of_four():
    truth = stiff(builtin.chain(4))
    free = {f"link{i}.inertia.yy": 6e-4 for i in range(2, 5)} | {f"hinge{i}.viscous": 5e-4 for i in range(1, 5)}
    recording = twin(truth, {"hinge1": 1.2, "hinge2": -0.8, "hinge3": 0.6, "hinge4": 1.0}, 150)
    assert_planted(planted(truth, recording, free), truth, free)


# --- the paper's synthetic study ------------------------------------------------------------------------------------

STUDY = {"arm.inertia.zz": 0.01, "pendulum.inertia.yy": 0.01, "hinge1.viscous": 1e-4, "hinge2.viscous": 1e-4}


def with_compliance(mechanism, value):
    names = [f"hinge{i}.compliance.{kind}" for i in (1, 2) for kind in ("linear", "rotational")]
    return mechanism.set(dict.fromkeys(names, value))


TRUE = {"arm.inertia.zz": 0.003, "pendulum.inertia.yy": 0.004, "hinge1.viscous": 1e-3, "hinge2.viscous": 1e-4}


def with_noise(recording, seed):
    """White noise of 1 mrad on all channels."""
    rng = np.random.default_rng(seed)
    noisy = {name: clean + 1e-3 * rng.standard_normal(clean.shape) for name, clean in recording.channels.items()}
    return dataclasses.replace(recording, channels=noisy)


@pytest.fixture(scope="module")
def clean_study():
    """Three seconds of the release: truth at h = 1e-4 s and ε = 1e-6, sampled at 100 Hz."""
    plain = builtin.furuta(friction=False).set(
        {
            "arm.inertia.xx": 1e-4,
            "arm.inertia.yy": 0.003,
            "pendulum.inertia.zz": 0.004,
            **TRUE,
        }
    )
    truth = with_compliance(plain, 1e-6)
    return plain, twin(truth, {"hinge2": np.pi - 0.03}, 30000, timestep=1e-4, every=100)


@pytest.fixture(scope="module")
def study(clean_study):
    plain, recording = clean_study
    return plain, with_noise(recording, 0)


def refitted(estimate, parameters):
    """The same problem solved from the same initial trajectory and other parameters."""
    problem = estimate.problem
    start = start_point(problem)
    still = tuple(np.zeros((len(nodes.pose.position), 6 * len(problem.mechanism.bodies))) for nodes in start.nodes)
    wanted = np.array([parameters[label] for label in problem.parameters.labels()])
    moved = objective.plus(problem, start, still, wanted - problem.parameters.flat(start.values))
    return dataclasses.replace(estimate, outcome=minimise(problem, moved, estimate.weights, LevenbergMarquardt()))


def longest_descent(numbers):
    """Of the descents of a fit: each of them reports the point that it begins from, which the one before ended at."""
    begins = [number for last, number in itertools.pairwise(numbers) if number == last]
    return np.max(np.diff([0, *begins, numbers[-1]]))


def assert_quick(mechanism, recording, discretization):
    """At most ten iterations to the minimum that is found from the true parameters too.

    Joints softer than the machine's take inertias beyond what the held moments of the same body allow. These give way,
    and the fit goes on beside them: a second descent, from the minimum of the first.
    """
    numbers = []
    estimate = fit(
        mechanism,
        recording,
        STUDY,
        options=Options(**STEPPER, discretization=discretization),
        progress=lambda iteration: numbers.append(iteration.number),
    )
    assert estimate.converged, estimate.summary()
    assert longest_descent(numbers) <= 10, estimate.summary()
    other = refitted(estimate, TRUE)
    assert estimate.cost == pytest.approx(other.cost, rel=1e-5)
    for row, same in zip(estimate.parameters, other.parameters, strict=True):
        assert row.at_bound or row.value == pytest.approx(same.value, abs=0.3 * same.std), (row, same)


@pytest.mark.parametrize("discretization", ["exact", "spook"])
@pytest.mark.parametrize("compliance", [1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9])
def test_implicit_fits_converge_quickly_at_any_stiffness(study, compliance, discretization):
    plain, recording = study
    assert_quick(with_compliance(plain, compliance), recording, discretization)


@pytest.mark.parametrize("discretization", ["exact", "spook"])
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_fits_with_joints_that_sag_converge_quickly_whatever_the_noise(clean_study, seed, discretization):
    """Compliances of 1e-3: joints give by 2 cm where the rod swings through; the recording is of rigid ones."""
    plain, recording = clean_study
    assert_quick(with_compliance(plain, 1e-3), with_noise(recording, seed), discretization)


def test_exact_discretisation_gives_physical_inertias_where_spook_is_biased(study):
    plain, recording = study
    found = {}
    for discretization in ("exact", "spook"):
        estimate = fit(
            with_compliance(plain, 1e-6), recording, STUDY, options=Options(**STEPPER, discretization=discretization)
        )
        assert estimate.converged
        found[discretization] = values_of(estimate)
    assert found["exact"]["arm.inertia.zz"] == pytest.approx(0.003, rel=0.02), found
    assert found["exact"]["pendulum.inertia.yy"] == pytest.approx(0.004, rel=0.02), found
    assert found["spook"]["arm.inertia.zz"] > 1.1 * 0.003, found


def test_the_papers_residual_breaks_down_for_stiff_joints(study):
    plain, recording = study
    options = dataclasses.replace(Options.paper(), timestep=None)
    papers = LevenbergMarquardt(max_iterations=20, damping="identity")
    estimate = fit(with_compliance(plain, 1e-8), recording, STUDY, options=options, optimiser=papers)
    assert not estimate.converged or abs(values_of(estimate)["pendulum.inertia.yy"] / 0.004 - 1.0) > 0.1


def test_random_starts_reach_the_same_minimum(study):
    plain, recording = study
    rng = np.random.default_rng(0)
    mechanism = with_compliance(plain, 1e-6)
    reached = []
    for _ in range(4):
        start = {name: value * 5.0 ** rng.uniform(-1.0, 1.0) for name, value in TRUE.items()}
        estimate = fit(mechanism, recording, start, options=Options(**STEPPER))
        assert estimate.converged, estimate.summary()
        reached.append([values_of(estimate)[name] for name in ("arm.inertia.zz", "pendulum.inertia.yy")])
    # The weight of the dynamics is the mass at the start, so that minima differ a little between starts.
    np.testing.assert_allclose(reached, np.tile(np.median(reached, axis=0), (4, 1)), rtol=0.03)


# --- several recordings, inputs -------------------------------------------------------------------------------------


def test_several_recordings_share_parameters_and_keep_their_own():
    """Different lengths and rates; the encoder's zero is each recording's own."""
    recordings = []
    for offset, start, steps, every in ((0.1, 2.5, 120, 1), (-0.05, 1.5, 200, 2)):
        part = twin(PENDULUM, {"hinge": start}, steps, every=every, name=f"run{every}")
        shifted = {"theta": part.channels["theta"] + offset}
        recordings.append(dataclasses.replace(part, channels=shifted))
    free = {"pendulum.inertia.yy": 0.01, "hinge.viscous": 1e-3, "theta.offset": Free(per_recording=True)}
    estimate = planted(PENDULUM, recordings, free)
    assert_planted(estimate, PENDULUM, ["pendulum.inertia.yy", "hinge.viscous"])
    found = values_of(estimate)
    assert found["theta.offset@0"] == pytest.approx(0.1, abs=1e-6)
    assert found["theta.offset@1"] == pytest.approx(-0.05, abs=1e-6)
    assert estimate.mechanism(1).get("theta.offset") == pytest.approx(-0.05, abs=1e-6)
    assert [len(estimate.trajectory(i).time) for i in (0, 1)] == [121, 201]


def driven_pendulum(**drive):
    """The pendulum with a motor."""
    with_motor = with_joint(PENDULUM, "hinge", laws=Parts({"motor": TorqueMotor(0.05, 1e-5)}))
    return Mechanism(
        dict(with_motor.bodies.items()),
        dict(with_motor.joints.items()),
        sensors=dict(PENDULUM.sensors.items()),
        inputs={"u": Input(**drive)},
        name="driven",
    )


def test_gain_offset_and_delay_of_an_input():
    """The delay is a fraction of the step, and estimated as such."""
    steps = 250
    truth = driven_pendulum(gain=1.4, offset=0.15, delay=0.0043, hold="linear")
    recording = twin(truth, {"hinge": 0.5}, steps, inputs={"u": 2.0 * np.sin(0.12 * np.arange(steps)) ** 3})
    free = {"u.gain": 1.0, "u.offset": 0.0, "u.delay": 0.001, "pendulum.inertia.yy": 0.005}
    estimate = planted(driven_pendulum(hold="linear"), recording, free)
    assert_planted(estimate, truth, free, 1e-4)


# --- states alone, robust loss, wrapping ----------------------------------------------------------------------------


def test_states_alone(noisy):
    estimate = fit(PENDULUM, noisy, options=Options(**STEPPER))
    assert estimate.converged
    assert estimate.parameters == ()
    motion = simulate(
        PENDULUM,
        place(PENDULUM, {"hinge": 2.5}),
        {},
        timestep=0.01,
        steps=200,
        discretization="exact",
        joints="compliant",
        substeps=1,
    )
    truth = np.asarray(motion.readings["theta"])
    error = np.std(estimate.trajectory().readings["theta"] - truth)
    assert error < 0.5 * np.std(noisy.channels["theta"] - truth)


def test_huber_loss_ignores_outliers(noisy):
    spoiled = noisy.channels["theta"].copy()
    spoiled[20::25] += 0.3
    recording = dataclasses.replace(noisy, channels={"theta": spoiled})
    clean, plain, robust = (
        values_of(fit(PENDULUM, own, AWAY, options=Options(**STEPPER, huber=huber)))["pendulum.inertia.yy"]
        for own, huber in ((noisy, None), (recording, None), (recording, 2.0))
    )
    assert abs(robust - clean) < 0.2 * abs(plain - clean), (clean, plain, robust)


def test_angles_over_many_turns():
    spinning = twin(PENDULUM, {"hinge": 0.0}, 220, speeds={"hinge": 25.0}, skip=20)
    assert np.ptp(spinning.channels["theta"]) > 4 * 2 * np.pi
    wrapped = np.mod(spinning.channels["theta"] + np.pi, 2 * np.pi) - np.pi
    estimates = [
        planted(PENDULUM, dataclasses.replace(spinning, channels={"theta": theta}), AWAY)
        for theta in (spinning.channels["theta"], wrapped)
    ]
    for estimate in estimates:
        assert_planted(estimate, PENDULUM, THREE)


def test_missing_and_uneven_samples_still_give_the_truth(release):
    holed = release.channels["theta"].copy()
    holed[50:60] = np.nan
    recording = dataclasses.replace(release, channels={"theta": holed})
    with pytest.warns(UserWarning, match="missing"):
        estimate = planted(PENDULUM, recording, AWAY)
    assert_planted(estimate, PENDULUM, THREE)


# --- priors and bounds ----------------------------------------------------------------------------------------------


def test_priors_hold_parameters_and_bounds_are_kept(noisy):
    free = values_of(fit(PENDULUM, noisy, AWAY))
    held = {**AWAY, "hinge.viscous": Free(start=1e-3, prior=1e-9)}
    believed = values_of(fit(PENDULUM, noisy, held))
    assert believed["hinge.viscous"] == pytest.approx(1e-3, rel=1e-3)
    bounded = fit(PENDULUM, noisy, {**AWAY, "pendulum.inertia.yy": Free(0.01, 0.006, 0.02)}, options=Options(**STEPPER))
    row = next(row for row in bounded.parameters if row.name == "pendulum.inertia.yy")
    assert free["pendulum.inertia.yy"] < 0.006 == row.value
    assert row.at_bound
    assert np.isnan(row.std)
    assert bounded.converged, bounded.summary()


# --- doors ----------------------------------------------------------------------------------------------------------


def test_single_precision_is_refused(release):
    with jax.enable_x64(False), pytest.raises(ShadowfitError, match="double precision is off"):
        fit(PENDULUM, release, AWAY)


def test_unknown_parameters_are_refused_before_anything_is_computed(release):
    with pytest.raises(UnknownNameError, match=r"did you mean 'hinge\.viscous'"):
        fit(PENDULUM, release, ["hinge.viscus"])


def test_a_wild_start_is_refused(release):
    with pytest.raises(ShadowfitError, match=r"starts at 1e\+160; it must be a finite number, between 1e-50"):
        fit(PENDULUM, release, {**AWAY, "pendulum.inertia.yy": 1e160}, options=Options(**STEPPER))


def test_data_of_another_kind_end_with_a_status():
    """Noise instead of motion: whatever is found, it is finite and has a status."""
    time = 0.01 * np.arange(201)
    recording = Recording(time, {"theta": 3.0 * np.random.default_rng(0).standard_normal(201)})
    estimate = fit(
        PENDULUM, recording, AWAY, options=Options(**STEPPER), optimiser=LevenbergMarquardt(max_iterations=5)
    )
    assert np.isfinite(estimate.cost)
    assert np.all(np.isfinite(list(values_of(estimate).values())))
