"""What jobs are asked for and what they return, as values: the process that asks needs none of the jobs' own code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conrepair.formats.converters.base import Converter
from conrepair.formats.models.model import Model
from conrepair.ground.data.binding import Matching
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.data.pictures.recipe import Recipe
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.files.whole import HashedPath
from conrepair.verdicts.evaluate.run import Run


@dataclass(frozen=True, kw_only=True)
class BuildRequest:
    """A network to build.

    Attributes:
        target: "package.module:function".
        code: Hash of the factory's code.
        kwargs: Its keyword arguments.
        weights: A file of them; None for what the factory gives.
        inputs: Declared; PyTorch networks need them.
        initialize: "as-built", or "variance-preserving".
        seed: For random weights.
    """

    target: str
    code: str = ""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    weights: HashedPath | None = None
    inputs: tuple[TensorSpec, ...] = ()
    initialize: str = "as-built"
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """How a model is run over a dataset.

    Attributes:
        backend: Where.
        options: Of the backend, complete; with "second_opinion" the first batch isn't run again.
        data: The dataset.
        recipe: How photos become tensors; None where there are none.
        batch_size: How many samples at once, where the model leaves that open.
        limit: Of samples; None: all.
        steps: In a row that make a sample; outputs have them behind the samples.
        rows: That a batch has even where the model leaves that open.
        other_batches: Whether others are tried, too, where the model leaves their size open.
        spend: Seconds after which no batch is begun that would end later; None: as many as it takes.
    """

    backend: str = "libraries"
    options: Mapping[str, Any] = field(default_factory=dict)
    data: DataReference
    recipe: Recipe | None = None
    batch_size: int = 16
    limit: int | None = None
    steps: int = 1
    rows: int | None = None
    other_batches: bool = False
    spend: float | None = None


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """What a model gave; the arrays are files beside it.

    Attributes:
        run: Without what's said of the model, and where it is.
        samples: That there are.
        run_seconds: From the first batch to the last.
        refused: Numbers of samples that it fails with, where others run, and what it says.
        matching: How the data were fitted to its inputs.
    """

    run: Run
    samples: int
    run_seconds: float = 0.0
    refused: Mapping[int, str] = field(default_factory=dict)
    matching: Matching = field(default_factory=Matching)


@dataclass(frozen=True)
class Rounding:
    """What a model's outputs are by other means.

    Attributes:
        runs: By name ("rounded", "exact", "bounds", "own", and arithmetics), each in a folder of its name; none where
            the model can only be looked into through a conversion, or computes nothing.
        kernel: Which of its runtime's is off, in words.
    """

    runs: Mapping[str, Run] = field(default_factory=dict)
    kernel: str = ""


@dataclass(frozen=True)
class Compiled:
    """What a compiler made.

    Attributes:
        build: What it says of it.
        sha256: Of the folder.
    """

    build: Mapping[str, Any]
    sha256: str


@dataclass(frozen=True)
class Calibration:
    """What ranges are measured on.

    Attributes:
        data: The dataset.
        recipe: How photos become tensors.
        samples: How many are taken.
    """

    data: DataReference
    recipe: Recipe | None
    samples: int


@dataclass(frozen=True)
class ConversionStep:
    """A converter, and what it's told.

    Attributes:
        converter: Its name.
        options: Complete.
        versions: Of the libraries that take part.
        calibration: What it measures ranges on; None where it measures none.
    """

    converter: str
    options: Mapping[str, Any]
    versions: Mapping[str, str]
    calibration: Calibration | None = None

    @classmethod
    def of(
        cls, step: Converter, options: Mapping[str, Any], data: tuple[DataReference, Recipe | None] | None = None
    ) -> ConversionStep:
        """What a converter is told.

        Args:
            step: The converter.
            options: Complete.
            data: A dataset to calibrate with, and how its photos become tensors; plays a role only when the options
                want samples.
        """
        count = step.calibrates(options)
        calibration = Calibration(*data, count) if count and data is not None else None
        return cls(step.name, options, step.versions(), calibration)


@dataclass(frozen=True)
class Outlined:
    """An ONNX graph that can be cut anywhere.

    Attributes:
        model: Its file.
        nodes: "operator" and "name" of each.
    """

    model: Model
    nodes: tuple[Mapping[str, str], ...]


@dataclass(frozen=True)
class LikelyRecipe:
    """By which recipe two models' answers are nearest.

    Attributes:
        recipe: None where none can be fed.
        error: Relative L2 that's left with it; None where that's no number.
    """

    recipe: Recipe | None
    error: float | None
