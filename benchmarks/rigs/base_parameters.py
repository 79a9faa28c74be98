"""Published base parameters of the Stäubli TX40 beside the same combinations of a fit.

A line of the file is ``combination, value, relative sd [%], …`` in inertias about the joints (Ixx1), first moments
(mx1), masses (m1), rotor inertias (Ia1), friction (fv1, fs1) and offsets (off1; on the other side of the equation).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from shadowfit.evaluation.store import SavedResult


def base_parameters(file: Path, saved: SavedResult) -> Iterator[tuple[str, float, float, float]]:
    """Combination, what was published, what the fit has for it, and its standard deviation."""
    start = np.array([saved.summary["parameters"][label]["value"] for label in saved.labels])
    # The authors' numbers are those of the data alone; so are these, without what the file says about bodies.
    known, away = saved.covariance_of_data, saved.values_of_data - start
    steps = 1e-6 * np.maximum(np.abs(start), 1e-3)
    for line in file.read_text().splitlines():
        text, value, *_ = (cell.strip() for cell in line.split(","))
        if not set(re.findall(r"[A-Za-z]+\d", text)) <= set(symbols(dict(zip(saved.labels, start, strict=True)))):
            continue  # not part of the model

        def combination(numbers: np.ndarray, text: str = text) -> float:
            own = symbols(dict(zip(saved.labels, numbers, strict=True)))
            return sum(
                float(factor.replace(" ", "") or 1) * own[symbol]
                for factor, symbol in re.findall(r"([+-]?\s*[\d.]*)\*?([A-Za-z]+\d)", text)
            )

        slope = np.array(
            [
                (combination(start + step) - combination(start - step)) / (2.0 * size)
                for size, step in zip(steps, np.diag(steps), strict=True)
            ]
        )
        yield text, float(value), combination(start) + float(slope @ away), float(np.sqrt(slope @ known @ slope))


def symbols(numbers: dict[str, float]) -> dict[str, float]:
    """Numbers of a TX40 by the symbols of robot identification."""
    found = {}
    for i in range(1, 7):
        mass, com = numbers[f"link_{i}.mass"], np.array([numbers[f"link_{i}.com.{axis}"] for axis in "xyz"])
        about = mass * (com @ com * np.eye(3) - np.outer(com, com))
        for row, column in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)):
            entry = "xyz"[row] + "xyz"[column]
            found[f"I{entry}{i}"] = numbers[f"link_{i}.inertia.{entry}"] + about[row, column]
        found |= {f"m{axis}{i}": mass * own for axis, own in zip("xyz", com, strict=True)}
        found |= {f"m{i}": mass, f"Ia{i}": numbers[f"joint_{i}.motor.shaft_inertia"]}
        found |= {f"fv{i}": numbers[f"joint_{i}.viscous"], f"fs{i}": numbers[f"joint_{i}.coulomb"]}
        found[f"off{i}"] = -numbers[f"joint_{i}_effort.offset"]
    # The published model counts what both joints feel of motor 6 with each of them.
    turned = {name: numbers[f"motor_6.{name}"] for name in ("shaft_inertia", "viscous", "coulomb")}
    for i in (5, 6):
        found[f"Ia{i}"] += turned["shaft_inertia"]
        found[f"fv{i}"] += turned["viscous"]
    return found | {"Iam6": turned["shaft_inertia"], "fvm6": turned["viscous"], "fsm6": turned["coulomb"]}
