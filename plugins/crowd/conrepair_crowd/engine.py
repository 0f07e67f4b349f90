"""The engine `dask` of a configuration: a Dask cluster, which an entry point of `conrepair.engines` names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from conrepair.application.config.parts import Engine
from conrepair.application.engine.place import jobs_run_at
from conrepair.ground.runtime.shown.standing import jobs_elsewhere
from conrepair.ground.runtime.words import complain


class DaskConfig(Engine):
    """A Dask cluster (docs/crowd.md)."""

    scheduler: str = Field(min_length=1, description="Address of its scheduler, as tls://10.0.0.1:8786.")
    exchange: str = Field(
        min_length=1,
        description="Where files go from machine to machine: a folder that all see under this name, or a URL that "
        "fsspec opens, as s3://bucket/place.",
    )
    without_tls: Literal["whoever reaches these addresses may run programs there and here"] | None = Field(
        None, description="Said in these words, addresses beyond this machine needn't be encrypted."
    )

    def check(self) -> None:
        """See `Engine.check`."""
        from conrepair_crowd.cluster import Cluster

        Cluster(self.scheduler, without_tls=self.without_tls)

    @contextlib.contextmanager
    def opened(self, *, quiet: bool) -> Iterator[None]:
        """See `Engine.opened`."""
        from conrepair_crowd.executor import crowd_at

        with crowd_at(self.scheduler, self.exchange, without_tls=self.without_tls) as place:
            if not quiet:
                complain(place.told)
            with jobs_run_at(place), jobs_elsewhere(place.standing):
                yield
            if not quiet:
                complain(f"conrepair: {place.standing().words}")
