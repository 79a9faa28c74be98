"""One thread for linear algebra: the matrices of a fit are small.

Several threads on a product of 24 rows wait for each other longer than they compute, and on a busy machine for a
hundred times as long.
"""

from __future__ import annotations

from threadpoolctl import threadpool_limits


def one_thread() -> threadpool_limits:
    """A context (or decorator) in which BLAS and LAPACK use one thread."""
    return threadpool_limits(limits=1, user_api="blas")
