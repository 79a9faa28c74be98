"""Results of fits: on disk, checked against data that they have not seen, and as a page to read."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shadowfit.evaluation.report import write_report as write_report
    from shadowfit.evaluation.store import SavedResult as SavedResult
    from shadowfit.evaluation.store import load_result as load_result
    from shadowfit.evaluation.store import save_estimate as save_estimate
    from shadowfit.evaluation.validation import Validation as Validation
    from shadowfit.evaluation.validation import validate as validate

# Imported when first asked for: a simulation writes its readings without the estimator behind results.
_LATER = {
    "write_report": "report",
    "SavedResult": "store",
    "load_result": "store",
    "save_estimate": "store",
    "Validation": "validation",
    "validate": "validation",
}
__all__ = [*_LATER]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
