"""True motion with exact dry friction: joints stick and slip, and each change is found as an event.

Between two events a joint slips in one direction with a constant friction torque, or it rests and friction balances
the other forces. At an event the joints at rest stick or slip as Coulomb's law allows: friction of a resting joint is
at most its level, friction of a slipping one is against its motion. Nothing is smoothed and no time-step is chosen:
SciPy's DOP853 to a relative tolerance of 1e-10, events located to rounding.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from benchmarks.peers.systems import System
from benchmarks.peers.truth import ABSOLUTE, RELATIVE

# A joint breaks away where friction would have to exceed its level by this part: the located event is past it.
BREAKAWAY = 1e-9
# Friction against the motion is given as a level with a sign; the equations' smooth step is then one.
SIGNED = SimpleNamespace(sin=math.sin, cos=math.cos, tanh=lambda _: 1.0)

Modes = dict[int, int]
"""Joint with dry friction → the direction in which it slips, or zero where it rests."""


class Sticking:
    """A machine at a constant input."""

    def __init__(self, system: System, p: Mapping[str, float], u: np.ndarray) -> None:
        self.system, self.numbers, self.inputs = system, system.parameters(p), [float(value) for value in u]
        self.size = len(system.joints)
        self.rubbing = [i for i, name in enumerate(system.joints) if self.numbers.get(f"{name}.coulomb", 0.0) > 0.0]

    def accelerations(self, state: Sequence[float], signs: Mapping[int, float]) -> np.ndarray:
        """Accelerations where each joint's dry friction is its level times a sign, against the positive direction."""
        names = self.system.joints
        levels = {f"{names[i]}.coulomb": self.numbers[f"{names[i]}.coulomb"] * signs[i] for i in self.rubbing}
        q, v = state[: self.size], state[self.size :]
        return np.array(self.system.accelerations(q, v, self.inputs, {**self.numbers, **levels}, SIGNED))

    def signs(self, state: Sequence[float], modes: Modes) -> dict[int, float]:
        """Friction over its level: one against the motion, and at rest what holds the joint there."""
        resting = [i for i, mode in modes.items() if mode == 0]
        known = {i: float(mode) for i, mode in modes.items()}
        if not resting:
            return known
        free = self.accelerations(state, known)[resting]
        columns = [self.accelerations(state, {**known, i: 1.0})[resting] - free for i in resting]
        return known | dict(zip(resting, np.linalg.solve(np.array(columns).T, -free).tolist(), strict=True))

    def modes(self, state: Sequence[float]) -> Modes:
        """Which joints slip and which rest."""
        moving = {i: int(np.sign(state[self.size + i])) for i in self.rubbing}
        still = [i for i, direction in moving.items() if direction == 0]
        for choice in itertools.product((0, 1, -1), repeat=len(still)):
            modes = moving | dict(zip(still, choice, strict=True))
            signs = self.signs(state, modes)
            a = self.accelerations(state, signs)
            if all(abs(signs[i]) <= 1.0 + BREAKAWAY if modes[i] == 0 else a[i] * modes[i] > 0.0 for i in still):
                return modes
        raise RuntimeError(f"{self.system.name}: no joint at rest sticks or slips as Coulomb's law allows")

    def rate(self, state: np.ndarray, modes: Modes) -> list[float]:
        """``(q̇, q̈)``; of resting joints exactly zero."""
        at = state.tolist()
        a = self.accelerations(at, self.signs(at, modes))
        for i, mode in modes.items():
            if mode == 0:
                a[i] = 0.0
        return [*at[self.size :], *a.tolist()]

    def events(self, modes: Modes) -> list[Any]:
        """A slipping joint comes to rest, or friction of a resting one reaches its level."""

        def stops(i: int) -> Any:
            def speed(_: float, state: np.ndarray) -> float:
                return float(state[self.size + i])

            speed.direction = -float(modes[i])  # type: ignore[attr-defined]
            return speed

        def breaks_away(i: int) -> Any:
            def excess(_: float, state: np.ndarray) -> float:
                return abs(self.signs(state.tolist(), modes)[i]) - 1.0 - 2.0 * BREAKAWAY

            excess.direction = 1.0  # type: ignore[attr-defined]
            return excess

        found = [stops(i) if mode else breaks_away(i) for i, mode in modes.items()]
        for event in found:
            event.terminal = True
        return found


def advance(system: System, p: Mapping[str, float], state: np.ndarray, u: np.ndarray, times: np.ndarray) -> np.ndarray:
    """States at ``times`` [s] after ``times[0]``, where the state is given and from where the input is held."""
    machine, at, now = Sticking(system, p, u), np.array(state, float), float(times[0])
    rows, wanted = [at.copy()], np.asarray(times)[1:]
    while len(wanted):
        modes = machine.modes(at.tolist())
        found = solve_ivp(
            lambda _, y, modes=modes: machine.rate(y, modes),
            (now, float(times[-1])),
            at,
            "DOP853",
            t_eval=wanted,
            events=machine.events(modes),
            rtol=RELATIVE,
            atol=ABSOLUTE,
            first_step=min(float(times[-1]) - now, 1e-3),
        )
        if found.status < 0:
            raise RuntimeError(f"the truth of {system.name} stopped at {now:.6g} s: {found.message}")
        rows.extend(np.reshape(found.y, (2 * machine.size, len(found.t))).T)
        wanted = wanted[len(found.t) :]
        if found.status == 0:
            break
        happened = next(place for place, when in enumerate(found.t_events) if len(when))
        now, at = float(found.t_events[happened][0]), found.y_events[happened][0].copy()
        joint = list(modes)[happened]
        if modes[joint]:
            at[machine.size + joint] = 0.0
    return np.array(rows)
