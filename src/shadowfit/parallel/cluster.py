"""Workers for many fits: processes of this machine, a local Dask cluster, or a Dask scheduler somewhere.

    with crew(scheduler="tcp://head:8786") as hands:
        bootstrap(estimate, 1000, n_jobs=hands.n_jobs)

Whatever goes through joblib inside the block runs there. Workers must have this version of the package, which is
checked when they are found.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
from collections.abc import Iterator, Sequence
from typing import Any

import joblib

from shadowfit.errors import ShadowfitError
from shadowfit.kernels.fingerprint import package_digest
from shadowfit.records import record
from shadowfit.runtime import start_jax

# Time for a scheduler to answer, and for its first worker to appear [s].
ANSWER, APPEAR = 10.0, 60.0


class ClusterError(ShadowfitError):
    """Workers that cannot be reached or cannot be used."""


@record(frozen=True)
class Crew:
    """Who does the work."""

    n_jobs: int | None
    """For what goes through joblib."""
    client: Any = None
    """A ``distributed.Client``, where there is a cluster."""

    @property
    def dashboard(self) -> str | None:
        """Where Dask shows what the workers do."""
        return None if self.client is None else self.client.dashboard_link


@contextlib.contextmanager
def crew(
    workers: int | None = None, scheduler: str | None = None, *, local_cluster: bool = False, dashboard: bool = False
) -> Iterator[Crew]:
    """Workers while the block runs.

    Args:
        workers: processes on this machine; None: whatever joblib is configured to.
        scheduler: address of a Dask scheduler, such as ``tcp://head:8786``; its workers are taken as they are.
        local_cluster: the processes on this machine are a Dask cluster of their own.
        dashboard: the same, for its dashboard.

    Raises:
        ClusterError: there is no Dask, no answer, no worker, or workers have another version of this package.
    """
    if scheduler is None and not (local_cluster or dashboard):
        yield Crew(workers)
        return
    if scheduler is not None and workers is not None:
        raise ClusterError("workers belong to a cluster of one's own; those of a scheduler are started beside it")
    with contextlib.ExitStack() as stack:
        if scheduler is not None:
            client = stack.enter_context(_connected(scheduler))
        else:
            client = stack.enter_context(_local(workers or joblib.cpu_count()))
        check_workers(client)
        stack.enter_context(joblib.parallel_config(backend="dask", client=client))
        yield Crew(-1, client)


def distributed() -> Any:
    """Dask's package of that name."""
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        raise ClusterError(
            "a cluster needs Dask, which is not installed here: pip install 'shadowfit[dask]'"
        ) from error


@contextlib.contextmanager
def _connected(address: str) -> Iterator[Any]:
    dask = distributed()
    try:
        client = dask.Client(address, timeout=ANSWER, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {address!r} within {ANSWER:g} s; start one with `dask scheduler` and give "
            "the address that it prints"
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=APPEAR)
        except TimeoutError as error:
            raise ClusterError(
                f"the scheduler at {address!r} has no workers; start some with `dask worker {address}`"
            ) from error
        yield client


@contextlib.contextmanager
def _local(workers: int) -> Iterator[Any]:
    """A cluster of processes on this machine, which nobody else can reach."""
    dask = distributed()
    with (
        dask.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",  # any port: several clusters may run on a machine
            silence_logs="CRITICAL",
        ) as cluster,
        dask.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def identity() -> tuple[str, str]:
    """Version of this package, and a fingerprint of its source."""
    return importlib.metadata.version("shadowfit"), package_digest()


def check_workers(client: Any) -> None:
    """Raise unless every worker has this version of the package; those that have it are set up."""
    here = identity()
    others = []
    for address, answer in client.run(_introduced, on_error="return").items():
        if answer != here:
            version = answer[0] if isinstance(answer, Sequence) else f"none that it could use ({_words(answer)})"
            others.append(f"{address} has {version}" + (" with other source" if version == here[0] else ""))
    if others:
        raise ClusterError(
            f"this program is shadowfit {here[0]}, but {len(others)} of the workers have another one: {others[0]}; "
            "install the same version everywhere and start the workers again"
        )


def _introduced() -> tuple[str, str]:
    start_jax()
    return identity()


def _words(answer: object) -> str:
    return str(answer).strip().splitlines()[0][:200] if str(answer).strip() else type(answer).__name__
