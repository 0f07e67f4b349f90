"""Where a row's model ran, in parts."""

from __future__ import annotations

from conrepair.config.model import AuditConfig, BackendConfig, OnnxRuntimeConfig, TvmConfig
from conrepair.pipeline.sources import Source
from conrepair.report.result import Place

__all__ = ["backend_of", "place_of"]


def backend_of(config: AuditConfig, model: str, label: str) -> BackendConfig | None:
    """The backend of a configured model with that label; None for its own library where that isn't configured."""
    configured = next((config.backends_of(item) for item in config.models if item.name == model), config.backends)
    return next((item for item in configured if item.label == label), None)


def place_of(found: BackendConfig | None, source: Source | None) -> Place | None:
    """Library, target, setting, importer and device of a backend.

    Args:
        found: From `backend_of`.
        source: The model, whose own library it may be.
    """
    if isinstance(found, TvmConfig):
        device = found.device
        where = Place.device if device is None else device.name or f"{device.host}:{device.port}"
        return Place(found.name, found.target, found.setting, where, found.importer or "")
    if isinstance(found, OnnxRuntimeConfig):
        return Place(found.name, setting=found.optimization)
    return Place(source.model.framework) if source is not None else None
