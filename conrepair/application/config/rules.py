"""What the parts of a configuration owe each other: names that differ, models that are there to be compared with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conrepair.application.config.model import AuditConfig
from conrepair.application.config.parts import PARTS
from conrepair.ground.runtime.words import meant

LOCAL_DEVICE = "local"
"""What a backend calls this machine."""

STORE = "store"
"""The folder of stored results, beside those of audits."""


def broken_rules(config: AuditConfig) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """Every rule that is broken: the place in the configuration, and what is wrong there.

    Args:
        config: Whose parts are right by themselves.
    """
    if config.name.lower() == STORE:
        yield ("name",), f"'{STORE}' is the folder of stored results; choose another name"
    sections = {
        section: (PurePath(part.folder).parts or ("",))[0]  # the first folder of its path
        for section, part, _ in config.asked
    }
    if not config.models and not config.architectures and not sections:
        others = ", ".join(map(repr, ("architectures", *PARTS)))
        yield ("models",), f"give at least one model, or one of the sections {others}"
    taken = {config.name.lower(), STORE}
    for section, folder in sections.items():
        if folder.lower() in taken:
            yield (section, "folder"), f"'{folder}' is a folder of something else here; choose another name"
        taken.add(folder.lower())
    if LOCAL_DEVICE in config.devices:
        yield ("devices", LOCAL_DEVICE), "this machine is called so; give the device another name"
    for place, name in _repeated([model.name for model in config.models]):
        yield ("models", place, "name"), f"two models are named '{name}'; names must differ"
    yield from _labels(config)
    yield from _comparisons(config)


def _labels(config: AuditConfig) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """Backends of one model that reports couldn't tell apart."""
    of_models = ((("models", place), model.backends or ()) for place, model in enumerate(config.models))
    for where, backends in ((), config.backends), *of_models:
        for place, label in _repeated([backend.label for backend in backends]):
            yield ((*where, "backends", place), f"two backends are called '{label}'; give each once, or a `label`")


def _comparisons(config: AuditConfig) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """Models that are compared with what isn't there, or on other data than it."""
    sources = {model.name for model in config.models if model.compare_with is None}
    for place, model in enumerate(config.models):
        if model.compare_with is None:
            continue
        if model.dataset is not None:
            yield (
                ("models", place, "dataset"),
                f"'{model.name}' is compared with '{model.compare_with}' and so runs on its dataset; leave this out",
            )
        if model.compare_with not in sources:
            hint = meant(model.compare_with, sources)
            yield (
                ("models", place, "compare_with"),
                f"'{model.name}' has compare_with '{model.compare_with}', which isn't an original model here{hint}",
            )


def _repeated(names: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Places of names that stand before, too."""
    known: set[str] = set()
    for place, name in enumerate(names):
        if name in known:
            yield place, name
        known.add(name)
