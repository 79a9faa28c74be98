"""Results on disk: one file for each method, task and seed, so that a run can be stopped and continued."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path

from shadowfit.models.atomic import write_text

FOLDER = Path(".bench")
# Within this of the truth, in every unknown, a fit counts as a success.
SUCCESS = 0.1


@dataclasses.dataclass(frozen=True)
class Result:
    """One fit. ``error`` says why there is none."""

    method: str
    task: str
    seed: int
    values: Mapping[str, float] = dataclasses.field(default_factory=dict)
    std: Mapping[str, float] | None = None
    converged: bool = False
    note: str = ""
    seconds: float = math.nan
    """Wall time of the fit."""
    cpu_seconds: float = math.nan
    """Processor time of the fit, all threads."""
    place: int = 0
    """Number of fits that the process had made before."""
    since_start: float = math.nan
    """From the start of the process to the answer [s]; for the first fit of a process."""
    fresh: bool = False
    """Whether the process started without compiled programs of an earlier one."""
    memory: float = math.nan
    """Peak resident memory of the process [MB]."""
    rollout: float = math.inf
    """Error of the held-out rollout [rad, m]."""
    error: str = ""

    def deviation(self, truth: Mapping[str, float], name: str) -> float:
        """Relative error of one unknown; infinite without an answer."""
        value = self.values.get(name, math.nan)
        return abs(value / truth[name] - 1.0) if math.isfinite(value) else math.inf

    def success(self, truth: Mapping[str, float], names: list[str]) -> bool:
        """Whether all unknowns are near the truth."""
        return all(self.deviation(truth, name) < SUCCESS for name in names)


def path(folder: Path, method: str, task: str, seed: int) -> Path:
    """Where a result is kept."""
    return folder / "results" / method / task / f"{seed}.json"


def save(folder: Path, result: Result) -> None:
    """Write one result."""
    write_text(path(folder, result.method, result.task, result.seed), json.dumps(dataclasses.asdict(result), indent=1))


def load(folder: Path) -> list[Result]:
    """All results, in order."""
    files = sorted((folder / "results").glob("*/*/*.json"))
    return [Result(**json.loads(file.read_text(encoding="utf-8"))) for file in files]
