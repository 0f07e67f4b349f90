"""For `dask worker --preload conrepair_crowd.worker`: the worker says what this machine has."""

from __future__ import annotations

from typing import Any

from conrepair_crowd.placing import resources_here


async def dask_setup(worker: Any) -> None:
    """Say what it has, beside what it was told to say.

    Args:
        worker: Dask's, before it's known to the scheduler.
    """
    state = worker.state
    for name, amount in resources_here(state.nthreads).items():
        if name not in state.total_resources:
            state.total_resources[name] = state.available_resources[name] = amount
