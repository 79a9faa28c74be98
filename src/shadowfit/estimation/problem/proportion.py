"""Equations of joints that nothing drives, measured by their own forces.

The equation of such a joint has no known force in it: weight, inertia and friction balance each other, and twice of
everything moves alike. Its missing impulse r is proportional to the numbers behind them, so that a fit makes it small
by making all of them small, the level of its errors follows, and nothing but the other joints' torques stands against
it (a wrist without a motor ended with a fortieth of its friction, rotor and first moment, and bars as small). So r is
counted in proportion to the forces that balance,

    ρ = r F₀/F(χ),        F² = Σ_g mean over steps of f_g² = uᵀ Q u,        f_g = Σ_p (∂r/∂u_p)_g u_p,

for the groups g of its forces: weight, inertia, and all others (friction, springs). u are the free numbers, of a whole
body its moments, on which r depends linearly. F₀ = F where the weights were found: their level is an impulse there.
Along a common factor of all u the rows then hold nothing, and error bars say so:

    dρ = F₀/F (dr − r d log F).

Errors of the discretisation that are taken off r, and held while a fit moves, grow with the forces like all of it: E
that was found where the forces were F' counts as E F/F'. (Held as they are, a fit that has twice the forces would have
half of its errors left, and stays where it is but for a little in each round.)

(Inertia in the place of F, which the determinant of acting forces amounts to, would reward a rotor without end where a
joint creeps: what hardly accelerates does not feel it. And so would numbers in the place of forces, some of which
cancel each other along any one motion.)
"""

from __future__ import annotations

import dataclasses

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.problem.parameters import ParameterSet
from shadowfit.estimation.problem.whole_bodies import moments, slopes
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.records import record


@record(frozen=True)
class Proportion:
    """Which impulse residuals are measured by their forces, and how large these are."""

    forms: Float[np.ndarray, "r p p"]
    """Q of each residual; zero for one that is an impulse whatever the parameters are."""
    size: Float[np.ndarray, " r"]
    """F₀."""

    @property
    def measured(self) -> np.ndarray:
        """Which residuals are."""
        return np.any(self.forms != 0.0, axis=(1, 2))

    def at(self, parameters: ParameterSet, values: Values) -> tuple[Float[np.ndarray, " r"], Float[np.ndarray, "r p"]]:
        """F₀/F of each residual and ``d log F`` by increments of the parameters; one and zero for the others."""
        numbers, by_increments = linear_numbers(parameters, values)
        halves = self.forms @ numbers
        squares = halves @ numbers
        known = squares > 0.0
        squares = np.where(known, squares, 1.0)
        factor = np.where(known, self.size / np.sqrt(squares), 1.0)
        return factor, np.where(known[:, None], halves @ by_increments / squares[:, None], 0.0)

    def centred(self, parameters: ParameterSet, values: Values) -> Proportion:
        """The same with F₀ at these values."""
        numbers, _ = linear_numbers(parameters, values)
        return dataclasses.replace(self, size=np.sqrt(self.forms @ numbers @ numbers))


def linear_numbers(
    parameters: ParameterSet, values: Values
) -> tuple[Float[np.ndarray, " p"], Float[np.ndarray, "p p"]]:
    """u: free numbers, of whole bodies their moments; and their derivatives by increments."""
    flat = parameters.flat(values)
    numbers, by_increments = flat.copy(), np.eye(len(flat))
    places = parameters.whole.places
    if len(places):
        numbers[places] = moments(flat[places])
        by_increments[places[:, :, None], places[:, None, :]] = slopes(flat[places])
    return numbers, by_increments
