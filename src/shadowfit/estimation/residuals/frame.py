"""A configuration as the joints and the inertia of a mechanism see it."""

from __future__ import annotations

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.dynamics import body_forces, rows
from shadowfit.dynamics.elements import Elements, assemble
from shadowfit.dynamics.kinematics import gap_jacobian
from shadowfit.dynamics.state import with_world
from shadowfit.estimation.residuals.parameter_layout import Parametrised
from shadowfit.geometry import Pose
from shadowfit.lazy_jax import jnp
from shadowfit.pytrees import PyTree

# Damping of redundant constraints, relative to the others.
REDUNDANT = 1e-10


class Frame(PyTree):
    """Rows of the gaps and inertia of one configuration."""

    jacobian: Float[Array, "*n g r"]
    """G."""
    inertia: Float[Array, "*n r r"]
    """A: masses of the bodies and inertia of the motors' shafts."""
    weighing: Float[Array, "*n r r"]
    """``A M₀⁻¹``: from a dynamics residual, weighed by the reference mass M₀, to an impulse."""


def frame(machine: Parametrised, pose: Pose) -> Frame:
    """The frame of one configuration at the current parameters."""
    elements = assemble(machine.mechanism())
    inertia = _inertia(elements, pose)
    weighing = inertia / machine.reference().ravel()
    return Frame(gap_jacobian(elements, pose), inertia, weighing)


def moving_part(
    jacobian: Float[np.ndarray, "n+2 g r"], inertia: Float[np.ndarray, "n r r"], impulses: Float[np.ndarray, "n r c"]
) -> Float[np.ndarray, "n r c"]:
    """Impulses less what the joints take up of them; the rows of gaps are those of one configuration more at each end.

    ``A w = p − G_kᵀ μ`` with ``G_{k+1} w = 0``.
    """
    here, following = jacobian[1:-1], jacobian[2:]
    count, columns = here.shape[1], impulses.shape[2]
    if count == 0:
        return impulses
    velocity = np.linalg.solve(inertia, np.concatenate([impulses, here.mT], axis=2))
    closing = following @ velocity
    coupling = closing[..., columns:]
    # Redundant rows of closed loops: their impulses do nothing, and a trace of damping makes them finite.
    trace = REDUNDANT * np.trace(coupling, axis1=1, axis2=2) / count
    taken = np.linalg.solve(coupling + trace[:, None, None] * np.eye(count), closing[..., :columns])
    return impulses - here.mT @ taken


def _inertia(elements: Elements, pose: Pose) -> Float[Array, "r r"]:
    """``A = M + Σ Ḡᵀ J_shaft Ḡ`` over the joints with an axis."""
    count = elements.body_count
    masses = body_forces.mass_matrix(elements.bodies.mass, body_forces.world_inertia(elements, pose))
    total = jnp.einsum("brc,bd->brdc", masses, jnp.eye(count)).reshape(6 * count, 6 * count)
    whole, _ = with_world(pose, jnp.zeros((count, 6)))
    for group in elements.groups:
        if group.has_axis:
            wide = rows.axis_rows(elements, group, rows.geometry(group, whole))
            total = total + wide.T @ (rows.axis_inertia(group)[:, None] * wide)
    return total
