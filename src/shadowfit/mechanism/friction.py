"""Dry friction laws of joints: how large the friction may become.

A law is one pure function of the sliding speed that returns two numbers: a coefficient, which multiplies the joint's
own constraint forces, and a constant level. The friction impulse of a step obeys ``|λ_t| ≤ Σ_i U_i |λ_i| + h·level``
with ``U = coefficient·(r r r 1 1)`` for a hinge (r the radius) and ``U = coefficient·(1 1 1/r 1/r 1/r)`` for a
slider. A law may add two more parts: one of the level that changes sign with the direction, and one in proportion to
the torque that a gear transmits.
"""

from typing import TYPE_CHECKING, Any

from shadowfit.arrays import Array, Float
from shadowfit.lazy_jax import jnp
from shadowfit.mechanism.leaves import number
from shadowfit.pytrees import PyTree

# Sticking is regularised: a stuck joint creeps, its speed decays with this time constant [s] (see stick_time).
DEFAULT_STICK_TIME = 1e-6


class FrictionLaw(PyTree):
    """Interface of a dry friction law. Subclasses are final."""

    if TYPE_CHECKING:
        # As fields of the interface they would be the first ones of every law, and those after them need defaults.
        @property
        def dry_radius(self) -> Any:
            """r, at which the constraint forces rub [m]."""

        @property
        def stick_time(self) -> Any:
            """How long a stuck joint creeps [s]."""

    def limit(self, speed: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Coefficient of the joint's constraint forces, and constant level [N or N m], at a sliding speed."""
        raise NotImplementedError

    def uneven(self) -> Float[Array, ""]:
        """How much larger the level is in the positive than in the mean of both directions [N or N m].

        A level L + a forwards and L − a backwards leaves the axis at rest while the other forces T on it obey
        ``−(L − a) ≤ T ≤ L + a``. That is friction of the level L beside a constant force −a, in motion and at rest.
        """
        return jnp.zeros(())

    def loss(self) -> Float[Array, ""]:
        """Friction in proportion to the motors' torque [1]: ``1 − η`` of a gear of efficiency η."""
        return jnp.zeros(())


class Coulomb(FrictionLaw):
    """Coulomb friction: a coefficient μ on the joint's constraint forces (the paper's) plus a constant level.

    ``dry`` is the paper's μ with ``dry_radius`` its r; ``coulomb`` [N m for a hinge, N for a slider] is a level from
    preload or a gearbox. ``stick_time`` [s] regularises sticking: ``Σ_t = stick_time/(h m)``, m the effective inertia
    of the two bodies about the axis, so a stuck joint under a torque τ creeps at ``stick_time·τ/m``.

    ``asymmetry`` [N m, N] is added to the level forwards and taken off backwards; ``gear_loss`` times the torque of the
    joint's motors is one more level, so that a gear passes ``1 − gear_loss`` of it when the motor drives the load.
    """

    dry: Any = number("1", default=0.0, lower=0.0)
    coulomb: Any = number("N m | N", default=0.0, lower=0.0)
    dry_radius: Any = number("m", default=1.0, lower=0.0)
    stick_time: Any = number("s", default=DEFAULT_STICK_TIME, lower=0.0, tunable=False)
    asymmetry: Any = number("N m | N", default=0.0)
    gear_loss: Any = number("1", default=0.0, lower=0.0)

    def limit(self, speed: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        del speed
        return self.dry, self.coulomb

    def uneven(self) -> Float[Array, ""]:
        return self.asymmetry

    def loss(self) -> Float[Array, ""]:
        return self.gear_loss


class Stribeck(FrictionLaw):
    """Coulomb friction that is larger near rest: ``μ = dry + stribeck·exp(−ζ ω²)``, ω the speed at the step's start.

    ``stribeck`` is the excess of the static over the kinetic coefficient, ``stribeck_coulomb`` that of the constant
    level, ``stribeck_rate`` the transition rate ζ [s²/rad² or s²/m²]; the others as in :class:`Coulomb`.
    """

    dry: Any = number("1", default=0.0, lower=0.0)
    stribeck: Any = number("1", default=0.0, lower=0.0)
    coulomb: Any = number("N m | N", default=0.0, lower=0.0)
    stribeck_coulomb: Any = number("N m | N", default=0.0, lower=0.0)
    stribeck_rate: Any = number("s²/rad² | s²/m²", default=1.0, lower=0.0)
    dry_radius: Any = number("m", default=1.0, lower=0.0)
    stick_time: Any = number("s", default=DEFAULT_STICK_TIME, lower=0.0, tunable=False)
    asymmetry: Any = number("N m | N", default=0.0)
    gear_loss: Any = number("1", default=0.0, lower=0.0)

    def limit(self, speed: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        near_rest = jnp.exp(-self.stribeck_rate * speed**2)
        return self.dry + self.stribeck * near_rest, self.coulomb + self.stribeck_coulomb * near_rest

    def uneven(self) -> Float[Array, ""]:
        return self.asymmetry

    def loss(self) -> Float[Array, ""]:
        return self.gear_loss
