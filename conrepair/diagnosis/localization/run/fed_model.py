"""A model on disk, and what it's fed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from conrepair.formats.models.model import Model
from conrepair.ground.data.feeds import DataReference, open_feeds
from conrepair.ground.data.pictures.recipe import Recipe
from conrepair.ground.data.sample_axes import axes_as_fed, fixed_batch
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.files.whole import HashedPath


@dataclass(frozen=True)
class RunBy:
    """A backend.

    Attributes:
        name: Of it.
        options: What it's told.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FedModel:
    """A model and what it's fed.

    Attributes:
        model: On disk.
        inputs: As its file says, with declared sizes filled in.
        data: The dataset.
        recipe: How photos become tensors.
        photos: The first photos of the dataset as files, for a search of recipes; none where it isn't wanted.
        build: What was compiled of the model, which is looked into in its place.
        on: What runs it, where what that computes is looked into; None: itself.
    """

    model: Model
    inputs: tuple[TensorSpec, ...]
    data: DataReference
    recipe: Recipe | None
    photos: tuple[HashedPath, ...] = ()
    build: HashedPath | None = None
    on: RunBy | None = None

    @cached_property
    def axes(self) -> Mapping[str, int]:
        """That samples lie along in each input; none where they don't share the batch."""
        return axes_as_fed(self.inputs, self.data.samples)

    @property
    def fixed_batch(self) -> int | None:
        """How many samples it always takes; None where that's open."""
        return fixed_batch(self.inputs, self.axes)

    @property
    def looked_into(self) -> str:
        """The SHA-256 of the model, or of the build in its place."""
        return self.model.sha256 if self.build is None else self.build.sha256


def concrete(subject: FedModel, size: int) -> tuple[TensorSpec, ...]:
    """A model's inputs with a batch, and open sizes as the data has them."""
    reader = open_feeds(subject.data, subject.inputs, subject.recipe)
    rows, axes = reader.read(0, 1), reader.axes
    result = []
    for spec in subject.inputs:
        shape, axis = list(rows[spec.name].shape[1:]), axes.get(spec.name)
        if axis is not None:
            shape.insert(axis, size)
        result.append(dataclasses.replace(spec, shape=tuple(int(extent) for extent in shape), sample_axis=axis))
    return tuple(result)
