"""Lists of architectures: as models of an audit, and audited one after the other."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from conrepair.application.config.model import (
    ArchitecturesConfig,
    AuditConfig,
    DatasetConfig,
    InputConfig,
    ModelConfig,
    SyntheticConfig,
)
from conrepair.application.engine.place import preparing
from conrepair.application.engine.scheduler import NotStoredError, Scheduler
from conrepair.ground.runtime.errors import ConfigError
from conrepair.ground.runtime.files.store import Store
from conrepair.ground.runtime.processes.executor import Executor
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair.ground.zoo.architectures import Architecture, select

Part = TypeVar("Part")

_SAMPLES = 8
_PIXEL_HIGH = 255.0
_MODEL_KINDS = {"build", "convert"}


def architecture_models(config: AuditConfig) -> list[ModelConfig]:
    """The configured architectures as models, named "family.architecture".

    Raises:
        ConfigError: if there's no such architecture, or one is given twice.
    """
    models: list[ModelConfig] = []
    taken = {model.name for model in config.models}
    for index, wanted in enumerate(config.architectures):
        names = ("*",) if wanted.names == "all" else wanted.names
        try:
            chosen = select(wanted.family, names, wanted.exclude)
        except ConfigError as error:
            raise ConfigError(f"$.architectures[{index}]: {error}") from error
        for architecture in chosen:
            model = _model(architecture, wanted)
            if model.name in taken:
                raise ConfigError(f"$.architectures[{index}]: '{model.name}' is given twice; exclude it once")
            taken.add(model.name)
            models.append(model)
    if not models and not config.models:
        raise ConfigError("$.architectures: everything is excluded, so there is nothing to do")
    return models


def audit_one_by_one(
    models: Sequence[ModelConfig],
    audit: Callable[[Sequence[ModelConfig], Scheduler], Part],
    config: AuditConfig,
    store: Store,
    workers: Executor,
    display: ProgressDisplay,
    kept: Iterable[Path],
) -> Iterator[Part]:
    """Audit each model by itself, so that the files of only one lie on the disk at a time.

    A model whose every result is stored is recalled, and its files aren't needed for that. Of any other, files
    that were removed are made anew.

    Args:
        models: What to audit.
        audit: Runs the stages for one model, or for several.
        config: Whether stored results are taken, and whether files stay.
        store: Of the results.
        workers: Shared by all, so that they stay warm.
        display: Shows progress.
        kept: Folders of the store whose files others of this run still need.

    Yields:
        What `audit` gave, in order.
    """
    kept = set(kept)
    pace = _Pace(len(models))
    with display.stage("architectures", len(models), long=True) as stage, display.inside():
        for model in models:
            stage.show(f"{model.name}{pace.left()}")
            started = time.monotonic()
            scheduler = Scheduler(store, workers, recall=True)
            part: Part | None = None
            if config.reuse:
                with contextlib.suppress(NotStoredError):
                    part = audit([model], scheduler)
            recalled = part is not None
            if part is None:
                scheduler = Scheduler(store, workers, reuse=config.reuse, prepare=preparing(display))
                part = audit([model], scheduler)
            if not config.keep_models:
                store.release(model_folders(scheduler) - kept)
            pace.add(None if recalled else time.monotonic() - started)
            stage.advance(f"{model.name}{pace.left()}")
            yield part


def model_folders(scheduler: Scheduler) -> set[Path]:
    """Where the models are that a scheduler's tasks made."""
    entries = [result.entry for result in scheduler.results.values() if result.entry is not None]
    return {entry.folder for entry in entries if entry.folder.name.partition("-")[0] in _MODEL_KINDS}


def _model(architecture: Architecture, wanted: ArchitecturesConfig) -> ModelConfig:
    size = architecture.size(wanted.size)
    channels_first = architecture.family == "torchvision"
    inputs = (InputConfig(shape=("batch", 3, size, size), layout="NCHW"),) if channels_first else None
    pixels = SyntheticConfig(samples=_SAMPLES, low=0.0, high=_PIXEL_HIGH)
    synthetic = pixels if architecture.pixels else SyntheticConfig(samples=_SAMPLES)
    return ModelConfig(
        name=f"{architecture.family}.{architecture.name}",
        factory=architecture.factory,
        kwargs=architecture.arguments(size),
        initialize="variance-preserving",
        seed=wanted.seed,
        inputs=inputs,
        conversions=wanted.conversions,
        dataset=wanted.dataset or DatasetConfig(synthetic=synthetic),
    )


class _Pace:
    """Guesses how long the rest takes, from those that were not recalled."""

    def __init__(self, total: int) -> None:
        self._ahead = total
        self._seconds: list[float] = []

    def add(self, seconds: float | None) -> None:
        """Count one that is done; None: it cost nothing."""
        self._ahead -= 1
        if seconds is not None:
            self._seconds.append(seconds)

    def left(self) -> str:
        """In words, to stand behind a name; "" while nothing is known."""
        if not self._seconds or not self._ahead:
            return ""
        minutes = self._ahead * sum(self._seconds) / len(self._seconds) / 60
        return f", about {minutes / 60:.1f} h left" if minutes > 90 else f", about {minutes:.0f} min left"
