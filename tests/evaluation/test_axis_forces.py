"""Unexplained forces along the joints' axes: planted ones are found, whatever the fit's weights and unknowns."""

import dataclasses

import numpy as np
import pytest

from shadowfit.dynamics import place
from shadowfit.estimation import Options, fit
from shadowfit.evaluation import axis_forces as module
from shadowfit.evaluation.axis_forces import axis_forces
from shadowfit.evaluation.force_figure import numbers, section
from shadowfit.kernels.along import along
from shadowfit.models import load_model

# Stiff enough for the motion to be smooth, and loose enough for the missing force to show.
KAPPA = 1e2


@pytest.fixture(scope="module")
def frictionless(recording, base):
    """A fit of the swing, whose hinge is damped by 4e-4 N m s/rad, without any friction."""
    model = load_model("pendulum").mechanism.set({**base, "pendulum.inertia.yy": 0.0035, "hinge.viscous": 0.0})
    model = model.set({"hinge.dry": 0.0})

    def fitted(weight):
        return fit(model, recording, (), options=Options(state_weight=weight))

    return fitted


def test_missing_friction_shows_against_speed(frictionless):
    force = axis_forces(frictionless(KAPPA))[0]["hinge"]
    speed, mean, _ = force.binned("speed", 6)
    assert np.all(mean[speed > 2.0] < 0.0)
    assert np.all(mean[speed < -2.0] > 0.0)
    assert np.polyfit(force.speed[5:-5], force.force[5:-5], 1)[0] < -2e-4


def test_added_weight_does_not_hide_it(frictionless):
    """With states weighed a million times more the forces are those of the levels that are believed."""
    loose, tight = frictionless(KAPPA), frictionless(1e6 * KAPPA)
    std = loose.weights.reference / np.diagonal(loose.weights.dynamics)
    tight = dataclasses.replace(tight, weights=dataclasses.replace(tight.weights, impulse_std=tuple(std.tolist())))
    expected, found = (axis_forces(one)[0]["hinge"].force for one in (loose, tight))
    np.testing.assert_allclose(found, expected, atol=0.02 * np.std(expected))


def test_impulses_on_bodies_are_projected_on_the_axes():
    mechanism = load_model("furuta").mechanism
    state = place(mechanism, {"hinge1": 0.3, "hinge2": 1.1})
    arrays = [np.asarray(x)[None] for x in (state.pose.position, state.pose.orientation, state.velocity)]
    gaps, axes = along(module._jacobians, mechanism, arrays, ("hinge1", "hinge2"))
    torques = np.array([[0.7, -0.2]])
    # Torques of the joints act on the bodies along the rows that turn velocities into the joints' speeds.
    impulse = np.einsum("kj,kjx->kx", torques, axes)
    np.testing.assert_allclose(module._along_axes(gaps, axes, impulse), torques, atol=1e-9)


def test_the_report_draws_them(saved):
    (joint,) = numbers(saved)
    assert joint["unit"] == "N m"
    assert [chart["over"] for chart in joint["charts"]] == ["speed [rad/s]", "position [rad]", "time [s]"]
    table = saved.forces["swing"]
    over_time = joint["charts"][-1]["means"][0]
    blocks = np.array_split(table["hinge.unexplained [N m]"], len(over_time["y"]))
    np.testing.assert_allclose(over_time["y"], [np.mean(block) for block in blocks], rtol=1e-4, atol=1e-12)
    np.testing.assert_allclose(
        table["hinge.speed [rad/s]"], np.gradient(table["hinge.position [rad]"], table["time [s]"]), atol=1e-6
    )
    assert "strongest force" in section(saved)
