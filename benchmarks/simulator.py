"""How fast the simulator is, with MuJoCo on the same mechanism as the yardstick.

Method: double precision, time-steps of 2 ms, no contacts. The Furuta pendulum is released from near upright with a
sinusoidal motor voltage, with and without dry friction in both hinges; a seven-axis arm and a humanoid of 32 hinges
(``trees.py``) fall from a random configuration. Rigid joints are stepped in joint coordinates by machine code
(``dynamics.rigid``, Newton's iteration to rounding errors), compliant ones by machine code (``dynamics.compliant``),
and by XLA (``rollout``). MuJoCo runs its own C
loop (``mujoco.rollout``, one thread, semi-implicit Euler, one evaluation a step). Times are processor time, the best of
``--repeat`` runs taken in turns; ratios are of one run. A batch has 64 trajectories, half as long as a single one; its
gain on all cores over one core is of wall times, the best of four times as many runs in turns, and means something only
on an idle machine. What the machine itself gives is told beside it: the same gain of processes that each run a batch of
their own on one core and share nothing. First calls are wall times in processes of their own, with an empty and with a
filled cache.

Targets: at least half of MuJoCo's steps per second; a batch on two cores 1.6 times that on one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import mujoco
import numpy as np
from mujoco import rollout as engine
from rich.console import Console
from rich.table import Table

from shadowfit.dynamics import State, compliant, place, rigid, rollout
from shadowfit.dynamics.elements import assembled
from shadowfit.dynamics.tree import tree_of
from shadowfit.kernels import processors
from shadowfit.mechanism import Mechanism
from shadowfit.models import builtin

sys.path[:0] = [str(Path(__file__).parents[1] / "tests"), str(Path(__file__).parents[1])]
from benchmarks.rigs import trees  # noqa: E402
from reference.mujoco_models import furuta_mjcf  # noqa: E402
from reference.reduced_ode import Furuta  # noqa: E402

TIMESTEP = 2e-3
BATCH = 64
# Runs of a batch, relative to those of a single trajectory: wall times ask for more of them.
BATCH_ROUNDS = 4


class Machine(NamedTuple):
    """A mechanism and the same for MuJoCo, with the positions of its joints at the start."""

    name: str
    mechanism: Mechanism
    mjcf: str
    start: list[float]
    """In the order of the mechanism's joints."""
    places: list[int]
    """Of these among MuJoCo's coordinates."""


def furuta(friction: bool) -> Machine:
    """The pendulum near upright."""
    reduced = Furuta(arm_inertia=(0.01, 0.01, 0.01), pendulum_inertia=(1e-4, 0.01, 0.01), viscous=(1e-4, 1e-4))
    text = furuta_mjcf(reduced).replace('integrator="RK4"', f'integrator="Euler" timestep="{TIMESTEP}"')
    if friction:
        text = text.replace("damping=", 'frictionloss="1e-3" damping=')
    name = f"furuta, {'dry friction' if friction else 'no dry friction'}"
    return Machine(name, builtin.furuta(friction=friction), text, [0.0, np.pi - 0.05], [0, 1])


def tree(name: str, parts: list[trees.Part]) -> Machine:
    """A tree of hinges somewhere."""
    start = (0.3 * np.random.default_rng(0).normal(size=len(parts))).tolist()
    text = trees.mjcf(parts, TIMESTEP)
    model = mujoco.MjModel.from_xml_string(text)
    places = [int(model.joint(f"j{i}").qposadr[0]) for i in range(len(parts))]
    return Machine(name, trees.mechanism(parts), text, start, places)


def all_machines() -> list[Machine]:
    """In the order of the tables."""
    return [furuta(False), furuta(True), tree("arm, 7 axes", trees.arm()), tree("32 hinges", trees.humanoid())]


def wave(steps: int) -> np.ndarray:
    """A sinusoidal command."""
    return np.sin(0.01 * np.arange(steps))


def start_of(machine: Machine) -> State:
    """The mechanism at rest."""
    return place(machine.mechanism, dict(zip(machine.mechanism.joints, machine.start, strict=True)))


def ours(machine: Machine, steps: int) -> Callable[[], Any]:
    """One trajectory of rigid joints."""
    structure, state = tree_of(machine.mechanism), start_of(machine)
    command = wave(steps)[:, None]

    def run() -> rigid.Run:
        found = rigid.run(structure, machine.mechanism, state, command, TIMESTEP)
        assert not np.any(found.status)
        return found

    return run


def by_code(machine: Machine, steps: int) -> Callable[[], Any] | None:
    """One trajectory of compliant joints by machine code, where there is any."""
    mechanism, state, command = machine.mechanism, start_of(machine), wave(steps + 1)[:, None]

    def run() -> compliant.Run | None:
        return compliant.run(mechanism, assembled(mechanism), state, command, TIMESTEP, "exact")

    return run if run() is not None else None


def by_xla(machine: Machine, steps: int) -> Callable[[], Any]:
    """One trajectory of compliant joints."""
    arguments = (machine.mechanism, start_of(machine), wave(steps)[None])
    program = jax.jit(lambda m, s, u: rollout(m, s, u, TIMESTEP).readings).lower(*arguments).compile()
    return lambda: jax.block_until_ready(program(*arguments))


def theirs(machine: Machine, steps: int) -> Callable[[], Any]:
    """MuJoCo's own loop."""
    model = mujoco.MjModel.from_xml_string(machine.mjcf)
    data = mujoco.MjData(model)
    data.qpos[machine.places] = machine.start
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    initial = np.zeros(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, initial, kind)
    pool = engine.Rollout(nthread=0)
    return lambda: pool.rollout(model, data, initial[None], wave(steps)[None, :, None])


def in_turns(programs: list[Callable[[], Any]], repeat: int) -> list[float]:
    """Shortest processor time of each [s]."""
    times: list[list[float]] = [[] for _ in programs]
    for _ in range(repeat + 1):
        for program, own in zip(programs, times, strict=True):
            begin = time.process_time()
            program()
            own.append(time.process_time() - begin)
    return [min(own[1:]) for own in times]


def batch(machine: Machine, steps: int) -> Callable[[], Any]:
    """Many trajectories of rigid joints."""
    structure, state = tree_of(machine.mechanism), start_of(machine)
    states = jax.tree.map(lambda x: np.repeat(np.asarray(x)[None], BATCH, axis=0), state)
    command = np.random.default_rng(0).normal(size=(BATCH, 1, 1)) * wave(steps)[None, :, None]
    return lambda: rigid.run(structure, machine.mechanism, states, command, TIMESTEP)


def on_cores(program: Callable[[], Any], cores: int) -> float:
    """Wall time of a program that shares its work out among so many threads [s]."""
    before = os.environ.get(processors.VARIABLE)
    os.environ[processors.VARIABLE] = str(cores)
    try:
        begin = time.perf_counter()
        program()
        return time.perf_counter() - begin
    finally:
        os.environ.pop(processors.VARIABLE)
        if before is not None:
            os.environ[processors.VARIABLE] = before


class Workers:
    """Processes that each run the batch of a machine on one core, when they are told to."""

    def __init__(self, machine: int, steps: int, count: int) -> None:
        command = [sys.executable, __file__, "--worker", str(machine), "--steps", str(steps)]
        environment = {**os.environ, processors.VARIABLE: "1"}
        self._processes = [
            subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(count)
        ]

    def seconds(self, count: int) -> float:
        """Wall time until so many of them have done it, side by side [s]."""
        chosen = self._processes[:count]
        begin = time.perf_counter()
        for process in chosen:
            assert process.stdin is not None
            print("go", file=process.stdin, flush=True)
        for process in chosen:
            assert process.stdout is not None
            process.stdout.readline()
        return time.perf_counter() - begin

    def close(self) -> None:
        """End them."""
        for process in self._processes:
            process.communicate()


def work(machine: Machine, steps: int) -> None:
    """What such a process does."""
    program = batch(machine, steps)
    for _ in sys.stdin:
        program()
        print("done", flush=True)


def batch_times(number: int, machine: Machine, steps: int, repeat: int) -> dict[str, float]:
    """Shortest wall times [s] of a batch on one core and on all, of one process with a batch, and of one for each core.

    In turns: the machine's speed varies.
    """
    cores, program = len(os.sched_getaffinity(0)), batch(machine, steps)
    workers = Workers(number, steps, cores)
    ways: dict[str, Callable[[], float]] = {
        "one core": lambda: on_cores(program, 1),
        "all cores": lambda: on_cores(program, cores),
        "one process": lambda: workers.seconds(1),
        "all processes": lambda: workers.seconds(cores),
    }
    try:
        times = [{name: way() for name, way in ways.items()} for _ in range(repeat + 1)]
    finally:
        workers.close()
    return {name: min(one[name] for one in times[1:]) for name in ways}


def first_simulation(folder: str) -> float:
    """Wall time of the first `simulate` of 1000 steps in a process of its own [s], with kernels in a folder."""
    program = (
        "import time\nfrom shadowfit import load_model, place, simulate\n"
        "mechanism = load_model('furuta').mechanism\nstate = place(mechanism, {'hinge2': 3.0})\n"
        "begin = time.perf_counter()\n"
        "simulate(mechanism, state, timestep=2e-3, steps=1000, joints='rigid', substeps=1)\n"
        "print(time.perf_counter() - begin)\n"
    )
    environment = {**os.environ, "SHADOWFIT_KERNELS": folder}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    return float(run.stdout)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10_000, help="steps of a single trajectory")
    parser.add_argument("--repeat", type=int, default=5, help="runs of which the fastest counts")
    parser.add_argument("--worker", type=int, help="run batches of this machine when told to, on one core")
    parser.add_argument("--no-xla", action="store_true", help="leave out XLA, which takes long to compile")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    if options.worker is not None:
        work(all_machines()[options.worker], options.steps)
        return
    console = Console()
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start, JAX {jax.__version__}")
    machines = all_machines()

    kinds = {"rigid": ours, "MuJoCo": theirs, "compliant": by_code, "by XLA": by_xla}
    table = Table("machine", *(f"{kind} [steps/s]" for kind in kinds), "rigid : MuJoCo (≥ 0.5)")
    for machine in machines:
        small = len(machine.start) < 3
        wanted = {"rigid", "MuJoCo", *(["compliant"] * small), *(["by XLA"] * (small and not options.no_xla))}
        made = {kind: make(machine, options.steps) for kind, make in kinds.items() if kind in wanted}
        programs = {kind: program for kind, program in made.items() if program is not None}
        seconds = dict(zip(programs, in_turns(list(programs.values()), options.repeat), strict=True))
        rates = [f"{options.steps / seconds[kind]:,.0f}" if kind in seconds else "" for kind in kinds]
        table.add_row(machine.name, *rates, f"{seconds['MuJoCo'] / seconds['rigid']:.2f}")
    console.print(table)

    cores = len(os.sched_getaffinity(0))
    batches = Table(
        "machine",
        "one core [steps/s]",
        "all cores [steps/s]",
        "gain (≥ 1.6 on two)",
        "ceiling (processes)",
    )
    steps = max(options.steps // 2, 1)
    for number, machine in enumerate(machines[:3]):
        found = batch_times(number, machine, steps, BATCH_ROUNDS * options.repeat)
        rates = [f"{BATCH * steps / found[which]:,.0f}" for which in ("one core", "all cores")]
        gain, ceiling = found["one core"] / found["all cores"], cores * found["one process"] / found["all processes"]
        batches.add_row(machine.name, *rates, f"{gain:.2f}", f"{ceiling:.2f}")
    console.print(batches)

    with tempfile.TemporaryDirectory() as folder:
        cold, warm = first_simulation(folder), first_simulation(folder)
    console.print(
        f"first `simulate` of 1000 steps in a process: {cold:.2f} s, with kernels of an earlier run {warm:.2f} s"
    )


if __name__ == "__main__":
    main()
