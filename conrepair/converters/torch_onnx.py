"""What both of PyTorch's ONNX exporters are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.model import Model

__all__ = ["ExportArguments", "export_arguments", "symbolic_axes"]


@dataclass(frozen=True)
class ExportArguments:
    """A module with example inputs and names.

    Attributes:
        module: The network, in evaluation mode.
        examples: Zeros, of sizes that it takes.
        inputs: The network's.
        outputs: The network's.
    """

    module: Any
    examples: tuple[Any, ...]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    @property
    def input_names(self) -> list[str]:
        """In order."""
        return [spec.name for spec in self.inputs]

    @property
    def output_names(self) -> list[str]:
        """In order; an output named like an input is renamed, as ONNX wants all names different."""
        taken = set(self.input_names)
        return [f"{spec.name}_out" if spec.name in taken else spec.name for spec in self.outputs]


def export_arguments(model: Model) -> ExportArguments:
    """Load a PyTorch model for export."""
    from conrepair.frameworks.torch import TorchRunnable

    runnable = TorchRunnable(model)
    return ExportArguments(runnable.module, runnable.examples, runnable.inputs, runnable.outputs)


def symbolic_axes(spec: TensorSpec) -> dict[int, str]:
    """Names of the symbolic dimensions by axis."""
    return {axis: str(size) for axis, size in enumerate(spec.shape) if not isinstance(size, int)}
