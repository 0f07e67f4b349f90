"""The engine that a configuration names: this machine, or a Dask cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from conrepair.application.config.model import EngineConfig
from conrepair.application.engine.place import jobs_run_at
from conrepair.ground.runtime.shown.standing import jobs_elsewhere
from conrepair.ground.runtime.words import complain


def check_engine(wanted: EngineConfig) -> None:
    """Refuse, without connecting to it, a cluster that `engine` would refuse.

    Args:
        wanted: What a configuration says.

    Raises:
        UsageError: if Dask isn't installed, or the cluster isn't one that may be used.
    """
    if wanted.dask is not None:
        from conrepair.application.crowd.cluster import Cluster

        Cluster(wanted.dask.scheduler, without_tls=wanted.dask.without_tls)


@contextlib.contextmanager
def engine(wanted: EngineConfig, *, quiet: bool = True) -> Iterator[None]:
    """Run the jobs of the block where a configuration says.

    Args:
        wanted: What it says.
        quiet: Whether nothing is told of the cluster.

    Raises:
        UsageError: if the cluster isn't one that may be used, or Dask isn't installed.
        DeviceError: if its scheduler doesn't answer.
    """
    if wanted.dask is None:
        yield
        return
    from conrepair.application.crowd.executor import crowd_at

    with crowd_at(wanted.dask.scheduler, wanted.dask.exchange, without_tls=wanted.dask.without_tls) as place:
        if not quiet:
            complain(place.told)
        with jobs_run_at(place), jobs_elsewhere(place.standing):
            yield
        if not quiet:
            complain(f"conrepair: {place.standing().words}")
