"""What the data do not tell of bodies stays near the model file's; what they tell is not moved by it."""

import numpy as np
import pytest

from estimation.arms import arm, driven
from shadowfit.estimation import Options, fit
from shadowfit.estimation.uncertainty.base_parameters import base_parameters, linear_parameters
from shadowfit.estimation.uncertainty.file_prior import LEAST_SPREAD, file_spread, settled

JOINTS, STEPS = 2, 400
NUMBERS = ("mass", "com.x", "com.y", "com.z", *(f"inertia.{axes}" for axes in ("xx", "yy", "zz", "xy", "xz", "yz")))


def numbers(mechanism, body):
    return np.array([[float(mechanism.get(f"{body}.{name}")) for name in NUMBERS]])


def scaled(mechanism, factor):
    """Bodies of another density, and a size that goes with it."""
    bodies = [f"link{i}" for i in range(1, JOINTS + 1)]
    return mechanism.set(
        {f"{body}.mass": factor * mechanism.get(f"{body}.mass") for body in bodies}
        | {
            f"{body}.{name}": factor * mechanism.get(f"{body}.{name}")
            for body in bodies
            for name in NUMBERS
            if name.startswith("inertia")
        }
    )


@pytest.fixture(scope="module")
def truth():
    machine = arm(JOINTS)
    return machine, driven(machine, STEPS, noise=1e-5)


@pytest.fixture(scope="module", params=[1.3, 0.02])
def estimate(request, truth):
    """Fits with a file that is somewhat off, and with one of placeholders."""
    machine, recording = truth
    # The recording obeys the equations of the step itself.
    options = Options(correction="none")
    return fit(scaled(machine, request.param), recording, ("*.inertial",), options=options), request.param


def test_what_the_data_do_not_tell_stays(estimate):
    found, _ = estimate
    assert found.converged
    untold = [row for row in found.parameters if not row.identifiable]
    # The first link turns about one axis, and the motion does not see all of its inertia.
    assert "link1.inertia.zz" in {row.name for row in untold}
    assert all(abs(row.value - row.start) < 2.0 * row.prior_std for row in untold)


def test_what_the_data_tell_is_the_machines(estimate, truth):
    """Base parameters within their error bars, whatever the file says."""
    found, _ = estimate
    parameters = found.problem.parameters
    right = np.array([float(truth[0].get(name)) for name in parameters.labels()])
    linear = linear_parameters(found.evidence, right, parameters.units())
    values = dict(zip(linear.names, linear.values, strict=True))
    told = found.base_parameters.combinations
    off = [(one.value - sum(c * values[n] for n, c in one.coefficients.items())) / one.std for one in told]
    assert len(told) > JOINTS
    assert np.sqrt(np.mean(np.square(off))) < 2.0


def test_a_file_that_is_far_off_is_not_believed(estimate):
    found, factor = estimate
    spread = found.weights.file_spread
    assert spread == LEAST_SPREAD if factor > 1.0 else spread > LEAST_SPREAD


def test_the_spread_is_a_fixed_point(estimate):
    found, _ = estimate
    point, evidence = found.outcome.linearisation.point, found.evidence
    again = file_spread(found.problem, point, found.weights, evidence)
    assert settled(found.weights.file_spread, again)


def test_the_covariance_of_the_data_knows_nothing_of_the_file(estimate):
    """Told combinations have the base parameters' error bars; what the file alone tells is all but unknown."""
    found, _ = estimate
    parameters, kind = found.problem.parameters, "gauss-newton"
    values = parameters.vector(found.outcome.linearisation.point.values)
    of_data, with_file = found.covariance_of_data(kind), found.uncertainty(kind).covariance
    wider = np.sqrt(np.diagonal(of_data) / np.diagonal(with_file))
    assert np.all(wider > 0.999)
    assert wider.max() > 30.0
    linear = linear_parameters(found.evidence, values, parameters.units())
    spread = np.linalg.inv(linear.jacobian_inverse) @ of_data @ np.linalg.inv(linear.jacobian_inverse).T
    told = base_parameters(found.evidence, values, parameters.units(), kind).combinations
    best = min(told, key=lambda one: one.std / abs(one.value))
    row = np.array([best.coefficients.get(name, 0.0) for name in linear.names])
    assert np.sqrt(row @ spread @ row) == pytest.approx(best.std, rel=0.05)


def test_values_of_the_data_are_the_machines(estimate, truth):
    """Combinations that the data tell, without the pull of the file, within bars that know nothing of it."""
    found, _ = estimate
    parameters = found.problem.parameters
    values = parameters.vector(found.outcome.linearisation.point.values)
    linear = linear_parameters(found.evidence, values, parameters.units())
    by_values = np.linalg.inv(linear.jacobian_inverse)
    right = np.array([float(truth[0].get(name)) for name in parameters.labels()])
    wanted = linear_parameters(found.evidence, right, parameters.units()).values
    alone = linear.values + by_values @ (found.values_of_data() - values)
    spread = by_values @ found.covariance_of_data() @ by_values.T
    off = []
    for one in found.base_parameters.combinations:
        row = np.array([one.coefficients.get(name, 0.0) for name in linear.names])
        off.append(row @ (alone - wanted) / np.sqrt(row @ spread @ row))
    assert np.sqrt(np.mean(np.square(off))) < 2.0


@pytest.mark.slow
def test_a_rotor_is_not_known_by_what_the_file_says_of_its_link(truth):
    """The first rotor turns with its link alike: the file alone tells them apart, and its bodies are 1.3 times off."""
    machine, recording = truth
    free = ("*.inertial", "*.shaft_inertia", "*.viscous")
    found = fit(scaled(machine, 1.3), recording, free, options=Options(correction="none"))
    rows = {row.name: row for row in found.parameters}
    rotors = [name for name in rows if name.endswith("shaft_inertia")]
    assert rotors
    assert not rows[rotors[0]].identifiable
    alone, spread = np.sqrt(np.diagonal(found.covariance_of_data())), found.uncertainty().std
    others = np.diagonal(found.evidence.file_prior) == 0.0
    held = found.at_bound
    assert np.all(spread[others & ~held] >= (1.0 - 1e-9) * alone[others & ~held])
    for name, row in rows.items():
        if name.endswith("viscous") and not row.at_bound:
            assert abs(row.value - float(machine.get(name))) < 4.0 * row.std, name
