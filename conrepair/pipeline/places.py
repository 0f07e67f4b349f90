"""Where a row's model ran, in parts."""

from __future__ import annotations

from conrepair.config.model import AuditConfig, OnnxRuntimeConfig, TvmConfig
from conrepair.pipeline.sources import Source
from conrepair.report.result import Place

__all__ = ["place_of"]


def place_of(config: AuditConfig, backend: str, source: Source | None) -> Place:
    """Library, target, setting and device of a backend.

    Args:
        config: That has it.
        backend: Its label.
        source: The model, whose own library it may be.
    """
    found = next((item for item in config.backends if item.label == backend), None)
    if isinstance(found, TvmConfig):
        device = found.device
        where = Place.device if device is None else device.name or f"{device.host}:{device.port}"
        return Place(found.name, found.target, found.setting, where)
    if isinstance(found, OnnxRuntimeConfig):
        return Place(found.name, setting=found.optimization)
    return Place(source.model.framework if source is not None else backend)
