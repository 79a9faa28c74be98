"""Compiled rows equal those of XLA, for every choice of residual, unknowns and sampling; own and foreign parts."""

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest

from estimation.scenes import full_furuta, problem_of, shaken
from shadowfit.estimation.problem.step_kernels import StepKernels
from shadowfit.estimation.problem.weights import default_weights
from shadowfit.estimation.solve import objective
from shadowfit.kernels import is_own
from shadowfit.mechanism import Coulomb
from shadowfit.models import builtin
from shadowfit.recordings import Recording

# Both ways are asked for here.
pytestmark = pytest.mark.filterwarnings("ignore:XLA computes")

PATHS = {"PYTHONPATH": os.pathsep.join(sys.path)}
FREE = ["arm.inertia.zz", "pendulum.com.x", "hinge1.viscous", "hinge2.dry", "hinge1.motor.gain", "gravity.tilt"]


def by_xla(problem):
    """The same problem, evaluated by XLA."""
    slow = dataclasses.replace(problem)
    slow.__dict__["kernels"] = StepKernels(problem.plan, problem.mechanism, largest=10)
    return slow


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"unknowns": "joint"}, id="joint", marks=pytest.mark.slow),
        pytest.param({}, id="poses", marks=pytest.mark.slow),
        pytest.param({"timestep": 0.013, "huber": 1.0}, id="poses off-grid", marks=pytest.mark.slow),
        pytest.param(
            {"discretization": "spook", "residual": "inverse", "unknowns": "full"}, id="paper", marks=pytest.mark.slow
        ),
    ],
)
def test_kernels_and_xla_agree(options):
    mechanism = builtin.furuta().set({"hinge1.dry": 6e-4, "hinge2.dry": 2e-4})
    problem = problem_of(mechanism, motion(), FREE, **options)
    point = shaken(problem, 1e-3)
    weights = default_weights(problem, 100.0)
    ours, theirs = (objective.linearise(p, point, weights) for p in (problem, by_xla(problem)))
    np.testing.assert_allclose(ours.cost.total, theirs.cost.total, rtol=1e-9)
    for name in ("pivot", "after"):
        left, right = getattr(ours.normals[0], name), getattr(theirs.normals[0], name)
        np.testing.assert_allclose(left, right, rtol=1e-7, atol=1e-9 * np.abs(right).max())


def motion():
    """Thirty samples of a smooth motion of both joints, 10 ms apart."""
    time = 0.01 * np.arange(30)
    channels = {"theta1": 0.3 * np.sin(3.0 * time), "theta2": 2.0 + np.cos(4.0 * time), "u": np.sin(20.0 * time)}
    return Recording(time, channels)


class Outsider(Coulomb):
    """A friction law that is not of the package."""


def test_parts_from_outside_are_noticed():
    assert is_own(builtin.furuta())
    assert is_own(full_furuta())
    mechanism = builtin.furuta()
    joint = dataclasses.replace(mechanism.joints["hinge1"], friction=Outsider())
    assert not is_own(joint)


def test_a_program_that_keeps_its_problem_ends_without_a_word():
    program = (
        "from estimation.scenes import blank, problem_of\n"
        "from shadowfit.models import builtin\n"
        "problem = problem_of(builtin.pendulum(), blank(builtin.pendulum()))\n"
        "problem.kernels\n"
    )
    settings = {"env": {**os.environ, **PATHS}, "capture_output": True, "text": True}
    assert subprocess.run([sys.executable, "-c", program], check=True, **settings).stderr == ""
