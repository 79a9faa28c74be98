"""``design``: the motion within limits that makes wished parameters known best, and what it will tell."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np

from shadowfit.arrays import Float
from shadowfit.designs.criteria import Criterion, Identifiable
from shadowfit.designs.drives import JointMotion
from shadowfit.designs.errors import DesignError
from shadowfit.designs.experiment import Experiment, Sampling, experiment
from shadowfit.designs.given import given_information
from shadowfit.designs.information import exactly, up_to
from shadowfit.designs.limits import Limits
from shadowfit.designs.motions import Motions, single_axes
from shadowfit.designs.search import Competition
from shadowfit.designs.seek import Progress, Seeker
from shadowfit.designs.settings import DesignSettings
from shadowfit.designs.setup import Setup, check_angles, check_rest, set_up, without_stops
from shadowfit.designs.systematic import FINER, systematic
from shadowfit.dynamics.tree import coordinate_names
from shadowfit.estimation.problem.pacing import default_timestep
from shadowfit.estimation.problem.parameters import FreeParameters
from shadowfit.estimation.uncertainty.identifiability import Finding
from shadowfit.evaluation.store import SavedResult
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.models import Start
from shadowfit.records import record
from shadowfit.runtime import double_precision

# Motions of prescribed joints, which need no simulation, are looked at with so many steps while the search runs.
SEARCH_STEPS = 250
# Beginnings of the motion for which error bars are told, and the fewest nodes of one.
BEGINNINGS, LEAST_NODES = 12, 10


@record(frozen=True)
class Design:
    """A motion to record, and what it will tell."""

    experiment: Experiment
    setup: Setup
    settings: DesignSettings
    motion: Motions
    """One motion."""
    coefficients: Float[np.ndarray, " n"]
    """Of the drive."""
    identifiable: Identifiable
    information: Float[np.ndarray, "p p"]
    """Of the recording, without what was given."""
    usual: Mapping[str, float]
    """Usual motion within the same limits → its criterion, as a relative error bar."""
    growth: tuple[Float[np.ndarray, " k"], Float[np.ndarray, "k p"]]
    """Lengths of recordings that end earlier [s], and their relative error bars."""
    force_noise: Mapping[str, float]
    """Error of each joint's force [N m, N], white at the sampling rate."""
    shift: Float[np.ndarray, " p"]
    """What a fit will be off by without any noise, in the parameters' units (:mod:`systematic`)."""
    evaluations: int
    """Motions that the search looked at."""
    late: bool
    """Whether the search was broken off (`DesignSettings.seconds`)."""
    seconds: float
    """Time that the design took [s]."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.identifiable.labels

    @property
    def values(self) -> list[float]:
        """Of the parameters, in their units."""
        parameters = self.experiment.problem.parameters
        return np.asarray(parameters.vector(parameters.start())).tolist()

    @property
    def units(self) -> list[str]:
        """Of the parameters."""
        return [part.unit for part in self.experiment.problem.parameters.parameters for _ in range(part.size)]

    @property
    def relative(self) -> Float[np.ndarray, " p"]:
        """Expected standard deviation of each parameter over its size; NaN where no motion tells it."""
        return self.identifiable.relative(self.information)

    @property
    def std(self) -> Float[np.ndarray, " p"]:
        """Expected standard deviations, in the parameters' units; NaN where no motion tells them."""
        return self.relative * self.identifiable.scale

    @property
    def criterion(self) -> float:
        """The worst relative error bar, or the mean one that the criterion is about."""
        return score(self.identifiable, self.information, self.settings.criterion)

    @property
    def unknown(self) -> tuple[Finding, ...]:
        """What no motion within the limits can tell."""
        return self.identifiable.unknown

    @property
    def end_speeds(self) -> dict[str, float]:
        """Of joints with one axis when the recording ends [rad/s, m/s]."""
        names = coordinate_names(self.experiment.tree, self.experiment.mechanism)
        last = np.abs(self.motion.speeds[0, -1])
        return {names[place]: float(last[place]) for place, _, _ in single_axes(self.experiment.tree)}

    @property
    def worth(self) -> float:
        """Part of the worst error bar that one more second takes off, as the last fifth of the motion has it."""
        times, bars = self.growth
        worst, last = np.nanmax(bars, axis=1), times >= 0.8 * times[-1]
        slope = np.polyfit(times[last], np.log(worst[last]), 1)[0] if last.sum() > 1 else 0.0
        return float(1.0 - np.exp(min(slope, 0.0)))


def score(known: Identifiable, information: Float[np.ndarray, "p p"], criterion: Criterion) -> float:
    """A criterion as a relative error bar."""
    return float(np.exp(np.max(known.objectives(information, criterion))))


def design(
    mechanism: Mechanism,
    free: FreeParameters,
    *,
    start: Start | None = None,
    limits: Limits | None = None,
    settings: DesignSettings | None = None,
    given: Sequence[SavedResult] = (),
    progress: Progress | None = None,
) -> Design:
    """Find a motion within limits after which the free parameters are known best.

    Args:
        mechanism: the machine, with the best values of its parameters that are known.
        free: parameters to be estimated from the recording, as for :func:`shadowfit.fit`.
        start: where the machine rests; None: at zero of all joints.
        limits: of joints, inputs and workspace; what is not limited is limited by the machine's own size.
        settings: duration, sampling, noise, criterion and search.
        given: saved results whose information counts.
        progress: told in words what is going on.

    Raises:
        DesignError: limits that allow no motion, a start outside of them, a machine that does not stay at rest.
    """
    began = time.perf_counter()
    double_precision()
    chosen, say = settings or DesignSettings(), progress or (lambda text: None)
    chosen.check()
    (limits or Limits()).check(mechanism)
    check_angles(mechanism, start or Start())
    machine, allowed = without_stops(mechanism, limits or Limits())
    sensors, forces = chosen.split_noise(machine)
    machine = machine.set({f"{name}.std": std for name, std in sensors.items()})

    def seen(timestep: float, parameters: FreeParameters = free) -> Experiment:
        return experiment(machine, start or Start(), parameters, Sampling(chosen.duration, chosen.interval, timestep))

    say("setting up the fit that the motion is for")
    timestep = _timestep(chosen.interval)
    fine = seen(timestep)
    if not fine.labels:
        raise DesignError("no parameter is wished for; name those that the recording is to tell (--free NAME)")
    setup = set_up(fine, allowed, chosen)
    check_rest(fine, setup)
    full = Seeker(fine, setup, chosen)
    levels = full.force_noise(forces)
    full = Seeker(fine.with_force_noise(levels), setup, chosen)
    stride = max(1, round(chosen.duration / timestep / SEARCH_STEPS)) if isinstance(setup.drive, JointMotion) else 1
    rough = full if stride == 1 else Seeker(seen(stride * timestep).with_force_noise(levels), setup, chosen, fine)
    say("looking at usual and random motions")
    halved = seen(0.5 * timestep).with_force_noise(levels)
    known = full.identifiable(halved, given_information(given, list(fine.labels), fine.scale))
    competition = rough.refine(known, rough.survey(known), say)
    say("looking at the best motions at the full rate")
    return _judged(full, seen(timestep / FINER, ()), known, competition, levels, began)


def _timestep(interval: float) -> float:
    """The time-step of a fit to samples at an interval [s]."""
    return default_timestep([interval])


def _judged(
    full: Seeker,
    exact: Experiment,
    known: Identifiable,
    competition: Competition,
    levels: Mapping[str, float],
    began: float,
) -> Design:
    """The best of what was found and of the usual motions, with all that is to be said about it."""
    experiment, criterion = full.experiment, full.settings.criterion
    usual = full.drive.usual()
    searched = full.shrunk(np.array([best.coefficients for best in competition.candidates]))
    trials = np.concatenate([searched, full.largest(np.array(list(usual.values())))])
    motions = full.drive.motions(experiment, trials)
    information = exactly(experiment, motions)
    scores = [score(known, one, criterion) for one in information]
    best = int(np.argmin(scores))
    motion = motions[best : best + 1]
    nodes = np.unique(np.linspace(LEAST_NODES, experiment.sampling.nodes, BEGINNINGS).round().astype(int))
    bars = known.relative(up_to(experiment, motion, nodes.tolist()))
    return Design(
        experiment,
        full.setup,
        full.settings,
        motion,
        trials[best],
        known,
        information[best],
        dict(zip(usual, scores[len(searched) :], strict=True)),
        (experiment.sampling.times[nodes - 1], bars),
        levels,
        systematic(experiment, exact, full.drive, trials[best], motion),
        competition.evaluations,
        competition.late,
        time.perf_counter() - began,
    )
