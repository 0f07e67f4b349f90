"""PyTorch models as networks: graphs of ATen operators, computed by PyTorch itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch

from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.model import Model
from conrepair.networks.network import Network
from conrepair.networks.torch_constants import TorchConstants
from conrepair.networks.torch_graph import has_word, named_graph
from conrepair.networks.torch_program import open_program
from conrepair.networks.torch_segment import TorchSegment
from conrepair.runtime.errors import InferenceError

__all__ = ["TorchNetwork", "open_network"]


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
    """See `conrepair.networks.network.Network`. Weights are held once, by the program."""

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
        named = named_graph(program, self._constants, given)
        self.graph = named.graph
        self.input_names = dict(zip(given, self.graph.inputs, strict=True))
        names = [name for name, _ in program.outputs]
        self.output_names = dict(zip(names, self.graph.outputs, strict=True))
        self._origins = named.origins
        values = {name: program.values[node] for name, node in named.origins.items()}
        self._types: dict[str, torch.dtype] = {name: value.dtype for name, value in values.items()}

    def segment(self, fed: Collection[str], wanted: Sequence[str]) -> TorchSegment:
        """See `Network`."""
        for name in [*fed, *wanted]:
            if name not in self._origins:
                raise ValueError(f"{name} is no tensor of the network that can be observed")
        for name in wanted:
            if name in self.graph.inputs:
                raise ValueError(f"{name} is an input of the network and not computed")
        try:
            return TorchSegment(self._origins, self._types, self._constants, fed, wanted)
        except ValueError:
            raise
        # Constants are computed here by operators of any library.
        except Exception as error:
            raise InferenceError(f"a piece of the network can't be built: {type(error).__name__}: {error}") from error

    def second_opinion(self) -> TorchNetwork:
        """In float64."""
        return TorchNetwork(self._model, self._inputs, double=True)
