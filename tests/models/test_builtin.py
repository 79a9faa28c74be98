"""The built-in mechanisms: names and values of the tables, conventions of the angles, and that all of them move."""

import jax
import numpy as np
import pytest

from shadowfit.dynamics import place, simulate
from shadowfit.dynamics.elements import assembled
from shadowfit.dynamics.energy import kinetic, potential
from shadowfit.mechanism import Mechanism
from shadowfit.models import builtin

FURUTA = {
    "arm.mass": (0.238, "kg"),
    "pendulum.mass": (0.428, "kg"),
    "arm.inertia.xx": (0.01, "kg m²"),
    "arm.inertia.yy": (0.01, "kg m²"),
    "arm.inertia.zz": (0.01, "kg m²"),
    "pendulum.inertia.xx": (1e-4, "kg m²"),
    "pendulum.inertia.yy": (0.01, "kg m²"),
    "pendulum.inertia.zz": (0.01, "kg m²"),
    "hinge1.viscous": (1e-4, "N m s/rad"),
    "hinge2.viscous": (1e-4, "N m s/rad"),
    "hinge1.dry": (1e-4, "1"),
    "hinge2.dry": (1e-4, "1"),
    "hinge1.dry_radius": (1.0, "m"),
    "hinge2.dry_radius": (1.0, "m"),
    "hinge1.coulomb": (0.0, "N m"),
    "hinge1.motor.gain": (0.1, "N m/V"),
    "hinge1.motor.shaft_inertia": (4e-4, "kg m²"),
    "hinge1.compliance.linear": (1e-4, "m/N"),
    "hinge1.compliance.rotational": (1e-4, "rad/(N m)"),
    "hinge2.compliance.linear": (1e-4, "m/N"),
    "hinge1.damping": (0.02, "s"),
    "hinge2.damping": (0.02, "s"),
    "gravity.acceleration": (9.82, "m/s²"),
}
PENDULUM = {
    "pendulum.mass": (0.428, "kg"),
    "hinge.compliance.linear": (1e-4, "m/N"),
    "hinge.compliance.rotational": (1e-4, "rad/(N m)"),
    "hinge.damping": (0.02, "s"),
    "gravity.acceleration": (9.82, "m/s²"),
}


@pytest.mark.parametrize(("name", "expected"), FURUTA.items())
def test_furuta_has_the_papers_values_under_their_names(name: str, expected: tuple[float, str]) -> None:
    mechanism = builtin.furuta()
    assert (mechanism.get(name), mechanism.unit(name)) == expected


@pytest.mark.parametrize(("name", "expected"), PENDULUM.items())
def test_pendulum_has_the_papers_values_under_their_names(name: str, expected: tuple[float, str]) -> None:
    mechanism = builtin.pendulum()
    assert (mechanism.get(name), mechanism.unit(name)) == expected


def test_tilt_is_a_rotation() -> None:
    np.testing.assert_array_equal(builtin.furuta().get("gravity.tilt"), [1.0, 0.0, 0.0, 0.0])
    assert builtin.furuta().leaf("gravity.tilt").kind == "rotation"


def test_names_of_parts() -> None:
    furuta, pendulum = builtin.furuta(), builtin.pendulum()
    assert (furuta.bodies.names, furuta.joints.names) == (("arm", "pendulum"), ("hinge1", "hinge2"))
    assert (furuta.inputs.names, furuta.sensors.names) == (("u",), ("theta1", "theta2"))
    assert (pendulum.bodies.names, pendulum.joints.names, pendulum.sensors.names) == (
        ("pendulum",),
        ("hinge",),
        ("theta",),
    )


def kinetic_energy(mechanism: Mechanism, positions: dict[str, float], speeds: dict[str, float]) -> float:
    return float(jax.jit(kinetic)(assembled(mechanism), place(mechanism, positions, speeds)))


@pytest.mark.parametrize("theta2", [0.0, 0.7, 2.5])
def test_furuta_angles_couple_as_agreed(theta2: float) -> None:
    """T = ½ qdᵀ M qd with M12 = + m_B (l_1 + l_A) l_2 cos θ2, M22 = J_Byy + m_B l_2²; the shaft counts in M11."""
    mechanism = builtin.furuta()
    m_a, m_b, l_1, l_a, l_2 = 0.238, 0.428, 0.128, 0.248, 0.092
    at = {"hinge1": 0.4, "hinge2": theta2}
    both, first, second = (
        kinetic_energy(mechanism, at, speeds)
        for speeds in ({"hinge1": 1.0, "hinge2": 1.0}, {"hinge1": 1.0}, {"hinge2": 1.0})
    )
    s, c = np.sin(theta2), np.cos(theta2)
    m11 = 4e-4 + 0.01 + m_a * l_1**2 + m_b * (l_1 + l_a) ** 2 + (m_b * l_2**2 + 0.01) * s**2 + 1e-4 * c**2
    assert 2 * first == pytest.approx(m11, rel=1e-12)
    assert 2 * second == pytest.approx(0.01 + m_b * l_2**2, rel=1e-12)
    assert both - first - second == pytest.approx(m_b * (l_1 + l_a) * l_2 * c, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(("build", "joint"), [(builtin.furuta, "hinge2"), (builtin.pendulum, "hinge")])
def test_zero_is_hanging(build, joint: str) -> None:
    """The potential energy is least at zero."""
    mechanism = build()
    height = jax.jit(potential)
    energies = [float(height(assembled(mechanism), place(mechanism, {joint: angle}))) for angle in (-0.1, 0.0, 0.1)]
    assert energies[1] < min(energies[0], energies[2])
    assert energies[0] == pytest.approx(energies[2], rel=1e-12)


MODELS = {
    "pendulum": (builtin.pendulum, {"hinge": 1.0}),
    "furuta": (builtin.furuta, {"hinge2": 1.0}),
    "chain": (lambda: builtin.chain(3, friction=True), {"hinge1": 1.0}),
    "cartpole": (lambda: builtin.cartpole(friction=True), {"pivot": 1.0}),
    "fourbar": (builtin.fourbar, {"ground_crank": -1.0}),
}


@pytest.mark.parametrize("name", MODELS)
def test_all_models_move(name: str) -> None:
    build, positions = MODELS[name]
    mechanism = build()
    run = simulate(mechanism, place(mechanism, positions), timestep=5e-3, steps=100, joints="compliant", substeps=1)
    for values in run.readings.values():
        assert np.all(np.isfinite(values))
        assert np.ptp(values) > 1e-3


def test_models_without_friction_have_no_frictional_rows() -> None:
    for build in (builtin.pendulum, builtin.furuta):
        assert all(joint.friction is None for joint in build(friction=False).joints.values)
        assert all(joint.friction is not None for joint in build().joints.values)
