"""What `conrepair convert` is told about quantization: options of converters, and data to calibrate with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from conrepair.config.model import DatasetConfig
from conrepair.converters.routes import Route
from conrepair.data.feeds import DataReference
from conrepair.data.named_recipes import RECIPES, named_recipe
from conrepair.data.recipe import Recipe
from conrepair.data.tensor_spec import TensorSpec
from conrepair.pipeline.datasets import resolve_dataset
from conrepair.pipeline.photos import PhotoRoom
from conrepair.pipeline.recipes import sized_recipe
from conrepair.runtime.errors import UsageError
from conrepair.runtime.store import Store

__all__ = ["CalibrationData", "read_options"]


def read_options(texts: Sequence[str], route: Route) -> list[dict[str, Any]]:
    """Complete options for each step of a route.

    Args:
        texts: Each "CONVERTER.NAME=VALUE".
        route: Whose converters they must be.

    Raises:
        ConfigError: for an unknown option or a value that isn't allowed.
        UsageError: if a text is written otherwise, or names a converter that the route doesn't use.
    """
    given: dict[str, dict[str, Any]] = {step.name: {} for step in route.steps}
    steps = {step.name: step for step in route.steps}
    for text in texts:
        place, equals, value = text.partition("=")
        name, dot, option = place.partition(".")
        if not (equals and dot and option):
            raise UsageError(f"--option {text}: write CONVERTER.NAME=VALUE, as in keras-tflite.quantize=int8")
        if name not in steps:
            raise UsageError(f"--option {text}: the route is {route.name}, which doesn't use {name}")
        known = steps[name].options.get(option)
        given[name][option] = known.read(value, f"--option {place}") if known is not None else value
    return [step.complete(given[step.name]) for step in route.steps]


class CalibrationData:
    """The data of a command line; photos are decoded in the background until the block ends.

    Args:
        data: A folder of photos, or .npz/.npy; None when none was given.
        recipe: Name of the photos' preprocessing.
        scratch: Receives decoded photos.
    """

    def __init__(self, data: str | None, recipe: str | None, scratch: Path) -> None:
        self._data = data
        self._recipe = recipe
        self._photos = PhotoRoom(Store(scratch / "photos"), reuse=False)

    def __enter__(self) -> CalibrationData:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._photos.close()

    def for_step(
        self, converter: str, options: Mapping[str, Any], inputs: tuple[TensorSpec, ...]
    ) -> tuple[DataReference, Recipe | None]:
        """The data as a model takes it.

        Args:
            converter: That wants it, for messages.
            options: Of the converter, for messages.
            inputs: The model's.

        Raises:
            UsageError: if there's no data, or photos without a recipe.
            DataError: if the data can't be read or doesn't fit.
        """
        if self._data is None:
            asked = f" with quantize={options['quantize']}" if "quantize" in options else ""
            raise UsageError(
                f"{converter}{asked} calibrates with data, and none is given. Give --data: a folder of photos "
                "(with --recipe), or .npz/.npy."
            )
        path = Path(self._data).absolute()
        if path.suffix in {".npz", ".npy"}:
            dataset = resolve_dataset(DatasetConfig(tensors=str(path)), Path.cwd())
            return DataReference(dataset.kind, dataset.count, dataset.path, dataset.sha256), None
        if self._recipe is None:
            raise UsageError(
                f"{converter} calibrates with photos, and what they are before they enter the model decides the "
                f"ranges. Give --recipe: {', '.join(RECIPES)}."
            )
        dataset = resolve_dataset(DatasetConfig(folder=str(path), labels="none"), Path.cwd())
        recipe = sized_recipe(named_recipe(self._recipe), inputs)
        return self._photos.reference(dataset, recipe.spatial), recipe
