"""Which of the configured backends run a model."""

from __future__ import annotations

from conrepair.backends.registry import COMPILERS, backend
from conrepair.config.model import BackendConfig, LibrariesConfig
from conrepair.pipeline.sources import Source
from conrepair.pipeline.stages.state import State

__all__ = ["backends_of"]


def backends_of(state: State, source: Source | None) -> list[BackendConfig]:
    """The configured backends that run a model, compilers last; its own library where none else does.

    What a compiler makes is judged against the model as it is, so there's a row of that. A model that wasn't made
    gets one row, on the first.
    """
    if source is None:
        return list(state.config.backends[:1])
    willing = [config for config in state.config.backends if backend(config.name).refuses(source.model) is None]
    compilers = [config for config in willing if config.name in COMPILERS]
    return ([config for config in willing if config not in compilers] or [LibrariesConfig()]) + compilers
