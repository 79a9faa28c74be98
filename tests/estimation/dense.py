"""The same least squares step with full matrices: slow, plain, and the reference that `front` is tested against.

With ``J = [J_x, J_p]`` and damping ``D`` of the states, ``H_xx = J_xᵀJ_x + D``; eliminating the states leaves

    H = H_pp − H_px H_xx⁻¹ H_xp,     g = g_p − H_px H_xx⁻¹ g_x,     δ_x = −H_xx⁻¹ (g_x + H_xp δ_p).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np
from jaxtyping import ArrayLike, Float

from shadowfit.estimation.linear.front import Reduced, Rows


@dataclasses.dataclass(frozen=True)
class DenseRows:
    """All rows of one recording as full matrices."""

    states: Float[np.ndarray, "rows N*b"]
    parameters: Float[np.ndarray, "rows p"]
    residual: Float[np.ndarray, " rows"]
    node_size: int


def dense_rows(chunks: Iterable[Rows], nodes: int, start: Rows | None = None) -> DenseRows:
    """Put the rows of each step into the columns of its nodes; steps beyond the recording are left out.

    ``start`` holds further rows of the first W − 1 nodes, without an axis of steps.
    """
    rows = list(chunks)
    windows = np.concatenate([np.asarray(chunk.states) for chunk in rows])
    _, m, window, size = windows.shape
    steps = nodes - window + 1
    states = np.zeros((steps, m, nodes, size))
    for step in range(steps):
        states[step, :, step : step + window] = windows[step]
    parameters = np.concatenate([np.asarray(chunk.parameters) for chunk in rows])[:steps]
    residual = np.concatenate([np.asarray(chunk.residual) for chunk in rows])[:steps]
    whole = DenseRows(
        states.reshape(steps * m, nodes * size),
        parameters.reshape(steps * m, parameters.shape[-1]),
        residual.reshape(-1),
        size,
    )
    return whole if start is None else _with_start(whole, start)


def _with_start(rows: DenseRows, start: Rows) -> DenseRows:
    first = np.asarray(start.states).reshape(len(start.residual), start.states.shape[1] * rows.node_size)
    states = np.zeros((len(first), rows.states.shape[1]))
    states[:, : first.shape[1]] = first
    return DenseRows(
        np.concatenate([rows.states, states]),
        np.concatenate([rows.parameters, start.parameters]),
        np.concatenate([rows.residual, start.residual]),
        rows.node_size,
    )


@dataclasses.dataclass(frozen=True)
class DenseFactor:
    """Counterpart of `front.Factor`; its results are whole arrays instead of chunks."""

    rows: DenseRows
    inverse: Float[np.ndarray, "N*b N*b"]
    """``H_xx⁻¹``."""

    def reduced(self) -> Reduced:
        """The system of the parameters; the relative pivots are not computed and count as one."""
        jx, jp, r = self.rows.states, self.rows.parameters, self.rows.residual
        tail = np.column_stack([jp, r])
        corner = tail.T @ tail - tail.T @ jx @ self.inverse @ jx.T @ tail
        return Reduced(corner[:-1, :-1], corner[:-1, -1], float(corner[-1, -1]), 1.0)

    def states(self, parameters: Float[ArrayLike, " p"]) -> Float[np.ndarray, "N b"]:
        """Best step of the states for a given step of the parameters."""
        rows = self.rows
        step = -self.inverse @ rows.states.T @ (rows.residual + rows.parameters @ np.asarray(parameters))
        return step.reshape(-1, rows.node_size)

    def sensitivities(self) -> Float[np.ndarray, "N b p"]:
        """Change of the best states with the parameters."""
        change = -self.inverse @ self.rows.states.T @ self.rows.parameters
        return change.reshape(len(change) // self.rows.node_size, self.rows.node_size, change.shape[-1])

    def covariances(self, parameter_covariance: Float[ArrayLike, "p p"]) -> Float[np.ndarray, "N b b"]:
        """Marginal covariance of every node, parameter uncertainty included."""
        size = self.rows.node_size
        follow = -self.inverse @ self.rows.states.T @ self.rows.parameters
        whole = self.inverse + follow @ np.asarray(parameter_covariance) @ follow.T
        nodes = len(whole) // size
        return np.einsum("kikj->kij", whole.reshape(nodes, size, nodes, size))


def dense_factorise(rows: DenseRows, damping: Float[ArrayLike, "N b"] | None = None) -> DenseFactor:
    """Invert the damped normal matrix of the states."""
    normal = rows.states.T @ rows.states
    if damping is not None:
        normal = normal + np.diag(np.ravel(damping))
    return DenseFactor(rows, np.linalg.inv(normal))
