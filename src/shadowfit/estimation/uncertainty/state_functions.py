"""Smooth functions of a joint's motion and drive, of a reading, and of time: what errors of real machines are made of.

All are of unit size (root mean square over the recordings) and scaled by the motion's own ranges, so that they have no
units. With v the speed and f the known force of a drive over their root mean squares, and x the position over half its
range, about the middle of it:

* of the speed: v|v|, v³ and tanh(v/0.3) (drag, friction that grows faster or slower than viscous friction, or fades);
  tanh(v/0.03) times sin πx and cos πx (friction that varies with the position);
* of the speed near rest: tanh(v/0.03) exp(−(v/w)²) for w = 0.1, 0.3, 1 (friction that falls as the joint gets going;
  Stribeck 1902);
* of the way since the joint turned last: what friction that grows over a distance d (0.003, 0.01, 0.03 in units of x;
  Dahl 1968) has less than friction that jumps (bristles of a bearing, gears that wind up, cables);
* of the position: x², sin and cos of πx, 2πx, 3πx (springs and cables that are not linear, cogging, eccentric gears);
* of the drive: f|f|, f³, tanh(f/0.3) and f² (a motor that saturates or has a dead band, an amplifier that pulls more to
  one side); and, by itself, ḟ (a drive that acts later or earlier than its input says);
* of the target of a loop: what it is ahead of itself with a lag of 1 and 3 time steps (a loop that answers with a
  filter in it, through a gear that winds up, or at its own times);
* of time: half waves cos πit/T over a recording, each smaller than the one before by as much as in a random walk. Most
  of such a change takes as long as the recording, and no time of correlation has to be chosen.

Viscous and Coulomb friction, a constant force, a linear spring and a drive's gain are not among them: most models have
these, and functions that parameters stand for exactly would only say that names are names. Each function takes and
returns one array for each recording.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shadowfit.arrays import Float
from shadowfit.estimation.linear.substitution import library

# Harmonics over a range, and speeds (or forces) at which a function fades quickly and slowly, in units of the root mean
# square.
HARMONICS, QUICK, SLOW = 3, 0.03, 0.3
# Speeds over which friction near rest falls, in the same units.
FALLS = (0.1, 0.3, 1.0)
# Half waves of slow changes, in all recordings together; each has one at least, and a constant.
WAVES = 12
# Distances over which friction grows after a joint has turned, over half the range of its positions.
DISTANCES = (0.003, 0.01, 0.03)
# Lags of loops behind their targets, in time steps. (With longer ones they stand in for friction over a way.)
LAGS = (1.0, 3.0)

Parts = tuple[Float[np.ndarray, "n f"], ...]


def of_speed(position: Sequence[Float[np.ndarray, " n"]], speed: Sequence[Float[np.ndarray, " n"]]) -> Parts:
    """Functions of the speed: friction."""
    joined = np.concatenate(speed)
    v = joined / (float(np.sqrt(np.mean(joined**2))) or 1.0)
    varying = [np.tanh(v / QUICK) * wave for wave in _harmonics(_place(position))[:2]]
    return _split([v * np.abs(v), v**3, np.tanh(v / SLOW), *varying], speed)


def near_rest(speed: Sequence[Float[np.ndarray, " n"]]) -> list[Parts]:
    """Friction that is larger near rest, one for each speed over which it falls."""
    joined = np.concatenate(speed)
    v = joined / (float(np.sqrt(np.mean(joined**2))) or 1.0)
    return [_split([np.tanh(v / QUICK) * np.exp(-((v / fall) ** 2))], speed) for fall in FALLS]


def of_turning(position: Sequence[Float[np.ndarray, " n"]], speed: Sequence[Float[np.ndarray, " n"]]) -> list[Parts]:
    """Functions of the way since a joint turned last: friction that grows over a distance, one for each distance."""
    joined = np.concatenate(speed)
    direction = np.tanh(joined / (QUICK * (float(np.sqrt(np.mean(joined**2))) or 1.0)))
    half = 0.5 * float(np.ptp(np.concatenate(position))) or 1.0
    yielding = np.concatenate([_yielding(own / half) for own in position])
    return [_split([column - direction], speed) for column in yielding.T]


def _yielding(position: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n d"]:
    """Dahl's friction along a motion, ``dz = (1 − z sign dx) dx/d`` from rest, for several distances d."""
    moved = np.diff(position)
    columns = []
    for distance in DISTANCES:
        # z' = sign − (sign − z) kept
        kept = np.exp(-np.abs(moved) / distance)
        columns.append(_recurred(kept, np.sign(moved) * (1.0 - kept)))
    return np.stack(columns, axis=1)


def _recurred(kept: Float[np.ndarray, " n"], added: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n+1"]:
    """``z_{i+1} = kept_i z_i + added_i`` from zero."""
    # Behind a number that nothing depends on.
    found = np.concatenate([[0.0, 0.0], added])
    library("recur", len(added), 1, 1, np.stack([np.zeros_like(kept), -kept], axis=1), found)
    return found[1:]


def of_drive(force: Sequence[Float[np.ndarray, " n"]]) -> Parts:
    """Functions of the known force of a drive: what it gives beside what is proportional to its input."""
    joined = np.concatenate(force)
    f = joined / (float(np.sqrt(np.mean(joined**2))) or 1.0)
    return _split([f * np.abs(f), f**3, np.tanh(f / SLOW), f**2], force)


def of_delay(force: Sequence[Float[np.ndarray, " n"]]) -> Parts:
    """Change of the known force of a drive: what one that is a little late gives beside it."""
    return _split([np.concatenate([np.gradient(own) if len(own) > 1 else 0.0 * own for own in force])], force)


def of_lag(target: Sequence[Float[np.ndarray, " n"]]) -> Parts:
    """What targets are ahead of themselves with a lag: what a loop gives less that follows them so."""
    columns = [np.concatenate([_ahead(own, lag) for own in target]) for lag in LAGS]
    return _split(columns, target)


def _ahead(target: Float[np.ndarray, " n"], lag: float) -> Float[np.ndarray, " n"]:
    """``z' = z e^(−1/lag) + Δu``, from rest."""
    changes = np.diff(target)
    return _recurred(np.full(len(changes), np.exp(-1.0 / lag)), changes)


def of_position(position: Sequence[Float[np.ndarray, " n"]]) -> Parts:
    """Functions of the position, or of a sensor's reading."""
    x = _place(position)
    return _split([x**2, *_harmonics(x)], position)


def of_time(steps: Sequence[int]) -> Parts:
    """Slow changes over each recording, with functions of its own."""
    number = np.arange(max(WAVES // len(steps), 1) + 1)
    tables = []
    for index, count in enumerate(steps):
        at = (np.arange(count) + 0.5) / max(count, 1)
        table = np.zeros((count, len(steps), len(number)))
        table[:, index] = np.cos(np.pi * at[:, None] * number) / np.maximum(number, 1)
        tables.append(table.reshape(count, -1))
    return tuple(tables)


def _place(position: Sequence[Float[np.ndarray, " n"]]) -> Float[np.ndarray, " n"]:
    """Positions over half their range, from its middle."""
    joined = np.concatenate(position)
    low, high = joined.min(), joined.max()
    return (joined - 0.5 * (low + high)) / (0.5 * (high - low) or 1.0)


def _harmonics(x: Float[np.ndarray, " n"]) -> list[Float[np.ndarray, " n"]]:
    return [wave(np.pi * i * x) for i in range(1, HARMONICS + 1) for wave in (np.sin, np.cos)]


def _split(columns: list[Float[np.ndarray, " n"]], like: Sequence[np.ndarray]) -> Parts:
    """Functions of unit size, for each recording."""
    functions = np.stack(columns, axis=1)
    size = np.sqrt(np.mean(functions**2, axis=0))
    ends = np.cumsum([len(values) for values in like])[:-1]
    return tuple(np.split(functions / np.where(size > 0.0, size, 1.0), ends))
