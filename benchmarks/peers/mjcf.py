"""The machines as MuJoCo models, and where a dotted name is found in one."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "models"
AXES = {"xx": 0, "yy": 1, "zz": 2}


def path(name: str) -> Path:
    """The model file of a machine."""
    return FOLDER / f"{name}.xml"
