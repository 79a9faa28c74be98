"""Shapes of motions and signals that start and end at rest: Fourier series, chirps, random multisines, pulses.

A channel is ``a Σ_i c_i w(t) f_i(t)`` with an amplitude a, coefficients c that are designed, and a window w that lets
everything begin and end at zero with vanishing first and second derivative. Among the f are a constant, sines and
cosines of some frequencies, and the usual motions as a whole (a chirp, a random multisine, a Fourier series made by
hand, pulses): a design that starts from one of these is never worse than it.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from shadowfit.arrays import Float
from shadowfit.records import record

USUAL = ("chirp", "random", "fourier", "pulses")
# Part of the duration in which the window rises, and in which it falls.
FADE = 0.1
# Sines of a random multisine.
LINES = 30
# Harmonics of a Fourier series made by hand.
HARMONICS = 5
# Pulses of a train, and the part of each in which it rises, and in which it falls.
PULSES, EDGE = 6, 0.25
# Frequencies of a channel, where it is alone and where there are many, and of all channels together.
MOST, LEAST, ALTOGETHER = 12, 5, 30


@record(frozen=True)
class Waves:
    """Shapes of all channels."""

    channels: int
    duration: float
    """[s]."""
    band: float
    """Highest frequency [Hz]."""
    frequencies: int = LEAST
    """Number of frequencies of the designed series."""
    quiet: float = 0.0
    """Part of the duration, at its end, in which all is zero."""
    seed: int = 0
    """Of the random multisine."""

    def for_channels(self, channels: int, frequencies: int | None) -> Waves:
        """The same for some channels; None: with fewer frequencies the more there are."""
        chosen = int(np.clip(ALTOGETHER // max(channels, 1), LEAST, MOST)) if frequencies is None else frequencies
        return dataclasses.replace(self, channels=channels, frequencies=chosen)

    @property
    def shapes_each(self) -> int:
        """Number of shapes of a channel."""
        return 1 + 2 * len(self.lines) + len(USUAL)

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return self.channels * self.shapes_each

    @functools.cached_property
    def lines(self) -> Float[np.ndarray, " k"]:
        """Frequencies [Hz]: multiples of one over the duration, evenly on a logarithmic scale up to the band's end."""
        first = 1.0 / self.duration
        most = max(self.band, first)
        return first * np.unique(np.round(np.geomspace(first, most, self.frequencies) / first))

    def window(self, time: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """w, between 0 and 1."""
        active = (1.0 - self.quiet) * self.duration
        rise = FADE * self.duration
        return _smooth(time / rise) * _smooth((active - time) / rise)

    def shapes(self, time: Float[np.ndarray, " n"]) -> Float[np.ndarray, "channels k n"]:
        """All shapes at given times [s]."""
        return _shapes(self, time.tobytes())

    def signals(
        self, coefficients: Float[np.ndarray, "count size"], time: Float[np.ndarray, " n"]
    ) -> Float[np.ndarray, "count n channels"]:
        """Channels over time, in units of their amplitudes."""
        table = coefficients.reshape(len(coefficients), self.channels, self.shapes_each)
        return np.einsum("bck,ckn->bnc", table, self.shapes(time))

    def usual(self, name: str) -> Float[np.ndarray, " size"]:
        """Coefficients of a usual motion in all channels."""
        table = np.zeros((self.channels, self.shapes_each))
        table[:, 1 + 2 * len(self.lines) + USUAL.index(name)] = 1.0
        return table.ravel()

    def drawn(self, random: np.random.Generator) -> Float[np.ndarray, " size"]:
        """Coefficients of a random series."""
        count = 1 + 2 * len(self.lines)
        table = np.zeros((self.channels, self.shapes_each))
        table[:, :count] = random.normal(size=(self.channels, count)) / np.sqrt(count)
        return table.ravel()


@functools.lru_cache(maxsize=16)
def _shapes(waves: Waves, times: bytes) -> Float[np.ndarray, "channels k n"]:
    """For times given as the bytes of their array; a search asks for the same ones again and again."""
    time = np.frombuffer(times)
    turns = 2.0 * np.pi * waves.lines[:, None] * time
    series = np.concatenate([np.ones((1, len(time))), np.sin(turns), np.cos(turns)])
    makers = (_chirp, _random, _fourier, _pulses)
    usual = np.stack([[make(waves, c, time) for make in makers] for c in range(waves.channels)])
    every = np.broadcast_to(series, (waves.channels, *series.shape))
    return np.concatenate([every, usual], axis=1) * waves.window(time)


def _smooth(x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """From 0 to 1 with vanishing first and second derivatives at both ends."""
    x = np.clip(x, 0.0, 1.0)
    return x**3 * (10.0 + x * (6.0 * x - 15.0))


def _chirp(waves: Waves, channel: int, time: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """A sweep from one turn in the duration to the band's end; channels differ in phase and by a tenth in frequency."""
    first, last = 1.0 / waves.duration, waves.band / (1.0 + 0.1 * channel)
    phase = first * time + 0.5 * (last - first) * time**2 / waves.duration
    return np.sin(2.0 * np.pi * phase + channel)


def _random(waves: Waves, channel: int, time: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Sines of equal size and random phase at frequencies that fill the band; its peaks reach about one."""
    random = np.random.default_rng((waves.seed, channel))
    lines = np.linspace(1.0 / waves.duration, waves.band, LINES)
    phases = random.uniform(0.0, 2.0 * np.pi, LINES)
    return np.sin(2.0 * np.pi * lines[:, None] * time + phases[:, None]).sum(axis=0) / np.sqrt(2.0 * LINES)


def _fourier(waves: Waves, channel: int, time: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """As it is made by hand: five harmonics that fill the band, speeds of equal size, phases that differ."""
    order = np.arange(1, HARMONICS + 1)
    phases = 2.4 * order * (channel + 1)
    turns = 2.0 * np.pi * waves.band / HARMONICS * order[:, None] * time
    return (np.sin(turns + phases[:, None]) / order[:, None]).sum(axis=0) / np.sum(1.0 / order)


def _pulses(waves: Waves, channel: int, time: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Pulses to either side in turn, from as long as there is room down to half a period of the band's end.

    Between short ones there is rest. Channels begin with pulses of another length.
    """
    room = (1.0 - waves.quiet) * waves.duration / PULSES
    lengths = np.roll(np.geomspace(room, min(room, 0.5 / waves.band), PULSES), channel)
    starts = room * np.arange(PULSES)
    since = time - starts[:, None]
    edges = EDGE * lengths[:, None]
    shapes = _smooth(since / edges) * _smooth((lengths[:, None] - since) / edges)
    return np.sum((-1.0) ** np.arange(PULSES)[:, None] * shapes, axis=0)
