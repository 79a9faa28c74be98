"""The reference mass: known bodies, and what it does to residuals about light axes."""

import numpy as np
import pytest

from estimation.scenes import blank, problem_of
from shadowfit.dynamics import place
from shadowfit.dynamics.elements import assemble
from shadowfit.estimation.residuals.reference_mass import reference_mass
from shadowfit.geometry import Pose
from shadowfit.mechanism import Body, Mechanism
from shadowfit.models import builtin


@pytest.mark.parametrize(
    ("inertia", "expected"),
    [
        ((1e-9, 0.02, 0.02), 0.02),  # a rod
        ((0.02, 0.01, 0.01), 0.02),  # a disc
        ((0.02, 0.02, 0.02), 0.03),  # a ball
    ],
)
def test_moment_about_the_centre_of_mass(inertia, expected):
    bodies = assemble(Mechanism({"body": Body(0.7, inertia)}, {})).bodies
    np.testing.assert_allclose(reference_mass(bodies), [[0.7] * 3 + [expected] * 3], rtol=1e-6)


@pytest.mark.slow
def test_errors_of_angular_velocity_weigh_the_same_about_all_axes():
    """Also about the long axes of arm and rod, which have next to no inertia and are held by the hinges."""
    slender = {"arm.inertia.xx": 1e-4, "arm.inertia.yy": 0.003, "arm.inertia.zz": 0.003, "pendulum.inertia.xx": 1e-4}
    mechanism = builtin.furuta(friction=False).set(slender)
    problem = problem_of(mechanism, blank(mechanism), ["hinge1.viscous"])
    resting = place(mechanism, {"hinge1": 0.3, "hinge2": 2.0}).pose
    poses = Pose(*(np.stack([x] * 3) for x in (np.asarray(resting.position), np.asarray(resting.orientation))))
    here = problem.at(problem.parameters.start(), 0)
    command = tuple(x[:1] for x in problem.commands_at(problem.parameters.start(), 0))
    timestep, small = 0.01, 1e-6

    def residual(increment):
        moved = resting.plus(increment)
        last = Pose(*(x.copy() for x in (poses.position, poses.orientation)))
        last.position[2], last.orientation[2] = np.asarray(moved.position), np.asarray(moved.orientation)
        return here.dynamics_residuals(last, command, timestep)[0]

    still = residual(np.zeros((2, 6)))
    mass = [(residual(small * step.reshape(2, 6)) - still) * timestep / small for step in np.eye(12)]
    moments = [np.trace(np.asarray(body.inertia.matrix())) / 2 for body in mechanism.bodies.values]
    weights = [[float(body.mass)] * 3 + [j] * 3 for body, j in zip(mechanism.bodies.values, moments, strict=True)]
    np.testing.assert_allclose(np.diagonal(mass), np.ravel(weights), rtol=1e-4)
    np.testing.assert_allclose(mass - np.diag(np.diagonal(mass)), 0.0, atol=1e-6)
