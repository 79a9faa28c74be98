"""A simulated robot: its files as a user has them, what was recorded, and what is true."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

# What is free of an arm whose torques are read.
FREE = ("*.inertial", "*.friction", "*.armature", "*_effort.offset")
# Torques are read, and go on between samples.
TORQUES = 'drive = "torque"\n\n[sensors."*_position"]\nstd = 1e-4\n\n[inputs."*_effort"]\nhold = "linear"\n'


@dataclasses.dataclass(frozen=True)
class Robot:
    """Simulated once, to be fitted with a file that is off."""

    file: str
    """Text of its URDF or MJCF, as it is fitted."""
    overlay: str
    """Text of the model file beside it, without the line that names it."""
    time: np.ndarray
    channels: Mapping[str, np.ndarray]
    truth: Mapping[str, float]
    """Numbers that stand for nothing else."""
    free: tuple[str, ...] = FREE
    priors: tuple[str, ...] = ()
    """As for ``--prior``."""
    split: float = np.inf
    """What is fitted [s]; torques of the rest are predicted."""
