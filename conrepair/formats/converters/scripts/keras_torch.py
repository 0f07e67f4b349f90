"""Keras to PyTorch; runs under our own Python with KERAS_BACKEND=torch."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conrepair.formats.converters.torch_result import save_torch
from conrepair.formats.keras.load.framework import KerasRunnable
from conrepair.formats.models.model import Model
from conrepair.ground.data.symbolic_sizes import with_declared_sizes
from conrepair.ground.runtime.typed import typed


def main(arguments: dict[str, Any]) -> dict[str, Any]:
    """Convert a model.

    Args:
        arguments: "model" (as JSON) and "folder" (to write into).

    Returns:
        "file", its name in the folder.
    """
    from conrepair.formats.torch.load.framework import example_inputs

    model = typed(Model, arguments["model"])
    runnable = KerasRunnable(model)
    for variable in runnable.network.variables:
        variable.value.requires_grad_(False)  # so that a trace may hold them as constants
    inputs = runnable.inputs
    examples = example_inputs(with_declared_sizes(inputs, model.inputs))
    return {"file": save_torch(_module(runnable), examples, inputs, Path(arguments["folder"]))}


def _module(runnable: KerasRunnable) -> Any:
    """The network as a module whose arguments and results have the names that it gives to them."""
    import keras
    import torch

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = runnable.network

        def forward(self, *tensors: torch.Tensor) -> dict[str, torch.Tensor]:
            result = self.network(runnable.packed(list(tensors)), training=False)
            names = (spec.name for spec in runnable.outputs)
            return dict(zip(names, keras.tree.flatten(result), strict=True))

    forward: Callable[..., Any] = Network.forward
    forward.__signature__ = _signature([spec.name for spec in runnable.inputs])  # type: ignore[attr-defined]
    return Network().eval()


def _signature(names: list[str]) -> inspect.Signature:
    """torch.export names its inputs after the parameters."""
    usable = all(name.isidentifier() and not keyword.iskeyword(name) for name in names) and "self" not in names
    parameters = ["self", *(names if usable else [f"input_{index}" for index in range(len(names))])]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(name, kind) for name in parameters])
