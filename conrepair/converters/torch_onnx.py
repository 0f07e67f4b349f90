"""What both of PyTorch's ONNX exporters are given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conrepair.data.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from conrepair.frameworks.torch import TorchRunnable

__all__ = ["export_names", "symbolic_axes"]


def export_names(runnable: TorchRunnable) -> dict[str, list[str]]:
    """The exporters' arguments that name inputs and outputs, in order.

    An output named like an input is renamed, as ONNX wants all names different.
    """
    inputs, outputs = ([spec.name for spec in specs] for specs in (runnable.inputs, runnable.outputs))
    return {"input_names": inputs, "output_names": [f"{name}_out" if name in inputs else name for name in outputs]}


def symbolic_axes(spec: TensorSpec) -> dict[int, str]:
    """Names of the symbolic dimensions by axis."""
    return {axis: str(size) for axis, size in enumerate(spec.shape) if not isinstance(size, int)}
