"""The library of built-in models: files and Python functions agree, and listing them does not start JAX."""

import subprocess
import sys

import jax
import numpy as np
import pytest

from shadowfit.dynamics.elements import assembled
from shadowfit.dynamics.kinematics import gap_values
from shadowfit.mechanism import Coulomb
from shadowfit.models import builtin, library, load_model, read_model
from trees import same_trees

FUNCTIONS = ("cartpole", "chain4", "fourbar", "furuta", "incline", "pendulum")
NAMES = (*FUNCTIONS, "xl330")


def test_listing():
    assert tuple(library()) == NAMES
    assert all(description and "\n" not in description for description in library().values())


def test_listing_loads_nothing_heavy_and_reading_no_jax():
    program = (
        "import sys, shadowfit; from shadowfit.models import library; assert library(); "
        "assert not {'jax', 'numpy'} & set(sys.modules), 'heavy imports'; "
        "assert shadowfit.read_model('pendulum').name == 'pendulum'; "
        "assert {'jax', 'numpy'} & set(sys.modules) == {'numpy'}"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_files_are_what_the_functions_give(name):
    function = getattr(builtin, name.rstrip("4"))
    assert same_trees(read_model(name), function())


@pytest.mark.parametrize("name", ["fourbar", "furuta", "incline"])  # a loop, a tree, a free body
def test_starts_close_all_joints(name):
    model = load_model(name)
    state = model.start.state(model.mechanism)
    gaps = jax.jit(gap_values)(assembled(model.mechanism), state.pose)
    assert np.all(np.abs(gaps) < 1e-9)


def test_every_model_starts_somewhere():
    for name in NAMES:
        start = load_model(name).start
        assert start.positions or start.poses


def test_friction_is_a_choice():
    for name in ("pendulum", "furuta", "cartpole"):
        make = getattr(builtin, name)
        with_, without = make(friction=True), make(friction=False)
        assert all(isinstance(joint.friction, Coulomb) for joint in with_.joints.values)
        assert all(joint.friction is None for joint in without.joints.values)
        shared = [leaf for leaf in without.leaves() if leaf in with_.leaves()]
        assert len(shared) == len(without.leaves())
        assert all(np.array_equal(with_.get(leaf), without.get(leaf)) for leaf in shared)
    assert builtin.cartpole(friction=True).get("rail.coulomb") == 0.05


def test_sizes_are_a_choice():
    linkage = builtin.fourbar(0.4, 0.12, 0.3, 0.25, density=2.0)
    for name, length in (("crank", 0.12), ("coupler", 0.3), ("rocker", 0.25)):
        assert linkage.get(f"{name}.mass") == 2.0 * length
        np.testing.assert_allclose(linkage.get(f"{name}.inertia.yy"), 2.0 * length**3 / 12, rtol=1e-15)
    assert linkage.get("ground_rocker.parent_point.x") == 0.4
    slope = builtin.incline(0.2, 0.1)
    np.testing.assert_allclose(slope.gravity.vector(), [9.82 * np.sin(0.2), 0.0, -9.82 * np.cos(0.2)], atol=1e-14)
    assert slope.get("floor.friction") == 0.1


def test_names_of_the_paper():
    furuta, pendulum = read_model("furuta"), read_model("pendulum")
    assert (furuta.bodies.names, furuta.joints.names) == (("arm", "pendulum"), ("hinge1", "hinge2"))
    assert (furuta.sensors.names, furuta.inputs.names) == (("theta1", "theta2"), ("u",))
    assert (pendulum.bodies.names, pendulum.joints.names, pendulum.sensors.names) == (
        ("pendulum",),
        ("hinge",),
        ("theta",),
    )
    table = {
        "arm.mass": 0.238,
        "arm.inertia.zz": 0.01,
        "pendulum.mass": 0.428,
        "pendulum.inertia.xx": 1e-4,
        "pendulum.inertia.yy": 0.01,
        "hinge1.viscous": 1e-4,
        "hinge1.dry": 1e-4,
        "hinge1.dry_radius": 1.0,
        "hinge1.motor.gain": 0.1,
        "hinge1.motor.shaft_inertia": 4e-4,
        "hinge1.compliance.linear": 1e-4,
        "hinge1.compliance.rotational": 1e-4,
        "hinge1.damping": 0.02,
        "hinge2.child_point.x": -0.092,
    }
    assert {name: furuta.get(name) for name in table} == table
    assert furuta.get("gravity.tilt").tolist() == [1.0, 0.0, 0.0, 0.0]
