"""Localize between two networks that a test has opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from conrepair.diagnosis.localization.localize import Found, localize_target
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.measurement import Feeds
from conrepair.diagnosis.localization.run.reference import Reference
from conrepair.formats.networks.network import Network


def localize_networks(
    source: Network,
    target: Network,
    batches: Iterable[Feeds],
    folder: Path,
    options: Options,
    *,
    second_opinion: Callable[[], Network | None] = lambda: None,
) -> Found:
    """Say where a target stops being its source, of which nothing else is asked.

    Args:
        source: The network that is right.
        target: The network in question.
        batches: Inputs of both, by the names of their graphs' tensors; read once.
        folder: For activations.
        options: Margins.
        second_opinion: Opens the source in another arithmetic.
    """
    reference = Reference(source, folder / "source", second_opinion=second_opinion)
    return localize_target(reference, target, batches, folder, options)
