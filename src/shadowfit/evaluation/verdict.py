"""What a result means, in sentences: for the head of a report and the end of a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

# Two parameters correlated more strongly than this are hardly told apart.
STRONG = 0.95


def sentence(summary: Mapping[str, Any]) -> str:
    """How a fit ended, what it identified and how well the model follows the sensors."""
    parts = [f"{_ending(summary)} after {summary['iterations']} iterations and {summary['seconds']['total']:.1f} s"]
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
        return "The fit converged"
    endings = {
        "iterations": "The fit stopped at its iteration limit",
        "interrupted": "The fit was interrupted",
        "stuck": "The fit got stuck",
        "numerics": "The fit failed numerically",
    }
    return endings.get(summary["status"], "The fit did not converge")


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


def notes(summary: Mapping[str, Any], labels: tuple[str, ...], covariance: Float[np.ndarray, "p p"]) -> list[str]:
    """What stands in the way of knowing the parameters, one sentence each."""
    rows = summary["parameters"]
    found = [
        f"{name} is not identifiable: its standard deviation is {row['std']:.2g} {_unit(row)}, larger than itself. The "
        "data hardly depend on it; fix it, or record a motion that does."
        for name, row in rows.items()
        if not row["identifiable"] and row["std"] is not None
    ]
    found += [
        f"{name} sits on its bound {row['value']:.4g} {_unit(row)}. Physics may want it there, or the model lacks "
        "something that the parameter tries to make up for."
        for name, row in rows.items()
        if row["at_bound"]
    ]
    table = correlation(covariance)
    for i, j in zip(*np.nonzero(np.abs(np.triu(np.nan_to_num(table), 1)) > STRONG), strict=True):
        if rows[labels[i]]["identifiable"] and rows[labels[j]]["identifiable"]:
            found.append(
                f"{labels[i]} and {labels[j]} are hardly told apart (correlation {table[i, j]:.3f}): only a "
                "combination of the two is well known."
            )
    return found


def _unit(row: Mapping[str, Any]) -> str:
    return "" if row["unit"] == "1" else str(row["unit"])
