"""CasADi: multiple shooting over every sample, RK4, IPOPT with a Gauss–Newton Hessian.

As in CasADi's own example for parameter estimation (``sysid.py``): states at all samples are unknowns, the integrator
ties neighbours together, the Hessian is that of the squared deviations. It is handed the true equations, dry friction
with its true smoothing included; with a good start its answer is the best that the data allow.
"""

from __future__ import annotations

import casadi
import numpy as np

from benchmarks.peers.answer import Answer
from benchmarks.peers.smoothing import smooth
from benchmarks.peers.tasks import INTERVAL, NOISE, Data, Task


def estimate(task: Task, data: Data) -> Answer:
    """Solve the nonlinear program; parameters are scaled by their start values."""
    names, n, samples = list(task.starts), len(task.system.joints), len(data.time)
    scale = np.array([task.starts[name] for name in names])
    step = _integrator(task, names)
    p, states = casadi.MX.sym("p", len(names)), casadi.MX.sym("X", 2 * n, samples)
    parameters = casadi.repmat(p * scale, 1, samples - 1)
    end = step.map(samples - 1)(states[:, :-1], data.inputs[:-1].T, parameters)
    gaps = casadi.vec(end - states[:, 1:])
    error = casadi.vec(states[:n, :] - data.positions.T) / NOISE
    unknowns = casadi.veccat(p, states)
    problem = {"x": unknowns, "f": 0.5 * casadi.dot(error, error), "g": gaps}
    slope = casadi.jacobian(error, unknowns)
    weight, multipliers = casadi.MX.sym("s"), casadi.MX.sym("l", gaps.shape[0])
    hessian = casadi.Function(
        "h",
        [unknowns, casadi.MX(0, 1), weight, multipliers],
        [weight * casadi.triu(casadi.mtimes(slope.T, slope))],
        ["x", "p", "lam_f", "lam_g"],
        ["hess_gamma_x_x"],
    )
    settings = {"hess_lag": hessian, "print_time": False, "ipopt": {"print_level": 0, "sb": "yes", "max_iter": 200}}
    solver = casadi.nlpsol("s", "ipopt", problem, settings)
    guess = np.concatenate([smooth(data.positions, INTERVAL), smooth(data.positions, INTERVAL, 1)], axis=1)
    lower = np.full(unknowns.shape[0], -np.inf)
    lower[: len(names)] = 0.0
    start = np.concatenate([np.ones(len(names)), guess.ravel()])
    found = solver(x0=start, lbx=lower, lbg=0.0, ubg=0.0)
    values = scale * np.array(found["x"]).ravel()[: len(names)]
    report = solver.stats()
    return Answer(
        dict(zip(names, values.tolist(), strict=True)), None, report["success"], f"{report['iter_count']} iterations"
    )


def _integrator(task: Task, names: list[str]) -> casadi.Function:
    """One step of the fourth-order Runge–Kutta method over a sample."""
    n = len(task.system.joints)
    x, p = casadi.SX.sym("x", 2 * n), casadi.SX.sym("p", len(names))
    u = casadi.SX.sym("u", len(task.system.inputs))
    symbols = {name: p[i] for i, name in enumerate(names)}
    numbers = task.system.parameters({**task.truth, **symbols})
    split = casadi.vertsplit
    q, v = split(x[:n]), split(x[n:])
    rate = casadi.vertcat(*v, *task.system.accelerations(q, v, split(u), numbers, casadi))
    f = casadi.Function("f", [x, u, p], [rate])
    k1 = f(x, u, p)
    k2 = f(x + 0.5 * INTERVAL * k1, u, p)
    k3 = f(x + 0.5 * INTERVAL * k2, u, p)
    k4 = f(x + INTERVAL * k3, u, p)
    return casadi.Function("step", [x, u, p], [x + INTERVAL / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)])
