"""SciPy: ``least_squares`` on the simulation error of the whole recording, the initial state among the unknowns.

The motion is a rollout of the true equations by RK4 in plain Python; derivatives are finite differences.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares

from benchmarks.peers import truth
from benchmarks.peers.answer import Answer
from benchmarks.peers.smoothing import smooth
from benchmarks.peers.tasks import INTERVAL, NOISE, Data, Task


def estimate(task: Task, data: Data) -> Answer:
    """Minimise the simulation error; parameters are scaled by their start values."""
    names, n = list(task.starts), len(task.system.joints)
    scale = np.array([task.starts[name] for name in names])
    first = np.concatenate([smooth(data.positions, INTERVAL)[0], smooth(data.positions, INTERVAL, 1)[0]])

    def residual(unknowns: np.ndarray) -> np.ndarray:
        p = dict(zip(names, (scale * unknowns[: len(names)]).tolist(), strict=True))
        try:
            states = truth.rollout(task.system, {**task.truth, **p}, unknowns[len(names) :], data.inputs, INTERVAL)
        except (OverflowError, ValueError, ZeroDivisionError):
            return np.full(data.positions.size, 1e6)
        return np.nan_to_num((states[:, :n] - data.positions).ravel() / NOISE, nan=1e6, posinf=1e6, neginf=-1e6)

    start = np.concatenate([np.ones(len(names)), first])
    lower = np.concatenate([np.full(len(names), 1e-6), np.full(2 * n, -np.inf)])
    found = least_squares(residual, start, bounds=(lower, np.inf), x_scale="jac", max_nfev=60)
    covariance = np.linalg.pinv(found.jac.T @ found.jac) * 2.0 * found.cost / (len(found.fun) - len(start))
    std = scale * np.sqrt(np.diagonal(covariance)[: len(names)])
    values = scale * found.x[: len(names)]
    return Answer(
        dict(zip(names, values.tolist(), strict=True)),
        dict(zip(names, std.tolist(), strict=True)),
        found.status > 0,
        f"{found.nfev} evaluations",
    )
