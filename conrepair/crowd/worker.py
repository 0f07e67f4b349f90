"""For `dask worker --preload conrepair.crowd.worker`: the worker says what it has."""

from __future__ import annotations

from conrepair.application.crowd.worker import dask_setup

__all__ = ["dask_setup"]
