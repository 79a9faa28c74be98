"""Levenberg–Marquardt on the manifold of states and parameters, with bounds on the parameters (Algorithm 1).

Each iteration minimises the quadratic model plus damping,

    ‖J δ + Δz‖²_W + δᵀ D δ,    lower ≤ χ + δ_χ ≤ upper,    bodies that exist,

by eliminating the states (:mod:`front`) and solving the constrained step of the parameters (:mod:`box_step`,
:mod:`cone_step`). The damping is

* ``scaled``: ``D = α (diag(H)_i + c/s_i²)`` for the parameters, ``s_i`` a typical size and c the cost: without the
  floor, parameters that the data say nothing about fly to a bound in the first step. A tenth of ``α diag(H)`` for the
  states, which start nearer to where they end; it holds back smooth motions more than rough ones, which weigh more.
* ``identity``: ``D = α I``, the paper's.

The gain ratio compares the decrease with that of the quadratic model itself, so that active bounds need no special
case.

Equations of motion with a large weight are next to constraints, and the cost rises with the square of what a linear
model leaves of them. A step along their curve is then refused though it leads to where the cost is lower (Maratos'
effect). So a step that raises the cost is not judged at once: it is followed by up to two more, as long as these lower
the cost and promise one below that of the start (the "watchdog" of Chamberlain, Powell, Lemarechal and Pedersen, 1982).
"""

from __future__ import annotations

import dataclasses
import enum
import time
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from shadowfit.estimation.linear.box_step import BoxStep
from shadowfit.estimation.problem.parameters import ParameterSet
from shadowfit.estimation.problem.point import Point
from shadowfit.estimation.problem.problem import Problem
from shadowfit.estimation.problem.weights import Weights
from shadowfit.estimation.solve.proposal import INSIGNIFICANT, Damping, Proposal, share_of
from shadowfit.estimation.solve.system import LocalSystem, System
from shadowfit.records import record

# The paper's limit on α.
LARGEST_DAMPING = 2.0**32
# Below it damping is lost in the rounding of what it is added to.
SMALLEST_DAMPING = 1e-14
# First α of scaled damping. A start that is far off raises it by itself, in cheaper steps than it takes to come down.
START_DAMPING = 3e-3
# Damping to start from a solution. Any more would hold back smooth motions: a large κ weighs them (ωh)⁴ times less than
# the others, and damping does not.
WARM_DAMPING = 1e-14
# Least α after a refused step, and after a second one: below it only directions are held that hardly count, and the
# step stays as it was.
REFUSED_DAMPING = (1e-9, 1e-6)
# Factor on a small α that was too small for the digits of the numbers.
UNSOLVED = 10.0
# Further steps before one that raises the cost is judged, and the part of its promise that it must then have kept: with
# less it went across the valley, and more damping does better.
WATCHED, KEPT = 2, 0.25
# Least factor on α after an accepted step, where the scaled model predicted it to the last digit.
LEAST_RELAXATION = 1e-3
# A damping that was refused is kept in mind, and counts this much less with every search: relaxed as if nothing had
# happened, the next one would begin with the same refused steps, and end with the same short one.
FORGOTTEN = 0.1
# What is held while a fit moves (widths of dry friction) is found anew after a step that leaves less than this part of
# the cost, unless all of it is within a part of what it was: fitted to what a wild start makes of it, states go a long
# way round.
FAST, ALIKE = 0.5, 0.1
# Nor is creeping: so many iterations in a row that each decrease χ² by less than this. Where dry friction holds a joint
# the model of a step sees next to nothing of its speed, and the fit goes on in small steps for long.
CREEPING, CREEPS = 0.1, 5
# From a decrease of χ² below this on, parameters that the data do not tell (standard deviations of ten typical sizes)
# are held: they would wander to a bound for the rest of it, or have step after step refused. Before, a start value may
# be wrong by orders of magnitude, and its size says nothing.
NEARLY_THERE = 0.1
# So little damping no longer keeps them where they are, either: they are held from there on, too.
UNDAMPED = 1e-6


class Status(enum.Enum):
    """How an optimisation ended."""

    GRADIENT = "converged: the gradient is below its tolerance"
    STEP = "converged: the step is below its tolerance"
    DECREASE = "converged: the cost no longer decreases"
    ITERATIONS = "stopped at the iteration limit; raise it, or start nearer to the solution"
    STUCK = (
        "stopped: no step decreases the cost. Likely causes: joints too stiff for the `inverse` residual, a state "
        "weight far too large, or a model that cannot follow the data"
    )
    NUMERICS = (
        "stopped: numbers are no longer finite; the last good iterate is kept. Likely causes: a wild start value, "
        "wrong units, or a mechanism that is singular at the estimate"
    )
    INTERRUPTED = "interrupted; the best iterate so far is kept"

    @property
    def converged(self) -> bool:
        """Whether a minimum was reached."""
        return self in (Status.GRADIENT, Status.STEP, Status.DECREASE)


@record(frozen=True)
class LevenbergMarquardt:
    """Settings of the optimiser."""

    max_iterations: int = 200
    """Limit of accepted steps, of all descents of a fit together."""
    damping: Damping = "scaled"
    """``scaled`` or the paper's ``identity``."""
    start_damping: float | None = None
    """First α; None: 3e-3 for ``scaled``, 1e-6 max diag(H) for ``identity``."""
    starts_near: bool = False
    """Whether the start is the minimum of a problem with other weights: what the data do not tell is held at once."""
    gradient_tolerance: float = 0.0
    """Stops when ‖g‖ falls below (the paper's ε_g; its unit depends on the problem, hence off)."""
    step_tolerance: float = 1e-8
    """Stops when parameters move by less than this fraction of their size, and states by less than this [m, rad]."""
    decrease_tolerance: float = 1e-6
    """Stops when the model promises less than this fraction of the cost. It also stops when the cost falls by less than
    matters statistically twice in a row."""
    enough: float = 0.0
    """Stops before a step that is hardly damped and promises to decrease χ² by less than this: for a descent that is
    followed by one of a slightly different problem."""

    def warm(self, done: int = 0) -> LevenbergMarquardt:
        """The same from a solution of nearly the same problem, after so many iterations."""
        left = max(self.max_iterations - done, 0)
        return dataclasses.replace(self, start_damping=WARM_DAMPING, starts_near=True, max_iterations=left)

    @classmethod
    def paper(cls) -> LevenbergMarquardt:
        """The paper's: ε_g = 10 and ε_δ = 1e-6, 20 iterations; it has no test on the decrease of the cost."""
        return cls(20, "identity", gradient_tolerance=10.0, step_tolerance=1e-6, decrease_tolerance=0.0)


@record(frozen=True)
class Iteration:
    """One line of the log."""

    number: int
    cost: float
    dynamics: float
    observation: float
    damping: float
    gain: float
    step: float
    trials: int
    parameters: dict[str, float]
    seconds: float
    where: Any = dataclasses.field(default=None, compare=False, repr=False)
    """What a report of progress may look at (:meth:`System.seen`); a log does not keep it."""

    @property
    def line(self) -> Iteration:
        """The same without what it was reported with."""
        return dataclasses.replace(self, where=None)


@record(frozen=True)
class Outcome:
    """Where an optimisation ended."""

    linearisation: Any
    """A :class:`Linearisation`, or what the system has in its place."""
    status: Status
    log: tuple[Iteration, ...]
    damping: float
    bounds: BoxStep | None
    curvature: np.ndarray | None = None
    """Of the cost in the parameters, the states eliminated, where the last step began."""

    def unless_interrupted(self) -> Self:
        """Itself, for work that needs an end and not the best so far: a Ctrl-C that ended it is raised again."""
        if self.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return self


Progress = Callable[[Iteration], None]


def minimise(
    problem: Problem,
    start: Point,
    weights: Weights,
    settings: LevenbergMarquardt,
    progress: Progress | None = None,
    first_number: int = 0,
) -> Outcome:
    """Run until a stopping rule holds. Numerical failure and Ctrl-C end with a status and the best iterate."""
    system = LocalSystem(problem, weights)
    return descend(system, system.held(start), settings, progress, first_number)


def descend(
    system: System,
    start: Any,
    settings: LevenbergMarquardt,
    progress: Progress | None = None,
    first_number: int = 0,
) -> Outcome:
    """:func:`minimise` for any system, from a point that has what is held (:meth:`System.held`)."""
    began = time.perf_counter()
    here = _linearise(system, start)
    if not np.isfinite(here.cost.total):
        return Outcome(here, Status.NUMERICS, (), np.inf, None)
    alpha = _start_damping(system, here, settings)
    start_trial = _Trial(here, None, alpha, np.nan, np.nan, 0, None)
    log = [_log(system.parameters, first_number, here, start_trial, began)]
    status, last, small, creeps, near = Status.ITERATIONS, None, 0, 0, settings.starts_near
    curvature, refused = None, 0.0
    try:
        _report(progress, log[-1], system, here)
        for number in range(first_number + 1, first_number + settings.max_iterations + 1):
            if settings.gradient_tolerance > 0.0 and system.gradient_norm(here) <= settings.gradient_tolerance:
                status = Status.GRADIENT
                break
            trial = _search(system, here, alpha, settings, last, near, refused)
            if trial.accepted is None:
                status = trial.ended or Status.STUCK
                break
            decrease = here.cost.total - trial.accepted.cost.total
            small = small + 1 if _vain(system, decrease, trial.worth, _insignificant(system, here, settings)) else 0
            creeping = CREEPING * share_of(system.samples, here)
            creeps = creeps + 1 if _vain(system, decrease, trial.worth, creeping) else 0
            near = near or trial.damping < UNDAMPED or decrease <= NEARLY_THERE * share_of(system.samples, here)
            fast = system.holds and trial.accepted.cost.total < FAST * here.cost.total
            here, alpha, last, curvature = trial.accepted, trial.damping, trial.box, trial.curvature
            refused = trial.refused
            if fast and (point := system.held(here.point, ALIKE)) is not here.point:
                here = _linearise(system, point)
            log.append(_log(system.parameters, number, here, trial, began))
            _report(progress, log[-1], system, here)
            if trial.ended is not None or small >= 2 or creeps >= CREEPS:
                status = trial.ended or Status.DECREASE
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return Outcome(here, status, tuple(log), alpha, last, curvature)


def _linearise(system: System, point: Any) -> Any:
    # Wild values overflow, and the cost tells.
    with np.errstate(over="ignore", invalid="ignore"):
        return system.linearise(point)


def _follow(system: System, here: Any, proposal: Proposal) -> Any:
    with np.errstate(over="ignore", invalid="ignore"):
        return system.follow(here, proposal)


@record(frozen=True)
class _Trial:
    """What the search for a step found: a better point, or a reason to end, or both."""

    accepted: Any
    """A linearisation, or None."""
    ended: Status | None
    damping: float
    gain: float
    step: float
    count: int
    box: BoxStep | None
    worth: float = 0.0
    curvature: np.ndarray | None = None
    refused: float = 0.0
    """Largest damping that was not enough, of this search or, forgotten by and by, of those before."""


def _search(
    system: System,
    here: Any,
    alpha: float,
    settings: LevenbergMarquardt,
    guess: BoxStep | None,
    near: bool,
    refused: float,
) -> _Trial:
    """Raise the damping until a step decreases the cost."""
    grow, count, was_finite = 2.0, 0, False
    refused *= FORGOTTEN
    least = iter(REFUSED_DAMPING)
    insignificant, enough = _insignificant(system, here, settings), settings.enough * share_of(system.samples, here)
    while alpha <= LARGEST_DAMPING:
        count += 1
        proposal = system.propose(here, alpha, settings.damping, guess, near)
        if proposal is None and alpha < REFUSED_DAMPING[0]:
            # Rounding leaves no step, and a little more damping does: nothing says that it would go too far.
            alpha *= UNSOLVED
            continue
        if proposal is not None:
            promised = -proposal.change
            if alpha < UNDAMPED and _vain(system, promised, proposal.worth, enough):
                return _Trial(None, Status.DECREASE, alpha, np.nan, proposal.size, count, proposal.box)
            ended = None
            if proposal.size <= settings.step_tolerance:
                ended = Status.STEP
            elif _vain(system, promised, proposal.worth, insignificant) and (
                count > 1 or promised <= settings.decrease_tolerance * here.cost.total
            ):
                ended = Status.DECREASE
            there, further = _follow(system, here, proposal), 0
            if ended is None and settings.damping == "scaled":
                there, further = _watched(system, here, there, alpha, proposal.box, near)
                count += further
            finite = bool(np.isfinite(there.cost.total))
            was_finite |= finite
            gain = (here.cost.total - there.cost.total) / max(promised, np.finfo(float).tiny) if finite else -1.0
            if gain > (KEPT if further else 0.0):
                relaxed = max(alpha * _relax(gain, settings.damping), _between(refused, alpha), SMALLEST_DAMPING)
                step = proposal.size, count, proposal.box, proposal.worth, proposal.curvature, refused
                return _Trial(there, ended, relaxed, gain, *step)
            if ended is not None:
                # The model promises next to nothing, and kinks of friction or rounding eat it up: this is the minimum.
                return _Trial(None, ended, alpha, gain, proposal.size, count, proposal.box)
        refused, alpha = alpha, max(alpha * grow, next(least, 0.0))
        grow = min(2.0 * grow, LARGEST_DAMPING)
    return _Trial(None, Status.STUCK if was_finite else Status.NUMERICS, alpha, 0.0, np.nan, count, guess)


def _watched(system: System, here: Any, there: Any, alpha: float, guess: BoxStep, near: bool) -> tuple[Any, int]:
    """Where a step leads that raised the cost, if more of them are taken; and how many were."""
    for count in range(WATCHED):
        if not here.cost.total <= there.cost.total < np.inf:
            return there, count
        proposal = system.propose(there, alpha, "scaled", guess, near)
        if proposal is None or there.cost.total + proposal.change >= here.cost.total:
            return there, count
        further = _follow(system, there, proposal)
        if not further.cost.total < there.cost.total:
            return there, count + 1
        there = further
    return there, WATCHED


def _insignificant(system: System, here: Any, settings: LevenbergMarquardt) -> float:
    """Decrease of the cost of a recording that does not matter."""
    least = settings.decrease_tolerance * here.cost.total / system.recordings
    return max(least, INSIGNIFICANT * share_of(system.samples, here))


def _vain(system: System, decrease: float, worth: float, each: float) -> bool:
    """Whether a step was not worth it: it lowers the cost by this much for each recording, at most.

    Of many recordings there is always one whose friction goes on to creep. Parameters do not follow it: their own part
    of the step, ``worth``, must not be worth more than the decrease of a single recording.
    """
    return decrease <= system.recordings * each and (system.recordings == 1 or worth <= each)


def _relax(gain: float, damping: Damping) -> float:
    """Factor on α after an accepted step: the paper's, or a faster one where the scaled model predicts well."""
    if damping == "scaled" and 0.75 < gain < 1.5:
        return float(np.clip(abs(1.0 - gain), LEAST_RELAXATION, 0.1))
    return max(1.0 / 3.0, 1.0 - (2.0 * min(gain, 1.0) - 1.0) ** 3)


def _between(refused: float, accepted: float) -> float:
    """A damping half-way (in decades) from the one that was refused to the one that did; 0 where none was."""
    return float(np.sqrt(refused * accepted)) if refused < accepted else 0.0


def _start_damping(system: System, here: Any, settings: LevenbergMarquardt) -> float:
    if settings.start_damping is not None:
        return settings.start_damping
    return START_DAMPING if settings.damping == "scaled" else 1e-6 * system.largest_diagonal(here)


def _log(parameters: ParameterSet, number: int, here: Any, trial: _Trial, began: float) -> Iteration:
    cost = here.cost
    named = dict(zip(parameters.labels(), parameters.vector(here.point.values).tolist(), strict=True))
    return Iteration(
        number,
        cost.total,
        sum(cost.dynamics),
        cost.observation,
        trial.damping,
        trial.gain,
        trial.step,
        trial.count,
        named,
        time.perf_counter() - began,
    )


def _report(progress: Progress | None, iteration: Iteration, system: System, here: Any) -> None:
    if progress is not None:
        progress(dataclasses.replace(iteration, where=system.seen(here)))
