"""Open a model as a network: in its own framework, or through ONNX where that has no graph to cut; and feed it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel, concrete
from conrepair.diagnosis.localization.run.pieces import Pieces
from conrepair.formats.converters.routes import find_route
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import channels_of
from conrepair.formats.networks.network import Network, open_network
from conrepair.ground.data.feeds import FeedSource, batches, open_feeds
from conrepair.ground.data.sample_axes import OutputAxes
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.runtime.errors import ConrepairError, DataError, ModelLoadError
from conrepair.ground.runtime.files.whole import HashedPath
from conrepair.verdicts.judging.arithmetic import tried
from conrepair.verdicts.judging.measured import Measured, measured

if TYPE_CHECKING:
    from conrepair.diagnosis.localization.run.measurement import Feeds


@dataclass(frozen=True)
class OpenedNetwork:
    """A network that can be cut.

    Attributes:
        network: The model, or an ONNX conversion of it.
        inputs: Specs with concrete sizes, named as the model names them.
        input_tensors: The graph's tensor of each input, by the model's name.
        note: What a person should know; "" for a model that was opened in its own framework.
    """

    network: Network
    inputs: tuple[TensorSpec, ...]
    input_tensors: dict[str, str]
    note: str = ""


def open_model(
    model: Model, inputs: Sequence[TensorSpec], folder: Path, build: HashedPath | None = None
) -> OpenedNetwork:
    """Open a model, or what was compiled of it.

    Args:
        model: Of any framework.
        inputs: All sizes numbers.
        folder: For a conversion to ONNX, when it needs one.
        build: To open instead; its inputs are the ones.

    Raises:
        ModelLoadError: if neither the model nor a conversion can be cut.
    """
    if build is not None:
        from conrepair.formats.networks.tvm import open_build

        compiled = open_build(Path(build.path), model)
        return OpenedNetwork(compiled, compiled.runnable.inputs, dict(compiled.input_names))
    try:
        network = open_network(model, inputs)
    except ModelLoadError as reason:
        if model.framework == "onnx":
            raise
        return _through_onnx(model, inputs, folder, reason)
    return OpenedNetwork(network, tuple(inputs), dict(network.input_names))


def second_opinion(opened: OpenedNetwork) -> Network | None:
    """The same network in another arithmetic; None where there's none, and for a conversion."""
    if opened.note:
        return None
    try:
        return opened.network.second_opinion()
    except ConrepairError:
        return None


def _through_onnx(model: Model, inputs: Sequence[TensorSpec], folder: Path, reason: ModelLoadError) -> OpenedNetwork:
    folder.mkdir(parents=True, exist_ok=True)
    converted = replace(model, inputs=tuple(inputs))
    try:
        route = find_route(model.framework, "onnx", model=converted)
        converted = replace(route.convert(converted, folder), inputs=tuple(inputs))
        network = open_network(converted, _renamed(converted, inputs))
        network.channels = channels_of(model.framework)  # a conversion keeps its outputs as they lie
    except ConrepairError as error:
        raise ModelLoadError(f"the layers of {model.path} can't be read: {reason} By way of ONNX: {error}") from error
    tensors = {spec.name: tensor for spec, tensor in zip(inputs, network.input_names.values(), strict=True)}
    note = f"the layers of {Path(model.path).name} are read by way of ONNX ({route.name}): {reason}"
    return OpenedNetwork(network, tuple(inputs), tensors, note)


def _renamed(model: Model, inputs: Sequence[TensorSpec]) -> list[TensorSpec]:
    """The inputs, by the names that the conversion gave them."""
    import onnx

    graph = onnx.load(model.path, load_external_data=False).graph
    held = {tensor.name for tensor in graph.initializer}
    names = [value.name for value in graph.input if value.name not in held]
    given = {spec.name for spec in inputs}
    if set(names) == given:
        return list(inputs)
    return [replace(spec, name=name) for spec, name in zip(inputs, names, strict=True)]


class WholeRun:
    """A network with its inputs and outputs by the names that the model has for them."""

    def __init__(self, opened: OpenedNetwork) -> None:
        """Prepare the run.

        Args:
            opened: The network.
        """
        self._opened = opened
        network = opened.network
        self._pieces = Pieces.in_a_row(network, list(network.output_names.values()), keep=True)

    def __call__(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Run one batch, of the size that the network was opened with.

        Args:
            feeds: By the model's names.

        Returns:
            Its outputs, by the model's names.
        """
        given = {self._opened.input_tensors[name]: array for name, array in feeds.items()}
        values = self._pieces.values(given)
        return {name: values[tensor] for name, tensor in self._opened.network.output_names.items()}


# What is fed to them.


@dataclass(frozen=True)
class OutputsAgain:
    """The outputs of a model by other means.

    Attributes:
        measured: By the model's names.
        specs: Of the outputs, under these.
        count: How many samples there are, those aside that fill a batch up.
        size: Of the batch.
        axes: Where outputs have their samples.
    """

    measured: Measured
    specs: tuple[TensorSpec, ...]
    count: int
    size: int
    axes: OutputAxes


def outputs_again(source: FedModel, folder: Path, options: Options) -> OutputsAgain | None:
    """Measure what rounding does to a model's outputs, and what they are exactly.

    Args:
        source: The model.
        folder: For a conversion; the caller removes it.
        options: How many samples a batch has; which arithmetics may be the target's.

    Returns:
        None where the model can only be looked into through a conversion.

    Raises:
        ModelLoadError: if it can't be opened.
        InferenceError: if a piece of it fails.
    """
    count = min(source.data.count, options.samples)
    size = batch_size(source, source, options.batch_size, count)
    opened = open_model(source.model, concrete(source, size), folder / "onnx")
    if opened.note:
        return None
    network = opened.network
    every = batches_of(source, opened, size, source.data.count)
    found = measured(network, every, tried(options.tolerance.arithmetic))
    stored = {name: network.graph.tensors[tensor].quantization for name, tensor in network.output_names.items()}
    arrays = found.runs["rounded"][0] if found.runs else {}
    specs = [TensorSpec(name, array.shape, str(array.dtype), stored[name]) for name, array in arrays.items()]
    axes = OutputAxes(source.inputs, specs, source.axes)
    return OutputsAgain(found, tuple(specs), source.data.count, size, axes)


def batch_size(source: FedModel, target: FedModel, wanted: int, samples: int) -> int:
    """The batch that both models take: a fixed one where one of them has it.

    Args:
        source: The model that is right.
        target: The other one.
        wanted: Where they leave it open.
        samples: How many there are.

    Raises:
        DataError: if both have one, and they differ; or if the data doesn't fit.
    """
    fixed = {size for side in (source, target) if (size := side.fixed_batch) is not None}
    if len(fixed) > 1:
        raise DataError(
            f"the models have fixed batches of {' and '.join(map(str, sorted(fixed)))}; what they compute can't be "
            "compared layer by layer. Export one of them with the other's batch, or an open one."
        )
    together = source.axes and target.axes
    return next(iter(fixed), max(1, min(wanted, samples))) if together else 1


def feeds_of(
    source: tuple[FedModel, OpenedNetwork], target: tuple[FedModel, OpenedNetwork], size: int, samples: int
) -> Iterator[Feeds]:
    """Batches of both models' inputs, by their graphs' tensors.

    Args:
        source: The model that is right, opened.
        target: The other one.
        size: Of a batch.
        samples: How many at most; the last batch is filled up.
    """
    sides = [batches_of(subject, opened, size, samples) for subject, opened in (source, target)]
    yield from zip(*sides, strict=False)


def batches_of(subject: FedModel, opened: OpenedNetwork, size: int, samples: int) -> Iterator[Mapping[str, Array]]:
    """Feeds by the graph's tensors, the last batch filled up.

    Args:
        subject: The model.
        opened: The same, opened.
        size: Of a batch.
        samples: How many at most.
    """
    reader = reader_of(subject, opened, samples)
    for batch in batches(reader, opened.inputs, size):
        yield {opened.input_tensors[name]: array for name, array in batch.feeds.items()}


def reader_of(subject: FedModel, opened: OpenedNetwork, samples: int | None = None) -> FeedSource:
    """What a model is fed, as it was opened.

    Args:
        subject: The model.
        opened: The same, opened.
        samples: How many at most; None: all.
    """
    reader = open_feeds(subject.data, opened.inputs, subject.recipe)
    reader.count = reader.count if samples is None else min(reader.count, samples)
    return reader
