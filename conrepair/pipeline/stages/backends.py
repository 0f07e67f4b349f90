"""Which of the configured backends run a model."""

from __future__ import annotations

from conrepair.backends.all_backends import backend
from conrepair.pipeline.settings import AS_IT_IS, DEPLOYED, LIBRARIES, BackendChoice
from conrepair.pipeline.subject import LoadedModel, Subject

__all__ = ["backends_of"]


def backends_of(subject: Subject, source: LoadedModel | None) -> list[BackendChoice]:
    """The configured backends that run a model or a conversion of it, compilers last.

    Its own library runs it where none but compilers and optimizers do: what those make is judged against the model
    as it is, so there's a row of that. A model that wasn't made gets one row, on the first backend.
    """
    configured = subject.backends
    if source is None:
        return list(configured[:1])
    willing = [config for config in configured if backend(config.name).refuses(source.model) is None]
    plain = [config for config in willing if config.name in AS_IT_IS]
    compilers = [config for config in willing if config not in plain]
    changed = all(config.name == DEPLOYED.name for config in plain)
    return [*([LIBRARIES] if changed else []), *plain, *compilers]
