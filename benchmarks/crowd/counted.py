"""For `--preload` of a scheduler or a worker: it counts its messages, and what it asks of the exchange."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable
from typing import Any

from distributed.comm.tcp import TCP

from conrepair_crowd.blobs import Blobs

COUNTS: collections.Counter[str] = collections.Counter()


def dask_setup(_: Any) -> None:
    """Begin; importing this has done it."""


def counts() -> dict[str, int]:
    """What this process has sent, and asked for."""
    return dict(COUNTS)


def _counting(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(method)
    def counted(*given: Any) -> Any:
        COUNTS[name] += 1
        return method(*given)

    return counted


def _begin() -> None:
    write = TCP.write

    @functools.wraps(write)
    async def written(*given: Any, **named: Any) -> Any:
        size = await write(*given, **named)
        COUNTS["messages"] += 1
        COUNTS["bytes"] += size
        return size

    TCP.write = written
    for method, name in (("_size", "asked"), ("_put", "put"), ("fetch", "fetched")):
        setattr(Blobs, method, _counting(getattr(Blobs, method), name))


_begin()
