"""The interface of simulations: what comes out, how batches and lengths behave, and how they stop."""

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynamics.scenes import STEPPERS, flat, orders, run, with_joints
from shadowfit.complementarity import Status
from shadowfit.dynamics import State, place, rollout, rollouts, simulate
from shadowfit.dynamics.elements import assembled
from shadowfit.dynamics.energy import kinetic
from shadowfit.dynamics.exact import NewtonStatus
from shadowfit.dynamics.rollout import TOGETHER
from shadowfit.errors import ShadowfitError, SimulationError, UnknownNameError
from shadowfit.geometry import Pose
from shadowfit.mechanism import (
    AxisLaw,
    Body,
    BodyOrientation,
    FunctionSensor,
    JointLimit,
    JointPosition,
    Mechanism,
    PointPosition,
    View,
    hinge,
    slider,
)
from shadowfit.mechanism.leaves import number
from shadowfit.models import builtin
from shadowfit.pytrees import field

H = 4e-3
steppers = pytest.mark.parametrize("stepper", STEPPERS)


@steppers
def test_a_trajectory_has_one_more_time_than_steps(stepper: str) -> None:
    mechanism = builtin.furuta(friction=False)
    state = place(mechanism, {"hinge2": 2.0})
    swing = simulate(
        mechanism, state, timestep=H, steps=25, discretization=stepper, diagnostics=True, joints="compliant", substeps=1
    )
    assert len(swing) == 26
    np.testing.assert_allclose(swing.time, H * np.arange(26), rtol=1e-15)
    assert {leaf.shape[0] for leaf in jax.tree.leaves(swing)} == {26}
    assert set(swing.readings) == {"theta1", "theta2"}
    np.testing.assert_array_equal(swing.states.pose.position[0], state.pose.position)
    assert float(swing.readings["theta2"][0]) == pytest.approx(2.0, abs=1e-13)
    assert np.all(np.asarray(swing.status) == Status.SOLVED)
    assert np.all(np.asarray(swing.diagnostics.multipliers[0])[0] == 0.0)


@steppers
def test_energies_belong_to_their_times(stepper: str) -> None:
    """At the first time it is the initial state's, although the leapfrog starts half a step before: to second order."""
    mechanism = builtin.furuta(friction=False)
    state = place(mechanism, {"hinge2": 2.0}, {"hinge1": 2.0, "hinge2": 4.0})
    expected = float(jax.jit(kinetic)(assembled(mechanism), state))
    errors = [
        abs(float(run(mechanism, state, 0.1, timestep, stepper).diagnostics.kinetic[0]) / expected - 1.0)
        for timestep in (4e-3, 2e-3)
    ]
    if stepper == "spook":
        assert max(errors) < 1e-14
    else:
        assert errors[0] < 1e-3
        assert orders(errors)[0] > 1.7


def test_diagnostics_are_optional() -> None:
    mechanism = builtin.pendulum(friction=False)
    short = simulate(mechanism, place(mechanism), timestep=H, steps=3, joints="compliant", substeps=1)
    assert short.diagnostics is None


def test_mechanisms_without_joints_sensors_and_inputs() -> None:
    """A stone: free fall, and nothing to read."""
    mechanism = Mechanism({"stone": Body(1.0, (1, 2, 2.5))})
    for stepper, late in (("spook", 0.5 * H), ("exact", 0.0)):
        fall = simulate(
            mechanism,
            place(mechanism),
            timestep=H,
            steps=100,
            discretization=stepper,
            diagnostics=True,
            joints="compliant",
            substeps=1,
        )
        t = np.asarray(fall.time)
        expected = -0.5 * 9.82 * t * (t + 2 * late)
        np.testing.assert_allclose(fall.states.pose.position[:, 0, 2], expected, rtol=0, atol=1e-12)
        assert fall.readings == {}
        assert fall.diagnostics.multipliers == ()
        assert np.all(np.asarray(fall.diagnostics.gap) == 0.0)


def test_sensors_with_several_components() -> None:
    mechanism = Mechanism(
        {"rod": Body(1.0, (1, 1, 1))},
        {"pin": hinge("world", "rod", axis=(0, 1, 0), child_point=(-0.5, 0, 0))},
        sensors={
            "tip": PointPosition("rod", (0.5, 0, 0)),
            "attitude": BodyOrientation("rod"),
            "turns": JointPosition("pin"),
        },
    )
    spin = simulate(
        mechanism, place(mechanism, {}, {"pin": 40.0}), timestep=H, steps=120, joints="compliant", substeps=1
    )
    assert spin.readings["tip"].shape == (121, 3)
    assert spin.readings["attitude"].shape == (121, 4)
    np.testing.assert_allclose(np.linalg.norm(spin.readings["tip"], axis=1), 1.0, rtol=0.2)
    assert float(spin.readings["turns"][-1]) > 2 * np.pi  # an encoder counts on


@steppers
def test_a_longer_simulation_begins_like_a_shorter_one(stepper: str) -> None:
    """Whatever both are padded to."""
    mechanism = builtin.furuta(friction=False)
    state = place(mechanism, {"hinge2": 2.0})
    options = {"timestep": H, "discretization": stepper, "joints": "compliant", "diagnostics": True}
    wave = 0.3 * np.sin(np.arange(60))
    long = simulate(mechanism, state, {"u": wave}, steps=60, **options, substeps=1)
    short = simulate(mechanism, state, {"u": wave[:40]}, steps=40, **options, substeps=1)
    for name in ("theta1", "theta2"):
        np.testing.assert_allclose(short.readings[name], long.readings[name][:41], rtol=0, atol=1e-13)


@pytest.mark.slow
def test_simulate_and_rollout_are_one() -> None:
    """Padding, skipping and precomputed elements change nothing."""
    mechanism = builtin.furuta()
    state = place(mechanism, {"hinge2": 2.0}, {"hinge1": 1.0})
    signal = 0.3 * np.sin(np.arange(30))
    ours = simulate(
        mechanism, state, {"u": signal}, timestep=H, steps=30, diagnostics=True, joints="compliant", substeps=1
    )
    pure = jax.jit(rollout, static_argnames=("discretization", "diagnostics"))(
        mechanism, state, signal[None], H, diagnostics=True
    )
    np.testing.assert_allclose(flat(ours), flat(pure), rtol=0, atol=1e-12)


compilations = 0


def counted(view: View) -> jax.Array:
    """A sensor that notices when it is traced."""
    global compilations  # noqa: PLW0603
    compilations += 1
    return view.joint_position("pin")


class Cushion(AxisLaw):
    """A spring on one side, by an operation that machine code of the library's own has none for."""

    stiffness: Any = number("N m/rad", default=1.0)
    input: str | None = field(static=True, default=None)

    def torque(self, position: jax.Array, speed: jax.Array, command: jax.Array) -> jax.Array:
        del speed, command
        return -self.stiffness * jnp.sort(jnp.stack([position, jnp.zeros_like(position)]))[1]


@pytest.mark.filterwarnings("ignore::shadowfit.kernels.SlowerWarning")
def test_other_numbers_and_lengths_need_no_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    """By XLA, which compiles a loop for all numbers of steps up to its own."""
    monkeypatch.setattr(sys.modules["shadowfit.dynamics.outcomes"], "SHORTEST_LOOP", 64)
    mechanism = Mechanism(
        {"rod": Body(1.0, (1, 1, 1))},
        {"pin": hinge("world", "rod", laws={"cushion": Cushion()})},
        sensors={"counted": FunctionSensor(counted)},
    )

    def run(mechanism: Mechanism, steps: int, angle: float = 0.0, timestep: float = H) -> int:
        """Compilations so far, with that of this simulation."""
        state = place(mechanism, {"pin": angle})
        simulate(mechanism, state, timestep=timestep, steps=steps, joints="compliant", substeps=1)
        return compilations

    once = run(mechanism, 10)
    assert once > 0
    run(mechanism, 60, angle=1.0)
    assert run(mechanism.set({"rod.mass": 2.0, "pin.viscous": 0.1}), 1, timestep=2 * H) == once
    assert run(mechanism, 65) == 2 * once


def batch_of_starts(mechanism: Mechanism) -> State:
    """Angles, speeds and hence active sets of friction that differ from member to member."""
    states = [
        place(mechanism, {"hinge2": a}, {"hinge1": s}) for a, s in ((0.01, 0.0), (1.0, 0.5), (2.5, -3.0), (0.0, 0.0))
    ]
    return jax.tree.map(lambda *x: jnp.stack(x), *states)


@pytest.mark.slow
@steppers
def test_a_batch_equals_its_members(stepper: str) -> None:
    mechanism = with_joints(builtin.furuta(), coulomb=2e-3)
    states = batch_of_starts(mechanism)
    viscous = np.array([0.0, 1e-3, 1e-4, 2e-3])

    def swing(state: State, viscous: jax.Array) -> Any:
        changed = mechanism.write({"hinge1.viscous": viscous})
        return rollout(changed, state, 0.1 * jnp.ones((1, 40)), H, stepper)

    together = jax.jit(jax.vmap(swing))(states, viscous)
    one = jax.jit(swing)
    for i in range(4):
        alone = one(jax.tree.map(lambda x, i=i: x[i], states), viscous[i])
        np.testing.assert_allclose(flat(jax.tree.map(lambda x, i=i: x[i], together)), flat(alone), rtol=0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("own_signals", [False, True])
def test_rollouts_are_those_of_their_members(own_signals: bool) -> None:
    """More trajectories than are stepped together, some of them left over."""
    mechanism = builtin.furuta()
    count, steps = TOGETHER + 2, 5
    states = [place(mechanism, {"hinge2": angle}) for angle in np.linspace(0.1, 3.0, count)]
    together = jax.tree.map(lambda *x: jnp.stack(x), *states)
    signals = np.random.default_rng(0).normal(size=(count, 1, steps) if own_signals else (1, steps))
    found = jax.jit(lambda s, u: rollouts(mechanism, s, u, 0.01).readings["theta2"])(together, signals)
    one = jax.jit(lambda s, u: rollout(mechanism, s, u, 0.01).readings["theta2"])
    for i in (0, TOGETHER - 1, TOGETHER, count - 1):
        expected = one(states[i], signals[i] if own_signals else signals)
        np.testing.assert_allclose(found[i], expected, atol=1e-12)


def contradicting_stops() -> Mechanism:
    """Two rigid stops that cannot both hold: each alone is fine until the other is reached."""
    return Mechanism(
        {"cart": Body(1.0, (1, 1, 1))},
        {"rail": slider("world", "cart", axis=(1, 0, 0))},
        contacts={
            "behind": JointLimit("rail", lower=0.05, compliance=0.0),
            "ahead": JointLimit("rail", upper=0.02, compliance=0.0),
        },
        name="trap",
    )


def test_a_step_that_fails_stops_and_keeps_what_was_computed() -> None:
    mechanism = contradicting_stops()
    with pytest.raises(
        SimulationError, match=r"'trap' stopped at step 2 of 50 \(t = 0.008 s\): .*secondary ray"
    ) as stop:
        simulate(mechanism, place(mechanism), timestep=H, steps=50, joints="compliant", substeps=1)
    partial = stop.value.partial
    assert len(partial) == 2
    assert np.all(np.asarray(partial.status) == Status.SOLVED)
    assert 0.01 < float(partial.states.pose.position[-1, 0, 0]) <= 0.02 + 1e-12


@pytest.mark.slow
def test_a_rollout_keeps_its_last_state_and_says_why() -> None:
    mechanism = contradicting_stops()
    stopped = jax.jit(rollout)(mechanism, place(mechanism), np.zeros((0, 6)), H)
    assert list(np.asarray(stopped.status)) == [0, 0, *(5 * [int(Status.RAY)])]
    assert np.ptp(np.asarray(stopped.states.pose.position[1:, 0, 0])) == 0.0


def test_iterations_that_do_not_settle_are_reported() -> None:
    mechanism = builtin.furuta(friction=False)
    state = place(mechanism, {"hinge2": 2.0}, {"hinge1": 60.0, "hinge2": 80.0})
    with pytest.raises(SimulationError, match=r"did not settle; try a smaller time-step"):
        simulate(
            mechanism,
            state,
            timestep=0.05,
            steps=10,
            discretization="exact",
            diagnostics=True,
            joints="compliant",
            substeps=1,
        )
    assert NewtonStatus.NOT_SETTLED not in set(Status)


def test_divergence_is_an_error_and_never_a_nan() -> None:
    """Stiff joints without relaxation are not stable in SPOOK: stopped, with finite numbers up to there."""
    mechanism = with_joints(builtin.pendulum(friction=False), compliance=1e-10, damping=0.0)
    start = place(mechanism, {"hinge": 2.0})
    with pytest.raises(SimulationError, match=r"stopped at step \d+ of 1000 .*inaccurate") as stop:
        simulate(mechanism, start, timestep=8e-3, steps=1000, discretization="spook", diagnostics=True)
    assert len(stop.value.partial) > 100
    assert np.all(np.isfinite(flat(stop.value.partial.states)))


def changed(state: State, **values: Any) -> State:
    position, orientation = (
        values.get("position", state.pose.position),
        values.get("orientation", state.pose.orientation),
    )
    return State(Pose(position, orientation), values.get("velocity", state.velocity))


def furuta_state() -> State:
    return place(builtin.furuta(friction=False), {"hinge2": 1.0})


def attempt(state: State | None = None, inputs: Any = None, **options: Any) -> None:
    mechanism = builtin.furuta(friction=False)
    options = {"timestep": H, "steps": 10} | options
    simulate(mechanism, furuta_state() if state is None else state, inputs, **options)


def spinning_in_place() -> State:
    """The pendulum turns about its centre of mass, which would tear it off its hinge."""
    state = furuta_state()
    return changed(state, velocity=state.velocity + np.array([[0] * 6, [0, 0, 0, 5.0, 0, 0]]))


MISTAKES: dict[str, tuple[Callable[[], None], type[Exception], str]] = {
    "zero step": (lambda: attempt(timestep=0.0), SimulationError, "time-step is 0.0 s; it must be a positive number"),
    "negative step": (lambda: attempt(timestep=-1e-3), SimulationError, "must be a positive number"),
    "nan step": (lambda: attempt(timestep=np.nan), SimulationError, "must be a positive number"),
    "no steps": (lambda: attempt(steps=0), SimulationError, "number of steps is 0; it must be a whole number"),
    "half steps": (lambda: attempt(steps=2.5), SimulationError, "number of steps is 2.5; it must be a whole number"),
    "stepper": (lambda: attempt(discretization="spok"), UnknownNameError, "'spok'; did you mean 'spook'"),
    "input name": (lambda: attempt(inputs={"v": 1.0}), UnknownNameError, "no input 'v'; there are: u"),
    "input shape": (
        lambda: attempt(inputs={"u": np.zeros(9)}),
        SimulationError,
        r"input 'u' has shape \(9,\); give one number, 10 values",
    ),
    "input matrix": (
        lambda: attempt(inputs={"u": np.zeros((10, 1))}),
        SimulationError,
        r"input 'u' has shape \(10, 1\)",
    ),
    "input nan": (
        lambda: attempt(inputs={"u": np.full(10, np.nan)}),
        SimulationError,
        "'u' contains values that are not finite",
    ),
    "input function": (
        lambda: attempt(inputs={"u": lambda t: 1 / (t - H) if t != H else np.inf}),
        SimulationError,
        "not finite",
    ),
    "wrong state": (
        lambda: attempt(place(builtin.pendulum())),
        SimulationError,
        r"initial position has shape \(1, 3\); 'furuta' with 2 bodies needs \(2, 3\)",
    ),
    "nan state": (
        lambda: attempt(changed(furuta_state(), velocity=np.full((2, 6), np.nan))),
        SimulationError,
        "initial velocity contains values that are not finite",
    ),
    "no unit quaternion": (
        lambda: attempt(changed(furuta_state(), orientation=2.0 * furuta_state().pose.orientation)),
        SimulationError,
        "must be unit quaternions",
    ),
    "open joint": (
        lambda: attempt(
            changed(furuta_state(), position=furuta_state().pose.position + np.array([[0, 0, 0], [0, 0, 0.1]]))
        ),
        SimulationError,
        r"does not satisfy joint 'hinge2': it is open by 0.1 m; build the state with `place`",
    ),
    "turned joint": (
        lambda: attempt(
            changed(
                furuta_state(),
                orientation=np.stack([[np.cos(0.1), np.sin(0.1), 0, 0], furuta_state().pose.orientation[1]]),
            )
        ),
        SimulationError,
        r"does not satisfy joint 'hinge\d': it is open by .* rad",
    ),
    "opening joint": (lambda: attempt(spinning_in_place()), SimulationError, "joint 'hinge2': it opens by 0.387 m/s"),
}


@pytest.mark.parametrize(("attempt", "error", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_named(attempt: Callable[[], None], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        attempt()


def test_single_precision_is_refused() -> None:
    with jax.enable_x64(False), pytest.raises(ShadowfitError, match="double precision is off"):
        attempt(furuta_state())


def test_a_slightly_open_state_is_accepted() -> None:
    """Recorded and simulated states violate soft joints a little."""
    state = furuta_state()
    attempt(changed(state, position=np.asarray(state.pose.position) + 1e-3, velocity=np.asarray(state.velocity) + 1e-3))
