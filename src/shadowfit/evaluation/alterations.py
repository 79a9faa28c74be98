"""Usual mistakes with the columns of a recording, turned back: signs, degrees, millimetres and -seconds, the order."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np

from shadowfit.mechanism import JointPosition, Mechanism
from shadowfit.recordings import Recording
from shadowfit.recordings.checks import LONG_INTERVAL
from shadowfit.records import record

# Columns of more joints than this are not tried in all orders and units: every trial takes a moment.
MOST_SENSORS = 4


@record(frozen=True)
class Alteration:
    """One mistake, turned back."""

    text: str
    """What is done, as the opening of a sentence."""
    advice: str
    apply: Callable[[Recording], Recording]


def alterations(mechanism: Mechanism) -> list[Alteration]:
    """Signs and units of positions, signs of inputs, the unit of times, and positions of joints in another order."""
    positions = _positions(mechanism)
    if len(positions) > MOST_SENSORS:
        return []
    mirrored = [*mirrored_positions(mechanism), *(_mirrored(name) for name in mechanism.inputs)]
    units = [
        Alteration(
            f"with {name} in {'degrees' if sensor.rotary else 'millimetres'}",
            f"Call the column `{name} [{'deg' if sensor.rotary else 'mm'}]`",
            _scaled(name, np.pi / 180.0 if sensor.rotary else 1e-3),
        )
        for name, sensor in positions.items()
    ]
    swapped = [
        Alteration(
            f"with {first} and {second} swapped",
            f"Say which column is which: `--channel {first}=… --channel {second}=…`",
            _swapped(first, second),
        )
        for first, second in itertools.combinations(positions, 2)
        if positions[first].rotary == positions[second].rotary
    ]
    slower = Alteration("with times in milliseconds", "Call the column of times `time [ms]`", _in_milliseconds)
    return [*mirrored, *units, *swapped, slower]


def mirrored_positions(mechanism: Mechanism) -> list[Alteration]:
    """The other sign of each position; none of machines with many."""
    positions = _positions(mechanism)
    return [_mirrored(name) for name in positions] if len(positions) <= MOST_SENSORS else []


def turned_positions(mechanism: Mechanism) -> list[Alteration]:
    """Angles that are counted from the other side, or the other way round, or both; none of machines with many."""
    positions = _positions(mechanism)
    if len(positions) > MOST_SENSORS:
        return []
    rotary = [name for name, sensor in positions.items() if sensor.rotary]
    return [
        *(_mirrored(name) for name in positions),
        *(_half_turn(name, sign) for name in rotary for sign in (1.0, -1.0)),
    ]


def _half_turn(name: str, sign: float) -> Alteration:
    key = "" if sign > 0.0 else "sign = -1, "
    return Alteration(
        f"with {name}{'' if sign > 0.0 else ' of the other sign and'} counted from the other side",
        f"Say `{name} = {{ column = …, {key}offset = {np.pi:.6g} }}` in a table of channels (`--channels`)",
        lambda recording: _with(recording, {name: sign * recording.channels[recording.channel_name(name)] + np.pi}),
    )


def _positions(mechanism: Mechanism) -> dict[str, JointPosition]:
    return {name: sensor for name, sensor in mechanism.sensors.items() if isinstance(sensor, JointPosition)}


def _mirrored(name: str) -> Alteration:
    return Alteration(
        f"with the other sign of {name}",
        f"Turn it in the file, or say `{name} = {{ column = …, sign = -1 }}` in a table of channels (`--channels`)",
        _scaled(name, -1.0),
    )


def _in_milliseconds(recording: Recording) -> Recording:
    """As it is, where samples are so close together that its times are seconds."""
    slow = recording.sample_interval >= LONG_INTERVAL
    return dataclasses.replace(recording, time=1e-3 * recording.time) if slow else recording


def _scaled(name: str, factor: float) -> Callable[[Recording], Recording]:
    return lambda recording: _with(recording, {name: factor * recording.channels[recording.channel_name(name)]})


def _swapped(first: str, second: str) -> Callable[[Recording], Recording]:
    def apply(recording: Recording) -> Recording:
        one, other = (recording.channels[recording.channel_name(name)] for name in (first, second))
        return _with(recording, {first: other, second: one})

    return apply


def _with(recording: Recording, values: dict[str, np.ndarray]) -> Recording:
    named = {recording.channel_name(name): samples for name, samples in values.items()}
    return dataclasses.replace(recording, channels={**recording.channels, **named})
