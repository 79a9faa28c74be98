"""Whether anything says how large forces are."""

from __future__ import annotations

from collections.abc import Iterator

from shadowfit.estimation import Estimate
from shadowfit.estimation.problem.drives import driven_by_force, inputs_of, is_led
from shadowfit.evaluation.notices import Notice

# Names of the numbers that make a force of a drive's input.
GAINS = ("gain", "torque_constant")


def known_forces(estimate: Estimate) -> Iterator[Notice]:
    """A led machine whose drives have free gains, and whose masses are free as well.

    With all gains, masses and friction twice as large it moves alike. Its errors are twice as large, too, and a fit
    would rather have them small.
    """
    problem = estimate.problem
    if not is_led(problem):
        return
    free = {row.name.partition("@")[0] for row in estimate.parameters}
    sources, joints = inputs_of(problem), problem.mechanism.joints
    drives = [
        {f"{joint}.{law}.{gain}" for law in joints[joint].laws.names for gain in GAINS} | {f"{sources[joint]}.gain"}
        for joint in driven_by_force(problem)
    ]
    if all(free & drive for drive in drives) and all(f"{body}.mass" in free for body in problem.mechanism.bodies):
        yield Notice(
            "red",
            "the gains of all drives are free, and so are all masses: forces are known but for a common factor, and a "
            "fit makes its errors small by making all of them small",
            "Hold the gain that is known best, or the mass of a body that was weighed (leave it out of `--free`); "
            "priors do not outweigh thousands of samples",
        )
