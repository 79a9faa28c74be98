"""What a result means, in sentences: for the head of a report and the end of a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from shadowfit.arrays import Float
from shadowfit.evaluation.notices import MEANING, Colour, Notice, from_json, ordered
from shadowfit.evaluation.notices import colour as worst

# Two parameters correlated more strongly than this are hardly told apart.
STRONG = 0.95


def notices(summary: Mapping[str, Any]) -> list[Notice]:
    """What a result says about itself, the most serious first; of a result without notices, its warnings."""
    if "notices" in summary:
        return ordered(from_json(summary["notices"]))
    early = [] if summary["converged"] else [Notice("red", str(summary["message"]))]
    return ordered([*early, *(Notice("amber", text) for text in summary["warnings"])])


def colour(summary: Mapping[str, Any]) -> Colour:
    """Green, amber or red."""
    return worst(notices(summary))


def sentence(summary: Mapping[str, Any]) -> str:
    """Whether to use the numbers, how the fit ended, what it identified and how well it follows the sensors."""
    ended = f"{_ending(summary)} after {summary['iterations']} iterations and {summary['seconds']['total']:.1f} s"
    parts = [f"{MEANING[colour(summary)]}: {ended}"]
    rows = summary["parameters"].values()
    if rows:
        good = sum(row["identifiable"] and not row["at_bound"] for row in rows)
        bound = sum(row["at_bound"] for row in rows)
        edge = f", {bound} at a bound" if bound else ""
        parts.append(f"{good} of {len(rows)} parameters are identified by the data{edge}")
    followed = _followed(summary)
    if followed:
        parts.append(f"the estimated motion follows {followed}")
    return "; ".join(parts) + "."


def _ending(summary: Mapping[str, Any]) -> str:
    if summary["converged"]:
        return "the fit converged"
    endings = {
        "iterations": "the fit stopped at its iteration limit",
        "interrupted": "the fit was interrupted",
        "stuck": "the fit got stuck",
        "numerics": "the fit failed numerically",
    }
    return endings.get(summary["status"], "the fit did not converge")


def _followed(summary: Mapping[str, Any]) -> str:
    """Largest RMSE of each sensor over the recordings, with what its noise was said to be."""
    texts = []
    for name, sensor in summary["model"]["sensors"].items():
        errors = [recording["sensors"][name]["rmse"] for recording in summary["recordings"]]
        known = [error for error in errors if error is not None]
        if known:
            texts.append(f"{name} to {max(known):.2g} {sensor['unit']} (noise {sensor['std']:.2g})")
    return ", ".join(texts)


def correlation(covariance: Float[np.ndarray, "p p"]) -> Float[np.ndarray, "p p"]:
    """Correlations of a covariance; NaN in rows without variance."""
    std = np.sqrt(np.where(np.diagonal(covariance) > 0.0, np.diagonal(covariance), np.nan))
    return covariance / np.outer(std, std)
