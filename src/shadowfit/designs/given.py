"""What earlier recordings have told: the information of saved results about wished parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from shadowfit.arrays import Float
from shadowfit.designs.errors import DesignError
from shadowfit.evaluation.store import SavedResult


def given_information(
    results: Iterable[SavedResult], labels: Sequence[str], scale: Float[np.ndarray, " p"]
) -> Float[np.ndarray, "p p"]:
    """Sum over results of the inverse covariance of the parameters that they share with the wish.

    What else they estimated was unknown then, and is integrated out. Parameters on a bound have no covariance, and
    count as not told.

    Raises:
        DesignError: a result has none of the parameters.
    """
    total = np.zeros((len(labels), len(labels)))
    for saved in results:
        known = [label for label in labels if label in saved.labels]
        if not known:
            raise DesignError(
                f"{saved.folder}: this result has none of the wished parameters ({', '.join(labels)}); it has "
                f"{', '.join(saved.labels) or 'none'}"
            )
        there = [saved.labels.index(label) for label in known]
        shared = [(label, i) for label, i in zip(known, there, strict=True) if saved.covariance[i, i] > 0.0]
        if not shared:
            continue
        here, there = [labels.index(label) for label, _ in shared], [i for _, i in shared]
        covariance = saved.covariance[np.ix_(there, there)] / np.outer(scale[here], scale[here])
        information = np.linalg.pinv(covariance, hermitian=True) / np.outer(scale[here], scale[here])
        total[np.ix_(here, here)] += information
    return total
