"""Who may come in: a cluster is reached encrypted, with certificates, unless nobody else can reach it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from conrepair.config.engine import WITHOUT_TLS
from conrepair.runtime.errors import UsageError

__all__ = ["check_addresses"]

_ENCRYPTED = ("tls", "wss")
_INSIDE = ("inproc",)


def check_addresses(addresses: Iterable[str], without_tls: str | None) -> None:
    """Refuse a cluster that strangers could take part in.

    Args:
        addresses: Of its scheduler and its workers.
        without_tls: What the user says to that; `WITHOUT_TLS` permits it.

    Raises:
        UsageError: if it's not encrypted, and not all addresses are this machine's own.
    """
    if without_tls == WITHOUT_TLS:
        return
    for address in addresses:
        parts = urlsplit(address)
        if parts.scheme in (*_ENCRYPTED, *_INSIDE) or _is_loopback(parts.hostname):
            continue
        raise UsageError(
            f"{address} isn't encrypted: who reaches it can run programs on all machines of the cluster, this one "
            f"too. Start Dask with certificates (tls://..., docs/crowd.md), or set `without_tls` to {WITHOUT_TLS!r}."
        )


def _is_loopback(host: str | None) -> bool:
    if host is None or host == "localhost":
        return host is not None
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
