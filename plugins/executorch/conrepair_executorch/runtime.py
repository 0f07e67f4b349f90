"""Programs that ExecuTorch runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from executorch.extension.pybindings import portable_lib

from conrepair.plugins import Array, Model, Runnable, TensorSpec, loading

# torch's numbers of types, as programs have them
_TYPES = ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
_OTHERS = {11: "bool", 15: "bfloat16"}
KINDS = frozenset({*_TYPES, "bool"})
"""Types that NumPy has, too."""


def load(model: Model, **tracing: Any) -> Any:
    """Load a file.

    Args:
        model: Which.
        **tracing: Of ExecuTorch's event tracer.
    """
    with loading(model, "a program of ExecuTorch"):
        return portable_lib._load_for_executorch(model.path, **tracing)


def specs(module: Any) -> tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...]]:
    """Inputs and outputs of `forward`, which have numbers for names.

    Args:
        module: What was loaded.
    """
    about = module.method_meta("forward")
    inputs = [_spec(f"input_{place}", about.input_tensor_meta(place)) for place in range(about.num_inputs())]
    outputs = [_spec(f"output_{place}", about.output_tensor_meta(place)) for place in range(about.num_outputs())]
    return tuple(inputs), tuple(outputs)


def _spec(name: str, about: Any) -> TensorSpec:
    number = int(about.dtype())
    dtype = _OTHERS[number] if number in _OTHERS else _TYPES[number]
    return TensorSpec(name, tuple(about.sizes()), dtype)


class Program(Runnable):
    """A program that was loaded."""

    def __init__(self, model: Model) -> None:
        """Load it.

        Args:
            model: The file.
        """
        self._model, self._module = model, load(model)
        with loading(model, "a program of ExecuTorch"):
            self.inputs, self.outputs = specs(self._module)

    def _reset(self) -> None:
        """A program may keep a state, which goes with what was loaded."""
        self._module = load(self._model)

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        found = forward(self._module, [feeds[spec.name] for spec in self.inputs])
        return {spec.name: array for spec, array in zip(self.outputs, found, strict=True)}


def forward(module: Any, feeds: list[Array]) -> list[Array]:
    """Run `forward` once.

    Args:
        module: What was loaded.
        feeds: In order.
    """
    return [np.array(item) for item in module.forward([torch.from_numpy(np.array(array)) for array in feeds])]
