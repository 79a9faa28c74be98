"""The reference mass M₀, which turns errors of velocity into impulses: ``r = M₀ (v' − φ)``.

M₀ is taken at the *start* values of the parameters and stays: with the current mass, noise in the transitions could be
hidden by shrinking inertias, and a body whose inertia nears zero would lose its residual.

It is the same about all axes of a body. An error of the predicted velocity is free of the joints, which act only
through φ. Weighed by the inertia itself, errors about the long axis of a slender body would cost next to nothing even
where a joint holds that axis: a rod of 0.4 kg and 0.3 m has 40 times less inertia there, and an impulse of 1e-4 N m s
is one radian a second. States would then roll about such axes to explain the noise of the sensors, and model errors by
tenths of a radian, far outside the range where the equations are nearly linear.
"""

from __future__ import annotations

from shadowfit.arrays import Array, Float
from shadowfit.dynamics.elements import Bodies
from shadowfit.lazy_jax import jnp


def reference_mass(bodies: Bodies) -> Float[Array, "bodies 6"]:
    """Diagonal ``(m, m, m, j, j, j)`` of each body [kg, kg m²], ``j = ∫ |x|² dm = tr J / 2``.

    For a rod j is the inertia across its axis, for a disc that about it.
    """
    moment = 0.5 * jnp.trace(bodies.inertia, axis1=1, axis2=2)
    return jnp.repeat(jnp.stack([bodies.mass, moment], axis=1), 3, axis=1)
