"""Processor times as ratios within one process, so that another machine, or a busy one, says nearly the same.

Each scenario has our time and that of a yardstick, one after the other, each the best of some runs after one that
compiles. Start-up is measured in processes of their own.
"""

from __future__ import annotations

import dataclasses
import resource
import time
from collections.abc import Callable
from typing import Any

from benchmarks.peers import shadowfit_fit, tasks
from benchmarks.peers.tasks import TASKS
from benchmarks.scoreboard.case import Case, Form
from benchmarks.scoreboard.outcomes import FOLDER
from shadowfit.runtime import start_jax

Times = dict[str, Any]
"""``ours`` and ``theirs`` [s], and what else there is to say."""


@dataclasses.dataclass(frozen=True)
class Scenario:
    """What is compared with what."""

    says: str
    times: Callable[[], Times]
    quick: bool = False


def best(work: Callable[[], Any], runs: int) -> float:
    """Shortest processor time of some runs, after one that does not count [s]."""
    times = []
    for _ in range(runs + 1):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times[1:])


def _casadi(name: str) -> Callable[[], Times]:
    def times() -> Times:
        from benchmarks.peers import casadi_shooting  # noqa: PLC0415  (each process loads its yardstick alone)

        task = TASKS[name]
        data = tasks.measure(task, 0, FOLDER / "truth")
        ours = best(lambda: shadowfit_fit.estimate(task, data), 3)
        return {"ours": ours, "theirs": best(lambda: casadi_shooting.estimate(task, data), 1)}

    return times


def _pinocchio(joints: int, branched: bool = False) -> Callable[[], Times]:
    def times() -> Times:
        from benchmarks.rigs import machines  # noqa: PLC0415

        ours, theirs = machines.step_times(joints, branched)
        return {"ours": ours, "theirs": theirs}

    return times


def _mujoco(number: int) -> Callable[[], Times]:
    def times() -> Times:
        from benchmarks import simulator  # noqa: PLC0415

        machine = simulator.all_machines()[number]
        programs = [made(machine, 10_000) for made in (simulator.ours, simulator.theirs)]
        ours, theirs = simulator.in_turns(programs, 5)
        return {"ours": ours, "theirs": theirs}

    return times


def _defaults(name: str) -> Callable[[], Times]:
    def times() -> Times:
        from benchmarks.rigs import machines  # noqa: PLC0415

        # The second of each has compiled nothing.
        given = [machines.fit_once(name, plain=False) for _ in range(2)][-1]
        plain = [machines.fit_once(name, plain=True) for _ in range(2)][-1]
        return {**plain, "ours": plain["seconds"], "theirs": given["seconds"]}

    return times


def _start_up(later: bool) -> Callable[[], Times]:
    def times() -> Times:
        from benchmarks.rigs import startup  # noqa: PLC0415

        return {"ours": startup.first_and_later()[later], "theirs": startup.libraries()}

    return times


SCENARIOS: dict[str, Scenario] = {
    "casadi-furuta": Scenario(
        "fit of a rotary pendulum, six numbers, over CasADi's with the exact equations",
        _casadi("furuta-pulse-near"),
        quick=True,
    ),
    "casadi-cartpole": Scenario("fit of cart and pole over CasADi's with the exact equations", _casadi("cartpole")),
    "pinocchio-7": Scenario("a step with all derivatives, seven axes, over Pinocchio's", _pinocchio(7), quick=True),
    "pinocchio-32": Scenario(
        "a step with all derivatives, tree of 32 joints, over Pinocchio's", _pinocchio(32, branched=True)
    ),
    "mujoco-furuta": Scenario("simulation of a rotary pendulum over MuJoCo's", _mujoco(0), quick=True),
    "mujoco-furuta-dry": Scenario("simulation of a rotary pendulum with dry friction over MuJoCo's", _mujoco(1)),
    "mujoco-arm": Scenario("simulation of an arm of seven axes over MuJoCo's", _mujoco(2), quick=True),
    "mujoco-32": Scenario("simulation of a tree of 32 hinges over MuJoCo's", _mujoco(3)),
    "defaults-arm": Scenario(
        "plain defaults over given weights, six-axis arm, 84 numbers, 30 s at 100 Hz", _defaults("arm6"), quick=True
    ),
    "defaults-chain-12": Scenario(
        "plain defaults over given weights, chain of 12 links, 36 numbers, 10 s", _defaults("chain12")
    ),
    "start-up": Scenario(
        "`shadowfit fit` of six numbers, whole command, over importing JAX and SciPy", _start_up(later=True), quick=True
    ),
    "start-up-first": Scenario(
        "`shadowfit fit` the first time on a machine, over importing JAX and SciPy", _start_up(later=False)
    ),
}


def cases(form: Form) -> list[Case]:
    """One for each scenario."""
    return [
        Case("speed", name, "run", limit=900.0)
        for name, scenario in SCENARIOS.items()
        if form == "full" or scenario.quick
    ]


def run(case: Case) -> Times:
    """Both times, and the memory that the process has had at most [MB]."""
    start_jax()
    found = SCENARIOS[case.scenario].times()
    return {"memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, **found}
