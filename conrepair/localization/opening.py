"""Open a model as a network: in its own framework, or through ONNX where that has no graph to cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from conrepair.converters.routes import find_route
from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.model import Model
from conrepair.frameworks.registry import channels_of
from conrepair.graph.layer_graph import Array
from conrepair.localization.pieces import Pieces
from conrepair.networks.network import Network, open_network
from conrepair.runtime.errors import ConrepairError, ModelLoadError
from conrepair.runtime.files import HashedPath


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
        from conrepair.networks.tvm import open_build

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
        raise ModelLoadError(f"{model.path} can't be looked into: {reason} Through ONNX: {error}") from error
    tensors = {spec.name: tensor for spec, tensor in zip(inputs, network.input_names.values(), strict=True)}
    note = f"{Path(model.path).name} is analysed through ONNX ({route.name}): {reason}"
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
