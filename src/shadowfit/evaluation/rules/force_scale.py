"""Whether anything says how large forces are."""

from __future__ import annotations

from collections.abc import Iterator

from shadowfit.estimation import Estimate
from shadowfit.estimation.problem.drives import is_led
from shadowfit.estimation.problem.read_forces import gains_of
from shadowfit.evaluation.notices import Notice


def known_forces(estimate: Estimate) -> Iterator[Notice]:
    """A led machine whose drives have free gains, and whose masses are free as well.

    With all gains, masses and friction twice as large it moves alike: only what is known beforehand says how large.
    """
    problem = estimate.problem
    if not is_led(problem):
        return
    free = {parameter.name: parameter for parameter in problem.parameters.parameters}
    masses = [f"{body}.mass" for body in problem.mechanism.bodies]
    gains = [free.keys() & names for motors in gains_of(problem).values() for names in motors.values()]
    if not all(gains) or not all(mass in free for mass in masses):
        return
    scaled = [free[name] for name in {*masses, *set[str]().union(*gains)}]
    known = sorted(one.name for one in scaled if one.prior is not None or one.entropic is not None)
    what = "the gains of all drives are free, and so are all masses: forces are known but for a common factor"
    if known:
        yield Notice("info", f"{what}, which the priors of {', '.join(known)} tell alone")
    else:
        yield Notice(
            "amber",
            what,
            "Hold the gain that is known best, or the mass of a body that was weighed (leave it out of `--free`), or "
            "say how well gains are known (`--prior '*.gain=5%'`)",
        )
