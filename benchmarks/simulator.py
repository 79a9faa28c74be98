"""How fast the simulator is, with MuJoCo on the same mechanism as the yardstick.

Method: the Furuta pendulum in double precision, released from near upright with a sinusoidal motor voltage. A single
trajectory has ``--steps`` steps, a batch 256 trajectories of a fiftieth of that; times are the best of ``--repeat``
runs of a compiled program, compilation is the wall time of tracing and compiling it once in this process, without a
cache on disk. MuJoCo runs its own C loop (``mujoco.rollout``, one thread, semi-implicit Euler) on the model that the
tests use.

Targets: 20,000 steps/s for one trajectory without dry friction, 3,000 with it in both hinges, a batch of 256 ten times
that in total, and compilation below 4 s.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

from shadowfit.dynamics import State, exact, place, rollout, rollouts, spook
from shadowfit.dynamics.elements import assembled
from shadowfit.dynamics.kinematics import read_sensors
from shadowfit.dynamics.velocity_problem import complementary_count
from shadowfit.mechanism import Mechanism
from shadowfit.models import builtin

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from reference.mujoco_models import furuta_mjcf
from reference.reduced_ode import Furuta

TIMESTEP = 2e-3
BATCH = 256
STEPPERS = {"spook": spook, "exact": exact}


class Timing(NamedTuple):
    """One line of the table."""

    what: str
    steps_per_second: float
    compile_seconds: float | None
    target: float | None


def best(function: Callable[[], Any], repeat: int) -> float:
    """Shortest wall time [s] of a call, results included."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        jax.block_until_ready(function())
        times.append(time.perf_counter() - start)
    return min(times)


def compiled(function: Callable[..., Any], *arguments: Any) -> tuple[Callable[..., Any], float]:
    """A compiled function and the wall time [s] it took."""
    start = time.perf_counter()
    program = jax.jit(function).lower(*arguments).compile()
    return program, time.perf_counter() - start


def start_of(mechanism: Mechanism) -> State:
    """The pendulum at rest near upright."""
    return place(mechanism, {"hinge2": np.pi - 0.05})


def wave(steps: int) -> np.ndarray:
    """A sinusoidal motor voltage."""
    return np.sin(0.01 * np.arange(steps))[None]


def ours(friction: bool, stepper: str, batch: int, steps: int, repeat: int) -> Timing:
    """Steps per second of :func:`rollout`, readings of the sensors included."""
    mechanism = builtin.furuta(friction=friction)
    state, signals = start_of(mechanism), wave(steps)

    def run(mechanism: Mechanism, state: State, signals: np.ndarray) -> dict[str, jax.Array]:
        return rollout(mechanism, state, signals, TIMESTEP, stepper).readings

    def run_all(mechanism: Mechanism, states: State, signals: np.ndarray) -> dict[str, jax.Array]:
        return rollouts(mechanism, states, signals, TIMESTEP, stepper).readings

    if batch > 1:
        rng = np.random.default_rng(0)
        speeds = 0.5 * rng.normal(size=batch)
        states = [place(mechanism, {"hinge2": np.pi - 0.05 - 0.1 * abs(s)}, {"hinge1": s}) for s in speeds]
        state = jax.tree.map(lambda *x: jnp.stack(x), *states)
    program, seconds = compiled(run_all if batch > 1 else run, mechanism, state, signals)
    duration = best(lambda: program(mechanism, state, signals), repeat)
    target = (3_000 if friction else 20_000) * (10 if batch > 1 else 1) if stepper == "spook" else None
    if batch > 1 and not friction:
        target = None
    dry = "dry friction" if friction else "no dry friction"
    return Timing(f"{stepper}, {dry}, batch {batch}", batch * steps / duration, seconds, target)


def theirs(friction: bool, batch: int, steps: int, repeat: int) -> Timing:
    """MuJoCo's own loop on the same pendulum."""
    import mujoco  # noqa: PLC0415  (the yardstick is optional)
    from mujoco import rollout as engine  # noqa: PLC0415

    furuta = Furuta(arm_inertia=(0.01, 0.01, 0.01), pendulum_inertia=(1e-4, 0.01, 0.01), viscous=(1e-4, 1e-4))
    text = furuta_mjcf(furuta).replace('integrator="RK4"', f'integrator="Euler" timestep="{TIMESTEP}"')
    if friction:
        text = text.replace("damping=", 'frictionloss="1e-3" damping=')
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[:] = [0.0, np.pi - 0.05]
    size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    initial = np.zeros(size)
    mujoco.mj_getState(model, data, initial, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    states = np.tile(initial, (batch, 1))
    control = np.tile(wave(steps)[0][:, None], (batch, 1, 1))
    with engine.Rollout(nthread=0) as pool:
        duration = best(lambda: pool.rollout(model, data, states, control), repeat)
    dry = "dry friction" if friction else "no dry friction"
    return Timing(f"MuJoCo, {dry}, batch {batch}", batch * steps / duration, None, None)


def loop(step: Callable[[State], State], state: State, steps: int, repeat: int) -> float:
    """Time [µs] of one step of a compiled loop."""
    program, _ = compiled(lambda s: jax.lax.scan(lambda c, _: (step(c), None), s, None, length=steps)[0], state)
    return 1e6 * best(lambda: program(state), repeat) / steps


def split(stepper: str, steps: int, repeat: int) -> list[tuple[str, float]]:
    """Where a step's time goes [µs]: loops that do more and more of a step, and the differences between them."""
    module = STEPPERS[stepper]
    smooth, rough = builtin.furuta(friction=False), builtin.furuta()
    command, timestep = jnp.zeros(1), jnp.asarray(TIMESTEP)

    def only_move(state: State) -> State:
        return State(state.pose.plus(timestep * state.velocity), state.velocity)

    def rows_too(mechanism: Mechanism) -> Callable[[State], State]:
        elements = assembled(mechanism)

        def step(state: State) -> State:
            guess = jnp.concatenate([state.velocity, jnp.zeros((1, 6))])
            arguments = (elements, state, command, timestep) + ((guess,) if stepper == "exact" else ())
            problem = module.velocity_problem(*arguments)
            # Everything that was computed has to matter, or the compiler drops it.
            used = sum(jnp.sum(leaf) for leaf in jax.tree.leaves(problem))
            return only_move(State(state.pose, state.velocity + 1e-300 * used))

        return step

    def whole(mechanism: Mechanism) -> Callable[[State], State]:
        elements = assembled(mechanism)
        guess = jnp.zeros(complementary_count(elements), bool)
        return lambda state: module.step(elements, state, command, timestep, guess)[0]

    moved, with_rows, linear = (
        loop(step, start_of(smooth), steps, repeat) for step in (only_move, rows_too(smooth), whole(smooth))
    )
    frictional_rows, frictional = (
        loop(step, start_of(rough), steps, repeat) for step in (rows_too(rough), whole(rough))
    )
    states = jax.tree.map(lambda x: jnp.tile(x[None], (steps, *([1] * x.ndim))), start_of(smooth))
    elements = assembled(smooth)
    readings, _ = compiled(jax.vmap(lambda state: read_sensors(smooth, elements, state)), states)
    name = "linear solve" if stepper == "spook" else "Newton iterations (rows and linear solves)"
    return [
        ("loop and pose update", moved),
        ("geometry, forces, rows", with_rows - moved),
        (name, linear - with_rows),
        ("dry friction: more rows", frictional_rows - with_rows),
        ("dry friction: complementarity", (frictional - frictional_rows) - (linear - with_rows)),
        ("sensors, after the loop", 1e6 * best(lambda: readings(states), repeat) / steps),
    ]


def cold_simulate(friction: bool, stepper: str) -> tuple[float, float]:
    """Wall time [s] of the first `place` and the first `simulate` of 1000 steps, in a process of its own."""
    program = (
        "import time, jax; jax.config.update('jax_enable_x64', True)\n"
        "from shadowfit.dynamics import place, simulate\n"
        "from shadowfit.models import builtin\n"
        f"mechanism = builtin.furuta(friction={friction})\n"
        "jax.numpy.zeros(3).block_until_ready(); a = time.perf_counter()\n"
        "state = place(mechanism, {'hinge2': 3.0}); b = time.perf_counter()\n"
        f"simulate(mechanism, state, timestep=2e-3, steps=1000, discretization={stepper!r}); c = time.perf_counter()\n"
        "print(b - a, c - b)\n"
    )
    import subprocess  # noqa: PLC0415

    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    placed, simulated = map(float, output.split())
    return placed, simulated


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20_000, help="steps of a single trajectory")
    parser.add_argument("--repeat", type=int, default=3, help="runs of which the fastest counts")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    console = Console()
    load = os.getloadavg()[0]
    console.print(
        f"{os.cpu_count()} cores, load {load:.1f} at the start, JAX {jax.__version__}, time-step {TIMESTEP} s"
    )

    table = Table("program", "steps/s", "target", "compile [s]", title="Furuta pendulum, float64")
    for friction in (False, True):
        for batch in (1, BATCH):
            steps = options.steps if batch == 1 else max(options.steps // 50, 1)
            timings = [ours(friction, stepper, batch, steps, options.repeat) for stepper in STEPPERS]
            timings.append(theirs(friction, batch, steps, options.repeat))
            for timing in timings:
                target = "" if timing.target is None else f"{timing.target:,.0f}"
                seconds = "" if timing.compile_seconds is None else f"{timing.compile_seconds:.1f}"
                table.add_row(timing.what, f"{timing.steps_per_second:,.0f}", target, seconds)
        table.add_section()
    console.print(table)

    parts = Table(
        "part of a step", *(f"{stepper} [µs]" for stepper in STEPPERS), title="Where the time goes, one trajectory"
    )
    columns = [split(stepper, options.steps // 4, options.repeat) for stepper in STEPPERS]
    for spook_part, exact_part in zip(*columns, strict=True):
        name = spook_part[0] if spook_part[0] == exact_part[0] else f"{spook_part[0]} / {exact_part[0]}"
        parts.add_row(name, f"{spook_part[1]:.1f}", f"{exact_part[1]:.1f}")
    console.print(parts)

    cold = Table(
        "program", "place [s]", "simulate [s]", title="First calls in a new process, 1000 steps, no cache (target: 4 s)"
    )
    for stepper in STEPPERS:
        for friction in (False, True):
            placed, simulated = cold_simulate(friction, stepper)
            cold.add_row(
                f"{stepper}, {'dry friction' if friction else 'no dry friction'}", f"{placed:.1f}", f"{simulated:.1f}"
            )
    console.print(cold)


if __name__ == "__main__":
    main()
