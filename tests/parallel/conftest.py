"""A small real cluster on this machine's loopback, started once."""

import joblib
import pytest

from shadowfit import parallel

pytest.importorskip("distributed")


@pytest.fixture(scope="session")
def cluster():
    """Two worker processes and their scheduler."""
    with parallel.crew(2, local_cluster=True) as found, joblib.parallel_config(backend="loky"):
        yield found
