"""The methods by name. A method's module is imported only in the process that runs it."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.peers.answer import Answer
from benchmarks.peers.tasks import Data, Task


@dataclasses.dataclass(frozen=True)
class Method:
    """Where a method is, and how it is called."""

    name: str
    label: str
    module: str
    setting: str | None = None
    """Name of a value in the module that is passed on as ``settings``."""
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    compiles: bool = False
    """Whether the first fit of a process is slower than the next: only later ones then count as warm."""
    equations: bool = False
    """Whether its user writes the equations of motion down."""
    model: str = ""
    """Ending of the model file that its user writes."""

    def load(self) -> Callable[[Task, Data], Answer]:
        """The function that estimates."""
        module = importlib.import_module(f"benchmarks.peers.{self.module}")
        arguments = dict(self.arguments)
        if self.setting is not None:
            arguments["settings"] = getattr(module, self.setting)
        return lambda task, data: module.estimate(task, data, **arguments)


METHODS = {
    method.name: method
    for method in (
        Method("shadowfit", "shadowfit, physical", "shadowfit_fit", "PHYSICAL", compiles=True, model="toml"),
        Method("shadowfit-poses", "shadowfit, poses of bodies", "shadowfit_fit", "POSES", compiles=True, model="toml"),
        Method("shadowfit-plain", "shadowfit, κ auto, 2 ms", "shadowfit_fit", "PLAIN", compiles=True, model="toml"),
        Method("shadowfit-default", "shadowfit, defaults", "shadowfit_fit", "DEFAULT", compiles=True, model="toml"),
        Method("paper", "the paper's settings", "shadowfit_fit", "PAPER", compiles=True, model="toml"),
        Method("casadi", "CasADi multiple shooting", "casadi_shooting", equations=True),
        Method("scipy", "SciPy shooting", "scipy_shooting", equations=True),
        Method("mujoco", "mujoco.sysid, measured start", "mujoco_sysid", model="xml"),
        Method(
            "mujoco-state",
            "mujoco.sysid, 0.5 s chunks, free starts",
            "mujoco_sysid",
            arguments={"free_state": True},
            model="xml",
        ),
        Method("pinocchio", "Pinocchio regressor", "pinocchio_regressor", model="xml"),
    )
}
