"""Unknown states of a recording, and the curve through a few of them."""

from __future__ import annotations

from shadowfit.arrays import Array, Float
from shadowfit.dynamics.state import State
from shadowfit.geometry import Pose, rotations
from shadowfit.geometry.lagrange import lagrange
from shadowfit.lazy_jax import jax, jnp
from shadowfit.pytrees import PyTree


class Nodes(PyTree):
    """Unknown states: configurations, and velocities where they are unknowns of their own (else ``None``).

    With ``joint`` unknowns the poses are the motions of the bodies' joints (:mod:`shadowfit.dynamics.tree`).
    """

    pose: Pose
    velocity: Float[Array, "*n bodies 6"] | None

    def plus(self, increments: Float[Array, "*n bodies k"]) -> Nodes:
        """``x ⊞ δ``, with six increments of each pose and, where velocities are unknowns, six more."""
        velocity = None if self.velocity is None else self.velocity + increments[..., 6:]
        return Nodes(self.pose.plus(increments[..., :6]), velocity)

    def state_at(self, at: Float[Array, ""], base: int, timestep: Float[Array, ""]) -> State:
        """State at a place of these nodes, in steps from the first one; at a single node without its speed.

        ``q = q_b ⊞ ξ`` with ``ξ = Σ ℓ_i (q_i ⊟ q_b)``; the rotation's velocity follows from ``ξ̇`` through the left
        Jacobian. Velocities that are unknowns of their own are interpolated.
        """
        count, bodies = self.pose.position.shape[:2]
        if count == 1:
            return State(self.pose[0], jnp.zeros((bodies, 6)) if self.velocity is None else self.velocity[0])
        weights, slopes = _weights(count, at)
        anchor = self.pose[base]
        increments = jnp.stack([self.pose[i].minus(anchor) for i in range(count)])
        offset = jnp.einsum("w,wbi->bi", weights, increments)
        if self.velocity is not None:
            return State(anchor.plus(offset), jnp.einsum("w,wbi->bi", weights, self.velocity))
        rate = jnp.einsum("w,wbi->bi", slopes, increments) / timestep
        spin = jnp.einsum("bij,bj->bi", rotations.left_jacobian(offset[:, 3:]), rate[:, 3:])
        return State(anchor.plus(offset), jnp.concatenate([rate[:, :3], spin], axis=1))

    def acceleration_at(self, at: Float[Array, ""], base: int, timestep: Float[Array, ""]) -> Float[Array, "bodies 6"]:
        """Rates of the velocities of `state_at`, through several nodes."""
        _, growth = jax.jvp(lambda at: self.state_at(at, base, timestep).velocity, (at,), (jnp.ones_like(at),))
        return growth / timestep


def _weights(nodes: int, at: Float[Array, ""]) -> tuple[Float[Array, "w"], Float[Array, "w"]]:
    """Weights of the interpolating polynomial through equally spaced nodes, and of its derivative (per step)."""

    return jax.jvp(lambda at: jnp.stack(lagrange(at, nodes)), (at,), (jnp.ones(()),))
