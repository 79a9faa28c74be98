"""What a recording of a motion would tell about the parameters, before it is recorded.

At the truth the residuals of a fit are its noise, and with weights that are those of the noise the covariance of the
estimate is ``I⁻¹``,

    I = [J_pᵀJ_p − J_pᵀJ_x (J_xᵀJ_x)⁻¹ J_xᵀJ_p] / σ₀²

with the rows J of the fit's own equations of motion and observations along the motion, the states x eliminated. No
noise is drawn and nothing is fitted: one linearisation, by the code that the fit will run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from shadowfit.arrays import Float
from shadowfit.designs.experiment import Experiment
from shadowfit.designs.motions import Motions
from shadowfit.estimation.linear.front import Assembly, Normal, joined
from shadowfit.estimation.linear.threads import in_threads, one_thread
from shadowfit.estimation.solve import objective
from shadowfit.estimation.solve.chunks import RecordingRows
from shadowfit.estimation.uncertainty.evidence import gather
from shadowfit.geometry import Pose

# Motions that are linearised at a time: their rows are held together.
TOGETHER = 32


def informations(experiment: Experiment, motions: Motions) -> Float[np.ndarray, "count p p"]:
    """Information of each motion, as inverse variance; zero of those that cannot be simulated.

    Schur complements: with errors of the forces some digits above rounding, they keep five or more (see `exactly`).
    """
    parts = [_schur(experiment, motions[i : i + TOGETHER]) for i in range(0, len(motions), TOGETHER)]
    return np.concatenate(parts)


def _schur(experiment: Experiment, motions: Motions) -> Float[np.ndarray, "count p p"]:
    with one_thread():
        reduced = in_threads(
            lambda normal: objective.undamped(normal)[0].reduced().matrix, _normals(experiment, motions)
        )
        information = np.array(list(reduced)) / experiment.weights.reference**2
    usable = motions.good & np.all(np.isfinite(information), axis=(1, 2))
    return np.where(usable[:, None, None], information, 0.0)


def _normals(experiment: Experiment, motions: Motions) -> Iterator[Normal]:
    """Normal equations of each motion, whose rows are computed together: there are fewer calls, and no short chunks."""
    problem, point = experiment.in_a_row(motions)
    rows, plan, nodes = RecordingRows(problem, point, experiment.weights, 0), problem.plan, experiment.sampling.nodes
    tables = [joined(parts) for parts in zip(*in_threads(rows.tables, rows.starts), strict=True)]
    for first in range(0, len(motions) * nodes, nodes):
        assembly = Assembly(nodes, plan.window, plan.node_size, plan.parameters)
        assembly.add([table.between(first, first + assembly.steps) for table in tables], 0)
        yield assembly.normal()


def exactly(experiment: Experiment, motions: Motions) -> Float[np.ndarray, "count p p"]:
    """The same by projecting the states out, with all digits; as for error bars of fits, friction's widths are held."""
    problem, point = experiment.posed(motions)
    with one_thread():
        if objective.holds(problem):
            point = objective.held(problem, point)
        evidence = gather(problem, objective.linearise(problem, point, experiment.weights), experiment.weights)
        information = (
            np.array([projection.information for projection in evidence.projections]) / experiment.weights.reference**2
        )
    return np.where(motions.good[:, None, None], information, 0.0)


def up_to(experiment: Experiment, motions: Motions, nodes: Sequence[int]) -> Float[np.ndarray, "k p p"]:
    """Information of the beginnings of the first motion, which end with the given numbers of nodes."""
    return np.array([_beginning(experiment, motions, count) for count in nodes])


def _beginning(experiment: Experiment, motions: Motions, count: int) -> Float[np.ndarray, "p p"]:
    short = experiment.shortened(count)
    pose = Pose(motions.pose.position[:1, :count], motions.pose.orientation[:1, :count])
    part = Motions(
        motions.time[:count], pose, motions.coordinates[:1, :count], motions.inputs[:1, :count], motions.good[:1]
    )
    return exactly(short, part)[0]
