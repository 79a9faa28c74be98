"""A small real cluster on this machine's loopback, started once for each file."""

import dask
import joblib
import pytest

from shadowfit import parallel

utils = pytest.importorskip("distributed.utils")


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes and their scheduler.

    Workers are forked from a process that has imported what they need, so that one that was killed is soon replaced.
    Not one for all files: what others do between them (signals, loops of their own) may close its client.
    """
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        utils.get_mp_context().set_forkserver_preload(["distributed", "shadowfit.estimation.spread.fleet"])
        with parallel.crew(2, local_cluster=True) as found, joblib.parallel_config(backend="loky"):
            yield found
