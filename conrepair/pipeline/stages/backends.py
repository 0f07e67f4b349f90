"""Which of the configured backends run a model."""

from __future__ import annotations

from conrepair.backends.registry import COMPILERS, backend
from conrepair.config.model import BackendConfig, LibrariesConfig
from conrepair.pipeline.sources import Source
from conrepair.pipeline.stages.state import State, Subject

__all__ = ["backends_of"]


def backends_of(state: State, subject: Subject, source: Source | None) -> list[BackendConfig]:
    """The configured backends that run a model or a conversion of it, compilers last.

    Its own library runs it where none but compilers do: what those make is judged against the model as it is, so
    there's a row of that. A model that wasn't made gets one row, on the first backend.
    """
    configured = state.config.backends_of(subject.config)
    if source is None:
        return list(configured[:1])
    willing = [config for config in configured if backend(config.name).refuses(source.model) is None]
    compilers = [config for config in willing if config.name in COMPILERS]
    return ([config for config in willing if config not in compilers] or [LibrariesConfig()]) + compilers
