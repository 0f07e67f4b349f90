"""A model on disk, and what it's fed."""

from __future__ import annotations

from dataclasses import dataclass

from conrepair.data.feeds import DataReference
from conrepair.data.recipe import Recipe
from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.model import Model
from conrepair.runtime.hashed_path import HashedPath

__all__ = ["FedModel"]


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
    """

    model: Model
    inputs: tuple[TensorSpec, ...]
    data: DataReference
    recipe: Recipe | None
    photos: tuple[HashedPath, ...] = ()
    build: HashedPath | None = None

    @property
    def looked_into(self) -> str:
        """The SHA-256 of the model, or of the build in its place."""
        return self.model.sha256 if self.build is None else self.build.sha256
