"""Where candidates are judged: the source is opened once, each changed target is localized against it."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

from conrepair.frameworks.model import Model
from conrepair.localize.localize import Found, localize_target
from conrepair.localize.models import Subject, batch_size, concrete, feeds_of
from conrepair.localize.opening import open_model, second_opinion
from conrepair.localize.options import Options
from conrepair.localize.reference import Reference

__all__ = ["Bench"]


class Bench:
    """Judges targets by localization, on a few samples."""

    def __init__(self, source: Subject, target: Subject, folder: Path, options: Options) -> None:
        """Open the source.

        Args:
            source: The model that is right.
            target: The model in question, as it came.
            folder: For activations.
            options: Samples and margins.

        Raises:
            ModelLoadError: if the source can't be opened.
            DataError: if both models have batches of their own.
        """
        self._source, self._target, self._folder, self._options = source, target, folder, options
        self._samples = min(source.data.count, target.data.count, options.samples)
        self._size = batch_size(source.inputs, target.inputs, options.batch_size, self._samples)
        self._ours = ours = open_model(source.model, concrete(source, self._size), folder / "source")
        self._reference = Reference(
            ours.network, folder / "reference", second_opinion=lambda: second_opinion(ours), keep=True
        )

    def localize(self, model: Model) -> Found:
        """Judge a target.

        Args:
            model: The target, or a changed copy of it.

        Raises:
            ModelLoadError: if it can't be opened.
            InferenceError: if it can't be run.
        """
        target = dataclasses.replace(self._target, model=model)
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            folder = Path(name)
            theirs = open_model(model, concrete(target, self._size), folder / "onnx")
            sides = (self._source, self._ours), (target, theirs)
            feeds = feeds_of(*sides, self._size, self._samples)
            return localize_target(self._reference, theirs.network, feeds, folder, self._options)
