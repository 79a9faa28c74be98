"""One transition: zero where the stepper goes, and derivatives by states and by every kind of parameter."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynamics.scenes import central_difference
from estimation.scenes import blank, dc_cartpole, full_furuta, problem_of, stiff_fourbar
from shadowfit.dynamics import assemble, balance, body_forces, place, simulate
from shadowfit.dynamics.exact import step as exact_step
from shadowfit.dynamics.spook import step as spook_step
from shadowfit.dynamics.state import State
from shadowfit.dynamics.velocity_problem import complementary_count
from shadowfit.estimation import transition
from shadowfit.estimation.linearise import prepare, write
from shadowfit.models import builtin

TIMESTEP = 0.01
STEPPERS = {"spook": spook_step, "exact": exact_step}

COMMON = ["gravity.tilt", "gravity.acceleration"]
SCENES = {
    "furuta": (
        full_furuta,
        {"hinge1": 0.3, "hinge2": 2.0},
        {"hinge1": 1.5, "hinge2": -2.0},
        [
            *COMMON,
            "arm.mass",
            "pendulum.mass",
            "arm.inertia.*",
            "pendulum.inertia.*",
            "arm.com.*",
            "pendulum.com.*",
            "hinge2.parent_point.*",
            "hinge2.child_point.*",
            "hinge1.child_rotation",
            "hinge*.compliance.*",
            "hinge*.damping",
            "hinge*.viscous",
            "hinge*.dry",
            "hinge*.coulomb",
            "hinge*.dry_radius",
            "hinge1.stribeck*",
            "hinge1.motor.*",
            "hinge2.spring.*",
            "hinge2.drag.*",
            "push.force.*",
            "push.torque.*",
        ],
    ),
    "cartpole": (
        dc_cartpole,
        {"rail": 0.1, "pivot": 1.0},
        {"rail": -0.6, "pivot": 2.0},
        [
            *COMMON,
            "cart.mass",
            "pole.mass",
            "pole.inertia.yy",
            "rail.motor.*",
            "rail.coulomb",
            "pivot.coulomb",
            "rail.dry",
        ],
    ),
    "fourbar": (
        stiff_fourbar,
        {"ground_crank": -1.0},
        {"ground_crank": 3.0},
        [
            *COMMON,
            "coupler.mass",
            "rocker.inertia.yy",
            "crank_coupler.parent_point.x",
            "ground_crank.coulomb",
            "*.viscous",
        ],
    ),
    "chain": (
        lambda: builtin.chain(3, friction=True),
        {"hinge1": 0.4, "hinge2": -0.7, "hinge3": 0.5},
        {"hinge1": 1.0, "hinge2": -2.0, "hinge3": 1.5},
        [*COMMON, "link2.mass", "link3.com.x", "hinge3.child_point.x", "hinge*.coulomb", "hinge2.compliance.linear"],
    ),
}
METHODS = [(residual, discretization) for residual in ("implicit", "inverse") for discretization in STEPPERS]


BATCH = 64


class Scene:
    """A mechanism in motion, its transitions as functions of increments of states and (scaled) parameters."""

    def __init__(self, name: str, residual: str, discretization: str):
        build, self.positions, self.speeds, free = SCENES[name]
        self.mechanism = build()
        self.problem = problem_of(
            self.mechanism, blank(self.mechanism), free, residual=residual, discretization=discretization
        )
        plan, self.parameters = self.problem.plan, self.problem.parameters
        self.discretization = discretization
        self.bodies = bodies = len(self.mechanism.bodies)
        self.rows = 6 * bodies
        self.command = jnp.linspace(0.4, 0.8, len(self.mechanism.inputs))
        self.scale = self.parameters.spread(lambda p: p.scale)
        self.width = 3 * self.rows + plan.parameters
        numbers, turns = self.problem.current(self.parameters.start(), 0)
        prepared = prepare(plan, self.problem.mechanism, numbers, turns)
        self.elements = prepared.elements
        # Off the constraints, so that no load is zero: friction has a kink there.
        rng = np.random.default_rng(5)
        exact = place(self.mechanism, self.positions, self.speeds)
        self.state = State(
            exact.pose.plus(3e-4 * rng.standard_normal((bodies, 6))),
            exact.velocity + 1e-2 * rng.standard_normal((bodies, 6)),
        )
        self.reached = self._step()
        self.new = self.reached + 1e-3 * rng.standard_normal((bodies, 6))

        def evaluate(x):
            states, own = x[: 3 * self.rows].reshape(3, bodies, 6), x[3 * self.rows :] * self.scale
            elements = assemble(write(plan, self.problem.mechanism, numbers, turns, own))
            slopes = jnp.zeros((len(self.mechanism.inputs), plan.parameters))
            driven = transition.Driven(elements, prepared.element_tangents, prepared.reference, self.command, slopes)
            return transition.linearise(
                driven,
                plan.columns,
                self.state.pose.plus(states[0]),
                self.state.velocity + states[1],
                self.new + states[2],
                jnp.asarray(TIMESTEP),
                residual,
                discretization,
            )

        # One compiled function for everything: values, derivatives, and the points of the differences.
        self.batch = jax.jit(jax.vmap(evaluate))
        self.here = jax.tree.map(lambda leaf: np.asarray(leaf[0]), self.batch(np.zeros((BATCH, self.width))))

    def residuals(self, points):
        filled = np.concatenate([points, np.zeros((-len(points) % BATCH, self.width))])
        parts = [np.asarray(self.batch(part).residual) for part in filled.reshape(-1, BATCH, self.width)]
        return np.concatenate(parts)[: len(points)]

    def _step(self):
        """Velocity after the stepper's own step."""
        guess = jnp.zeros(complementary_count(self.elements), bool)
        step = jax.jit(STEPPERS[self.discretization])
        return step(self.elements, self.state, self.command, jnp.asarray(TIMESTEP), guess)[0].velocity


@pytest.fixture(scope="module", params=[(name, *method) for name in SCENES for method in METHODS], ids="-".join)
def scene(request):
    return Scene(*request.param)


def test_derivatives_equal_finite_differences(scene):
    here, rows = scene.here, scene.rows
    analytic = np.concatenate(
        [x.reshape(rows, -1) for x in (here.by_pose, here.by_velocity, here.by_new_velocity)]
        + [here.by_parameters * scene.scale],
        axis=1,
    )
    numeric = central_difference(scene.residuals, np.zeros(scene.width), 1e-6)
    labels = [f"{kind}{i}" for kind in ("q", "v", "n") for i in range(rows)] + scene.parameters.labels()
    # Rounding in the residual, which the stiffness of the joints magnifies, limits the differences.
    floor = 1e-9 * np.max(np.abs(here.by_pose))
    for label, own, reference in zip(labels, analytic.T, numeric.T, strict=True):
        allowed = 2e-6 * np.max(np.abs(reference)) + floor
        np.testing.assert_allclose(own, reference, rtol=0.0, atol=allowed, err_msg=label)


def test_every_parameter_acts(scene):
    """No derivative is zero by omission."""
    moved = np.any(scene.here.by_parameters != 0.0, axis=0)
    idle = {label for label, acts in zip(scene.parameters.labels(), moved, strict=True) if not acts}
    # Turning gravity about itself changes nothing.
    assert idle <= {"gravity.tilt.z"}


def test_residual_is_the_momentum_short_of_the_steppers(scene):
    if scene.problem.plan.residual == "inverse":
        command, timestep = scene.command, jnp.asarray(TIMESTEP)
        missing = jax.jit(balance.missing_impulse, static_argnames="discretization")
        expected = missing(
            scene.elements,
            scene.state.pose,
            scene.state.velocity,
            scene.new,
            command,
            timestep,
            discretization=scene.discretization,
        )
    else:
        inertia = body_forces.world_inertia(scene.elements, scene.state.pose)
        expected = body_forces.times_mass(scene.elements, inertia, scene.new - scene.reached)
    scale = np.max(np.abs(expected))
    np.testing.assert_allclose(scene.here.residual, np.ravel(expected), rtol=0.0, atol=1e-10 * max(scale, 1.0))


def test_no_residual_on_the_steppers_own_trajectory(scene):
    """A simulation's transitions miss nothing, whether its friction slides, sticks or turns around."""
    motion = simulate(
        scene.mechanism,
        place(scene.mechanism, scene.positions, scene.speeds),
        dict(zip(scene.mechanism.inputs, np.asarray(scene.command), strict=True)),
        timestep=TIMESTEP,
        steps=BATCH,
        discretization=scene.discretization,
    )
    pose, velocity = motion.states.pose, np.asarray(motion.states.velocity)
    turned = jax.tree.map(lambda x: jnp.broadcast_to(x, (BATCH, *x.shape)), scene.state.pose)
    moved = np.stack([pose[:-1].minus(turned), velocity[:-1] - scene.state.velocity, velocity[1:] - scene.new], axis=1)
    points = np.concatenate([moved.reshape(BATCH, -1), np.zeros((BATCH, scene.width - 3 * scene.rows))], axis=1)
    assert np.max(np.abs(scene.residuals(points))) < 1e-10
