"""Dry friction laws of joints: how large the friction may become.

A law is one pure function of the sliding speed that returns two numbers: a coefficient, which multiplies the joint's
own constraint forces, and a constant level. The friction impulse of a step obeys ``|λ_t| ≤ Σ_i U_i |λ_i| + h·level``
with ``U = coefficient·(r r r 1 1)`` for a hinge (r the radius) and ``U = coefficient·(1 1 1/r 1/r 1/r)`` for a
slider. A law may add two more parts: one of the level that changes sign with the direction, and one that follows from
the torques on both sides of a gear.
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

    def gear(self, speed: Float[Array, ""], motor: Float[Array, ""], load: Float[Array, ""]) -> Float[Array, ""]:
        """Level [N or N m] from the torques of the motors and of the load.

        ``load`` is what the axis passes on to what it moves, positive as ``motor`` is: without friction and inertia of
        the shaft both are the same.
        """
        del speed, motor, load
        return jnp.zeros(())


class Coulomb(FrictionLaw):
    """Coulomb friction: a coefficient μ on the joint's constraint forces (the paper's) plus a constant level.

    ``dry`` is the paper's μ with ``dry_radius`` its r; ``coulomb`` [N m for a hinge, N for a slider] is a level from
    preload or a gearbox. ``stick_time`` [s] regularises sticking: ``Σ_t = stick_time/(h m)``, m the effective inertia
    of the two bodies about the axis, so a stuck joint under a torque τ creeps at ``stick_time·τ/m``.

    ``asymmetry`` [N m, N] is added to the level forwards and taken off backwards. A gear's level grows with what it
    transmits, ``|gear_loss τ_motor + load_loss τ_load|``: with the first alone it passes ``1 − gear_loss`` of the
    motors' torque when they drive the load, with both alike it rubs by the mean of both sides, whichever drives.
    """

    dry: Any = number("1", default=0.0, lower=0.0)
    coulomb: Any = number("N m | N", default=0.0, lower=0.0)
    dry_radius: Any = number("m", default=1.0, lower=0.0)
    stick_time: Any = number("s", default=DEFAULT_STICK_TIME, lower=0.0, tunable=False)
    asymmetry: Any = number("N m | N", default=0.0)
    gear_loss: Any = number("1", default=0.0, lower=0.0)
    load_loss: Any = number("1", default=0.0, lower=0.0)

    def limit(self, speed: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        del speed
        return self.dry, self.coulomb

    def uneven(self) -> Float[Array, ""]:
        return self.asymmetry

    def gear(self, speed: Float[Array, ""], motor: Float[Array, ""], load: Float[Array, ""]) -> Float[Array, ""]:
        del speed
        return _rubbing(self.gear_loss, motor, self.load_loss, load)


class Stribeck(FrictionLaw):
    """Friction that is larger near rest: ``μ = dry + stribeck·e``, ``e = exp(−(ζ ω²)^(α/2))``, ω at the step's start.

    ``stribeck`` is the excess of the static over the kinetic coefficient, ``stribeck_coulomb`` that of the constant
    level, ``stribeck_gear_loss`` and ``stribeck_load_loss`` those of a gear's; ``stribeck_rate`` is the transition rate
    ζ [s²/rad² or s²/m²], ``stribeck_exponent`` α. A gear may rub more near rest by the square of what is less, the
    load's torque where the motor drives (``load_squared``), the motor's where it is driven (``motor_squared``). The
    others as in :class:`Coulomb`.
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
    load_loss: Any = number("1", default=0.0, lower=0.0)
    stribeck_exponent: Any = number("1", default=2.0, lower=1.0)
    stribeck_gear_loss: Any = number("1", default=0.0, lower=0.0)
    stribeck_load_loss: Any = number("1", default=0.0, lower=0.0)
    motor_squared: Any = number("1/(N m) | 1/N", default=0.0, lower=0.0)
    load_squared: Any = number("1/(N m) | 1/N", default=0.0, lower=0.0)

    def limit(self, speed: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        near_rest = self._near_rest(speed)
        return self.dry + self.stribeck * near_rest, self.coulomb + self.stribeck_coulomb * near_rest

    def _near_rest(self, speed: Float[Array, ""]) -> Float[Array, ""]:
        squared = self.stribeck_rate * speed**2
        moves = squared > 0.0
        # The power's derivative is infinite at rest for exponents below two.
        return jnp.where(moves, jnp.exp(-(jnp.where(moves, squared, 1.0) ** (self.stribeck_exponent / 2.0))), 1.0)

    def uneven(self) -> Float[Array, ""]:
        return self.asymmetry

    def gear(self, speed: Float[Array, ""], motor: Float[Array, ""], load: Float[Array, ""]) -> Float[Array, ""]:
        sliding = _rubbing(self.gear_loss, motor, self.load_loss, load)
        static = _rubbing(self.stribeck_gear_loss, motor, self.stribeck_load_loss, load)
        driven = jnp.where(jnp.abs(load) < jnp.abs(motor), self.load_squared * load**2, self.motor_squared * motor**2)
        return sliding + self._near_rest(speed) * (static + jnp.where(motor * load > 0.0, driven, 0.0))


def _rubbing(motor_share: Any, motor: Float[Array, ""], load_share: Any, load: Float[Array, ""]) -> Float[Array, ""]:
    """``|g τ_motor + l τ_load|``, with slopes from above where both shares are zero, their least value."""
    total = motor_share * motor + load_share * load
    return total * jnp.sign(jnp.where(motor_share + load_share > 0.0, total, motor + load))
