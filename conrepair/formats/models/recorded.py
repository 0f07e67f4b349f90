"""Outputs that were computed elsewhere, described as a model is that can't be run."""

from __future__ import annotations

from pathlib import Path

from conrepair.formats.models.formats import Format
from conrepair.formats.models.model import Description, Model
from conrepair.formats.models.runnable import Runnable
from conrepair.ground.data.recorded import read_recorded
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import DataError, ModelLoadError


class Recorded(Format):
    """What stands in a framework's place."""

    def describe(self, model: Model) -> Description:
        """Say which outputs there are, and in which types.

        Raises:
            ModelLoadError: if the arrays can't be read.
        """
        try:
            arrays = read_recorded(Path(model.path))
        except DataError as error:
            raise ModelLoadError(str(error)) from error
        specs = tuple(
            TensorSpec(name, ("samples", *array.shape[1:]), array.dtype.name) for name, array in arrays.items()
        )
        return Description(
            format="recorded outputs",
            inputs=(),
            outputs=specs,
            operators={},
            parameters=0,
            weights={spec.dtype: 1 for spec in specs if spec.is_float},
        )

    def load(self, model: Model, *, second_opinion: bool = False) -> Runnable:
        """Refuse: recorded outputs can't be run.

        Raises:
            ModelLoadError: always.
        """
        raise ModelLoadError(f"{model.path} holds recorded outputs, and no model that could run.")


FRAMEWORK = Recorded()
