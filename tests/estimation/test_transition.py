"""One transition: derivatives by states and by parameters of every kind equal finite differences."""

import fnmatch
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimation.scenes import blank, dc_cartpole, full_furuta, problem_of, stiff_fourbar
from quick import quick
from shadowfit.dynamics import place
from shadowfit.dynamics.inverse import inverse_dynamics
from shadowfit.dynamics.state import Moving
from shadowfit.estimation.residuals import transition
from shadowfit.estimation.residuals.equations import Equations
from shadowfit.estimation.residuals.parameter_layout import Parametrised
from shadowfit.kernels import over_time
from shadowfit.models import builtin

TIMESTEP = 0.01
# Leaves that the dynamics do not depend on.
SILENT = ("*.std", "*.offset", "*.delay", "*.stick_time", "u.*", "w.*", "v.*")
# Numbers that do not change the mobility of an axis. Where friction is a mean over the step, the others (viscous
# friction too, which damps within the step) also change the width over which it reverses, which derivatives leave out
# (docs/method.md).
FORCES = ("dry", "coulomb", "stribeck", "gain", "push", "gravity")
SCENES = {
    "furuta": (full_furuta, {"hinge1": 0.3, "hinge2": 2.0}, {"hinge1": 1.5, "hinge2": -2.0}),
    "cartpole": (dc_cartpole, {"rail": 0.1, "pivot": 1.0}, {"rail": 0.4, "pivot": -2.0}),
    "fourbar": (stiff_fourbar, {"ground_crank": 0.4}, {"ground_crank": 2.0}),
    # The axes turn within the step: velocities are changed at random by more than these.
    "turning furuta": (full_furuta, {"hinge1": 0.3, "hinge2": 2.0}, {"hinge1": 1e-3, "hinge2": -1e-3}),
}


def all_leaves(mechanism):
    """Every number of the mechanism that its dynamics may depend on."""
    return [leaf for leaf in mechanism.leaves() if not any(fnmatch.fnmatch(leaf, silent) for silent in SILENT)]


class Moved(Parametrised):
    """A machine at its values plus increments."""

    by: Any

    def moved(self, increments):
        return super().moved(self.by + increments)


# All of them together take minutes.
COMBINED = quick(
    itertools.product(SCENES, ("implicit", "inverse"), ("spook", "exact")),
    ("fourbar", "inverse", "spook"),
)


@pytest.mark.parametrize(("scene", "residual", "discretization"), COMBINED)
def test_derivatives_equal_finite_differences(scene, residual, discretization):
    build, positions, speeds = SCENES[scene]
    mechanism = build()
    averaged = (scene, residual, discretization) == ("turning furuta", "implicit", "exact")
    friction = "mean" if averaged else "stepper"
    free = all_leaves(mechanism)
    problem = problem_of(mechanism, blank(mechanism), free, residual=residual, discretization=discretization)
    plan = problem.plan
    values = problem.parameters.start()
    bodies = len(mechanism.bodies)
    size = 6 * bodies
    rng = np.random.default_rng(0)
    start = place(mechanism, positions, speeds)
    pose = start.pose.plus(1e-4 * rng.standard_normal((bodies, 6)))
    velocity = start.velocity + 0.01 * rng.standard_normal((bodies, 6))
    new = start.velocity + 0.02 * rng.standard_normal((bodies, 6))
    scale = problem.parameters.scales
    command = jnp.full(len(mechanism.inputs), 0.3)
    slopes = jnp.zeros((len(mechanism.inputs), len(plan.layout.inputs)))
    equations = Equations(residual, discretization, friction)

    def evaluate(settings, constants, varying):
        x = varying[0]
        states, own = x[: 3 * size].reshape(3, bodies, 6), x[3 * size :] * scale
        machine = Moved(plan.layout, problem.mechanism, jax.tree.map(jnp.asarray, values), own)
        moved = (pose.plus(states[0]), velocity + states[1], new + states[2])
        moving = Moving(*moved, command, jnp.asarray(TIMESTEP))
        found = transition.linearise(transition.Driven(machine, slopes), moving, equations)
        blocks = (found.by_pose, found.by_velocity, found.by_new_velocity)
        columns = [block.reshape(size, size) for block in blocks]
        return [found.residual, jnp.concatenate([*columns, found.by_parameters * scale], axis=1)]

    count = 3 * size + plan.parameters
    # Moved points change multipliers by their distance over the compliance: a larger step crosses a kink of |λ|.
    labels = problem.parameters.labels()
    step = np.array([1e-6] * (3 * size) + [1e-6 if "point" in label else 1e-4 for label in labels])
    moves = np.concatenate([np.zeros((1, count)), np.diag(step), -np.diag(step)])
    residuals, jacobians = over_time(evaluate, [], [], [moves[0]], None)([], [], [moves])
    analytic = jacobians[0]
    numeric = ((residuals[1 : count + 1] - residuals[count + 1 :]) / (2.0 * step[:, None])).T
    names = [f"{kind} {i}" for kind in ("pose", "velocity", "new velocity") for i in range(size)]
    largest = np.abs(analytic[:, : 3 * size]).max()
    # Second differences show what first ones suffer from: rounding, and the kinks of friction.
    doubt = residuals[1 : count + 1] + residuals[count + 1 :] - 2.0 * residuals[0]
    doubt = 4.0 * np.abs(doubt).max(axis=1) / step
    for column, name in enumerate([*names, *labels]):
        if averaged and column >= 3 * size and not any(word in name for word in FORCES):
            continue
        near = largest if column < 3 * size else np.abs(analytic[:, column]).max()
        tolerance = 2e-5 * near + doubt[column] + 1e-10  # of impulses of 1e-3 N s
        np.testing.assert_allclose(analytic[:, column], numeric[:, column], rtol=0.0, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("discretization", quick(["spook", "exact"], "spook"))
def test_the_stepper_s_own_prediction_has_no_residual(discretization):
    mechanism = builtin.furuta().set({"hinge1.dry": 6e-4, "hinge2.dry": 2e-4})
    problem = problem_of(mechanism, blank(mechanism), ["hinge1.dry"], discretization=discretization)
    machine = Parametrised(problem.plan.layout, problem.mechanism, problem.parameters.start())
    state = place(mechanism, {"hinge1": 0.3, "hinge2": 2.0}, {"hinge1": 1.5, "hinge2": -2.0})
    driven = transition.Driven(machine, jnp.zeros((1, 0)))

    def residual(settings, constants, varying):
        moving = Moving(state.pose, state.velocity, varying[0].reshape(2, 6), jnp.array([0.3]), jnp.asarray(TIMESTEP))
        equations = Equations("implicit", discretization, "stepper")
        return [transition.linearise(driven, moving, equations).residual]

    # r = M₀ (v' − φ) is affine in v' with a regular matrix: its values along every direction tell φ.
    speeds = state.velocity.ravel() + np.concatenate([np.zeros((1, 12)), np.eye(12)])
    values = over_time(residual, [], [], [speeds[0]], None)([], [], [speeds])[0].reshape(13, 12)
    reached = speeds[0] - np.linalg.solve((values[1:] - values[0]).T, values[0])
    missing = inverse_dynamics(mechanism, state, reached.reshape(2, 6), jnp.array([0.3]), TIMESTEP, discretization)
    np.testing.assert_allclose(missing, 0.0, atol=1e-9)
