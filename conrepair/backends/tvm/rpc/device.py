"""What a configuration says of a device that TVM reaches over RPC."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RpcDevice:
    """See `conrepair.config.model.RpcDeviceConfig`, which has the same fields and more."""

    host: str
    port: int
    key: str = ""
    tracker: bool = False
    name: str | None = None
    host_target: str | None = None
    linker: str | None = None
    connect_seconds: float = 10.0
    step_seconds: float = 120.0
    session_seconds: float = 600.0
    attempts: int = 2

    @property
    def address(self) -> str:
        """Where the server or the tracker is."""
        return f"{self.host}:{self.port}"

    def __str__(self) -> str:
        """For messages: its name and where it is."""
        name = f"device '{self.name}'" if self.name else "the device"
        return f"{name} at {'the tracker ' if self.tracker else ''}{self.address}"
