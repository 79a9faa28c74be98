"""How the search for a solution of a complementarity problem ended."""

from __future__ import annotations

import enum


class Status(enum.IntEnum):
    """Outcome of a complementarity solve; kept as an integer array in results, since it is known only at run time."""

    SOLVED = 0
    RAY = 1
    ITERATION_LIMIT = 2
    INACCURATE = 3

    @property
    def text(self) -> str:
        """What happened, likely causes, and what to try."""
        return _TEXT[self]


_TEXT = {
    Status.SOLVED: "solved: feasibility and complementarity hold to 1e-9 of each row's scale",
    Status.RAY: (
        "secondary ray: the complementarity problem has no solution that pivoting can reach. Constraints may "
        "contradict each other (two limits that cannot both hold) or lack regularisation: give contacts and "
        "friction some compliance"
    ),
    Status.ITERATION_LIMIT: (
        "iteration limit: pivoting did not end in time. The problem is large or very degenerate: raise the "
        "limit, reduce the time step, or remove duplicate constraints"
    ),
    Status.INACCURATE: (
        "inaccurate: the problem holds NaN or infinite numbers, or is so ill-conditioned that the solution "
        "found does not satisfy it to 1e-9. Check the state for divergence, and masses and compliances for "
        "extreme ratios"
    ),
}
