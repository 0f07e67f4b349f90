"""Devices in one word: rpc://HOST:PORT/KEY is a server, tracker://HOST:PORT/KEY a tracker that knows servers."""

from __future__ import annotations

import urllib.parse
from typing import Any

DEVICE_URL = "rpc://HOST:PORT/KEY or tracker://HOST:PORT/KEY"


def device_of_url(text: str) -> dict[str, Any]:
    """A device's keys from its address.

    Args:
        text: As `DEVICE_URL`; a server needs no key.

    Raises:
        ValueError: if it's something else.
    """
    parts = urllib.parse.urlsplit(text)
    try:
        port = parts.port
    except ValueError:
        port = None
    given = parts.scheme in {"rpc", "tracker"} and parts.hostname and port
    if not given or parts.username or parts.query or parts.fragment:
        raise ValueError(f"'{text}' is no device; write local, a name of `devices`, {DEVICE_URL}")
    key = urllib.parse.unquote(parts.path.removeprefix("/"))
    return {"host": parts.hostname, "port": port, "key": key, "tracker": parts.scheme == "tracker"}
