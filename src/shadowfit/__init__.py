"""Fit a rigid-multibody simulator to recordings by joint estimation of states and parameters.

The names below are the library's public surface. They are imported when they are first used, so that importing the
package takes no time and does not start JAX.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shadowfit.designs import Design as Design
    from shadowfit.designs import DesignError as DesignError
    from shadowfit.designs import DesignSettings as DesignSettings
    from shadowfit.designs import Limits as Limits
    from shadowfit.designs import design as design
    from shadowfit.designs import read_limits as read_limits
    from shadowfit.dynamics import State as State
    from shadowfit.dynamics import Trajectory as Trajectory
    from shadowfit.dynamics import place as place
    from shadowfit.dynamics.simulate import simulate as simulate
    from shadowfit.dynamics.simulate import simulate_many as simulate_many
    from shadowfit.errors import MechanismError as MechanismError
    from shadowfit.errors import RecordingError as RecordingError
    from shadowfit.errors import ShadowfitError as ShadowfitError
    from shadowfit.errors import SimulationError as SimulationError
    from shadowfit.errors import UnknownNameError as UnknownNameError
    from shadowfit.estimation import ErrorModel as ErrorModel
    from shadowfit.estimation import Estimate as Estimate
    from shadowfit.estimation import Free as Free
    from shadowfit.estimation import LevenbergMarquardt as LevenbergMarquardt
    from shadowfit.estimation import Options as Options
    from shadowfit.estimation.fit import fit as fit
    from shadowfit.estimation.problem.parameters import parameter_set as parameter_set
    from shadowfit.estimation.problem.problem import build_problem as build_problem
    from shadowfit.estimation.refits.bootstrap import bootstrap as bootstrap
    from shadowfit.estimation.refits.profile import profiles as profiles
    from shadowfit.estimation.spread.fleet import fit_fleet as fit_fleet
    from shadowfit.evaluation import load_result as load_result
    from shadowfit.evaluation import save_estimate as save_estimate
    from shadowfit.evaluation import validate as validate
    from shadowfit.evaluation import write_report as write_report
    from shadowfit.evaluation.advise import advise as advise
    from shadowfit.evaluation.comparison import compare_models as compare_models
    from shadowfit.evaluation.cross_validation import cross_validate as cross_validate
    from shadowfit.evaluation.exporting import export as export
    from shadowfit.evaluation.precheck import check as check
    from shadowfit.mechanism import Mechanism as Mechanism
    from shadowfit.models import ModelFileError as ModelFileError
    from shadowfit.models import library as library
    from shadowfit.models import load_model as load_model
    from shadowfit.models import read_model as read_model
    from shadowfit.models import update_model as update_model
    from shadowfit.models import write_model as write_model
    from shadowfit.parallel import crew as crew
    from shadowfit.recordings import Recording as Recording
    from shadowfit.recordings import RecordingFile as RecordingFile
    from shadowfit.recordings import read_recording as read_recording

_HOME = {
    **dict.fromkeys(("Design", "DesignError", "DesignSettings", "Limits", "design", "read_limits"), "designs"),
    **dict.fromkeys(("State", "Trajectory", "place", "simulate", "simulate_many"), "dynamics"),
    **dict.fromkeys(
        ("MechanismError", "RecordingError", "ShadowfitError", "SimulationError", "UnknownNameError"), "errors"
    ),
    **dict.fromkeys(("ErrorModel", "Estimate", "Free", "LevenbergMarquardt", "Options"), "estimation"),
    "fit": "estimation.fit",
    "parameter_set": "estimation.problem.parameters",
    "build_problem": "estimation.problem.problem",
    "bootstrap": "estimation.refits.bootstrap",
    "profiles": "estimation.refits.profile",
    "fit_fleet": "estimation.spread.fleet",
    **dict.fromkeys(("load_result", "save_estimate", "validate", "write_report"), "evaluation"),
    "advise": "evaluation.advise",
    "check": "evaluation.precheck",
    "export": "evaluation.exporting",
    "compare_models": "evaluation.comparison",
    "cross_validate": "evaluation.cross_validation",
    "Mechanism": "mechanism",
    **dict.fromkeys(("ModelFileError", "library", "load_model", "read_model", "update_model", "write_model"), "models"),
    "crew": "parallel",
    **dict.fromkeys(("Recording", "RecordingFile", "read_recording"), "recordings"),
}
__all__ = [*_HOME]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("shadowfit")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
