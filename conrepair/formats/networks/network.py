"""What every framework's network gives: its graph, and any piece of it to run."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import channels_of, framework
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.layer_graph import Array, LayerGraph, without_sizes
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.handing_on import Recent

if TYPE_CHECKING:
    from onnx import ModelProto


@dataclass(frozen=True)
class CompiledKernel:
    """What computes a tensor of a network that was compiled.

    Attributes:
        functions: Names of the kernels, in order; several where an operator became several.
        operators: Name and kind of the operators that they stand for, in order.
    """

    functions: tuple[str, ...]
    operators: tuple[tuple[str, str], ...]


class Segment(abc.ABC):
    """A piece of a network, ready to run.

    Attributes:
        needs: Which of the tensors that it was cut at it reads.
        wanted: What it computes.
    """

    needs: tuple[str, ...]
    wanted: tuple[str, ...]

    @abc.abstractmethod
    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Compute one batch, of the size that the network was opened with.

        Args:
            feeds: Arrays for `needs` at least, in the network's own layouts; real numbers for quantized tensors.

        Returns:
            Arrays for `wanted`; quantized tensors as the real numbers they stand for.

        Raises:
            InferenceError: if the framework fails.
        """


@dataclass(frozen=True)
class Piece:
    """A piece of a network as a model of its own.

    Attributes:
        model: With its weights inside.
        feeds: What its inputs are called, by the tensor that is fed.
    """

    model: ModelProto
    feeds: Mapping[str, str]


class Network(abc.ABC):
    """A model as a graph that can be cut.

    Attributes:
        graph: The network's layers, with names as they stand in the file.
        input_names: The graph's tensor for each input of the framework's `Runnable`, by the name that has.
        output_names: The same for its outputs.
        original: What it was compiled from, with the same graph; None for what runs as it's written.
        ordered: Whether its outputs have an order, and not names alone.
        producer: What wrote the file, where it says so.
        keys: Of outputs that are maps in the file, what their last axis stands for; by the names of outputs.
        channels: Where its format has the channels of a picture, see `channels_of`; "" where that isn't known.
    """

    graph: LayerGraph
    input_names: Mapping[str, str]
    output_names: Mapping[str, str]
    keys: Mapping[str, tuple[int | str, ...]] = MappingProxyType({})
    original: Network | None = None
    ordered: bool = True
    producer: str = ""
    channels: str = ""

    def kernel(self, tensor: str) -> CompiledKernel | None:
        """What computes a tensor, where this was compiled; None for an input."""
        return None

    @abc.abstractmethod
    def segment(self, fed: Collection[str], wanted: Sequence[str]) -> Segment:
        """Prepare a segment of the network.

        A tensor that is fed *and* wanted is computed from what is fed in front of it; whoever reads it in the
        segment gets the fed value. So one segment can compute every piece between neighbouring cuts at once.

        Only the weights that the piece uses are held by it, and shared with the network where the framework can.

        Args:
            fed: Observable tensors whose values will be given. Those that the wanted ones don't depend on are
                left out of `needs`. The network's inputs that are needed must be among them.
            wanted: Observable tensors to compute, none of them an input of the network.

        Raises:
            ValueError: if a tensor isn't observable, or an input is needed and not fed.
            InferenceError: if the framework can't build the piece.
        """

    def check_cuts(self, fed: Collection[str], wanted: Sequence[str]) -> None:
        """Refuse what no segment can be cut at.

        Args:
            fed: See `segment`.
            wanted: See `segment`.

        Raises:
            ValueError: if a tensor isn't observable, or a wanted one is an input.
        """
        for name in (*fed, *wanted):
            if name not in self.graph.tensors or not self.graph.tensors[name].observable:
                raise ValueError(f"{name} is no tensor of the network that can be observed")
        for name in self.graph.inputs:
            if name in wanted:
                raise ValueError(f"{name} is an input of the network: nothing computes it")

    def second_opinion(self) -> Network:
        """The same graph in another arithmetic: the difference between both is rounding.

        What this network has loaded is used again where the framework can.

        Raises:
            ModelLoadError: if there's no other arithmetic, or the model can't be computed in it.
        """
        raise ModelLoadError(f"{type(self).__name__} has one arithmetic only")

    def with_weights(self, change: Callable[[Array], Array]) -> Network:
        """The same network with other numbers in its weights; itself where its format has no way to do that.

        Args:
            change: Gives an array of the same shape and type for each one of real numbers.
        """
        return self

    def as_onnx(self, fed: Collection[str], wanted: Sequence[str]) -> Piece | None:
        """A piece of the network as ONNX, whose every operator is as the file says; None of another format.

        Args:
            fed: See `segment`.
            wanted: See `segment`.
        """
        return None


# Find a framework's networks by its name; import it only then.


_RECENT: Recent[Network] = Recent(256 << 20)


def open_network(model: Model, inputs: Sequence[TensorSpec]) -> Network:
    """Open a model as a network, whose graph leaves out what only computes sizes; small ones are held for the next.

    Ours are `conrepair.formats.{name}.read.network`.

    Args:
        model: What to open.
        inputs: The model's, all sizes numbers.

    Raises:
        ModelLoadError: if it can't be read or has no graph that can be cut.
    """
    # The batch axis doesn't matter for opening a network.
    sizes = [dataclasses.replace(spec, sample_axis=None) for spec in inputs]
    how = repr((model.bare, sizes))
    return _RECENT.of(Path(model.path), how, lambda: _opened(model, inputs))


def _opened(model: Model, inputs: Sequence[TensorSpec]) -> Network:
    network = framework(model.framework).open_network(model, inputs)
    network.graph, network.channels = without_sizes(network.graph), channels_of(model.framework, network.producer)
    return network
