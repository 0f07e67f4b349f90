"""PyTorch models as networks: graphs of ATen operators, computed by PyTorch itself."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.fx import Node

from conrepair.formats.models.model import Model
from conrepair.formats.networks.network import Network, Segment
from conrepair.formats.torch.load.double import arithmetic
from conrepair.formats.torch.load.framework import array_from_tensor, tensor_from_array
from conrepair.formats.torch.read.constants import TorchConstants
from conrepair.formats.torch.read.graph import has_word, named_graph
from conrepair.formats.torch.read.plan import needed, released
from conrepair.formats.torch.read.program import open_program
from conrepair.formats.torch.read.simplify import computed
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.runtime.errors import InferenceError


def open_network(model: Model, inputs: Sequence[TensorSpec]) -> Network:
    """Open a model for inputs of given sizes.

    Args:
        model: A PyTorch model.
        inputs: As running the model has them, with sizes that are numbers.

    Raises:
        ModelLoadError: if the model can't be loaded, isn't a graph of operators (TorchScript), or doesn't take such
            inputs.
    """
    return TorchNetwork(model, inputs)


class TorchNetwork(Network):
    """See `conrepair.formats.networks.network.Network`. Weights are held once, by the program."""

    def __init__(self, model: Model, inputs: Sequence[TensorSpec], *, double: bool = False) -> None:
        """Open and describe a program.

        Args:
            model: A PyTorch model.
            inputs: As running the model has them, with sizes that are numbers.
            double: Whether to compute in float64.
        """
        program = open_program(model, inputs, has_word, double=double)
        given = [spec.name for spec in inputs]
        self._model, self._inputs = model, inputs
        self._constants = TorchConstants(program)
        self.graph, self._origins = named_graph(program, self._constants, given)
        self.input_names = dict(zip(given, self.graph.inputs, strict=True))
        names = [name for name, _ in program.outputs]
        self.output_names = dict(zip(names, self.graph.outputs, strict=True))
        values = {name: program.values[node] for name, node in self._origins.items()}
        self._types: dict[str, torch.dtype] = {name: value.dtype for name, value in values.items()}

    def segment(self, fed: Collection[str], wanted: Sequence[str]) -> TorchSegment:
        """See `Network`."""
        self.check_cuts(fed, wanted)
        try:
            return TorchSegment(self._origins, self._types, self._constants, fed, wanted)
        except ValueError:
            raise
        # Constants are computed here by operators of any library.
        except Exception as error:
            raise InferenceError(f"a segment can't be built: {type(error).__name__}: {error}") from error

    def second_opinion(self) -> TorchNetwork:
        """The network in float64."""
        return TorchNetwork(self._model, self._inputs, double=True)

    def with_weights(self, change: Callable[[Array], Array]) -> TorchNetwork:
        """See the base class."""

        def changed(value: Any) -> Any:
            real = isinstance(value, torch.Tensor) and value.is_floating_point()
            return tensor_from_array(change(array_from_tensor(value.detach()))) if real else value

        other = copy.copy(self)
        other._constants = TorchConstants(self._constants.program, changed)
        return other


class TorchSegment(Segment):
    """See `conrepair.formats.networks.network.Segment`."""

    def __init__(
        self,
        tensors: Mapping[str, Node],
        types: Mapping[str, torch.dtype],
        constants: TorchConstants,
        fed: Collection[str],
        wanted: Sequence[str],
    ) -> None:
        """Plan which nodes to compute.

        Args:
            tensors: Where each tensor comes from.
            types: Of each tensor.
            constants: Of the graph.
            fed: Names of tensors.
            wanted: Names of tensors.
        """
        self.wanted = tuple(wanted)
        given = {tensors[name]: name for name in dict.fromkeys(fed)}
        nodes, reads = needed(given, [tensors[name] for name in wanted], constants)
        self.needs = tuple(name for node, name in given.items() if node in reads)
        self._types = {name: types[name] for name in self.needs}
        self._constant = {
            name: constants.value(tensors[name])
            for name in dict.fromkeys(wanted)
            if tensors[name] not in constants.dependent
        }
        self._fed = {name: tensors[name] for name in self.needs}
        self._released = released(nodes)
        self._kept = {tensors[name]: name for name in wanted}
        read = {item for node in nodes for item in node.all_input_nodes}
        self._held = {item: constants.value(item) for item in read.difference(nodes, given)}
        self._double = constants.program.double

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """See `Segment`."""
        values = self._held | {node: _tensor(feeds[name]).to(self._types[name]) for name, node in self._fed.items()}
        storages = {item.untyped_storage().data_ptr() for item in values.values() if isinstance(item, torch.Tensor)}
        results: dict[str, Array] = {}
        try:
            with torch.inference_mode(), arithmetic(double=self._double):
                for node, done in self._released.items():
                    result = computed(node, values.__getitem__)
                    if node in self._kept:
                        results[self._kept[node]] = _own_array(result, storages)
                    values.setdefault(node, result)  # of a node that is fed too, the fed value is read
                    del result
                    for item in done:
                        del values[item]
                for name, value in self._constant.items():
                    results[name] = _own_array(value.clone(), storages)
        # Operators of any library run here.
        except Exception as error:
            raise InferenceError(f"running a segment failed: {type(error).__name__}: {error}") from error
        return {name: results[name] for name in self.wanted}


def _tensor(array: Array) -> torch.Tensor:
    """Nothing is written to it, so the array may be read-only; PyTorch would warn of that."""
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = np.array(array)
    return tensor_from_array(array)


def _own_array(tensor: torch.Tensor, storages: set[int]) -> Array:
    """Memory that nothing else refers to: no feed, no weight, no other result, no larger tensor behind a view.

    Args:
        tensor: What was computed.
        storages: Addresses of feeds and of what was handed out; gets the tensor's.
    """
    tensor = tensor.contiguous()
    storage = tensor.untyped_storage()
    if storage.data_ptr() in storages or storage.nbytes() != tensor.nbytes:
        tensor = tensor.clone(memory_format=torch.contiguous_format)
    storages.add(tensor.untyped_storage().data_ptr())
    return array_from_tensor(tensor)
